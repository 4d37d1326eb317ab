//! One request at a time, waited for: ready checks, collections, comparing two servers' answers.
//!
//! Owns one kept connection. It is not for load, that is `engine/`; both put requests together in the same way
//! ([`Request::field_lines`]). Never takes a part of an answer for the whole.

use std::io;
use std::time::{Duration, Instant};

use onehop_http1::{AnswerRead, AskHead, BodyLength, BodyRead, ClientCodec, Limits, Refusal, ResponseHead};

use crate::plan::{Protocol, Request, Timeouts};
use crate::tls::Tls;
use crate::url::Address;

pub use idle::IdleConnection;

use http2::Http2Connection;
use stream::{Stream, Wait};

mod http2;
mod http2_request;
mod idle;
mod reach;
mod stream;

/// Bytes of an answer's body that are held. One that is longer is an error: this client is for looking at
/// answers, and what is larger is not looked at.
pub const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;

/// Heads larger than this are refused, as browsers do at about that size; fields as many as fit.
pub(crate) const CODEC_LIMITS: Limits = Limits {
    head_bytes: 64 * 1024,
    target_bytes: 64 * 1024,
    fields: Limits::FIELDS_MAX,
    chunk_line_bytes: 4 * 1024,
    trailer_bytes: 16 * 1024,
};

/// A client with at most one connection.
#[derive(Debug)]
pub struct Client {
    address: Address,
    connection: Option<Connection>,
    /// The one over HTTP/2.
    http2: Option<Http2Connection>,
    head: ResponseHead,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Fields in their order, names as sent, values with each byte as one character.
    pub fields: Vec<(String, String)>,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// From the begin (of connecting, where that was needed) to the last byte.
    pub took: Duration,
    /// The same to the first byte.
    pub first_byte: Duration,
    /// Bytes read, heads and framing included.
    pub bytes_read: u64,
    /// A connection was made for it.
    pub connected: bool,
}

/// Why there is no whole answer. Its text is for a person.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No connection.
    #[error("no connection: {0}")]
    Connect(#[source] io::Error),
    /// No TLS.
    #[error("no TLS: {0}")]
    Tls(String),
    /// The request cannot be sent as it is.
    #[error("the request cannot be sent: {0}")]
    Unsendable(#[from] UnsendableRequest),
    /// The connection ended before a byte of an answer.
    #[error("the connection was closed without an answer")]
    Closed,
    /// The connection ended within an answer.
    #[error("the answer broke off after {bytes} bytes")]
    Truncated {
        /// Bytes that had come.
        bytes: u64,
    },
    /// No HTTP.
    #[error("the answer is no valid HTTP/1.1: {0:?}")]
    Malformed(Refusal),
    /// Over HTTP/2 there is no whole answer, for this reason.
    #[error("{0}")]
    Http2(String),
    /// Not in time.
    #[error("no whole answer within {0:?}")]
    TimedOut(Duration),
    /// More than is held.
    #[error("the answer's body is longer than {BODY_BYTES_MAX} bytes")]
    TooLong,
    /// Somebody did not want to wait any more.
    #[error("it was broken off")]
    BrokenOff,
}

/// What of a request cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsendableRequest {
    /// RFC 9110 section 9.1: a method is a token.
    #[error("`{0}` is no method")]
    Method(String),
    /// RFC 9110 section 5.1: a field's name is a token.
    #[error("`{0}` is no header's name")]
    Name(String),
    /// RFC 9110 section 5.5: no line break, and no other control but a tab.
    #[error("the value of the header `{0}` holds a line break or another control character")]
    Value(String),
    /// RFC 9113 section 8.3.1: scheme, authority and path are those of a URI.
    #[error("`{0}` cannot be asked over HTTP/2: write what is no part of a URL percent-encoded")]
    Target(String),
}

#[derive(Debug)]
struct Connection {
    stream: Stream,
    tls: Option<Tls>,
    codec: ClientCodec,
    input: Vec<u8>,
}

impl Request {
    /// The lines of the request's fields as [`AskHead::fields`] wants them: Host first, then the plan's, in their
    /// order. Those that follow from the framing are left out.
    ///
    /// # Errors
    /// For a method, name or value that would break the framing.
    pub fn field_lines(&self) -> Result<Vec<u8>, UnsendableRequest> {
        if !is_token(&self.method) {
            return Err(UnsendableRequest::Method(self.method.clone()));
        }
        let mut lines = Vec::new();
        let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
        let own_host = self.fields.iter().find(|(name, _)| is(name, "host"));
        let host = own_host.map_or(self.url.authority.as_str(), |(_, value)| value.as_str());
        push_line(&mut lines, "Host", host)?;
        for (name, value) in &self.fields {
            let framing = ["host", "content-length", "transfer-encoding", "connection", "keep-alive"];
            if framing.iter().any(|framing| is(name, framing)) {
                continue;
            }
            push_line(&mut lines, name, value)?;
        }
        Ok(lines)
    }

