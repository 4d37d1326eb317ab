//! The mixed exam: many clients of all kinds at once, an upstream that is killed now and then, and tokens by which each
//! answer and each executed request is known.

use std::collections::HashMap;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onehop_testkit::upstream::{Connection, Received, Upstream};
use onehop_testkit::{Client, Response};

use crate::subject::{Subject, raise_descriptor_limit, scaled};

/// How often each POST was executed, by its token.
type Executed = Mutex<HashMap<String, usize>>;

/// What all clients have in common.
#[derive(Default)]
struct Exam {
    is_over: AtomicBool,
    /// When the upstream was last killed or started: whoever asks in the time behind it may be unlucky.
    turmoil: Mutex<Option<Instant>>,
    kills: AtomicUsize,
    executed: Executed,
    /// What the upstream found wrong.
    wrong: Mutex<Vec<String>>,
    answered: AtomicUsize,
    refused: AtomicUsize,
    cut_off: AtomicUsize,
}

/// So long after a start everything has to work again, on a machine that does other things besides.
const CALM_AFTER: Duration = Duration::from_millis(1_000);

impl Exam {
    /// The number of kills until now, where the last one is forgotten: whoever begins a request now and is refused
    /// before another kill has found a fault.
    fn calm(&self) -> Option<usize> {
        let kills = self.kills.load(Ordering::SeqCst);
        let turmoil = *self.turmoil.lock().expect("a moment");
        turmoil.is_none_or(|moment| moment.elapsed() > CALM_AFTER).then_some(kills)
    }

    fn is_still(&self, calm: Option<usize>) -> bool {
        calm.is_some_and(|kills| kills == self.kills.load(Ordering::SeqCst))
    }
}

/// The upstream's side: each kind of request by the beginning of its target, `/KIND/TOKEN`.
fn play(connection: &mut Connection, exam: &Exam) {
    while let Some(mut request) = connection.head() {
        let target = request.target().to_owned();
        let (kind, token) = target.trim_start_matches('/').split_once('/').unwrap_or_default();
        if kind == "early" {
            // Answers before the body, and closes: what comes behind is thrown away for a moment.
            connection.answer("413 Content Too Large", "Connection: close\r\n", token);
            connection.end_of_sending();
            let _ = connection.bytes_within(Duration::from_millis(20));
            return;
        }
        if request.field("Expect").is_some() && !connection.send("HTTP/1.1 100 Continue\r\n\r\n") {
            return;
        }
        if connection.body(&mut request).is_none() {
            return;
        }
        if request.method() == "POST" {
            if request.text().split(' ').next() != Some(token) {
                exam.wrong.lock().expect("a list").push(format!("{target} has another one's body"));
            }
            *exam.executed.lock().expect("a count").entry(token.to_owned()).or_default() += 1;
        }
        if !answer(connection, kind, token, &request) {
            return;
        }
    }
}

fn answer(connection: &mut Connection, kind: &str, token: &str, request: &Received) -> bool {
    match kind {
        "long" => {
            let piece = format!("{token};").repeat(2_000);
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                && (0..20).all(|_| connection.send(format!("{:x}\r\n{piece}\r\n", piece.len())))
                && connection.send("0\r\n\r\n")
        }
        "tunnel" if request.field("Upgrade").is_some() => {
            connection.send(format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n{token}"
            ));
            connection.echo();
            false
        }
        _ => connection.answer("200 OK", &format!("X-Token: {token}\r\n"), token),
    }
}

/// A client's generator of numbers (splitmix64): each run of a client is the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}

struct Visitor<'e> {
    address: &'e str,
    exam: &'e Exam,
    number: usize,
    round: usize,
    numbers: Numbers,
    client: Option<Client>,
    /// Of the request that is on its way.
    calm: Option<usize>,
}

