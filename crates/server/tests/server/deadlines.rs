//! Slow and silent clients cost their own connection, and nothing else.

use std::io::Read;
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

#[test]
fn an_http2_upload_that_was_answered_is_asked_to_stop_when_its_time_is_over() {
    let server = server();
    let mut client = server.connect();
    let begun = Instant::now();
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    // HEADERS of a stream that stays open: POST, http, / (RFC 7541 appendix A), the authority, and a length of 5.
    client.send(b"\0\0\x12\x01\x04\0\0\0\x01\x83\x86\x84\x01\x09localhost\x0f\x0d\x015");
    let reset = loop {
        let mut header = [0; 9];
        client.stream.read_exact(&mut header).unwrap();
        let [a, b, c, kind, _, stream @ ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        client.stream.read_exact(&mut payload).unwrap();
        if kind == 3 {
            break (u32::from_be_bytes(stream), payload);
        }
    };
    assert_eq!(reset, (1, vec![0; 4]), "RST_STREAM with NO_ERROR");
    assert!(begun.elapsed() >= SHORT);
}
