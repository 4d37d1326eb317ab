//! Bodies on their way to the upstream: answers that come before them, `Expect`, clients that stop in the middle.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onehop_testkit::upstream::{Connection, Upstream};
use onehop_testkit::{Client, wait_for};

use crate::subject::{SOON, Subject};

/// Far more than all buffers on the way can hold.
const LARGE_BYTES: usize = 64 * 1024 * 1024;

const TOO_LARGE: &str =
    "HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large";

/// Sends a large upload on a thread of its own, as clients do that also read; gives how much was taken.
fn upload(subject: &Subject, head: &str) -> (Client, JoinHandle<usize>) {
    let stream = TcpStream::connect(&subject.address).expect("connected");
    let mut writing = stream.try_clone().expect("a second descriptor");
    let head = head.to_owned();
    let writer = std::thread::spawn(move || {
        let piece = vec![b'u'; 64 * 1024];
        let mut sent = 0;
        if writing.write_all(head.as_bytes()).is_err() {
            return 0;
        }
        while sent < LARGE_BYTES {
            match writing.write(&piece) {
                Ok(count) if count > 0 => sent += count,
                _ => break,
            }
        }
        sent
    });
    (Client::over(stream, &subject.address).expect("a client"), writer)
}

fn upload_head() -> String {
    format!("POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: {LARGE_BYTES}\r\n\r\n")
}

