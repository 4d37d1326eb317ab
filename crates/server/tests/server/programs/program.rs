//! A program that speaks HTTP as its script says, byte for byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// No script waits longer for a byte.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What a script does with a request: `true` waits for the next one, `false` closes the connection.
type Script = dyn Fn(&mut Talk, &str) -> bool + Send + Sync;

/// It listens as long as the process lives.
pub(crate) struct Program {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    heads: Mutex<Vec<String>>,
    /// Connections that brought a request.
    used: AtomicUsize,
    ended: Mutex<usize>,
    changed: Condvar,
}

/// One connection, as its script has it.
pub(crate) struct Talk {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
    /// Requests on this connection, with this one.
    pub(crate) number: usize,
}

impl Program {
    pub(crate) fn start(script: impl Fn(&mut Talk, &str) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let (script, all): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&all));
                std::thread::spawn(move || talk(stream.unwrap(), &script, &seen));
            }
        });
        Self { address, seen }
    }

    /// The heads of all requests that came.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.heads.lock().unwrap().clone()
    }

    /// Connections that brought a request.
    pub(crate) fn connections(&self) -> usize {
        self.seen.used.load(Ordering::SeqCst)
    }

    /// Waits until so many connections that brought a request have ended.
    pub(crate) fn wait_for_ends(&self, count: usize) {
        let ended = self.seen.ended.lock().unwrap();
        let waited = self.seen.changed.wait_timeout_while(ended, TIMEOUT, |ended| *ended < count).unwrap();
        assert!(!waited.1.timed_out(), "{} of {count} connections have ended", *waited.0);
    }
}

fn talk(stream: TcpStream, script: &Arc<Script>, seen: &Seen) {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut talk = Talk { stream, unread: Vec::new(), number: 0 };
    while let Some(head) = talk.head() {
        talk.number += 1;
        if talk.number == 1 {
            seen.used.fetch_add(1, Ordering::SeqCst);
        }
        seen.heads.lock().unwrap().push(head.clone());
        if !script(&mut talk, &head) {
            break;
        }
    }
    let was_used = talk.number > 0;
    drop(talk);
    if was_used {
        *seen.ended.lock().unwrap() += 1;
        seen.changed.notify_all();
    }
}

impl Talk {
    pub(crate) fn say(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// A whole answer with this body.
    pub(crate) fn answer(&mut self, body: impl AsRef<[u8]>) -> bool {
        let body = body.as_ref();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        self.say([head.as_bytes(), body].concat())
    }

    fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = find(&self.unread, b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.unread[..end]).into_owned();
                self.unread.drain(..end + 4);
                return Some(head);
            }
            self.more()?;
        }
    }

    /// The body that such a head has; none where it does not come.
    pub(crate) fn body(&mut self, head: &str) -> Option<Vec<u8>> {
        if field(head, "Transfer-Encoding").is_some() {
            return self.chunks().map(|(body, _)| body);
        }
        let length = field(head, "Content-Length").map_or(0, |length| length.parse().unwrap());
        while self.unread.len() < length {
            self.more()?;
        }
        Some(self.unread.drain(..length).collect())
    }

    /// A chunked body and the lines after it.
    pub(crate) fn chunks(&mut self) -> Option<(Vec<u8>, String)> {
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
            assert_eq!(self.line()?, "");
        }
        let mut trailers = String::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Some((body, trailers));
            }
            trailers.push_str(&line);
            trailers.push('\n');
        }
    }

    /// So many bytes, whatever they are.
    pub(crate) fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.unread.len() < count {
            self.more()?;
        }
        Some(self.unread.drain(..count).collect())
    }

    /// Everything up to the connection's end.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.more().is_some() {}
        std::mem::take(&mut self.unread)
    }

    /// Whether anything has come that was not read yet.
    pub(crate) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = find(&self.unread, b"\r\n") {
                let line = String::from_utf8_lossy(&self.unread[..end]).into_owned();
                self.unread.drain(..end + 2);
                return Some(line);
            }
            self.more()?;
        }
    }

    fn more(&mut self) -> Option<()> {
        let mut buffer = [0; 64 * 1024];
        let count = self.stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        self.unread.extend_from_slice(&buffer[..count]);
        Some(())
    }
}

/// The value of a field in a head.
pub(crate) fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
