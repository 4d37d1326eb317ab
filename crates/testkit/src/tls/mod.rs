//! A TLS client: it offers what a test says, and shows what was negotiated and each record that came.
//!
//! Like the client for plain connections it is never kinder than a real one. Certificates are made in [`authority`].

mod authority;
mod offer;

use std::io::{Error, ErrorKind, IoSlice, Read, Result, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, ProtocolVersion};

pub use authority::{Authority, Identity, KeyKind, Validity, certificates_in};
pub use offer::{ECDSA_ONLY, Offer, OneStore, RSA_ONLY, TLS12, TLS13};
pub use rustls::AlertDescription;
pub use rustls::pki_types::CertificateDer;

use crate::TIMEOUT;

/// A client that keeps its sessions: the second connection to a name may resume the first.
#[derive(Clone)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
}

/// One encrypted connection.
pub struct TlsConnection {
    session: ClientConnection,
    socket: Tap,
}

/// How a stream of bytes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With `close_notify`, as RFC 8446 section 6.1 has it.
    CloseNotify,
    /// With a FIN alone, which anybody on the way could have sent.
    Fin,
    /// With a reset.
    Reset,
}

/// A record as it stood on the wire (RFC 8446 section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// 20 to 23; 23 is data of the application, and everything that TLS 1.3 encrypts.
    pub kind: u8,
    /// Bytes after its header.
    pub length: usize,
}

impl TlsClient {
    /// A client that offers this.
    ///
    /// # Panics
    /// Where the offer contradicts itself.
    pub fn new(offer: Offer) -> TlsClient {
        TlsClient { config: Arc::new(offer.into_config()) }
    }

    /// Connects to `host:port` and completes the handshake, for this name: a DNS name is sent (RFC 6066 section 3), an
    /// address is not. With TLS 1.3 the server may still refuse the client's certificate.
    ///
    /// # Errors
    /// Those of the network; `InvalidData` for those of TLS, see [`alert_of`].
    ///
    /// # Panics
    /// Where the name is neither a DNS name nor an address.
    pub fn connect(&self, address: &str, name: &str) -> Result<TlsConnection> {
        self.connect_over(TcpStream::connect(address)?, name)
    }

    /// The same over a TCP connection that is there: the caller may have sent something before.
    ///
    /// # Errors
    /// Those of [`TlsClient::connect`].
    pub fn connect_over(&self, stream: TcpStream, name: &str) -> Result<TlsConnection> {
        let mut connection = self.begin(stream, name)?;
        while connection.session.is_handshaking() {
            connection.session.complete_io(&mut connection.socket)?;
        }
        // Where the server has refused the client's certificate meanwhile, its reason is there to be read all the same.
        connection.send_waiting().or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) })?;
        Ok(connection)
    }

    /// A connection on which nothing has been sent yet.
    ///
    /// # Errors
    /// Where the socket takes no options.
    ///
    /// # Panics
    /// Where the name is neither a DNS name nor an address.
    pub fn begin(&self, stream: TcpStream, name: &str) -> Result<TlsConnection> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(name.to_owned()).expect("a name or an address");
        let session = ClientConnection::new(Arc::clone(&self.config), name).map_err(Error::other)?;
        Ok(TlsConnection {
            session,
            socket: Tap { stream, records: Vec::new(), header: Vec::new(), rest: 0 },
        })
    }
}

fn is_gone(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}

/// The alert that the server sent, where that was the error.
pub fn alert_of(error: &Error) -> Option<AlertDescription> {
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::AlertReceived(alert) => Some(*alert),
        _ => None,
    }
}

impl TlsConnection {
    /// What the server showed: its certificate first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        self.session.peer_certificates().unwrap_or_default()
    }

    /// The version that was negotiated.
    pub fn version(&self) -> Option<ProtocolVersion> {
        self.session.protocol_version()
    }

    /// The protocol that was negotiated.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.session.alpn_protocol()
    }

    /// Whether an earlier session was resumed.
    pub fn is_resumed(&self) -> bool {
        self.session.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Records that came until now, those of the handshake among them.
    pub fn records(&self) -> &[Record] {
        &self.socket.records
    }

    /// The TCP connection below.
    pub fn socket(&self) -> &TcpStream {
        &self.socket.stream
    }

    /// Sends what waits to be sent: the client's first message on a new connection, and then nothing else, which is a
    /// handshake that stops in the middle.
    ///
    /// # Errors
    /// Those of the network.
    pub fn send_waiting(&mut self) -> Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.socket)?;
        }
        Ok(())
    }

    /// Says that nothing more comes (RFC 8446 section 6.1), and leaves the TCP connection open in both directions.
    ///
    /// # Errors
    /// Those of the network.
    pub fn close_notify(&mut self) -> Result<()> {
        self.session.send_close_notify();
        self.send_waiting()
    }

    /// Everything that still comes, and how it ended.
    ///
    /// # Panics
    /// Where it does not end within [`TIMEOUT`](crate::TIMEOUT).
    pub fn read_to_its_end(&mut self) -> (Vec<u8>, End) {
        let mut all = Vec::new();
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.read(&mut buffer) {
                Ok(0) => return (all, End::CloseNotify),
                Ok(count) => all.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return (all, End::Fin),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return (all, End::Reset),
                Err(error) => panic!("the connection did not end: {error}"),
            }
        }
    }
}

impl Read for TlsConnection {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        rustls::Stream::new(&mut self.session, &mut self.socket).read(bytes)
    }
}

impl Write for TlsConnection {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        rustls::Stream::new(&mut self.session, &mut self.socket).write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        rustls::Stream::new(&mut self.session, &mut self.socket).flush()
    }
}

/// A socket that notes each record that comes through it.
struct Tap {
    stream: TcpStream,
    records: Vec<Record>,
    /// The header of a record that has not come whole.
    header: Vec<u8>,
    /// Bytes of the last record that are to come.
    rest: usize,
}

impl Tap {
    fn note(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let skipped = self.rest.min(bytes.len());
            self.rest -= skipped;
            bytes = bytes.get(skipped..).unwrap_or_default();
            let Some((first, after)) = bytes.split_first() else { break };
            self.header.push(*first);
            bytes = after;
            if let &[kind, _, _, high, low] = self.header.as_slice() {
                self.rest = usize::from(u16::from_be_bytes([high, low]));
                self.records.push(Record { kind, length: self.rest });
                self.header.clear();
            }
        }
    }
}

impl Read for Tap {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let count = self.stream.read(bytes)?;
        self.note(bytes.get(..count).unwrap_or_default());
        Ok(count)
    }
}

impl Write for Tap {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.stream.write(bytes)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> Result<usize> {
        self.stream.write_vectored(pieces)
    }

    fn flush(&mut self) -> Result<()> {
        self.stream.flush()
    }
}
