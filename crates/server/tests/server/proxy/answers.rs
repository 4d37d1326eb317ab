//! What a client gets.

use std::io::{Read, Write};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onehop_config::checked::proxy::ProxyFlush;
use onehop_config::checked::{HeaderOp, Template};

use super::{before, refused};
use crate::client::Client;
use crate::programs::program::Program;

/// An upstream that says this and then closes or waits for the next request.
fn saying(bytes: impl AsRef<[u8]> + Send + Sync + 'static, goes_on: bool) -> Program {
    Program::start(move |talk, _| talk.say(bytes.as_ref()) && goes_on)
}

#[test]
fn fields_come_as_the_upstream_sent_them_without_those_of_the_connection() {
    let program = saying(
        "HTTP/1.1 203 Whatever\r\nserver: theirs\r\nX-One:1\r\nX-Two: 2 \r\nConnection: keep-alive, X-Hop\r\n\
         X-Hop: 1\r\nKeep-Alive: timeout=5\r\nAlt-Svc: h3=\":443\"\r\nProxy-Authenticate: Basic\r\n\
         Via: 1.0 theirs\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nUpgrade: h2\r\nContent-Length: 2\r\n\r\nhi",
        true,
    );
    let server = before(&program, |proxy| {
        proxy.answer_fields = vec![
            HeaderOp::Set { name: "X-Ours".to_owned(), value: Template::text("yes") },
            HeaderOp::Delete { name: "server".to_owned() },
        ];
    });
    let mut client = server.connect();
    let answer = client.get("/");
    assert_eq!(
        answer.head,
        "HTTP/1.1 203 Non-Authoritative Information\r\nX-One:1\r\nX-Two: 2\r\nVia: 1.0 theirs\r\n\
         Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nX-Ours: yes\r\nVia: 1.1 onehop\r\nContent-Length: 2"
    );
    assert_eq!(client.get("/").text(), "hi");
}

#[test]
fn informational_answers_pass_before_the_final_one() {
    let program = saying(
        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: close\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        true,
    );
    let server = before(&program, |_| {});
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().status, 102);
    let hints = client.answer();
    assert_eq!((hints.status, hints.field("Link"), hints.field("Connection")), (103, Some("</a.css>"), None));
    assert_eq!(client.answer().text(), "hi");
}

#[test]
fn an_answer_without_a_length_is_chunked_with_its_trailers() {
    let program = saying(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 7\r\n\r\n",
        true,
    );
    let server = before(&program, |_| {});
    let answer = server.connect().get("/");
    assert_eq!((answer.text().as_str(), answer.trailers.as_str()), ("hi", "X-Sum: 7\n"));
    let program = saying("HTTP/1.1 200 OK\r\n\r\nup to the end", false);
    let server = before(&program, |_| {});
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(client.get("/").text(), "up to the end");
    }
}

#[test]
fn answers_without_a_body_keep_the_length_that_they_speak_of() {
    let program = Program::start(|talk, head| {
        let status = if head.starts_with("HEAD") { "200 OK" } else { "304 Not Modified" };
        talk.say(format!("HTTP/1.1 {status}\r\nContent-Length: 12345\r\nETag: \"x\"\r\n\r\n"))
    });
    let server = before(&program, |_| {});
    let mut client = server.connect();
    client.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer_to_head().field("Content-Length"), Some("12345"));
    assert_eq!(client.get("/").status, 304);
}

/// An upstream that says a head and `first`, and `then` when it is told.
fn in_two(
    head: &'static str,
    first: &'static str,
    then: &'static str,
) -> (Program, std::sync::mpsc::Sender<()>) {
    let (signalled, tell) = channel();
    let signalled = (signalled, Mutex::new(tell));
    let (sender, signalled) = signalled;
    let program = Program::start(move |talk, _| {
        talk.say([head, first].concat());
        let _ = signalled.lock().unwrap().recv();
        talk.say(then)
    });
    (program, sender)
}