    pub(crate) fn body_length(&self) -> BodyLength {
        self.body.as_ref().map_or(BodyLength::None, |body| BodyLength::Known(body.len() as u64))
    }
}

impl Client {
    /// A client without a connection yet.
    pub fn new(address: Address) -> Self {
        Client { address, connection: None, http2: None, head: ResponseHead::new() }
    }

    /// Asks once. A kept connection that turns out to be closed before a byte came is replaced once, where the
    /// method may be repeated (RFC 9110 section 9.2.2).
    ///
    /// # Errors
    /// Where there is no whole answer.
    pub fn request(&mut self, request: &Request, timeouts: Timeouts) -> Result<Response, RequestError> {
        self.request_unless(request, timeouts, &|| false)
    }

    /// The same, until `is_broken_off` says so.
    ///
    /// # Errors
    /// Where there is no whole answer; [`RequestError::BrokenOff`] within a fifth of a second of that word.
    pub fn request_unless(
        &mut self,
        request: &Request,
        timeouts: Timeouts,
        is_broken_off: &dyn Fn() -> bool,
    ) -> Result<Response, RequestError> {
        let lines = request.field_lines()?;
        let was_kept = self.connection.is_some() || self.http2.is_some();
        let repeatable =
            matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE" | "TRACE");
        let mut once = || self.request_once(request, &lines, timeouts, is_broken_off);
        match once() {
            Err(RequestError::Closed) if was_kept && repeatable => once(),
            first => first,
        }
    }

    fn request_once(
        &mut self,
        request: &Request,
        lines: &[u8],
        timeouts: Timeouts,
        is_broken_off: &dyn Fn() -> bool,
    ) -> Result<Response, RequestError> {
        let begun = Instant::now();
        if let Protocol::Http2 { .. } = request.protocol {
            return self.request_http2(request, timeouts, is_broken_off);
        }
        let kept = self.connection.take().filter(|connection| connection.tls == request.tls);
        let (mut connection, connected) = match kept {
            Some(connection) => (connection, false),
            None => {
                let wait = Wait::new(begun, timeouts.connect, is_broken_off);
                (Connection::open(&self.address, request.tls.as_ref(), &wait)?, true)
            }
        };
        let wait = Wait::new(begun, timeouts.response, is_broken_off);
        let mut exchange = Exchange { begun, wait, bytes_read: 0 };
        exchange.send(&mut connection, request, lines)?;
        let mut response = exchange.receive(&mut connection, &mut self.head)?;
        response.connected = connected;
        let unread = connection.input.len();
        if connection.codec.reuse(unread) {
            self.connection = Some(connection);
        }
        Ok(response)
    }

    fn request_http2(
        &mut self,
        request: &Request,
        timeouts: Timeouts,
        is_broken_off: &dyn Fn() -> bool,
    ) -> Result<Response, RequestError> {
        let begun = Instant::now();
        let prepared = request.http2()?;
        let kept = self.http2.take().filter(|connection| connection.tls == request.tls);
        let (mut connection, connected) = match kept {
            Some(connection) => (connection, false),
            None => {
                let wait = Wait::new(begun, timeouts.connect, is_broken_off);
                (Http2Connection::open(&self.address, request.tls.as_ref(), &wait)?, true)
            }
        };
        let wait = Wait::new(begun, timeouts.response, is_broken_off);
        let mut response = connection.request(&prepared, begun, &wait)?;
        response.connected = connected;
        if connection.is_usable() {
            self.http2 = Some(connection);
        }
        Ok(response)
    }
}

/// One request and its answer.
struct Exchange<'a> {
    begun: Instant,
    wait: Wait<'a>,
    bytes_read: u64,
}

