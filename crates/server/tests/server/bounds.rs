//! What is too long or too many.

use crate::harness::{Wishes, serve_application};

fn status_of(request: String) -> u16 {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    client.send(request);
    let answer = client.answer();
    assert_eq!(answer.field("Connection"), Some("close"));
    assert!(client.is_closed());
    answer.status
}

#[test]
fn a_head_over_its_bound_is_431() {
    assert_eq!(
        status_of(format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(40_000))),
        431
    );
}

#[test]
fn a_head_without_end_is_431_and_not_read_for_ever() {
    assert_eq!(status_of(format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(200_000))), 431);
}

#[test]
fn too_many_fields_are_431() {
    assert_eq!(
        status_of(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "A: b\r\n".repeat(200))),
        431
    );
}

#[test]
fn a_target_over_its_bound_is_414() {
    assert_eq!(status_of(format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(9_000))), 414);
}

#[test]
fn a_head_just_below_its_bound_is_served() {
    let server = serve_application(Wishes::default());
    let mut client = server.connect();
    client.send(format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(31_000)));
    assert_eq!(client.answer().status, 200);
    assert_eq!(client.get("/").status, 200);
}

#[test]
fn connections_over_the_bound_get_503_and_are_counted() {
    let server = serve_application(Wishes { connections_max: Some(3), ..Wishes::default() });
    let mut served: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for client in &mut served {
        assert_eq!(client.get("/").status, 200);
    }
    let mut refused = server.connect();
    assert_eq!(refused.answer().status, 503);
    assert!(refused.is_closed());
    assert_eq!(server.metric("onehop_refused_total{cause=\"too_many_connections\""), 1);
    drop(served.pop());
    // The place is free again as soon as the server has seen the end of the third.
    while server.metric("onehop_connections_open") > 2 {
        std::thread::yield_now();
    }
    assert_eq!(server.connect().get("/").status, 200);
}
