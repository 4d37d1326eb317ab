//! One connection, many requests.

use crate::client::Client;
use crate::harness::{Wishes, serve_application};

const GET: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn a_connection_is_kept_for_the_next_request() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(server.metric("onehop_connections_total"), 1);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    let mut all = String::new();
    for number in 0..200 {
        let path = if number % 3 == 0 { "/robots.txt" } else { "/missing.js" };
        all.push_str(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    }
    client.send(all);
    for number in 0..200 {
        assert_eq!(client.answer().status, if number % 3 == 0 { 200 } else { 404 }, "{number}");
    }
}

#[test]
fn a_large_answer_between_small_ones_is_whole() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    let large = "GET /assets/large-C4yLr0bA.bin HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.send(format!("{GET}{large}{GET}"));
    assert_eq!(client.answer().status, 200);
    assert_eq!(client.answer().body, vec![b'x'; 3 << 20]);
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_head_that_comes_byte_by_byte_is_answered() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    for byte in GET.as_bytes() {
        client.send([*byte]);
    }
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_client_that_half_closes_after_its_request_still_gets_the_answer() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    client.send(GET).send(GET);
    client.finish_sending();
    assert_eq!(client.answer().status, 200);
    assert_eq!(client.answer().status, 200);
    assert!(client.is_closed());
}

#[test]
fn a_client_that_half_closes_within_a_head_gets_a_400() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHos");
    client.finish_sending();
    assert_eq!(client.answer().status, 400);
    assert!(client.is_closed());
}

#[test]
fn a_connection_is_closed_when_the_client_asks_for_it() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.field("Connection"), Some("close"));
    assert!(client.is_closed());
}

#[test]
fn http_1_0_is_closed_unless_it_asks_to_be_kept() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    client.send("GET / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(client.answer().field("Connection"), Some("keep-alive"));
    client.send("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    assert!(client.is_closed());
}

#[test]
fn head_has_the_length_and_no_body() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    let length = client.get("/robots.txt").body.len().to_string();
    client.send("HEAD /robots.txt HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer_to_head().field("Content-Length"), Some(&*length));
    // Had a body come, it would be taken for the next answer.
    assert_eq!(client.get("/robots.txt").status, 200);
}

#[test]
fn a_small_body_that_nobody_wants_is_read_and_the_connection_kept() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.answer().status, 405);
    let chunked = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.send(format!("{chunked}5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n{GET}"));
    assert_eq!(client.answer().status, 405);
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_large_body_that_nobody_wants_costs_its_connection() {
    let server = serve_application(Wishes::default());
    for framing in ["Content-Length: 104857600", "Transfer-Encoding: chunked"] {
        let mut client = server.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n"));
        if framing.starts_with('T') {
            client.send(format!("20000\r\n{}", "x".repeat(0x20000)));
        }
        let answer = client.answer();
        assert_eq!((answer.status, answer.field("Connection")), (405, Some("close")), "{framing}");
    }
}

#[test]
fn bytes_behind_an_unread_body_are_never_taken_for_a_request() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    // The client announces a body, does not wait for 100, and puts a request where the body belongs.
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 38\r\nExpect: 100-continue\r\n\r\n");
    client.send(GET);
    let answer = client.answer();
    assert_eq!((answer.status, answer.field("Connection")), (405, Some("close")));
    assert!(client.is_closed(), "a second answer came");
}

#[test]
fn every_answer_carries_its_own_path_with_many_clients_on_four_cores() {
    let server = serve_application(Wishes { threads: 4, ..Wishes::default() });
    std::thread::scope(|scope| {
        for number in 0..16 {
            let address = server.address();
            scope.spawn(move || {
                for round in 0..20 {
                    let mut client = Client::connect(&address);
                    let large = (number + round) % 4 == 0;
                    let path = if large { "/assets/large-C4yLr0bA.bin" } else { "/robots.txt" };
                    if (number + round) % 5 == 0 {
                        // Gone in the middle of the answer.
                        client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
                        continue;
                    }
                    let length = if large { 3 << 20 } else { 14 };
                    assert_eq!(client.get(path).body.len(), length);
                }
            });
        }
    });
}

#[test]
fn bytes_that_come_after_the_last_request_do_not_take_its_answer_back() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    let large = "GET /assets/large-C4yLr0bA.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    client.send(large);
    // The answer has begun; what comes now is read by nobody.
    std::io::Read::read_exact(&mut client.stream, &mut [0; 1]).unwrap();
    client.send(GET);
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut client.stream, &mut rest).unwrap();
    assert!(rest.len() > 3 << 20, "{} bytes came", rest.len());
}

#[test]
fn a_line_end_too_many_is_no_beginning_of_a_request() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    client.send(format!("{GET}\r\n"));
    assert_eq!(client.answer().status, 200);
    client.finish_sending();
    assert!(client.is_closed(), "the line end was answered");
}