fn check_early_answer(script: impl Fn(&mut Connection) + Send + Sync + 'static) {
    let upstream = Upstream::start(move |connection| {
        let Some(request) = connection.head() else { return };
        if request.target() == "/well" {
            connection.answer("200 OK", "", "well");
            return;
        }
        connection.keep(&request);
        script(connection);
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let begun = Instant::now();
    let (mut client, writer) = upload(&subject, &upload_head());
    let answer = client.read_for("POST");
    assert_eq!((answer.status, answer.text()), (413, "too large"));
    assert!(begun.elapsed() < SOON, "the answer came after {:?}", begun.elapsed());
    drop(client);
    writer.join().expect("the writer ends");
    assert_eq!(upstream.requests(), 1, "sent once");
    wait_for("the upstream's connection to be closed", || (upstream.used_and_open() == 0).then_some(()));
    assert!(begun.elapsed() < 2 * SOON, "{:?}", begun.elapsed());
    let (answer, _) = subject.get("/well");
    assert_eq!((answer.status, answer.text()), (200, "well"));
    subject.expect_no_fault();
}

#[test]
fn an_early_answer_from_an_upstream_that_reads_on_arrives() {
    check_early_answer(|connection| {
        connection.send(TOO_LARGE);
        connection.wait_for_end();
    });
}

#[test]
fn an_early_answer_from_an_upstream_that_stops_reading_arrives() {
    check_early_answer(|connection| {
        connection.send(TOO_LARGE);
        // Says that it is over, as servers do that then wait for the client to notice; reads a little at a time.
        connection.end_of_sending();
        for _ in 0..200 {
            std::thread::sleep(Duration::from_millis(5));
            if connection.bytes_within(Duration::from_millis(1)).is_none() {
                return;
            }
        }
    });
}

#[test]
fn an_early_answer_from_an_upstream_that_never_reads_arrives() {
    check_early_answer(|connection| {
        connection.send(TOO_LARGE);
        std::thread::sleep(Duration::from_millis(1_500));
    });
}

#[test]
fn an_early_answer_with_a_connection_that_could_be_kept_arrives() {
    check_early_answer(|connection| {
        connection.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\n\r\ntoo large");
        connection.wait_for_end();
    });
}

#[test]
fn a_large_upload_arrives_whole_and_the_connection_is_kept() {
    let upstream = Upstream::answering(|request| {
        let text = format!("{} {}", request.body.len(), request.body.iter().all(|byte| *byte == b'u'));
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into()
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let (mut client, writer) = upload(&subject, &upload_head());
    let answer = client.read_for("POST");
    assert_eq!((answer.status, answer.text()), (200, format!("{LARGE_BYTES} true").as_str()));
    assert_eq!(writer.join().expect("the writer"), LARGE_BYTES);
    assert_eq!(client.get("/next").text(), "0 true");
    assert_eq!(upstream.used(), 1);
}

#[test]
fn a_slow_upstream_holds_a_fast_upload_back() {
    let taken = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&taken);
    let upstream = Upstream::start(move |connection| {
        if connection.head().is_none() {
            return;
        }
        for _ in 0..20 {
            let Some(bytes) = connection.bytes_within(Duration::from_millis(100)) else { return };
            counted.fetch_add(bytes.len() as u64, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(25));
        }
        connection.answer("200 OK", "Connection: close\r\n", "enough");
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let before = subject.resident_bytes();
    let (mut client, writer) = upload(&subject, &upload_head());
    wait_for("some of the body", || (taken.load(Ordering::SeqCst) > 100_000).then_some(()));
    let grown = subject.resident_bytes().saturating_sub(before);
    assert!(grown < 16 * 1024 * 1024, "the body is held in memory: {grown} bytes");
    assert_eq!(client.read_for("POST").text(), "enough");
    drop(client);
    let sent = writer.join().expect("the writer");
    assert!(sent < LARGE_BYTES, "nothing holds the client back");
}

#[test]
fn a_body_and_an_answer_that_come_byte_by_byte_pass_byte_by_byte() {
    const COUNT: usize = 30;
    let upstream = Upstream::start(|connection| {
        let Some(request) = connection.head() else { return };
        assert!(request.field("Content-Length").is_some() || request.lists("Transfer-Encoding", "chunked"));
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n");
        let mut echoed = 0;
        while echoed < COUNT {
            let Some(bytes) = connection.bytes_within(SOON) else { return };
            let body: Vec<u8> = bytes.into_iter().filter(u8::is_ascii_lowercase).collect();
            echoed += body.len();
            connection.send(body);
        }
        connection.wait_for_end();
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    if !subject.is_onehop() {
        // Caddy gathers an answer of known length.
        return;
    }
    let mut client = subject.connect();
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {COUNT}\r\n\r\nu"));
    let mut came = Vec::new();
    let mut sent = 1;
    // Each byte is sent when the one before has come back: nothing may wait for more.
    while came.len() < COUNT {
        let some = client.read_some().expect("the answer goes on");
        let text = String::from_utf8_lossy(&some).into_owned();
        let body = match text.split_once("\r\n\r\n") {
            Some((_, body)) => body,
            None if text.starts_with("HTTP/") => "",
            None => &text,
        };
        came.extend(body.bytes());
        while sent < COUNT && sent <= came.len() {
            client.send("u");
            sent += 1;
        }
    }
    assert_eq!(came, vec![b'u'; COUNT]);
}

#[test]
fn expect_is_answered_by_the_upstream_and_the_body_follows() {
    let upstream = Upstream::start(|connection| {
        while let Some(mut request) = connection.head() {
            if request.field("Expect").is_some() && !connection.send("HTTP/1.1 100 Continue\r\n\r\n") {
                return;
            }
            if connection.body(&mut request).is_none() {
                return;
            }
            connection.keep(&request);
            connection.answer("200 OK", "", &request.text());
        }
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    for number in 0..3 {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n");
        assert_eq!(client.read_for("POST").status, 100);
        client.send(format!("body-{number}"));
        let mut answer = client.read_for("POST");
        if !subject.is_onehop() && answer.status == 100 {
            // Go's server says so once for itself and once for the upstream.
            answer = client.read_for("POST");
        }
        assert_eq!((answer.status, answer.text()), (200, format!("body-{number}").as_str()));
    }
    assert_eq!(upstream.used(), 1);
    subject.expect_no_fault();
}

#[test]
fn a_refused_expectation_needs_no_body() {
    let upstream = Upstream::start(|connection| {
        while let Some(mut request) = connection.head() {
            if request.field("Expect").is_some() {
                connection.answer("417 Expectation Failed", "Connection: close\r\n", "no");
                return;
            }
            if connection.body(&mut request).is_none() {
                return;
            }
            connection.answer("200 OK", "", "well");
        }
    });
    let subject = Subject::onehop("", &format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n");
    let answer = client.read_for("POST");
    // Caddy has told the client to send the body, and waits for it.
    assert_eq!((answer.status, answer.text()), (417, "no"));
    assert_eq!(subject.get("/").0.text(), "well");
}

#[test]
fn a_client_that_stops_in_the_middle_of_a_body_leaves_no_whole_request_behind() {
    let upstream = Upstream::start(|connection| {
        while let Some(request) = connection.request() {
            let body = request.text();
            connection.answer("200 OK", "", &body);
        }
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    for head in ["Content-Length: 10", "Transfer-Encoding: chunked"] {
        let mut client = subject.connect();
        let part = if head.starts_with('C') { "half" } else { "4\r\nhalf\r\n" };
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n{part}"));
        wait_for("the request to begin", || (upstream.used_and_open() >= 1).then_some(()));
        drop(client);
        wait_for("the upstream's connection to be closed", || (upstream.used_and_open() == 0).then_some(()));
    }
    assert_eq!(upstream.requests(), 0, "half a body was taken for a whole one");
    assert_eq!(subject.get("/").0.status, 200);
}

#[test]
fn trailers_pass_both_ways() {
    let upstream = Upstream::answering(|_| {
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n".to_vec()
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTrailer: X-Up\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nde\r\n0\r\nX-Up: 5\r\n\r\n");
    let all = String::from_utf8(client.read_to_end()).expect("text");
    assert!(all.ends_with("0\r\nX-Sum: 6\r\n\r\n"), "{all}");
    let request = &upstream.seen()[0];
    assert_eq!((request.text().as_str(), request.trailers.as_slice()), ("de", &["X-Up: 5".to_owned()][..]));
}
