//! A raw HTTP/1.1 client: sends exactly what it is given and shows exactly what came back.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::TIMEOUT;
use crate::tls::{TlsClient, TlsConnection};

/// One connection, kept from request to request.
pub struct Client {
    stream: Box<dyn Stream>,
    /// What [`Client::ask`] sends as Host: the address, as a browser would.
    host: String,
    /// Bytes after the last response.
    rest: Vec<u8>,
}

impl TlsClient {
    /// Connects, and speaks HTTP to that name.
    ///
    /// # Errors
    /// Those of [`TlsClient::connect`].
    pub fn client(&self, address: &str, name: &str) -> std::io::Result<Client> {
        Ok(Client::over_tls(self.connect(address, name)?, name))
    }
}

/// One response as it stood on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Status line and field lines, without the empty line.
    pub head: String,
    /// The body, out of its framing.
    pub body: Vec<u8>,
}

trait Stream: Read + Write + Send {
    fn end_of_sending(&mut self) -> std::io::Result<()>;
    fn reset_when_closed(&self) -> std::io::Result<()>;
}

impl Stream for TcpStream {
    fn end_of_sending(&mut self) -> std::io::Result<()> {
        self.shutdown(std::net::Shutdown::Write)
    }

    fn reset_when_closed(&self) -> std::io::Result<()> {
        Ok(rustix::net::sockopt::set_socket_linger(self, Some(std::time::Duration::ZERO))?)
    }
}

impl Stream for UnixStream {
    fn end_of_sending(&mut self) -> std::io::Result<()> {
        self.shutdown(std::net::Shutdown::Write)
    }

    fn reset_when_closed(&self) -> std::io::Result<()> {
        Ok(rustix::net::sockopt::set_socket_linger(self, Some(std::time::Duration::ZERO))?)
    }
}

impl Stream for TlsConnection {
    fn end_of_sending(&mut self) -> std::io::Result<()> {
        self.close_notify()?;
        self.socket().shutdown(std::net::Shutdown::Write)
    }

    fn reset_when_closed(&self) -> std::io::Result<()> {
        self.socket().reset_when_closed()
    }
}

impl Response {
    /// The first value of a field, without white space around it.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The body as text.
    ///
    /// # Panics
    /// Where it is not UTF-8.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of text")
    }
}

impl Client {
    /// Connects to `host:port`.
    ///
    /// # Panics
    /// Where nobody listens.
    pub fn connect(address: &str) -> Client {
        Self::try_connect(address).unwrap_or_else(|error| panic!("cannot connect to {address}: {error}"))
    }

    /// Connects to `host:port`, or says why not.
    pub fn try_connect(address: &str) -> std::io::Result<Client> {
        Self::over(TcpStream::connect(address)?, address)
    }

