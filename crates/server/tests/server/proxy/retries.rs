//! What is tried again, and what never is.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use onehop_config::checked::{Condition, Matcher};

use super::{Proxy, before, refused, serve};
use crate::harness::{TestServer, nowhere};
use crate::programs::program::{Program, field};

fn well() -> Program {
    Program::start(|talk, head| {
        let Some(body) = talk.body(head) else { return false };
        talk.answer([b"well:", &body[..]].concat())
    })
}

/// Takes requests and dies over them.
fn dying() -> Program {
    Program::start(|talk, head| {
        talk.body(head);
        false
    })
}

fn retries(count: u32) -> impl Fn(&mut Proxy) + Send + Sync + Copy {
    move |proxy| proxy.balance.retries = Some(count)
}

fn post(server: &TestServer) -> crate::client::Response {
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello");
    client.answer()
}

#[test]
fn where_nobody_listens_another_is_asked_as_often_as_configured() {
    let program = well();
    let (first, second) = (nowhere(), nowhere());
    let server = serve(&[first, second, program.address], |_| {});
    assert_eq!(post(&server).status, 502);
    assert_eq!(refused(&server, "upstream_unreachable"), 1);
    let server = serve(&[first, second, program.address], retries(1));
    assert_eq!(post(&server).status, 502);
    let server = serve(&[first, second, program.address], retries(2));
    // Nothing of it has left, so a POST too.
    assert_eq!(post(&server).text(), "well:hello");
    assert_eq!(program.heads().len(), 1);
}

#[test]
fn nobody_to_ask_differs_from_nobody_who_answers() {
    let server = serve(&[nowhere()], |proxy| proxy.passive_health.unhealthy_request_count = Some(0));
    assert_eq!(server.connect().get("/").status, 503);
    assert_eq!(refused(&server, "upstream_none"), 1);
}

#[test]
fn an_upstream_that_comes_back_in_time_is_waited_for() {
    let address = nowhere();
    let server = serve(&[address], |proxy| {
        proxy.balance.try_duration = Duration::from_secs(20);
        proxy.balance.try_interval = Duration::from_millis(5);
    });
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi");
    client.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(client.try_head().is_err(), "it is waited for");
    client.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let listener = TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut upstream = crate::client::Client::over(&mut stream);
        upstream.try_head().unwrap();
        upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nback");
        upstream.rest();
    });
    assert_eq!(client.answer().text(), "back");
    let server = serve(&[nowhere()], |proxy| proxy.balance.try_duration = Duration::from_millis(100));
    let begun = Instant::now();
    assert_eq!(server.connect().get("/").status, 502);
    assert!((100..5000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
}

#[test]
fn what_may_have_been_begun_is_only_tried_again_where_that_is_allowed() {
    for (method, matches, expected) in [
        ("GET", None, "well:"),
        ("POST", None, ""),
        ("PUT", None, ""),
        ("POST", Some("POST"), "well:"),
        ("GET", Some("POST"), ""),
    ] {
        let (bad, good) = (dying(), well());
        let server = serve(&[bad.address, good.address], move |proxy| {
            proxy.balance.retries = Some(3);
            let matcher = |method: &str| Matcher { all: vec![Condition::Method(vec![method.to_owned()])] };
            proxy.balance.retry_match = matches.map(matcher).into_iter().collect();
        });
        let mut client = server.connect();
        client.send(format!("{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"));
        let answer = client.answer();
        assert_eq!(answer.text(), expected, "{method} {matches:?}");
        assert_eq!(answer.status, if expected.is_empty() { 502 } else { 200 });
        assert_eq!(bad.heads().len(), 1, "{method} {matches:?}");
    }
}

#[test]
fn a_body_that_has_gone_is_not_sent_again_and_one_that_is_held_is() {
    for (buffer, expected) in [(0, 502), (100_000, 200)] {
        let (bad, good) = (Program::start(|_, _| false), well());
        let server = serve(&[bad.address, good.address], move |proxy| {
            proxy.balance.retries = Some(3);
            proxy.request_buffer_bytes = buffer;
        });
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
        if buffer == 0 {
            assert_eq!(client.answer().status, expected);
            continue;
        }
        client.send("0\r\n\r\n");
        let answer = client.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, "well:hello"));
        assert_eq!(field(&good.heads()[0], "Content-Length"), Some("5"));
    }
}

