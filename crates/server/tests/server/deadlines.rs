//! Slow and silent clients cost their own connection, and nothing else.

use std::time::{Duration, Instant};

use onehop_server::limits::Timeouts;

use crate::client::{Client, Response};
use crate::harness::{TestServer, Wishes, serve_application};

const SHORT: Duration = Duration::from_millis(400);

fn server() -> TestServer {
    let timeouts =
        Timeouts { head: SHORT, idle: SHORT, body_progress: SHORT, write_progress: SHORT, linger: SHORT };
    serve_application(Wishes { timeouts, ..Wishes::default() })
}

#[test]
fn a_head_that_is_never_finished_is_answered_408() {
    let server = server();
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: lo");
    assert_eq!(client.answer().status, 408);
    assert!(client.is_closed());
    assert_eq!(server.metric("onehop_refused_total{cause=\"head_timeout\""), 1);
}

#[test]
fn a_head_that_drips_does_not_win_time_with_every_byte() {
    let server = server();
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
    assert_eq!(drip(client).status, 408);
}

/// Sends a byte now and then until there is an answer.
fn drip(mut client: Client) -> Response {
    client.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let begun = Instant::now();
    loop {
        client.send("x");
        if let Ok(answer) = client.try_answer(true) {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "the drip keeps the connection");
    }
}

#[test]
fn a_connection_without_requests_is_closed_in_silence() {
    let server = server();
    let mut fresh = server.connect();
    assert!(fresh.is_closed());
    let mut kept = server.connect();
    assert_eq!(kept.get("/").status, 200);
    assert!(kept.is_closed());
}

#[test]
fn a_body_that_makes_no_progress_is_answered_408() {
    let server = server();
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhel");
    assert_eq!(client.answer().status, 408);
    assert!(client.is_closed());
}

#[test]
fn a_client_that_takes_nothing_of_its_answer_is_given_up() {
    let server = server();
    let mut client = server.connect();
    // More than any socket buffer takes.
    for _ in 0..8 {
        client.send("GET /assets/large-C4yLr0bA.bin HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    let begun = Instant::now();
    while server.metric("onehop_connections_open") > 0 {
        assert!(begun.elapsed() < Duration::from_secs(15), "the connection is still held");
        std::thread::yield_now();
    }
}

#[test]
fn others_are_served_while_a_thousand_clients_are_silent() {
    let server = server();
    let silent: Vec<_> = (0..1000).map(|_| server.connect()).collect();
    let mut client = server.connect();
    let begun = Instant::now();
    assert_eq!(client.get("/").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(2));
    drop(silent);
}

#[test]
fn a_body_that_nobody_wants_does_not_win_time_with_every_byte() {
    let server = server();
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n");
    assert_eq!(drip(client).status, 408);
}
