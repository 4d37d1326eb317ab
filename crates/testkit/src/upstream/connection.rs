//! One connection as its script plays it: requests come, bytes go, and it ends as the script likes.
//!
//! Reading is strict about framing and about nothing else. Nothing here panics: a script that is cut off learns it by
//! `None` or `false`, and its thread ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Shared;
use super::socket::Socket;
use crate::TIMEOUT;

/// A connection that a script plays. It is closed when the script returns.
pub struct Connection {
    socket: Socket,
    /// From 0, in the order in which they were accepted.
    pub number: usize,
    shared: Arc<Shared>,
    /// Bytes that have come and were not taken.
    input: Vec<u8>,
    requests: usize,
    has_ended: bool,
}

/// A request as it stood on the wire. Bytes outside ASCII are shown as the letters of Latin-1, one for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The number of its connection.
    pub connection: usize,
    /// How many came before it there.
    pub on_connection: usize,
    /// When its head was there.
    pub at: Instant,
    /// The request line and the field lines with CRLF between them, without the empty line.
    pub head: String,
    /// The body, out of its framing.
    pub body: Vec<u8>,
    /// The lines of the trailer section.
    pub trailers: Vec<String>,
}

impl Received {
    /// The method.
    pub fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    /// The target.
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// The field lines, in their order.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.head.split("\r\n").skip(1)
    }

    /// The values of a field, without white space around them.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let values = self.lines().filter_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        });
        values.collect()
    }

    /// The first value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    /// Whether a field that is a list has this member.
    pub fn lists(&self, name: &str, member: &str) -> bool {
        let values = self.all(name);
        values.iter().flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(member))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Connection {
    pub(super) fn new(mut socket: Socket, number: usize, shared: Arc<Shared>) -> Self {
        let has_ended = !socket.shake_hands();
        shared.ready.fetch_add(usize::from(!has_ended), std::sync::atomic::Ordering::SeqCst);
        Self { socket, number, shared, input: Vec::new(), requests: 0, has_ended }
    }

    /// The next whole request, which is kept for [`Upstream::seen`](super::Upstream::seen); `None` where the client
    /// has gone or sends something else.
    pub fn request(&mut self) -> Option<Received> {
        let mut request = self.head()?;
        self.body(&mut request)?;
        self.shared.keep(&request);
        Some(request)
    }

    /// The head of the next request. Its body stays unread.
    pub fn head(&mut self) -> Option<Received> {
        let end = loop {
            if let Some(at) = find(&self.input, b"\r\n\r\n") {
                break at;
            }
            self.more()?;
        };
        let head: String = self.input.drain(..end).map(char::from).collect();
        self.input.drain(..4);
        self.shared.used().insert(self.number);
        let on_connection = self.requests;
        self.requests += 1;
        let (connection, at) = (self.number, Instant::now());
        Some(Received { connection, on_connection, at, head, body: Vec::new(), trailers: Vec::new() })
    }

    /// Reads the body of a request whose head was read.
    pub fn body(&mut self, request: &mut Received) -> Option<()> {
        // RFC 9112 section 6.3, in its order.
        if request.lists("Transfer-Encoding", "chunked") {
            return self.chunks(request);
        }
        if let Some(length) = request.field("Content-Length") {
            let length = length.parse().ok()?;
            request.body = self.exactly(length)?;
        }
        Some(())
    }

    /// Counts a request that was read by its parts among those that came whole.
    pub fn keep(&self, request: &Received) {
        self.shared.keep(request);
    }

    /// Sends bytes; `false` where the client has gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let sent = self.socket.write_all(bytes.as_ref()).is_ok();
        self.has_ended |= !sent;
        sent
    }

    /// Sends a whole answer of text.
    pub fn answer(&mut self, status: &str, fields: &str, body: &str) -> bool {
        let length = body.len();
        self.send(format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{fields}\r\n{body}"))
    }

    /// Bytes that are there or come within this time, at most 64 KiB at once; `None` where the client has gone. Empty
    /// where none came in time.
    pub fn bytes_within(&mut self, timeout: Duration) -> Option<Vec<u8>> {
        if self.input.is_empty() {
            self.fill(Some(timeout))?;
        }
        Some(std::mem::take(&mut self.input))
    }

    /// Whether a request begins within this time: `None` where the client closes the connection instead.
    pub fn wait_for_request(&mut self, timeout: Duration) -> Option<bool> {
        if self.input.is_empty() {
            self.fill(Some(timeout))?;
        }
        Some(!self.input.is_empty())
    }

    /// Waits until the client closes its side; what it sends until then is thrown away. `false` where it does not
    /// within [`TIMEOUT`].
    pub fn wait_for_end(&mut self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < TIMEOUT {
            self.input.clear();
            if self.fill(Some(Duration::from_millis(100))).is_none() {
                return true;
            }
        }
        false
    }

    /// Sends back what comes, as a tunnel's other end, until the client has gone.
    pub fn echo(&mut self) {
        while self.has_input() {
            let bytes = std::mem::take(&mut self.input);
            if !self.send(bytes) {
                return;
            }
        }
    }

    /// Nothing more will be sent: the client sees the end, and may go on sending.
    pub fn end_of_sending(&mut self) {
        self.socket.end_of_sending();
    }

    /// Lets the connection end with a reset when the script returns.
    pub fn reset(&mut self) {
        if let Some(handle) = self.socket.handle() {
            handle.reset_when_closed();
        }
        self.has_ended = true;
    }

    fn has_input(&mut self) -> bool {
        !self.input.is_empty() || self.more().is_some()
    }

    fn chunks(&mut self, request: &mut Received) -> Option<()> {
        loop {
            let line = self.line()?;
            let size = line.split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            if size == 0 {
                break;
            }
            request.body.extend(self.exactly(size)?);
            if !self.line()?.is_empty() {
                return None;
            }
        }
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Some(());
            }
            request.trailers.push(line);
        }
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = find(&self.input, b"\r\n") {
                let line = self.input.drain(..at).map(char::from).collect();
                self.input.drain(..2);
                return Some(line);
            }
            self.more()?;
        }
    }

    /// So many bytes; `None` where the client has gone before.
    pub fn exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.input.len() < length {
            self.more()?;
        }
        Some(self.input.drain(..length).collect())
    }

    fn more(&mut self) -> Option<()> {
        self.fill(None)
    }

    /// Reads once. Within a time: `Some` also where nothing came.
    fn fill(&mut self, timeout: Option<Duration>) -> Option<()> {
        if self.has_ended {
            return None;
        }
        self.socket.wait_at_most(timeout.map(|timeout| timeout.max(Duration::from_millis(1))));
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.socket.read(&mut buffer) {
                Ok(count) if count > 0 => {
                    self.input.extend_from_slice(buffer.get(..count).unwrap_or_default());
                    return Some(());
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if timeout.is_some() && is_late(&error) => return Some(()),
                Ok(_) | Err(_) => {
                    self.has_ended = true;
                    return None;
                }
            }
        }
    }
}

fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
