//! Clients that send their bodies slowly.

use std::time::{Duration, Instant};

use onehop_server::limits::Timeouts;

use super::wait_for;
use crate::client::Client;
use crate::harness::{TestServer, Wishes, application};
use crate::programs::program::Program;

/// An upstream that reads a body and then answers.
fn upstream() -> Program {
    Program::start(|talk, head| talk.body(head).is_some() && talk.answer("ok"))
}

/// A server that asks it one thing at a time, and waits so long for bodies.
fn before(program: &Program, timeout: Duration) -> TestServer {
    let text = format!(
        "http://localhost:0 {{\n\tbind 127.0.0.1\n\tlimit in_flight 1\n\treverse_proxy {}\n}}\n",
        program.address
    );
    let timeouts = Timeouts { body_progress: timeout, ..Timeouts::default() };
    TestServer::start(application(), &text, Wishes { timeouts, ..Wishes::default() })
}

fn begin(server: &TestServer, length: usize) -> Client {
    let mut client = server.connect();
    client.send(format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"));
    client
}

#[test]
fn a_body_that_drips_is_given_up_and_leaves_its_place_to_others() {
    let program = upstream();
    let timeout = Duration::from_millis(500);
    let server = before(&program, timeout);
    let mut slow = begin(&server, 200);
    slow.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let begun = Instant::now();
    let answer = wait_for("a refusal", || {
        // Each of these would be progress enough.
        slow.send("x");
        slow.try_answer(true).ok()
    });
    assert_eq!(answer.status, 408);
    assert!(begun.elapsed() >= timeout, "{:?}", begun.elapsed());
    assert_eq!(server.metric("onehop_refused_total{cause=\"body_timeout\""), 1);
    let mut other = begin(&server, 200);
    other.send("x".repeat(200));
    assert_eq!(other.answer().status, 200);
}

#[test]
fn a_body_that_comes_in_time_may_pause_again_and_again() {
    let program = upstream();
    let server = before(&program, Duration::from_secs(1));
    let mut client = begin(&server, 800);
    client.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    // 50 bytes are worth 208 ms; all pauses together are longer than what is waited for without them.
    for _ in 0..15 {
        client.send("x".repeat(50));
        assert!(client.try_answer(true).is_err(), "it is not at its end");
    }
    client.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client.send("x".repeat(50));
    assert_eq!(client.answer().status, 200);
}
