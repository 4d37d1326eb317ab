//! Upstreams that answer wrongly, or not at all: what the client is told, how soon, and what is counted.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onehop_testkit::upstream::{Connection, Upstream};
use onehop_testkit::{Client, wait_for};
use rustix::net::{AddressFamily, SocketType};

use crate::subject::{SOON, Subject};

/// A proxy in front of a script.
fn in_front_of(script: impl Fn(&mut Connection) + Send + Sync + 'static) -> (Subject, Upstream) {
    let upstream = Upstream::start(script);
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    (subject, upstream)
}

/// A script that answers the first request of each connection with these bytes and then closes it.
fn says(bytes: impl Into<Vec<u8>>) -> impl Fn(&mut Connection) {
    let bytes = bytes.into();
    move |connection| {
        if connection.request().is_some() {
            connection.send(&bytes);
        }
    }
}

/// The same, but the connection stays open until the client closes it.
fn says_and_waits(bytes: impl Into<Vec<u8>>) -> impl Fn(&mut Connection) {
    let bytes = bytes.into();
    move |connection| {
        if connection.request().is_some() {
            connection.send(&bytes);
            connection.wait_for_end();
        }
    }
}

/// An answer that no client may get: a status and a cause, and nothing of the upstream in it.
fn expect_refusal(subject: &Subject, upstream: &Upstream, cause: &str) {
    let (response, took) = subject.get("/");
    assert_eq!(response.status, 502, "{}", response.head);
    assert!(took < SOON, "{took:?}");
    assert!(!response.head.contains("secret") && !response.text().contains("secret"), "{response:?}");
    assert!(!response.text().contains(&upstream.address()), "{}", response.text());
    subject.expect_refused(cause, 502, 1);
    assert_eq!(upstream.requests(), 1, "asked once only");
    wait_for("the upstream's connection to be closed", || (upstream.used_and_open() == 0).then_some(()));
}

/// Nothing that looks like a whole answer may come of this; the client either hears that it failed or sees it cut off.
fn expect_no_whole_answer(subject: &Subject, upstream: &Upstream) {
    let begun = Instant::now();
    let mut client = subject.connect();
    client.send(format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", subject.address));
    match client.try_read_for("GET") {
        Ok(response) => assert_eq!(response.status, 502, "{response:?}"),
        Err(error) => assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}"),
    }
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    wait_for("the upstream's connection to be closed", || (upstream.used_and_open() == 0).then_some(()));
    assert_eq!(upstream.requests(), 1, "asked once only");
}

/// Whatever went wrong, the proxy goes on.
fn expect_to_go_on(subject: &Subject) {
    let (response, _) = subject.get("/well");
    assert_eq!((response.status, response.text()), (200, "well"));
}

#[test]
fn an_upstream_that_refuses_is_502_at_once() {
    let nobody = Upstream::nobody();
    let subject = Subject::start(&format!("\treverse_proxy {nobody}"));
    let (response, took) = subject.get("/");
    assert_eq!(response.status, 502);
    assert!(took < SOON, "{took:?}");
    assert!(response.body.is_empty(), "{}", response.text());
    subject.expect_refused("upstream_unreachable", 502, 1);
    // It may come up at any time: nothing remembers that it was not there.
    let upstream =
        Upstream::answering_at(&nobody, |_| b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell".to_vec());
    expect_to_go_on(&subject);
    drop(upstream);
}

#[test]
fn a_post_to_an_upstream_that_refuses_is_502_and_its_body_goes_nowhere() {
    let subject = Subject::start(&format!("\treverse_proxy {}", Upstream::nobody()));
    let mut client = subject.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.read().status, 502);
    // What stood behind the body is the next request.
    assert_eq!(client.get("/").status, 502);
    subject.expect_refused("upstream_unreachable", 502, 2);
}

#[test]
fn a_unix_socket_that_is_not_there_is_502() {
    let subject = Subject::start("\treverse_proxy unix//nonexistent/onehop-test.sock");
    let (response, took) = subject.get("/");
    assert_eq!(response.status, 502);
    assert!(took < SOON, "{took:?}");
    subject.expect_refused("upstream_unreachable", 502, 1);
}

