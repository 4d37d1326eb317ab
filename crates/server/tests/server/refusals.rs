//! Malformed and smuggling-shaped requests, over the wire, on one core and on four.
//!
//! The rows are the codec's own (`crates/http1/tests`); here each is sent to a server that also serves
//! others.

use crate::harness::{Wishes, serve_application};

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
    for row in crate::rows::all() {
        let mut client = server.connect();
        client.send(row.bytes);
        client.finish_sending();
        let answer = client.answer();
        assert_eq!(answer.status, row.refusal.status(), "{}", row.name);
        assert_eq!(answer.field("Connection"), Some("close"), "{}", row.name);
        assert!(answer.text().contains(row.section), "{}: {}", row.name, answer.text());
        assert!(client.is_closed(), "{}: more came", row.name);
    }
}