    /// Speaks over a connection that is there, to `host`: the caller may hold its other descriptors.
    pub fn over(stream: TcpStream, host: &str) -> std::io::Result<Client> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Client { stream: Box::new(stream), host: host.to_owned(), rest: Vec::new() })
    }

    /// Speaks over an encrypted connection, to `host`.
    pub fn over_tls(connection: TlsConnection, host: &str) -> Client {
        Client { stream: Box::new(connection), host: host.to_owned(), rest: Vec::new() }
    }

    /// Connects to a Unix socket.
    ///
    /// # Panics
    /// Where nobody listens.
    pub fn connect_unix(path: &Path) -> Client {
        let stream = UnixStream::connect(path)
            .unwrap_or_else(|error| panic!("cannot connect to {}: {error}", path.display()));
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        Client { stream: Box::new(stream), host: "localhost".to_owned(), rest: Vec::new() }
    }

    /// Sends these bytes and nothing else.
    ///
    /// # Panics
    /// Where the connection is gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("sent");
    }

    /// The same, or says why it cannot.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Sends a request without a body, with the address as its Host and these field lines (CRLF at each
    /// end), and reads the response.
    ///
    /// # Panics
    /// As [`Client::read`].
    pub fn ask(&mut self, method: &str, path: &str, fields: &str) -> Response {
        let host = &self.host;
        self.send(format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"));
        self.read_for(method)
    }

    /// GET.
    ///
    /// # Panics
    /// As [`Client::read`].
    pub fn get(&mut self, path: &str) -> Response {
        self.ask("GET", path, "")
    }

    /// Closes the sending side, as a client that half-closes does.
    ///
    /// # Panics
    /// Where the connection is gone.
    pub fn end_of_sending(&mut self) {
        self.stream.end_of_sending().expect("shut down");
    }

    /// Resets the connection, which tells the server at once that nobody reads any more. A plain end, as dropping the
    /// client makes it, is what a client that half-closes sends, too.
    ///
    /// # Panics
    /// Where the connection is gone.
    pub fn reset(self) {
        self.stream.reset_when_closed().expect("a reset");
    }

    /// Reads one response to anything but HEAD.
    ///
    /// # Panics
    /// Where no whole response comes within [`TIMEOUT`](crate::TIMEOUT).
    pub fn read(&mut self) -> Response {
        self.read_for("GET")
    }

    /// Reads one response to a request with this method.
    ///
    /// # Panics
    /// Where no whole response comes within [`TIMEOUT`](crate::TIMEOUT).
    pub fn read_for(&mut self, method: &str) -> Response {
        self.try_read_for(method).unwrap_or_else(|error| panic!("no whole response: {error}"))
    }

    /// Reads one response, or says why there is none: `UnexpectedEof` where the connection ended.
    pub fn try_read_for(&mut self, method: &str) -> std::io::Result<Response> {
        let head_end = loop {
            if let Some(at) = find(&self.rest, b"\r\n\r\n") {
                break at;
            }
            self.more()?;
        };
        let head = String::from_utf8_lossy(self.rest.get(..head_end).unwrap_or_default()).into_owned();
        self.rest.drain(..head_end + 4);
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| invalid(format!("no status in {head:?}")))?;
        let mut response = Response { status, head, body: Vec::new() };
        response.body = self.body(method, &response)?;
        Ok(response)
    }

    /// Reads to the end of the connection: whatever still comes.
    ///
    /// # Panics
    /// Where it does not end within [`TIMEOUT`](crate::TIMEOUT).
    pub fn read_to_end(&mut self) -> Vec<u8> {
        loop {
            match self.more() {
                Ok(()) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) =>
                {
                    return std::mem::take(&mut self.rest);
                }
                Err(error) => panic!("the connection did not end: {error}"),
            }
        }
    }

    /// Whatever comes next, at least one byte, as it stands on the wire; an error where nothing comes any more.
    pub fn read_some(&mut self) -> std::io::Result<Vec<u8>> {
        if self.rest.is_empty() {
            self.more()?;
        }
        Ok(std::mem::take(&mut self.rest))
    }

    fn body(&mut self, method: &str, response: &Response) -> std::io::Result<Vec<u8>> {
        // RFC 9112 section 6.3, in its order.
        let status = response.status;
        if method == "HEAD" || status / 100 == 1 || status == 204 || status == 304 {
            return Ok(Vec::new());
        }
        if response.field("Transfer-Encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return self.chunks();
        }
        match response.field("Content-Length") {
            Some(length) => {
                let length = length.parse().map_err(|_| invalid(format!("length {length:?}")))?;
                self.exactly(length)
            }
            None => Ok(self.read_to_end()),
        }
    }

    fn chunks(&mut self) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = line.split(';').next().unwrap_or_default();
            let size =
                usize::from_str_radix(size, 16).map_err(|_| invalid(format!("chunk size {line:?}")))?;
            if size == 0 {
                // Trailers are skipped up to the empty line.
                while !self.line()?.is_empty() {}
                return Ok(body);
            }
            body.extend(self.exactly(size)?);
            if !self.line()?.is_empty() {
                return Err(invalid("a chunk is longer than its size".to_owned()));
            }
        }
    }

    fn line(&mut self) -> std::io::Result<String> {
        loop {
            if let Some(at) = find(&self.rest, b"\r\n") {
                let line = String::from_utf8_lossy(self.rest.get(..at).unwrap_or_default()).into_owned();
                self.rest.drain(..at + 2);
                return Ok(line);
            }
            self.more()?;
        }
    }

    fn exactly(&mut self, length: usize) -> std::io::Result<Vec<u8>> {
        while self.rest.len() < length {
            self.more()?;
        }
        Ok(self.rest.drain(..length).collect())
    }

    fn more(&mut self) -> std::io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.rest.extend_from_slice(buffer.get(..count).unwrap_or_default());
                    return Ok(());
                }
                // A debugger or a stopped machine, not the server.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn invalid(text: String) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(bytes: &'static [u8]) -> Client {
        let (mut theirs, ours) = UnixStream::pair().expect("a pair");
        theirs.write_all(bytes).expect("sent");
        Client { stream: Box::new(ours), host: "localhost".to_owned(), rest: Vec::new() }
    }

    #[test]
    fn each_framing_is_read_to_its_own_end() {
        let mut client = answered(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab\
              HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nT: v\r\n\r\n\
              HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n\
              HTTP/1.0 200 OK\r\n\r\nto the end",
        );
        assert_eq!(client.read().text(), "ab");
        assert_eq!(client.read().text(), "abcd");
        assert_eq!(client.read().status, 304);
        assert_eq!(client.read().text(), "to the end");
    }

    #[test]
    fn a_response_that_is_cut_off_is_an_error() {
        let mut client = answered(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab");
        assert_eq!(client.try_read_for("GET").expect_err("cut off").kind(), ErrorKind::UnexpectedEof);
    }
}