#[test]
fn an_upstream_whose_backlog_is_full_is_504_after_the_dial_timeout() {
    let (_full, address) = listener_that_never_accepts();
    let subject = Subject::start(&format!(
        "\treverse_proxy {address} {{\n\t\ttransport http {{\n\t\t\tdial_timeout 400ms\n\t\t}}\n\t}}"
    ));
    let (response, took) = subject.get("/");
    assert!(took >= Duration::from_millis(350) && took < SOON, "{took:?}");
    if subject.is_onehop() {
        assert_eq!(response.status, 504);
    }
    subject.expect_refused("upstream_dial_timeout", 504, 1);
}

/// A listener whose queue is full: connections to it are neither accepted nor refused (listen(2), tcp(7)).
fn listener_that_never_accepts() -> ((OwnedFd, Vec<OwnedFd>), String) {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let any: std::net::SocketAddrV4 = "127.0.0.1:0".parse().expect("an address");
    rustix::net::bind(&socket, &any).expect("bound");
    rustix::net::listen(&socket, 0).expect("listening");
    let address = rustix::net::getsockname(&socket).expect("an address");
    let address = std::net::SocketAddrV4::try_from(address).expect("of IPv4");
    let flags = rustix::net::SocketFlags::NONBLOCK;
    let waiting = (0..4).map(|_| {
        let client = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
        let client = client.expect("a socket");
        let _ = rustix::net::connect(&client, &address);
        client
    });
    let waiting: Vec<OwnedFd> = waiting.collect();
    ((socket, waiting), address.to_string())
}

#[test]
fn an_upstream_that_accepts_and_says_nothing_is_504_after_its_time() {
    let upstream = Upstream::start(|connection| {
        connection.request();
        connection.wait_for_end();
    });
    let subject = Subject::start(&format!(
        "\treverse_proxy {} {{\n\t\ttransport http {{\n\t\t\tresponse_header_timeout 500ms\n\t\t}}\n\t}}",
        upstream.address()
    ));
    let (response, took) = subject.get("/");
    assert_eq!(response.status, 504);
    assert!(took >= Duration::from_millis(500) && took < SOON, "{took:?}");
    subject.expect_refused("upstream_timeout", 504, 1);
    wait_for("its connection to be closed", || (upstream.used_and_open() == 0).then_some(()));
    assert_eq!(upstream.requests(), 1, "a request that was late is not sent again");
}

#[test]
fn a_read_timeout_ends_an_answer_that_stands_still() {
    let (subject, upstream) = {
        let upstream = Upstream::start(|connection| {
            if connection.request().is_some() {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
                connection.wait_for_end();
            }
        });
        let subject = Subject::start(&format!(
            "\treverse_proxy {} {{\n\t\ttransport http {{\n\t\t\tread_timeout 500ms\n\t\t}}\n\t}}",
            upstream.address()
        ));
        (subject, upstream)
    };
    expect_no_whole_answer(&subject, &upstream);
}

#[test]
fn a_client_that_leaves_a_silent_upstream_takes_its_request_along() {
    let (subject, upstream) = in_front_of(|connection| {
        if connection.request().is_some() {
            connection.wait_for_end();
        }
    });
    let mut client = subject.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for("the request", || (upstream.requests() == 1).then_some(()));
    assert_eq!(upstream.used_and_open(), 1);
    client.reset();
    let begun = Instant::now();
    wait_for("the upstream's connection to be closed", || (upstream.used_and_open() == 0).then_some(()));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    subject.expect_no_fault();
}

#[test]
fn an_upstream_that_closes_without_a_word_is_502_and_a_post_is_sent_once() {
    let (subject, upstream) = in_front_of(|connection| {
        connection.request();
    });
    let mut client = subject.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab");
    assert_eq!(client.read().status, 502);
    subject.expect_refused("upstream_died", 502, 1);
    assert_eq!(upstream.requests(), 1);
}