#[test]
fn what_has_come_does_not_wait_for_what_comes() {
    let stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let unknown = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let known = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    let long = ProxyFlush::Every(Duration::from_secs(600));
    for (head, flush) in [
        (stream, ProxyFlush::AsItComes),
        (stream, long),
        (unknown, long),
        (known, ProxyFlush::AsItComes),
        (known, ProxyFlush::Immediately),
        (known, ProxyFlush::Every(Duration::from_millis(20))),
    ] {
        let is_known = head == known;
        let (first, then) =
            if is_known { ("first", "_then") } else { ("5\r\nfirst\r\n", "5\r\n_then\r\n0\r\n\r\n") };
        let (program, signalled) = in_two(head, first, then);
        let server = before(&program, move |proxy| proxy.flush = flush);
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.try_head().unwrap();
        let wire = if is_known { &b"first"[..] } else { b"5\r\nfirst\r\n" };
        assert_eq!(client.bytes(wire.len()), wire);
        signalled.send(()).unwrap();
        client.bytes(5);
    }
}

#[test]
fn with_a_flush_interval_pieces_of_a_known_length_wait_for_each_other() {
    let (program, signalled) = in_two("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", "first", "_then");
    let server = before(&program, |proxy| proxy.flush = ProxyFlush::Every(Duration::from_secs(600)));
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    while program.heads().is_empty() {
        std::thread::yield_now();
    }
    client.stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let early = client.stream.read(&mut [0; 64]);
    assert!(early.is_err(), "nothing comes before it is due: {early:?}");
    client.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    signalled.send(()).unwrap();
    assert_eq!(client.answer().text(), "first_then");
}

#[test]
fn an_answer_that_is_buffered_breaks_before_anything_was_said() {
    let program = saying("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", false);
    for (buffer, expected) in [(100, Some(502)), (0, None)] {
        let server = before(&program, move |proxy| proxy.answer_buffer_bytes = buffer);
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(client.try_answer(true).ok().map(|answer| answer.status), expected);
        assert_eq!(refused(&server, "upstream_died"), 1);
    }
    // One that is longer passes all the same, and a whole one knows its length.
    let body = "x".repeat(50_000);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let program = saying(chunked, true);
    for (buffer, length) in [(1000, None), (100_000, Some("50000"))] {
        let server = before(&program, move |proxy| proxy.answer_buffer_bytes = buffer);
        let answer = server.connect().get("/");
        assert_eq!((answer.text() == body, answer.field("Content-Length")), (true, length));
    }
}

#[test]
fn what_is_no_answer_is_a_bad_gateway_and_nothing_of_it_is_shown() {
    let fat = format!("HTTP/1.1 200 OK\r\nX-Fat: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(100 << 10));
    let rows: [(&str, &str); 9] = [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nsecret",
            "upstream_broken",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nsecret", "upstream_broken"),
        ("secret\r\n\r\n", "upstream_broken"),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nsecret",
            "upstream_broken",
        ),
        ("HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\n\r\n", "upstream_broken"),
        (&fat, "upstream_broken"),
        ("HTTP/1.1 200 OK\r\nX-Half", "upstream_died"),
        ("HTTP/1.1 103 Early Hints\r\n\r\n", "upstream_died"),
        ("", "upstream_died"),
    ];
    for (says, cause) in rows {
        let program = saying(says.to_owned(), false);
        let server = before(&program, |_| {});
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let answer = loop {
            let answer = client.answer();
            if answer.status >= 200 {
                break answer;
            }
        };
        assert_eq!((answer.status, answer.text().as_str()), (502, ""), "{says:.60}");
        assert!(!answer.head.contains("secret"), "{}", answer.head);
        assert_eq!(refused(&server, cause), 1, "{says:.60} {cause}");
        // The client's own connection is as good as before.
        assert_eq!(client.get("/").status / 100, if says.contains("103") { 1 } else { 5 });
    }
}