impl Visitor<'_> {
    fn visit(&mut self) {
        while !self.exam.is_over.load(Ordering::SeqCst) {
            self.round += 1;
            let token = format!("t{}-{}", self.number, self.round);
            let kept = self.client.take();
            self.calm = self.exam.calm();
            self.client = match self.numbers.next(10) {
                0 => self.abort_upload(&token),
                1 => self.abort_download(&token),
                2 => self.early(&token),
                3 => self.expect(kept, &token),
                4 => self.refused_upgrade(kept, &token),
                5 => self.tunnel(&token),
                6 | 7 => self.post(kept, &token),
                8 => self.long(kept, &token),
                _ => self.plain(kept, &token),
            };
            std::thread::sleep(Duration::from_millis(self.numbers.next(20)));
        }
    }

    fn connect(&self) -> Option<Client> {
        Client::try_connect(self.address).ok()
    }

    /// Sends a request and checks that the answer is its own; gives the connection back where it can be used again.
    fn exchange(
        &self,
        kept: Option<Client>,
        token: &str,
        method: &str,
        bytes: &str,
        body: &str,
    ) -> Option<Client> {
        let mut client = kept.or_else(|| self.connect())?;
        client.try_send(bytes).ok()?;
        match client.try_read_for(method) {
            Ok(response) => self.check(&response, token, body).then_some(client),
            Err(error) => {
                assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "{token}: no answer");
                assert_ne!(error.kind(), std::io::ErrorKind::InvalidData, "{token}: {error}");
                assert!(!self.exam.is_still(self.calm), "{token}: cut off without a reason: {error}");
                self.exam.cut_off.fetch_add(1, Ordering::SeqCst);
                None
            }
        }
    }

    fn check(&self, response: &Response, token: &str, body: &str) -> bool {
        match response.status {
            200 => {
                assert_eq!(response.text(), body, "another one's answer to {token}");
                if let Some(field) = response.field("X-Token") {
                    assert_eq!(field, token, "another one's answer");
                }
                self.exam.answered.fetch_add(1, Ordering::SeqCst);
                true
            }
            502..=504 => {
                assert!(
                    !self.exam.is_still(self.calm),
                    "{token}: refused without a reason: {}",
                    response.head
                );
                self.exam.refused.fetch_add(1, Ordering::SeqCst);
                response.field("Connection").is_none()
            }
            other => panic!("{token}: {other}: {}", response.head),
        }
    }

    fn plain(&self, kept: Option<Client>, token: &str) -> Option<Client> {
        let bytes = format!("GET /plain/{token} HTTP/1.1\r\nHost: a\r\n\r\n");
        self.exchange(kept, token, "GET", &bytes, token)
    }

    fn long(&self, kept: Option<Client>, token: &str) -> Option<Client> {
        let bytes = format!("GET /long/{token} HTTP/1.1\r\nHost: a\r\n\r\n");
        self.exchange(kept, token, "GET", &bytes, &format!("{token};").repeat(40_000))
    }

    fn post(&self, kept: Option<Client>, token: &str) -> Option<Client> {
        let body = format!("{token} {}", "p".repeat(self.round % 20_000));
        let bytes = match self.round % 2 {
            0 => format!(
                "POST /plain/{token} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ),
            _ => format!(
                "POST /plain/{token} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
                body.len()
            ),
        };
        self.exchange(kept, token, "POST", &bytes, token)
    }

    fn expect(&self, kept: Option<Client>, token: &str) -> Option<Client> {
        let mut client = kept.or_else(|| self.connect())?;
        let length = token.len();
        let head = format!(
            "POST /plain/{token} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
        );
        client.try_send(&head).ok()?;
        let first = client.try_read_for("POST").ok()?;
        if first.status == 100 {
            client.try_send(token).ok()?;
            let mut response = client.try_read_for("POST").ok()?;
            if response.status == 100 && std::env::var("ONEHOP_PROXY_BY").is_ok() {
                // Go's server says so once for itself and once for the upstream.
                response = client.try_read_for("POST").ok()?;
            }
            return self.check(&response, token, token).then_some(client);
        }
        self.check(&first, token, token);
        // The body was not sent: what the server reads next is open.
        None
    }

    fn refused_upgrade(&self, kept: Option<Client>, token: &str) -> Option<Client> {
        let bytes =
            format!("GET /plain/{token} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n");
        self.exchange(kept, token, "GET", &bytes, token)
    }

    fn tunnel(&self, token: &str) -> Option<Client> {
        let mut client = self.connect()?;
        let head = format!(
            "GET /tunnel/{token} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n"
        );
        client.try_send(&head).ok()?;
        let response = client.try_read_for("GET").ok()?;
        if response.status != 101 {
            self.check(&response, token, token);
            return None;
        }
        let mut came = Vec::new();
        client.try_send(token).ok()?;
        while came.len() < 2 * token.len() {
            came.extend(client.read_some().ok()?);
        }
        assert_eq!(String::from_utf8_lossy(&came), format!("{token}{token}"), "another one's tunnel");
        self.exam.answered.fetch_add(1, Ordering::SeqCst);
        None
    }

    fn abort_upload(&self, token: &str) -> Option<Client> {
        let mut client = self.connect()?;
        let head =
            format!("POST /plain/{token} HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{token} half");
        client.try_send(&head).ok()?;
        None
    }

    fn abort_download(&self, token: &str) -> Option<Client> {
        let mut client = self.connect()?;
        client.try_send(format!("GET /long/{token} HTTP/1.1\r\nHost: a\r\n\r\n")).ok()?;
        let some = client.read_some().ok()?;
        let text = String::from_utf8_lossy(&some).into_owned();
        if let Some((_, body)) = text.split_once("\r\n\r\n").filter(|_| text.starts_with("HTTP/1.1 200")) {
            let first =
                body.split("\r\n").nth(1).and_then(|chunk| chunk.split(';').next()).unwrap_or_default();
            assert!(token.starts_with(first) || first == token, "{token}: another one's answer: {first}");
        }
        None
    }

    fn early(&self, token: &str) -> Option<Client> {
        let stream = TcpStream::connect(self.address).ok()?;
        let mut writing = stream.try_clone().ok()?;
        let head = format!("POST /early/{token} HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n");
        let mut client = Client::over(stream, self.address).ok()?;
        let response = std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let piece = vec![b'e'; 64 * 1024];
                let mut sent = writing.write_all(head.as_bytes()).is_ok();
                for _ in 0..61 {
                    sent = sent && writing.write_all(&piece).is_ok();
                }
            });
            let response = client.try_read_for("POST");
            drop(client);
            let _ = writer.join();
            response
        });
        let response = response.ok()?;
        match response.status {
            413 => assert_eq!(response.text(), token, "another one's answer"),
            _ => drop(self.check(&response, token, token)),
        }
        None
    }
}

