//! A server that does what its script says, and notes when it did.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What is done for a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Wait(Duration),
    WaitUntil(Instant),
    Send(Vec<u8>),
    Close,
}

/// A request that came.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Its number among all, from 0.
    pub number: u64,
    pub head: String,
    pub body_bytes: usize,
}

/// What the server noted of a request.
#[derive(Debug, Clone)]
pub(crate) struct Noted {
    pub asked: Options,
    /// From the whole request to the last byte of the answer.
    pub took: Duration,
}

type Script = Arc<dyn Fn(&Options) -> Vec<Step> + Send + Sync>;

/// It ends with the test's process.
#[derive(Clone)]
pub(crate) struct Server {
    pub address: Option<SocketAddr>,
    notes: Arc<Mutex<Vec<Noted>>>,
    requests: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
    script: Script,
}

impl Server {
    pub(crate) fn start(script: impl Fn(&Options) -> Vec<Step> + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::new(listener.local_addr().ok(), Arc::new(script));
        let accepting = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                stream.set_nodelay(true).unwrap();
                let serving = accepting.clone();
                thread::spawn(move || serving.serve(stream));
            }
        });
        server
    }

    pub(crate) fn start_at(
        path: &Path,
        script: impl Fn(&Options) -> Vec<Step> + Send + Sync + 'static,
    ) -> Server {
        let listener = UnixListener::bind(path).unwrap();
        let server = Server::new(None, Arc::new(script));
        let accepting = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = accepting.clone();
                thread::spawn(move || serving.serve(stream));
            }
        });
        server
    }

    fn new(address: Option<SocketAddr>, script: Script) -> Server {
        Server {
            address,
            notes: Arc::default(),
            requests: Arc::default(),
            connections: Arc::default(),
            script,
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn notes(&self) -> Vec<Noted> {
        self.notes.lock().unwrap().clone()
    }

    /// What it noted at this share, with nothing between it and the truth.
    pub(crate) fn noted_at(&self, share: f64) -> Duration {
        let mut took: Vec<Duration> = self.notes().iter().map(|noted| noted.took).collect();
        took.sort_unstable();
        let place = ((took.len() as f64 * share).ceil() as usize).clamp(1, took.len());
        took[place - 1]
    }

    fn serve(&self, mut stream: impl Read + Write) -> Option<()> {
        self.connections.fetch_add(1, Ordering::SeqCst);
        let mut input = Vec::new();
        loop {
            let (head, body_bytes) = read_request(&mut stream, &mut input).ok()??;
            let came = Instant::now();
            let number = self.requests.fetch_add(1, Ordering::SeqCst);
            let asked = Options { number, head, body_bytes };
            for step in (self.script)(&asked) {
                match step {
                    Step::Wait(time) => {
                        thread::sleep((came + time).saturating_duration_since(Instant::now()))
                    }
                    Step::WaitUntil(time) => thread::sleep(time.saturating_duration_since(Instant::now())),
                    Step::Send(bytes) => {
                        // Noted before it is sent: the notes are whole when the last answer is there.
                        self.note(&asked, came.elapsed());
                        stream.write_all(&bytes).ok()?;
                    }
                    Step::Close => return None,
                }
            }
        }
    }

    fn note(&self, asked: &Options, took: Duration) {
        let mut notes = self.notes.lock().unwrap();
        match notes.iter_mut().rev().find(|noted| noted.asked.number == asked.number) {
            Some(noted) => noted.took = took,
            None => notes.push(Noted { asked: asked.clone(), took }),
        }
    }
}

fn read_request(stream: &mut impl Read, input: &mut Vec<u8>) -> io::Result<Option<(String, usize)>> {
    let mut chunk = [0; 16 * 1024];
    loop {
        if let Some(end) = input.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&input[..end]).into_owned();
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let length = length.map_or(0, |length| length.parse().unwrap());
            if input.len() >= end + 4 + length {
                input.drain(..end + 4 + length);
                return Ok(Some((head, length)));
            }
        }
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Ok(None);
        }
        input.extend_from_slice(&chunk[..count]);
    }
}

/// An answer as most are.
pub(crate) fn response(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub(crate) fn fine() -> Vec<Step> {
    vec![Step::Send(response("200 OK", "hello"))]
}

pub(crate) fn fine_after(time: Duration) -> Vec<Step> {
    vec![Step::Wait(time), Step::Send(response("200 OK", "hello"))]
}

pub(crate) fn send(text: &str) -> Vec<Step> {
    vec![Step::Send(text.as_bytes().to_vec())]
}

/// A connection to nobody.
pub(crate) fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
