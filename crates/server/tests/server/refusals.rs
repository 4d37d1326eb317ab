//! Malformed and smuggling-shaped requests, over the wire, on one core and on four.
//!
//! The rows are the codec's own (`crates/http1/tests`); here each is sent to a server that also serves
//! others.

use crate::harness::{TestServer, Wishes, serve_application};
use crate::rows::{CHUNKED, CHUNKS, HOSTS, LENGTHS, LINES, REQUEST_LINES, Row, TARGETS};

#[test]
fn each_is_refused_and_its_connection_closed() {
    check(1);
}

#[test]
fn each_is_refused_on_four_cores() {
    check(4);
}

fn check(threads: usize) {
    let server = serve_application(Wishes { threads, ..Wishes::default() });
    let heads = [LENGTHS, LINES, REQUEST_LINES, TARGETS, HOSTS].into_iter().flatten();
    // To a server that speaks HTTP/2 its preface is no fault.
    for row in heads.filter(|row| !row.bytes.starts_with(b"PRI * HTTP/2.0")) {
        check_one(&server, row, row.bytes);
    }
    for row in CHUNKS {
        check_one(&server, row, &[CHUNKED, row.bytes].concat());
    }
    // Nobody was hurt by all that.
    assert_eq!(server.connect().get("/").status, 200);
    assert_eq!(server.metric("onehop_refused_total{cause=\"both_lengths\",status=\"400\"}"), both_lengths());
}

fn check_one(server: &TestServer, row: &Row, bytes: &[u8]) {
    let mut client = server.connect();
    client.send(bytes).send("GET /robots.txt HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.status, row.refusal.status(), "{}", row.name);
    assert_eq!(answer.field("Connection"), Some("close"), "{}", row.name);
    assert!(answer.text().contains(row.section), "{}: {}", row.name, answer.text());
    client.finish_sending();
    assert!(client.is_closed(), "{}: what stood behind it was answered", row.name);
}

fn both_lengths() -> u64 {
    let rows = LENGTHS.iter().filter(|row| row.refusal == onehop_http1::Refusal::BothLengths);
    rows.count() as u64
}