#[test]
fn half_a_head_and_then_a_reset_is_502() {
    let (subject, upstream) = in_front_of(|connection| {
        if connection.request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nX-Half: secr");
            // The bytes have to be taken before the reset: it would overtake them.
            let _ = connection.bytes_within(Duration::from_millis(200));
            connection.reset();
        }
    });
    expect_refusal(&subject, &upstream, "upstream_died");
}

#[test]
fn half_a_head_and_then_the_end_is_502() {
    let (subject, upstream) = in_front_of(says("HTTP/1.1 200 OK\r\nX-Half: secret\r\n"));
    expect_refusal(&subject, &upstream, "upstream_died");
}

/// Sends the beginning of an answer, waits until the client has it, and then does the worst.
fn half_then(beginning: &'static str, end: fn(&mut Connection)) -> (Subject, Upstream, Sender<()>) {
    let (go, wait): (Sender<()>, Receiver<()>) = channel();
    let wait = Mutex::new(wait);
    let upstream = Upstream::start(move |connection| {
        let Some(request) = connection.request() else { return };
        if request.target() == "/well" {
            connection.answer("200 OK", "", "well");
            return;
        }
        connection.send(beginning);
        let _ = wait.lock().expect("one at a time").recv_timeout(SOON);
        end(connection);
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    (subject, upstream, go)
}

/// Half an answer comes as soon as it is there, and is then seen to be cut off: never ended as if it were whole.
fn check_cut_off(beginning: &'static str, end: fn(&mut Connection)) {
    let (subject, upstream, go) = half_then(beginning, end);
    let mut client = subject.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    // The upstream goes on when half of the answer has come through.
    let mut reader = HalfReader::new(&mut client);
    reader.wait_for("half");
    let begun = Instant::now();
    go.send(()).expect("the upstream waits");
    let rest = reader.rest();
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let all = String::from_utf8_lossy(&rest);
    assert!(all.starts_with("HTTP/1.1 200 OK\r\n"), "{all}");
    assert!(!all.ends_with("0\r\n\r\n"), "ended like a whole answer: {all}");
    wait_for("the upstream's connection to be closed", || (upstream.used_and_open() == 0).then_some(()));
    assert_eq!(upstream.requests(), 1, "half of an answer is out: it is not asked again");
    expect_to_go_on(&subject);
}

/// Reads what comes until it holds a text, then to the end of the connection.
struct HalfReader<'c> {
    client: &'c mut Client,
    bytes: Vec<u8>,
}

impl<'c> HalfReader<'c> {
    fn new(client: &'c mut Client) -> Self {
        Self { client, bytes: Vec::new() }
    }

    fn wait_for(&mut self, text: &str) {
        let begun = Instant::now();
        while !String::from_utf8_lossy(&self.bytes).contains(text) {
            assert!(begun.elapsed() < SOON, "half of the answer does not come: {:?}", self.bytes);
            self.bytes.extend(self.client.read_some().expect("half of an answer"));
        }
    }

    fn rest(mut self) -> Vec<u8> {
        self.bytes.extend(self.client.read_to_end());
        self.bytes
    }
}

#[test]
fn half_an_answer_of_known_length_and_then_a_reset_is_cut_off_for_the_client_too() {
    check_cut_off("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", Connection::reset);
}

#[test]
fn half_a_chunked_answer_and_then_a_reset_is_cut_off_for_the_client_too() {
    check_cut_off("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", Connection::reset);
}

#[test]
fn half_a_chunked_answer_and_then_the_end_is_cut_off_for_the_client_too() {
    check_cut_off("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", |_| {});
}

#[test]
fn a_bad_chunk_after_good_ones_cuts_the_answer_off() {
    check_cut_off("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", |connection| {
        connection.send("xyz\r\nsecret\r\n0\r\n\r\n");
        connection.wait_for_end();
    });
}

#[test]
fn a_chunk_longer_than_its_size_cuts_the_answer_off() {
    check_cut_off("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", |connection| {
        connection.send("3\r\nsecret\r\n0\r\n\r\n");
        connection.wait_for_end();
    });
}

#[test]
fn a_chunked_answer_whose_first_size_is_no_number_is_never_whole() {
    let (subject, upstream) = in_front_of(says_and_waits(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n",
    ));
    expect_no_whole_answer(&subject, &upstream);
}

#[test]
fn an_answer_with_both_lengths_is_no_answer() {
    let (subject, upstream) = in_front_of(says_and_waits(
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nsecret\r\n0\r\n\r\n",
    ));
    if subject.is_onehop() {
        expect_refusal(&subject, &upstream, "upstream_broken");
    }
}

#[test]
fn an_answer_with_two_different_lengths_is_no_answer() {
    let (subject, upstream) = in_front_of(says_and_waits(
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nContent-Length: 5\r\n\r\nsecret",
    ));
    expect_refusal(&subject, &upstream, "upstream_broken");
}

#[test]
fn something_that_is_not_http_is_502() {
    let (subject, upstream) = in_front_of(says_and_waits("220 secret.example ESMTP\r\n\r\n"));
    expect_refusal(&subject, &upstream, "upstream_broken");
}

#[test]
fn a_field_of_100_kib_is_refused_within_bounds() {
    let long = "a".repeat(100 * 1024);
    let bytes = format!("HTTP/1.1 200 OK\r\nX-Long: {long}\r\nContent-Length: 4\r\n\r\nwell");
    let (subject, upstream) = in_front_of(says_and_waits(bytes));
    if subject.is_onehop() {
        expect_refusal(&subject, &upstream, "upstream_broken");
    }
}

#[test]
fn a_head_above_the_files_own_bound_is_refused() {
    let bytes = format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\nContent-Length: 4\r\n\r\nwell", "a".repeat(6_000));
    let upstream = Upstream::start(says_and_waits(bytes));
    let directive = |most: &str| {
        let transport = format!("\t\ttransport http {{\n\t\t\tmax_response_header {most}\n\t\t}}");
        format!("\treverse_proxy {} {{\n{transport}\n\t}}", upstream.address())
    };
    let subject = Subject::start(&directive("8KiB"));
    let (answer, _) = subject.get("/");
    assert_eq!((answer.status, answer.text()), (200, "well"));
    let subject = Subject::start(&directive("2KiB"));
    let (answer, took) = subject.get("/");
    assert_eq!(answer.status, 502);
    assert!(took < SOON, "{took:?}");
    subject.expect_refused("upstream_broken", 502, 1);
}

#[test]
fn a_head_without_an_end_is_refused_within_bounds() {
    let (subject, upstream) = in_front_of(|connection| {
        if connection.request().is_some() && connection.send("HTTP/1.1 200 OK\r\n") {
            // 16 MiB, more than anybody keeps for a head.
            let line = format!("X-Line: {}\r\n", "a".repeat(1_000)).repeat(16);
            for _ in 0..1_024 {
                if !connection.send(&line) {
                    return;
                }
            }
            connection.wait_for_end();
        }
    });
    let (response, took) = subject.get("/");
    assert_eq!(response.status, 502);
    assert!(took < SOON, "{took:?}");
    subject.expect_refused("upstream_broken", 502, 1);
    assert_eq!(upstream.used(), 1);
}

#[test]
fn several_informational_answers_come_before_the_final_one() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n".repeat(4);
    let (subject, upstream) =
        in_front_of(says(format!("{hints}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast")));
    let mut client = subject.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut informational = 0;
    let last = loop {
        let response = client.read();
        if response.status != 103 {
            break response;
        }
        assert_eq!(response.field("Link"), Some("</a.css>; rel=preload"));
        informational += 1;
    };
    assert_eq!((last.status, last.text()), (200, "last"));
    assert_eq!(informational, 4);
    assert_eq!(upstream.requests(), 1);
    subject.expect_no_fault();
}