#[test]
fn two_hundred_clients_of_all_kinds_get_their_own_answers_and_no_post_is_executed_twice() {
    raise_descriptor_limit();
    let seconds = scaled("ONEHOP_PROXY_EXAM_SECONDS", 8);
    let count = usize::try_from(scaled("ONEHOP_PROXY_EXAM_CLIENTS", 200)).expect("a number");
    let exam = Arc::new(Exam::default());
    let start = |address: &str| {
        let exam = Arc::clone(&exam);
        Upstream::start_at(address, move |connection| play(connection, &exam))
    };
    let mut upstream = start("127.0.0.1:0");
    let address = upstream.address();
    let subject = Subject::with_globals("\tthreads 4", &format!("\treverse_proxy {address}"));
    let mut kills = 0;
    std::thread::scope(|scope| {
        for number in 0..count {
            let (exam, address) = (&*exam, subject.address.as_str());
            scope.spawn(move || {
                let numbers = Numbers(number as u64);
                // A client that finds something wrong ends the exam for all.
                let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    Visitor { address, exam, number, round: 0, numbers, client: None, calm: None }.visit();
                }));
                if let Err(panic) = ended {
                    exam.is_over.store(true, Ordering::SeqCst);
                    std::panic::resume_unwind(panic);
                }
            });
        }
        let until = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < until && !exam.is_over.load(Ordering::SeqCst) {
            std::thread::sleep(2 * CALM_AFTER);
            kills += 1;
            *exam.turmoil.lock().expect("a moment") = Some(Instant::now() + Duration::from_secs(60));
            exam.kills.fetch_add(1, Ordering::SeqCst);
            let old = std::mem::replace(&mut upstream, Upstream::start(|_| {}));
            old.kill();
            upstream = start(&address);
            *exam.turmoil.lock().expect("a moment") = Some(Instant::now());
        }
        // The last part without a kill: everything has to work again.
        std::thread::sleep(2 * CALM_AFTER);
        exam.is_over.store(true, Ordering::SeqCst);
    });
    let [answered, refused, cut_off] =
        [&exam.answered, &exam.refused, &exam.cut_off].map(|count| count.load(Ordering::SeqCst));
    let executed = exam.executed.lock().expect("a count");
    let twice: Vec<_> = executed.iter().filter(|(_, count)| **count > 1).collect();
    println!(
        "{answered} answered, {refused} refused, {cut_off} cut off, {} POSTs, {kills} kills",
        executed.len()
    );
    for line in subject.metrics().lines().filter(|line| line.contains("_refused_total{")) {
        println!("{line}");
    }
    assert!(twice.is_empty(), "executed twice: {twice:?}");
    assert_eq!(*exam.wrong.lock().expect("a list"), Vec::<String>::new());
    assert!(answered > count * 5, "{answered} answers: the exam was no exam");
    let (response, _) = subject.get("/plain/last");
    assert_eq!((response.status, response.text()), (200, "last"));
}