#[test]
fn a_large_head_passes_up_to_its_bound_and_one_length_said_twice_is_one_length() {
    let many = (0..254).map(|number| format!("X-{number}: 1\r\n")).collect::<String>();
    let wide = |bytes: usize| format!("X-Wide: {}\r\n", "x".repeat(bytes));
    let rows = [
        (String::new(), true),
        ("Content-Length: 2\r\n".to_owned(), true),
        (many.clone(), true),
        (format!("{many}X-One: 1\r\nX-More: 1\r\n"), false),
        (wide(40 << 10), true),
        (wide((64 << 10) - 100), true),
        (wide(64 << 10), false),
    ];
    for (fields, passes) in rows {
        let program = saying(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nhi"), true);
        let server = before(&program, |_| {});
        let mut client = server.connect();
        for _ in 0..2 {
            client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
            let answer = client.answer();
            let expected = if passes { (200, "hi") } else { (502, "") };
            assert_eq!((answer.status, answer.text().as_str()), expected, "{} bytes", fields.len());
            let lengths = answer.head.matches("Content-Length").count();
            assert_eq!(lengths, 1, "{}", answer.head);
        }
        let broken = if passes { 0 } else { 2 };
        assert_eq!(refused(&server, "upstream_broken"), broken, "{} bytes", fields.len());
    }
}

#[test]
fn a_head_may_be_bounded_more_narrowly() {
    let program =
        saying(format!("HTTP/1.1 200 OK\r\nX-Fat: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(2000)), true);
    let server = before(&program, |proxy| proxy.transport.max_response_header = Some(1000));
    assert_eq!(server.connect().get("/").status, 502);
}

#[test]
fn an_answer_that_breaks_off_breaks_off_for_the_client_too() {
    for body in [
        "Content-Length: 10\r\n\r\nhalf",
        "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
    ] {
        let program = saying(format!("HTTP/1.1 200 OK\r\n{body}"), false);
        let server = before(&program, |_| {});
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(client.try_head().unwrap().starts_with("HTTP/1.1 200"));
        let rest = client.rest().0;
        let text = String::from_utf8_lossy(&rest);
        assert!(text.contains("half") && !text.ends_with("0\r\n\r\n"), "{text}");
    }
}

#[test]
fn an_upstream_that_is_silent_is_given_up_in_its_time() {
    let silent = Arc::new(Mutex::new(()));
    let held = Arc::clone(&silent);
    let guard = silent.lock().unwrap();
    let program = Program::start(move |talk, head| {
        if head.starts_with("GET /half") {
            talk.say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        }
        drop(held.lock());
        false
    });
    let short = Some(Duration::from_millis(300));
    for which in 0..2 {
        let server = before(&program, move |proxy| match which {
            0 => proxy.transport.response_header_timeout = short,
            _ => proxy.transport.read_timeout = short,
        });
        let begun = Instant::now();
        assert_eq!(server.connect().get("/").status, 504);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert_eq!(refused(&server, "upstream_timeout"), 1);
        if which == 1 {
            let mut client = server.connect();
            client.send("GET /half HTTP/1.1\r\nHost: localhost\r\n\r\n");
            assert!(client.try_answer(true).is_err());
            assert_eq!(refused(&server, "upstream_timeout"), 2);
        }
    }
    drop(guard);
}

#[test]
fn an_upstream_that_takes_nothing_is_given_up_in_its_time() {
    let silent = Arc::new(Mutex::new(()));
    let held = Arc::clone(&silent);
    let guard = silent.lock().unwrap();
    let program = Program::start(move |_, _| {
        drop(held.lock());
        false
    });
    let server = before(&program, |proxy| proxy.transport.write_timeout = Some(Duration::from_millis(300)));
    let mut client = server.connect();
    let length = 64 << 20;
    client.send(format!("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"));
    let mut writer = Client::over(client.stream.try_clone().unwrap());
    let writing = std::thread::spawn(move || writer.send(vec![b'x'; length]).stream.flush());
    assert_eq!(client.answer().status, 504);
    drop(client);
    drop(guard);
    drop(server);
    let _ = writing.join();
}