impl Exchange<'_> {
    fn send(&self, connection: &mut Connection, request: &Request, lines: &[u8]) -> Result<(), RequestError> {
        let mut out = Vec::new();
        let head = AskHead {
            method: request.method.as_bytes(),
            target: request.url.path.as_bytes(),
            fields: lines,
            body: request.body_length(),
            upgrade: false,
            trailers: false,
        };
        connection.codec.write_request_head(&mut out, head).map_err(RequestError::Malformed)?;
        if let Some(body) = &request.body {
            connection.codec.write_data(&mut out, body);
        }
        connection.codec.finish(&mut out, b"");
        connection.stream.write(&out, &self.wait)
    }

    fn receive(
        &mut self,
        connection: &mut Connection,
        head: &mut ResponseHead,
    ) -> Result<Response, RequestError> {
        let mut first_byte = None;
        loop {
            if !connection.input.is_empty() {
                let read =
                    connection.codec.read_head(&connection.input, head).map_err(RequestError::Malformed)?;
                match read {
                    Some(AnswerRead::Informational { consumed }) => {
                        connection.input.drain(..consumed);
                        continue;
                    }
                    Some(AnswerRead::Final { consumed } | AnswerRead::Tunnel { consumed }) => {
                        connection.input.drain(..consumed);
                        break;
                    }
                    None => {}
                }
            }
            if self.fill(connection)? == 0 {
                return Err(match self.bytes_read {
                    0 => RequestError::Closed,
                    bytes => RequestError::Truncated { bytes },
                });
            }
            first_byte.get_or_insert_with(|| self.begun.elapsed());
        }
        let body = self.body(connection)?;
        let text = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
        Ok(Response {
            status: head.status(),
            fields: head.fields().map(|(name, value)| (text(name), text(value))).collect(),
            body,
            took: self.begun.elapsed(),
            first_byte: first_byte.unwrap_or_else(|| self.begun.elapsed()),
            bytes_read: self.bytes_read,
            connected: false,
        })
    }

    fn body(&mut self, connection: &mut Connection) -> Result<Vec<u8>, RequestError> {
        let mut body = Vec::new();
        while !connection.codec.body_is_read() {
            let (data, consumed) =
                match connection.codec.read_body(&connection.input).map_err(RequestError::Malformed)? {
                    BodyRead::Data { at, consumed } => (at, consumed),
                    BodyRead::End { consumed } => (0..0, consumed),
                    BodyRead::NeedMore => {
                        if self.fill(connection)? == 0 {
                            let bytes = self.bytes_read;
                            let unread = connection.input.len();
                            let is_whole = connection.codec.read_eof(unread).is_ok();
                            if connection.stream.is_cut_off() || !is_whole {
                                return Err(RequestError::Truncated { bytes });
                            }
                        }
                        continue;
                    }
                };
            body.extend_from_slice(connection.input.get(data).unwrap_or_default());
            connection.input.drain(..consumed);
            if body.len() > BODY_BYTES_MAX {
                return Err(RequestError::TooLong);
            }
        }
        Ok(body)
    }

    /// Reads once; 0 is the end.
    fn fill(&mut self, connection: &mut Connection) -> Result<usize, RequestError> {
        let held = connection.input.len();
        connection.input.resize(held + READ_BYTES, 0);
        let read = connection.stream.read(connection.input.get_mut(held..).unwrap_or_default(), &self.wait);
        connection.input.truncate(held + *read.as_ref().unwrap_or(&0));
        let count = read?;
        self.bytes_read += count as u64;
        Ok(count)
    }
}

impl Connection {
    fn open(address: &Address, tls: Option<&Tls>, wait: &Wait<'_>) -> Result<Connection, RequestError> {
        let stream = Stream::open(address, tls, wait)?;
        Ok(Connection { stream, tls: tls.cloned(), codec: ClientCodec::new(CODEC_LIMITS), input: Vec::new() })
    }
}

impl Response {
    /// The first value of a field, by its name in any case.
    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

fn push_line(lines: &mut Vec<u8>, name: &str, value: &str) -> Result<(), UnsendableRequest> {
    if !is_token(name) {
        return Err(UnsendableRequest::Name(name.to_owned()));
    }
    if value.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
        return Err(UnsendableRequest::Value(name.to_owned()));
    }
    for part in [name, ": ", value, "\r\n"] {
        lines.extend_from_slice(part.as_bytes());
    }
    Ok(())
}