#[test]
fn informational_answers_without_an_end_are_no_answer() {
    let (subject, upstream) = in_front_of(|connection| {
        if connection.request().is_some() {
            let hints = "HTTP/1.1 103 Early Hints\r\nX-Filler: secret\r\n\r\n".repeat(100);
            while connection.send(&hints) {}
        }
    });
    if !subject.is_onehop() {
        return;
    }
    let begun = Instant::now();
    let mut client = subject.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let last = loop {
        let response = client.read();
        if response.status != 103 {
            break response;
        }
        assert!(begun.elapsed() < SOON, "they are passed on without a bound");
    };
    assert_eq!(last.status, 502);
    subject.expect_refused("upstream_broken", 502, 1);
    wait_for("the upstream's connection to be closed", || (upstream.used_and_open() == 0).then_some(()));
}

#[test]
fn a_101_that_nobody_asked_for_is_no_answer() {
    let (subject, upstream) = in_front_of(says_and_waits(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: secret\r\n\r\nsecret",
    ));
    if subject.is_onehop() {
        expect_refusal(&subject, &upstream, "upstream_broken");
    }
}

#[test]
fn an_upgrade_that_is_answered_with_200_is_a_usual_answer() {
    let (subject, upstream) = in_front_of(|connection| {
        while let Some(request) = connection.request() {
            let body = request.target().to_owned();
            connection.answer("200 OK", "", &body);
        }
    });
    let mut client = subject.connect();
    for number in 0..3 {
        let path = format!("/{number}");
        let answer = client.ask("GET", &path, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
        assert_eq!((answer.status, answer.text()), (200, path.as_str()));
    }
    let request = &upstream.seen()[0];
    assert!(
        request.lists("Connection", "upgrade") && request.field("Upgrade") == Some("websocket"),
        "{request:?}"
    );
    subject.expect_no_fault();
}

/// Each connection gets an answer that nobody has asked for while it is idle.
fn check_poison(globals: &str, options: &str, method: &str) {
    let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let upstream = Upstream::start(move |connection| {
        while let Some(request) = connection.request() {
            let body = request.target().to_owned();
            connection.answer("200 OK", "", &body);
            // Once the first answer is taken.
            if connection.wait_for_request(Duration::from_millis(10)) == Some(false)
                && connection.send(poison)
            {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let subject = Subject::onehop(globals, &format!("\treverse_proxy {}{options}", upstream.address()));
    for number in 1..=40 {
        let path = format!("/{number}");
        let (answer, took) = subject.ask(method, &path, "Content-Length: 0\r\n");
        assert_eq!((answer.status, answer.text()), (200, path.as_str()));
        assert!(took < SOON, "{took:?}");
        wait_for("the poison to be out", || (sent.load(Ordering::SeqCst) >= number).then_some(()));
    }
    assert_eq!(upstream.requests(), 40);
    subject.expect_no_fault();
}

// Caddy fails these now and then: Go looks at an idle connection when its reader is scheduled, not when it is taken.
#[test]
fn an_answer_to_nobody_is_never_anybodys() {
    check_poison("\tthreads 1", "", "GET");
}

#[test]
fn an_answer_to_nobody_is_never_the_answer_to_a_post() {
    check_poison("\tthreads 1", "", "POST");
}

#[test]
fn an_answer_to_nobody_does_not_move_to_another_core() {
    check_poison("\tthreads 4", " {\n\t\tpool min 2 max 4\n\t}", "GET");
}

#[test]
fn more_than_its_length_is_cut_off_the_answer_and_ends_the_connection() {
    let (subject, upstream) = in_front_of(says_and_waits(
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwellHTTP/1.1 200 OK\r\n\r\n",
    ));
    let mut client = subject.connect();
    for number in 0..3 {
        let answer = client.get("/well");
        assert_eq!((answer.status, answer.text()), (200, "well"));
        wait_for("one connection for each", || (upstream.used() == number + 1).then_some(()));
    }
}

#[test]
fn answers_without_a_body_keep_their_connection() {
    let upstream = Upstream::answering(|request| match request.target() {
        "/204" => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        "/304" => b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 100\r\n\r\n".to_vec(),
        _ => b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n".to_vec(),
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    for (method, path, status) in
        [("GET", "/204", 204), ("GET", "/304", 304), ("HEAD", "/", 200), ("GET", "/204", 204)]
    {
        let answer = client.ask(method, path, "");
        assert_eq!((answer.status, answer.body.len()), (status, 0), "{method} {path}");
    }
    assert_eq!(upstream.used(), 1);
}
