//! One Pebble, as the tests' own kit starts it, with the servers that it validates against. They end with this value.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onehop_acme::{
    AccountStore, AcmeIssuer, Answering, Challenge, ChallengeKind, Challenges, ExecHook, ExternalAccount,
    MemoryChallenges, Propagation, Settings, Solvers,
};
use onehop_testkit::{free_address, pebble};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const ALPN: &[u8] = b"acme-tls/1";

/// One Pebble, with what validates against it.
pub(crate) struct Pebble {
    /// Gone while it is restarted.
    server: Option<pebble::Pebble>,
    pub(crate) memory: Arc<MemoryChallenges>,
}

/// How this Pebble differs from others.
#[derive(Default)]
pub(crate) struct Options {
    /// Nothing listens where HTTP-01 is validated.
    pub(crate) has_no_http: bool,
    /// Accounts need a key: `kid` and [`pebble::EXTERNAL_KEY`].
    pub(crate) wants_external_account: bool,
    /// The share of nonces that are refused, in percent.
    pub(crate) nonces_rejected: Option<&'static str>,
}

impl Pebble {
    /// Starts the servers; `None` where the programs are not at hand.
    pub(crate) async fn start(options: Options) -> Option<Self> {
        let memory = Arc::new(MemoryChallenges::default());
        let http = if options.has_no_http { free_address() } else { serve_http(Arc::clone(&memory)).await };
        let tls = serve_tls(Arc::clone(&memory)).await;
        let server = pebble::Pebble::start(pebble::Options {
            http_port: http.port(),
            tls_port: tls.port(),
            wants_external_account: options.wants_external_account,
            nonces_rejected: options.nonces_rejected,
            dns_server: None,
            validation_seconds: None,
        })?;
        Some(Self { server: Some(server), memory })
    }

    /// Replaces Pebble by another one at the same address, which knows nothing of the first one's accounts.
    pub(crate) async fn restart(&mut self) {
        let mut server = self.server.take().unwrap();
        // Meanwhile the client sees that its connections are closed.
        let (sender, restarted) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            server.restart();
            let _ = sender.send(server);
        });
        self.server = restarted.await.ok();
    }

    fn server(&self) -> &pebble::Pebble {
        self.server.as_ref().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        self.server().log()
    }

    pub(crate) fn settings(&self, challenges: &[ChallengeKind]) -> Settings {
        Settings {
            directory: self.server().directory(),
            trusted_roots: vec![self.server().root.clone()],
            email: Some("operator@example.com".into()),
            external_account: None,
            external_account_from: None,
            profile: None,
            accept_terms: true,
            challenges: challenges.to_vec(),
            not_tried: Vec::new(),
            deadline: Duration::from_secs(60),
        }
    }

    pub(crate) fn external_account() -> ExternalAccount {
        ExternalAccount { key_id: "kid".into(), hmac_key: pebble::EXTERNAL_KEY.into() }
    }

    /// An issuer with an account of its own, which answers all kinds of challenges.
    pub(crate) fn issuer(&self, challenges: &[ChallengeKind]) -> AcmeIssuer {
        let solvers: Arc<dyn Challenges> = Arc::new(self.solvers());
        AcmeIssuer::new(self.settings(challenges), Arc::new(MemoryStore::default()), solvers)
    }

    pub(crate) fn solvers(&self) -> Solvers {
        Solvers {
            memory: Arc::clone(&self.memory),
            dns: Some(Arc::new(self.dns_hook())),
            propagation: Propagation::default(),
            dns_name: None,
        }
    }

    /// What the DNS hook was called with.
    pub(crate) fn dns_calls(&self) -> String {
        std::fs::read_to_string(self.server().folder().join("calls")).unwrap()
    }

    /// Sets records of the DNS server, in bash alone.
    fn dns_hook(&self) -> ExecHook {
        let script = r#"
            echo "$3 $4" >> "$1/calls"
            if [ "$3" = present ]; then path=set-txt; else path=clear-txt; fi
            body="{\"host\": \"$4.\", \"value\": \"$5\"}"
            exec 3<>"/dev/tcp/127.0.0.1/$2"
            printf 'POST /%s HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s' "$path" "${#body}" "$body" >&3
            read -r _ status _ <&3
            [ "$status" = 200 ]"#;
        let (folder, port) =
            (self.server().folder().display().to_string(), self.server().dns_management.port().to_string());
        let arguments = vec!["-c".into(), script.into(), "hook".into(), folder, port];
        ExecHook { program: "bash".into(), arguments, deadline: Duration::from_secs(20) }
    }
}

/// Keeps one account and counts how often it was created.
#[derive(Default)]
pub(crate) struct MemoryStore {
    credentials: Mutex<Option<String>>,
    pub(crate) saved: AtomicUsize,
    /// Whether nothing can be saved.
    pub(crate) is_full: AtomicBool,
}

impl AccountStore for MemoryStore {
    fn load(&self) -> Result<Option<String>, String> {
        Ok(self.credentials.lock().unwrap().clone())
    }

    fn save(&self, credentials: &str) -> Result<(), String> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err("the disk is full".to_owned());
        }
        self.saved.fetch_add(1, Ordering::Relaxed);
        *self.credentials.lock().unwrap() = Some(credentials.to_owned());
        Ok(())
    }
}

/// Presents everything but HTTP-01, and counts what is presented and not removed.
pub(crate) struct WithoutHttp {
    pub(crate) memory: Arc<MemoryChallenges>,
    pub(crate) presented: Mutex<HashMap<String, i32>>,
}

impl WithoutHttp {
    fn count(&self, challenge: &Challenge, difference: i32) {
        let (Challenge::Http01 { name, .. }
        | Challenge::TlsAlpn01 { name, .. }
        | Challenge::Dns01 { name, .. }) = challenge;
        *self.presented.lock().unwrap().entry(name.clone()).or_default() += difference;
    }
}

impl Challenges for WithoutHttp {
    fn present<'a>(&'a self, challenge: &'a Challenge) -> Answering<'a, Result<(), String>> {
        self.count(challenge, 1);
        match challenge {
            Challenge::Http01 { .. } => Box::pin(async { Ok(()) }),
            _ => self.memory.present(challenge),
        }
    }

    fn remove<'a>(&'a self, challenge: &'a Challenge) -> Answering<'a, ()> {
        self.count(challenge, -1);
        self.memory.remove(challenge)
    }
}

/// Answers HTTP-01 until the test's runtime ends.
async fn serve_http(memory: Arc<MemoryChallenges>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n")
                && stream.read_buf(&mut request).await.is_ok_and(|read| read > 0)
            {}
            let request = String::from_utf8(request).unwrap();
            let token = request.strip_prefix("GET /.well-known/acme-challenge/").unwrap_or_default();
            let token = token.split(' ').next().unwrap_or_default();
            let host = request.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
            let response = match memory.http_01(token, host) {
                Some(body) => format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}"),
                None => "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n".to_owned(),
            };
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    address
}

#[derive(Debug)]
struct Resolver(Arc<MemoryChallenges>);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_validation =
            hello.alpn().is_some_and(|mut protocols| protocols.any(|protocol| protocol == ALPN));
        is_validation.then(|| self.0.tls_alpn_01(hello.server_name()?)).flatten()
    }
}

/// Answers TLS-ALPN-01 until the test's runtime ends.
async fn serve_tls(memory: Arc<MemoryChallenges>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(Resolver(memory)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let _ = stream.shutdown().await;
            }
        }
    });
    address
}