/// RFC 9110 section 5.6.2.
fn is_token(text: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::plan::Expect;
    use crate::url::Url;

    fn request_of(address: std::net::SocketAddr) -> Request {
        Request {
            name: "page".to_owned(),
            url: Url::parse(&format!("http://{address}/")).unwrap(),
            address: Address::Tcp(address),
            tls: None,
            protocol: Protocol::Http1,
            method: "GET".to_owned(),
            fields: vec![("Accept".to_owned(), "*/*".to_owned())],
            body: None,
            weight: 1,
            expect: Expect::Success,
        }
    }

    /// Answers each connection with the next of these texts for each head that comes.
    fn server(connections: Vec<Vec<&'static str>>) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for responses in connections {
                let (mut stream, _) = listener.accept().unwrap();
                for response in responses {
                    let mut head = Vec::new();
                    let mut byte = [0];
                    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                        head.push(byte[0]);
                    }
                    stream.write_all(response.as_bytes()).unwrap();
                }
            }
        });
        address
    }

    #[test]
    fn a_connection_is_kept_and_replaced_once_it_is_closed() {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
        let chunked =
            "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
        let until_close = "HTTP/1.1 404 Not Found\r\n\r\nto the end";
        let address = server(vec![vec![whole, chunked], vec![until_close]]);
        let mut client = Client::new(Address::Tcp(address));
        let request = request_of(address);
        let mut next = || client.request(&request, Timeouts::default()).unwrap();
        let first = next();
        assert_eq!((first.status, first.body.as_slice(), first.connected), (200, &b"hi"[..], true));
        let second = next();
        assert_eq!((second.status, second.body.as_slice(), second.connected), (201, &b"abc"[..], false));
        let third = next();
        assert_eq!((third.status, third.body.as_slice(), third.connected), (404, &b"to the end"[..], true));
    }

    #[test]
    fn an_answer_that_breaks_off_is_no_answer() {
        for (text, is_expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", "broke off"),
            ("HTTP/1.1 200 OK\r\nContent-", "broke off"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "broke off"),
            ("", "closed without"),
            ("SSH-2.0-OpenSSH\r\n\r\n", "no valid HTTP"),
        ] {
            let address = server(vec![vec![text]]);
            let error = Client::new(Address::Tcp(address)).request(&request_of(address), Timeouts::default());
            let error = error.unwrap_err().to_string();
            assert!(error.contains(is_expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_silent_server_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let timeouts = Timeouts { connect: Duration::from_secs(1), response: Duration::from_millis(50) };
        let error = Client::new(Address::Tcp(address)).request(&request_of(address), timeouts).unwrap_err();
        assert!(matches!(error, RequestError::TimedOut(_)), "{error}");
    }

    #[test]
    fn a_wait_for_an_answer_ends_when_it_is_broken_off() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let timeouts = Timeouts { connect: Duration::from_secs(60), response: Duration::from_secs(60) };
        let looks = AtomicU32::new(0);
        let is_broken_off = || looks.fetch_add(1, Ordering::Relaxed) > 5;
        let begun = Instant::now();
        let asked =
            Client::new(Address::Tcp(address)).request_unless(&request_of(address), timeouts, &is_broken_off);
        assert!(matches!(asked, Err(RequestError::BrokenOff)), "{asked:?}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_unix_socket_that_accepts_nobody_is_given_up_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        let timeouts = Timeouts { connect: Duration::from_millis(50), response: Duration::from_millis(50) };
        let request = request_of("127.0.0.1:1".parse().unwrap());
        // As many as the backlog takes wait for an answer, and the others for a place in it.
        let mut waiting = Vec::new();
        let error = loop {
            match in_backlog(&path) {
                Some(stream) => waiting.push(stream),
                None => break Client::new(Address::Unix(path)).request(&request, timeouts).unwrap_err(),
            }
        };
        assert!(error.to_string().contains("no connection"), "{error} after {}", waiting.len());
    }

    /// A connection in the backlog; `None` where that is full.
    fn in_backlog(path: &std::path::Path) -> Option<std::os::fd::OwnedFd> {
        crate::engine::open_socket(&Address::Unix(path.to_owned())).ok()
    }

    #[test]
    fn a_field_cannot_smuggle_a_line() {
        let address = "127.0.0.1:1".parse().unwrap();
        let mut request = request_of(address);
        request.fields = vec![("X".to_owned(), "a\r\nY: b".to_owned())];
        assert_eq!(request.field_lines(), Err(UnsendableRequest::Value("X".to_owned())));
        request.fields = vec![("X".to_owned(), "a\u{1}".to_owned())];
        assert_eq!(request.field_lines(), Err(UnsendableRequest::Value("X".to_owned())));
        request.fields = vec![("X Y".to_owned(), "a".to_owned())];
        assert_eq!(request.field_lines(), Err(UnsendableRequest::Name("X Y".to_owned())));
        request.fields =
            vec![("Content-Length".to_owned(), "9".to_owned()), ("host".to_owned(), "h".to_owned())];
        assert_eq!(request.field_lines().unwrap(), b"Host: h\r\n");
    }
}
