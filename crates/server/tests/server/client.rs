//! A client that sends what it is told, byte for byte.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// No test waits longer for an answer.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    unread: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The lines after a chunked body.
    pub(crate) trailers: String,
}

impl Response {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream)
    }

    pub(crate) fn finish_sending(&self) {
        self.stream.shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Resets the connection, which tells the server at once that nobody reads any more.
    pub(crate) fn reset(self) {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(std::time::Duration::ZERO)).unwrap();
    }
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, unread: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        // A server that has already refused may have closed: the answer tells.
        let _ = self.stream.write_all(bytes.as_ref());
        self
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        self.answer()
    }

    /// The next answer, to a request that is not a HEAD.
    pub(crate) fn answer(&mut self) -> Response {
        self.try_answer(true).expect("an answer")
    }

    pub(crate) fn answer_to_head(&mut self) -> Response {
        self.try_answer(false).expect("an answer")
    }

    /// The next head, of an answer or a request.
    pub(crate) fn try_head(&mut self) -> io::Result<String> {
        let end = loop {
            if let Some(end) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            self.more()?;
        };
        let head = String::from_utf8_lossy(&self.unread[..end]).into_owned();
        self.unread.drain(..end + 4);
        Ok(head)
    }

    pub(crate) fn try_answer(&mut self, has_body: bool) -> io::Result<Response> {
        let head = self.try_head()?;
        let status = head[9..12].parse().expect("a status");
        let mut answer = Response { status, head, body: Vec::new(), trailers: String::new() };
        let bodyless = !has_body || status == 204 || status == 304 || status < 200;
        if !bodyless && answer.field("Transfer-Encoding").is_some() {
            (answer.body, answer.trailers) = self.chunks()?;
        } else if !bodyless {
            let length: usize = answer.field("Content-Length").map_or(0, |value| value.parse().unwrap());
            while self.unread.len() < length {
                self.more()?;
            }
            answer.body = self.unread.drain(..length).collect();
        }
        Ok(answer)
    }

    fn chunks(&mut self) -> io::Result<(Vec<u8>, String)> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).expect("a chunk's size");
            if size == 0 {
                break;
            }
            while self.unread.len() < size + 2 {
                self.more()?;
            }
            body.extend(self.unread.drain(..size));
            assert_eq!(self.line()?, "", "a chunk is as long as its size");
        }
        let mut trailers = String::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok((body, trailers));
            }
            trailers.push_str(&line);
            trailers.push('\n');
        }
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|window| window == b"\r\n") {
                let line = String::from_utf8_lossy(&self.unread[..end]).into_owned();
                self.unread.drain(..end + 2);
                return Ok(line);
            }
            self.more()?;
        }
    }

    /// So many bytes, whatever they are.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.unread.len() < count {
            self.more().expect("more bytes");
        }
        self.unread.drain(..count).collect()
    }

    /// Everything up to the end, and whether that was a clean one.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, bool) {
        loop {
            if let Err(error) = self.more() {
                let is_clean = error.kind() == io::ErrorKind::UnexpectedEof;
                return (std::mem::take(&mut self.unread), is_clean);
            }
        }
    }

    /// Whether the server has closed, with nothing left to read.
    pub(crate) fn is_closed(&mut self) -> bool {
        if !self.unread.is_empty() {
            return false;
        }
        match self.more() {
            Ok(()) => false,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        }
    }

    fn more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 64 * 1024];
        let count = self.stream.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.unread.extend_from_slice(&buffer[..count]);
        Ok(())
    }
}
