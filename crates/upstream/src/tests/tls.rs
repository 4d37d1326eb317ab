//! Encrypted connections: verified, resumed, moved.

use std::future::poll_fn;
use std::io::Cursor;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::*;
use crate::peer::Tls;

/// The name that the upstream's certificate has.
const NAME: &str = "upstream.test";

/// Serves each connection once it is encrypted.
struct Encrypted {
    address: SocketAddr,
    config: Arc<ClientConfig>,
}

/// Sends back what it receives.
async fn echo_bytes(mut stream: TlsStream<TcpStream>) {
    let mut bytes = vec![0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut bytes).await {
        if stream.write_all(&bytes[..count]).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

impl Encrypted {
    fn start() -> Self {
        Self::serving("http/1.1", echo_bytes)
    }

    /// `protocol`: what it and its client negotiate (ALPN).
    fn serving<F: Future<Output = ()> + Send + 'static>(
        protocol: &str,
        serve: impl Fn(TlsStream<TcpStream>) -> F + Copy + Send + 'static,
    ) -> Self {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let server = server.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut server = server.with_single_cert(vec![cert.der().clone()], key).unwrap();
        server.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let client = ClientConfig::builder_with_provider(provider);
        let client = client.with_safe_default_protocol_versions().unwrap();
        let mut client = client.with_root_certificates(roots).with_no_client_auth();
        client.alpn_protocols = vec![protocol.as_bytes().to_vec()];
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
                        if let Ok(stream) = acceptor.accept(stream).await {
                            serve(stream).await;
                        }
                    });
                }
            });
        });
        Self { address, config: Arc::new(client) }
    }

    fn peer(&self, name: &'static str, connections_min: usize) -> Arc<Peer> {
        self.peer_with(name, PeerSettings { connections_min, ..settings() })
    }

    fn peer_with(&self, name: &'static str, settings: PeerSettings) -> Arc<Peer> {
        let tls = Tls {
            config: Arc::clone(&self.config),
            name: ServerName::try_from(name).unwrap(),
            timeout: Duration::from_secs(10),
        };
        peer_at(self.address, PeerSettings { tls: Some(tls), ..settings })
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

/// Type and length of a frame's header (RFC 9113 section 4.1).
const HEADERS: u8 = 1;

/// Reads until a frame of this type has come; `None` where the client leaves before.
async fn read_until(stream: &mut TlsStream<TcpStream>, frame_type: u8) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 24];
    stream.read_exact(&mut bytes).await.ok()?;
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header).await.ok()?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let at = bytes.len();
        bytes.extend_from_slice(&header);
        bytes.resize(at + 9 + usize::try_from(length).ok()?, 0);
        stream.read_exact(&mut bytes[at + 9..]).await.ok()?;
        if header[3] == frame_type {
            return Some(bytes);
        }
    }
}

/// Speaks HTTP/2, and sends its settings only when a frame of this type has come.
async fn settle_late<const TYPE: u8>(mut stream: TlsStream<TcpStream>) {
    let Some(read) = read_until(&mut stream, TYPE).await else { return };
    let (reader, writer) = tokio::io::split(stream);
    let stream = tokio::io::join(AsyncReadExt::chain(Cursor::new(read), reader), writer);
    let mut builder = h2::server::Builder::new();
    let Ok(mut connection) = builder.enable_connect_protocol().handshake::<_, bytes::Bytes>(stream).await
    else {
        return;
    };
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        let _ = respond.send_response(http::Response::new(()), true);
    }
}

async fn write_head(link: &Link, fields: &[u8], upgrade: bool) {
    let (method, body) = (b"GET".as_slice(), onehop_http1::BodyLength::None);
    let head = onehop_http1::AskHead { method, target: b"/", fields, body, upgrade, trailers: false };
    let mut output = Vec::new();
    link.codec().write_request_head(&mut output, head).expect("a head");
    link.write(&output, &[]).await.expect("written");
}

async fn status(link: &Link) -> u16 {
    let (mut input, mut head) = (Input::new(), onehop_http1::ResponseHead::new());
    while link.codec().read_head(input.unread(), &mut head).expect("a head").is_none() {
        poll_fn(|context| link.poll_fill(&mut input, context)).await.expect("bytes");
    }
    head.status()
}

#[test]
fn a_request_over_http_2_does_not_wait_for_the_settings_and_those_beside_it_share_its_connection() {
    let upstream = Encrypted::serving("h2", settle_late::<HEADERS>);
    let peer = upstream.peer_with(NAME, PeerSettings { versions: Versions::Http2, ..settings() });
    let cores = Cores::start(1, &[]);
    let asked = Arc::clone(&peer);
    cores.on(0, move |pools| async move {
        let requests = (0..10).map(|_| {
            let (pools, asked) = (Rc::clone(&pools), Arc::clone(&asked));
            tokio::task::spawn_local(async move {
                let link = pools.get(&asked, Reuse::Any).await.expect("a stream");
                write_head(&link, b"Host: a.test\r\n", false).await;
                status(&link).await
            })
        });
        for request in requests.collect::<Vec<_>>() {
            assert_eq!(request.await.expect("it ends"), 200);
        }
    });
    assert_eq!(peer.counts().dials, 1);
}

#[test]
fn an_upgrade_over_http_2_waits_for_the_settings() {
    const SETTINGS: u8 = 4;
    let upstream = Encrypted::serving("h2", settle_late::<SETTINGS>);
    let peer = upstream.peer_with(NAME, PeerSettings { versions: Versions::Http2, ..settings() });
    let cores = Cores::start(1, &[]);
    let fields =
        b"Host: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    cores.on(0, move |pools| async move {
        let link = pools.get(&peer, Reuse::Any).await.expect("a stream");
        link.await_upgrades().await;
        write_head(&link, fields, true).await;
        assert_eq!(link.failure(), None);
        assert_eq!(status(&link).await, 101);
    });
}

#[test]
fn a_peer_that_sends_no_settings_over_tls_is_given_up_in_time() {
    let upstream = Encrypted::serving("h2", |mut stream| async move {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
    });
    let dial_timeout = Duration::from_millis(500);
    let peer =
        upstream.peer_with(NAME, PeerSettings { versions: Versions::Http2, dial_timeout, ..settings() });
    let cores = Cores::start(1, &[]);
    let asked = Arc::clone(&peer);
    let failure = cores.on(0, move |pools| async move {
        let link = pools.get(&asked, Reuse::Any).await.expect("a stream");
        write_head(&link, b"Host: a.test\r\n", false).await;
        let mut input = Input::new();
        let filled = poll_fn(|context| link.poll_fill(&mut input, context)).await;
        filled.err().and(link.failure())
    });
    assert!(failure.as_deref().is_some_and(|reason| reason.contains("the connection broke")), "{failure:?}");
    wait_until("it is closed", || peer.open() == 0);
}
