//! A client that sends what it is told, byte for byte.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// No test waits longer for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    unread: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
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
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream)
    }

    pub(crate) fn finish_sending(&self) {
        self.stream.shutdown(std::net::Shutdown::Write).unwrap();
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

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        self.answer()
    }

    /// The next answer, to a request that is not a HEAD.
    pub(crate) fn answer(&mut self) -> Answer {
        self.try_answer(true).expect("an answer")
    }

    pub(crate) fn answer_to_head(&mut self) -> Answer {
        self.try_answer(false).expect("an answer")
    }

    pub(crate) fn try_answer(&mut self, has_body: bool) -> io::Result<Answer> {
        let end = loop {
            if let Some(end) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            self.more()?;
        };
        let head = String::from_utf8_lossy(&self.unread[..end]).into_owned();
        self.unread.drain(..end + 4);
        let status = head[9..12].parse().expect("a status");
        let mut answer = Answer { status, head, body: Vec::new() };
        let bodyless = !has_body || status == 204 || status == 304 || status < 200;
        if !bodyless {
            let length: usize = answer.field("Content-Length").map_or(0, |value| value.parse().unwrap());
            while self.unread.len() < length {
                self.more()?;
            }
            answer.body = self.unread.drain(..length).collect();
        }
        Ok(answer)
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
