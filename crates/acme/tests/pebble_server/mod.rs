//! One Pebble and its DNS server, with the servers that it validates against. They end with this value.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onehop_acme::{
    AccountStore, AcmeIssuer, Answering, Challenge, ChallengeKind, Challenges, ExecHook, ExternalAccount,
    MemoryChallenges, Settings, Solvers,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long a server may take to listen: both start at once, on a machine that may be busy with other tests.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const ALPN: &[u8] = b"acme-tls/1";

pub(crate) struct Pebble {
    programs: PathBuf,
    folder: TempDir,
    root: CertificateDer<'static>,
    children: Vec<Child>,
    nonces_rejected: &'static str,
    acme: SocketAddr,
    dns: SocketAddr,
    dns_management: SocketAddr,
    pub(crate) memory: Arc<MemoryChallenges>,
}

/// How this Pebble differs from others.
#[derive(Default)]
pub(crate) struct Options {
    /// Nothing listens where HTTP-01 is validated.
    pub(crate) has_no_http: bool,
    /// Accounts need a key: `kid` and [`EXTERNAL_KEY`].
    pub(crate) wants_external_account: bool,
    /// The share of nonces that are refused, in percent.
    pub(crate) nonces_rejected: Option<&'static str>,
}

pub(crate) const EXTERNAL_KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

impl Pebble {
    /// Starts the servers; `None` where the programs are not at hand.
    pub(crate) async fn start(options: Options) -> Option<Self> {
        let Some(programs) =
            std::env::var_os("ONEHOP_PEBBLE").map(PathBuf::from).filter(|path| path.is_dir())
        else {
            // The test harness hides what `println!` writes in a test that passes.
            let _ = writeln!(std::io::stderr(), "skipped: ONEHOP_PEBBLE names no folder with pebble");
            return None;
        };
        let memory = Arc::new(MemoryChallenges::default());
        let http = if options.has_no_http { free_address() } else { serve_http(Arc::clone(&memory)).await };
        let tls = serve_tls(Arc::clone(&memory)).await;
        let folder = tempfile::tempdir().unwrap();
        let root = make_certificate(folder.path());
        let mut pebble = Self {
            programs,
            folder,
            root,
            children: Vec::new(),
            nonces_rejected: options.nonces_rejected.unwrap_or("0"),
            acme: free_address(),
            dns: free_address(),
            dns_management: free_address(),
            memory,
        };
        let keys = if options.wants_external_account {
            format!(r#""externalAccountMACKeys": {{"kid": "{EXTERNAL_KEY}"}},"#)
        } else {
            String::new()
        };
        let config = format!(
            r#"{{"pebble": {{"listenAddress": "{}", "managementListenAddress": "",
                "certificate": "{folder}/certificate.pem", "privateKey": "{folder}/key.pem",
                "httpPort": {}, "tlsPort": {}, "externalAccountBindingRequired": {}, {keys}
                "domainBlocklist": ["blocked.example"], "keyAlgorithm": "ecdsa",
                "profiles": {{"default": {{"description": "90 days", "validityPeriod": 7776000}},
                    "shortlived": {{"description": "6 days", "validityPeriod": 518400}}}}}}}}"#,
            pebble.acme,
            http.port(),
            tls.port(),
            options.wants_external_account,
            folder = pebble.folder.path().display(),
        );
        std::fs::write(pebble.folder.path().join("config.json"), config).unwrap();
        pebble.start_dns().await;
        pebble.start_acme().await;
        Some(pebble)
    }

    /// Replaces Pebble by another one at the same address, which knows nothing of the first one's accounts.
    pub(crate) async fn restart(&mut self) {
        let mut acme = self.children.pop().unwrap();
        acme.kill().unwrap();
        acme.wait().unwrap();
        self.start_acme().await;
    }

    async fn start_acme(&mut self) {
        let mut command = Command::new(self.programs.join("pebble"));
        command.arg("-config").arg(self.folder.path().join("config.json"));
        command.args(["-dnsserver", &self.dns.to_string()]);
        command.env("PEBBLE_VA_NOSLEEP", "1").env("PEBBLE_AUTHZREUSE", "0");
        command.env("PEBBLE_WFE_NONCEREJECT", self.nonces_rejected);
        self.spawn(command, self.acme).await;
    }

    async fn start_dns(&mut self) {
        let mut command = Command::new(self.programs.join("pebble-challtestsrv"));
        command.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-defaultIPv6", ""]);
        command.args(["-dnsserver", &self.dns.to_string(), "-management", &self.dns_management.to_string()]);
        self.spawn(command, self.dns_management).await;
    }

    async fn spawn(&mut self, mut command: Command, address: SocketAddr) {
        let log = self.folder.path().join(format!("{}.log", address.port()));
        let file = File::create(&log).unwrap();
        command.stdin(Stdio::null()).stderr(file.try_clone().unwrap()).stdout(file);
        self.children.push(command.spawn().unwrap());
        let until = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(address).await.is_err() {
            let has_ended = self.children.last_mut().unwrap().try_wait().unwrap().is_some();
            let log = || std::fs::read_to_string(&log).unwrap();
            assert!(!has_ended && Instant::now() < until, "{command:?} does not listen: {}", log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) fn settings(&self, challenges: &[ChallengeKind]) -> Settings {
        Settings {
            directory: format!("https://{}/dir", self.acme),
            trusted_roots: vec![self.root.clone()],
            email: Some("operator@example.com".into()),
            external_account: None,
            profile: None,
            accept_terms: true,
            challenges: challenges.to_vec(),
            deadline: Duration::from_secs(60),
        }
    }

    pub(crate) fn external_account() -> ExternalAccount {
        ExternalAccount { key_id: "kid".into(), hmac_key: EXTERNAL_KEY.into() }
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
            dns_propagation_delay: Duration::ZERO,
        }
    }

    /// What the DNS hook was called with.
    pub(crate) fn dns_calls(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("calls")).unwrap()
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
            (self.folder.path().display().to_string(), self.dns_management.port().to_string());
        let arguments = vec!["-c".into(), script.into(), "hook".into(), folder, port];
        ExecHook { program: "bash".into(), arguments, deadline: Duration::from_secs(20) }
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Keeps one account and counts how often it was created.
#[derive(Default)]
pub(crate) struct MemoryStore {
    credentials: Mutex<Option<String>>,
    pub(crate) saved: AtomicUsize,
}

impl AccountStore for MemoryStore {
    fn load(&self) -> Result<Option<String>, String> {
        Ok(self.credentials.lock().unwrap().clone())
    }

    fn save(&self, credentials: &str) -> Result<(), String> {
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

/// Pebble's own certificate and its key as files; returns the root that signed it.
fn make_certificate(folder: &Path) -> CertificateDer<'static> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let (root_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let root = params.self_signed(&root_key).unwrap();
    let leaf = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &rcgen::Issuer::new(params, root_key)).unwrap();
    std::fs::write(folder.join("certificate.pem"), leaf.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    root.der().clone()
}

/// An address that nothing listens on, below the ports that the kernel gives to connections.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(37) + NEXT.fetch_add(1, Ordering::Relaxed);
        let address =
            SocketAddr::from((Ipv4Addr::LOCALHOST, 10_000 + u16::try_from(number % 20_000).unwrap()));
        if std::net::TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return address;
        }
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
