//! Encrypted connections: verified, resumed, moved.

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::peer::Tls;

/// The name that the upstream's certificate has.
const NAME: &str = "upstream.test";

/// Sends back what it receives, encrypted.
struct Encrypted {
    address: SocketAddr,
    config: Arc<ClientConfig>,
}

impl Encrypted {
    fn start() -> Self {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let server = server.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let server = server.with_single_cert(vec![cert.der().clone()], key).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let client = ClientConfig::builder_with_provider(provider);
        let client = client.with_safe_default_protocol_versions().unwrap();
        let mut client = client.with_root_certificates(roots).with_no_client_auth();
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        // Ends with the test's process.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let acceptor = TlsAcceptor::from(Arc::new(server));
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let acceptor = acceptor.clone();
                    tokio::spawn(async move {
                        let Ok(mut stream) = acceptor.accept(stream).await else { return };
                        let mut bytes = vec![0; 4096];
                        while let Ok(count @ 1..) = stream.read(&mut bytes).await {
                            if stream.write_all(&bytes[..count]).await.is_err()
                                || stream.flush().await.is_err()
                            {
                                return;
                            }
                        }
                    });
                }
            });
        });
        Self { address, config: Arc::new(client) }
    }

    fn peer(&self, name: &'static str, connections_min: usize) -> Arc<Peer> {
        let tls = Tls {
            config: Arc::clone(&self.config),
            name: ServerName::try_from(name).unwrap(),
            timeout: Duration::from_secs(10),
        };
        peer_at(self.address, PeerSettings { tls: Some(tls), connections_min, ..settings() })
    }
}

fn echoed(cores: &Cores, core: usize, peer: &Arc<Peer>, reuse: Reuse, bytes: &'static [u8]) -> Vec<u8> {
    let peer = Arc::clone(peer);
    cores.on(core, move |pools| async move {
        let connection = pools.get(&peer, reuse).await.expect("a connection");
        let echoed = echo(&connection, bytes).await;
        finish(&pools, &peer, connection);
        echoed
    })
}

#[test]
fn an_upstream_shows_a_certificate_for_its_name_or_is_refused() {
    let upstream = Encrypted::start();
    let cores = Cores::start(1, &[]);
    let peer = upstream.peer(NAME, 0);
    assert_eq!(echoed(&cores, 0, &peer, Reuse::Any, b"verified"), b"verified");
    let other = upstream.peer("other.test", 0);
    let asked = Arc::clone(&other);
    let reason = cores.on(0, move |pools| async move {
        match pools.get(&asked, Reuse::Any).await {
            Err(ConnectError::Tls(reason)) => reason,
            _ => String::new(),
        }
    });
    assert!(reason.contains("not valid for name"), "{reason}");
    let counts = other.counts();
    assert_eq!((counts.open, counts.handshakes, counts.dial_failures), (0, 0, 1));
}

#[test]
fn sessions_are_resumed_and_their_tickets_are_no_words_on_an_idle_connection() {
    let upstream = Encrypted::start();
    let peer = upstream.peer(NAME, 2);
    let cores = Cores::start(1, &[&peer]);
    wait_until("open", || peer.counts().idle == 2);
    // A ticket that came after the handshake was taken by nobody's request.
    wait_until("resumed", || {
        let asked = Arc::clone(&peer);
        cores.on(0, move |pools| async move {
            drop(pools.get(&asked, Reuse::Never).await.expect("a connection"));
        });
        peer.counts().resumptions > 0
    });
    let counts = peer.counts();
    assert_eq!((counts.closed_idle, counts.idle, counts.open), (0, 2, 2));
    assert_eq!(echoed(&cores, 0, &peer, Reuse::Alive, b"still silent"), b"still silent");
}

#[test]
fn an_encrypted_connection_moves_between_cores_with_its_session() {
    let upstream = Encrypted::start();
    let peer = upstream.peer(NAME, 0);
    let cores = Cores::start(2, &[]);
    assert_eq!(echoed(&cores, 0, &peer, Reuse::Any, b"here"), b"here");
    assert_eq!(echoed(&cores, 1, &peer, Reuse::Any, b"there"), b"there");
    assert_eq!(echoed(&cores, 0, &peer, Reuse::Alive, b"and back"), b"and back");
    let counts = peer.counts();
    assert_eq!((counts.handshakes, counts.stolen, counts.open, counts.idle), (1, 2, 1, 1));
}

#[test]
fn a_handshake_that_is_not_answered_is_given_up() {
    let silent = Upstream::start();
    let upstream = Encrypted::start();
    let tls = Tls {
        config: Arc::clone(&upstream.config),
        name: ServerName::try_from(NAME).unwrap(),
        timeout: Duration::from_millis(50),
    };
    let peer = peer_at(silent.address, PeerSettings { tls: Some(tls), ..settings() });
    let cores = Cores::start(1, &[]);
    let asked = Arc::clone(&peer);
    let is_late = cores.on(0, move |pools| async move {
        matches!(pools.get(&asked, Reuse::Any).await, Err(ConnectError::Timeout))
    });
    assert!(is_late);
    assert_eq!(peer.counts().open, 0);
}