#[test]
fn a_client_that_goes_takes_its_request_with_it() {
    let program = Program::start(|talk, _| {
        // Neither answers nor ends before the other side does.
        talk.rest();
        false
    });
    let server = before(&program, retries(5));
    for half in ["Content-Length: 0\r\n\r\n", "Content-Length: 10\r\n\r\nhalf"] {
        let seen = program.heads().len();
        let mut client = server.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: localhost\r\n{half}"));
        while program.heads().len() == seen {
            std::thread::yield_now();
        }
        client.reset();
        program.wait_for_ends(seen + 1);
    }
    assert_eq!(program.heads().len(), 2);
    assert_eq!(refused(&server, "upstream_died"), 0);
}

#[test]
fn an_early_answer_ends_a_long_upload() {
    for reads_on in [false, true] {
        let program = Program::start(move |talk, _| {
            talk.say("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
            if reads_on {
                talk.rest();
            }
            false
        });
        let server = before(&program, |_| {});
        let mut client = server.connect();
        let head = format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", 100 << 20);
        client.send(head).send(vec![b'x'; 100_000]);
        let answer = client.answer();
        assert_eq!((answer.status, answer.text().as_str()), (413, "big"));
        assert_eq!(answer.field("Connection"), Some("close"));
        program.wait_for_ends(1);
    }
}

#[test]
fn connections_are_kept_and_a_dead_one_costs_nobody_an_answer() {
    let closes = Arc::new(AtomicBool::new(false));
    let signalled = Arc::clone(&closes);
    let program = Program::start(move |talk, head| {
        let Some(body) = talk.body(head) else { return false };
        talk.answer(body) && !signalled.load(Ordering::SeqCst)
    });
    let server = before(&program, |_| {});
    let mut client = server.connect();
    for _ in 0..20 {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(program.connections(), 1);
    closes.store(true, Ordering::SeqCst);
    for _ in 0..200 {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(refused(&server, "upstream_died"), 0);
}

#[test]
fn a_kept_connection_that_dies_over_a_request_is_replaced_where_that_is_safe() {
    let requests = Arc::new(AtomicUsize::new(0));
    for (method, expected) in [("GET", 200), ("DELETE", 200), ("POST", 502)] {
        let seen = Arc::clone(&requests);
        // Each connection answers once and dies over its second request.
        let program = Program::start(move |talk, head| {
            talk.body(head);
            seen.fetch_add(1, Ordering::SeqCst);
            talk.number == 1 && talk.answer("ok")
        });
        let server = before(&program, |_| {});
        let mut client = server.connect();
        assert_eq!(client.get("/").status, 200);
        let before = requests.load(Ordering::SeqCst);
        client.send(format!("{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"));
        assert_eq!(client.answer().status, expected, "{method}");
        let sent = requests.load(Ordering::SeqCst) - before;
        assert_eq!(sent, if expected == 200 { 2 } else { 1 }, "{method}");
    }
}

#[test]
fn a_connection_that_was_opened_before_the_request_counts_as_kept() {
    let is_first = AtomicBool::new(true);
    let program = Program::start(move |talk, _| !is_first.swap(false, Ordering::SeqCst) && talk.answer("ok"));
    let server = before(&program, |proxy| proxy.pool.min = 1);
    while !server
        .metrics()
        .lines()
        .any(|line| line.starts_with("onehop_upstream_connections_idle{") && line.ends_with(" 1"))
    {
        std::thread::yield_now();
    }
    assert_eq!(server.connect().get("/").text(), "ok");
    assert_eq!(program.heads().len(), 2);
}
