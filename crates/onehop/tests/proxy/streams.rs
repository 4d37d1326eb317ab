//! Answers that come bit by bit, tunnels, and events.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use onehop_testkit::upstream::{Connection, Upstream};
use onehop_testkit::{Client, wait_for};

use crate::subject::{SOON, Subject};

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

/// A client whose connection is a tunnel now.
pub(crate) fn tunnel(subject: &Subject) -> Client {
    let mut client = subject.connect();
    let answer = client.ask("GET", "/tunnel", "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    assert_eq!(answer.status, 101, "{}", answer.head);
    assert_eq!(answer.field("Upgrade"), Some("websocket"));
    client
}

/// Switches to a tunnel that sends back what comes; answers other requests with their targets.
pub(crate) fn tunnels(connection: &mut Connection) {
    while let Some(request) = connection.request() {
        if request.field("Upgrade").is_some() {
            connection.send(SWITCH);
            connection.echo();
            return;
        }
        let body = request.target().to_owned();
        connection.answer("200 OK", "", &body);
    }
}

/// Sends a text through a tunnel and reads it back.
pub(crate) fn expect_echo(client: &mut Client, text: &str) {
    client.send(text);
    let mut came = Vec::new();
    while came.len() < text.len() {
        came.extend(client.read_some().expect("the tunnel is open"));
    }
    assert_eq!(String::from_utf8_lossy(&came), text);
}

/// An upstream that sends each piece when the test says so.
fn on_demand(head: &'static str) -> (Subject, Upstream, Sender<&'static str>) {
    let (sender, receiver): (Sender<&'static str>, Receiver<&'static str>) = channel();
    let receiver = Mutex::new(receiver);
    let upstream = Upstream::start(move |connection| {
        if connection.request().is_none() {
            return;
        }
        connection.send(head);
        let receiver = receiver.lock().expect("one at a time");
        while let Ok(piece) = receiver.recv_timeout(SOON) {
            if !connection.send(piece) {
                return;
            }
        }
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    (subject, upstream, sender)
}

fn expect_piece(client: &mut Client, wanted: &str) {
    let mut came = String::new();
    while !came.contains(wanted) {
        came += &String::from_utf8_lossy(&client.read_some().expect("the answer goes on"));
    }
}

/// The pieces come one by one, the next only when the one before has arrived.
fn check_flushed(head: &'static str, pieces: [&'static str; 3]) {
    let (subject, _upstream, sender) = on_demand(head);
    let mut client = subject.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    for piece in pieces {
        sender.send(piece).expect("the upstream waits");
        expect_piece(&mut client, piece.lines().find(|line| line.contains("piece")).expect("a piece"));
    }
}

#[test]
fn events_are_passed_on_at_once() {
    check_flushed(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        ["f\r\ndata: piece-1\n\n\r\n", "f\r\ndata: piece-2\n\n\r\n", "f\r\ndata: piece-3\n\n\r\n"],
    );
}

#[test]
fn an_answer_of_unknown_length_is_passed_on_at_once() {
    check_flushed(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        ["7\r\npiece-1\r\n", "7\r\npiece-2\r\n", "7\r\npiece-3\r\n"],
    );
}

#[test]
fn an_answer_until_the_connections_end_is_passed_on_at_once_and_ends_properly() {
    let upstream = Upstream::start(|connection| {
        if connection.request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end");
        }
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    let answer = client.get("/");
    assert_eq!((answer.status, answer.text()), (200, "to the end"));
    assert!(answer.field("Transfer-Encoding").is_some(), "framed anew: {}", answer.head);
    assert_eq!(client.get("/").text(), "to the end", "the client's connection is kept");
}

#[test]
fn http_1_0_on_both_sides_gets_its_answer() {
    let upstream = Upstream::start(|connection| {
        if connection.request().is_some() {
            connection.send("HTTP/1.0 200 OK\r\n\r\nold");
        }
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    let all = String::from_utf8(client.read_to_end()).expect("text");
    assert!(all.contains(" 200 OK\r\n") && all.ends_with("\r\n\r\nold"), "{all}");
    assert!(!all.contains("chunked"), "{all}");
}

#[test]
fn a_tunnel_passes_bytes_both_ways_and_ends_with_either_side() {
    let upstream = Upstream::start(tunnels);
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = tunnel(&subject);
    for number in 0..10 {
        expect_echo(&mut client, &format!("message {number}"));
    }
    expect_echo(&mut client, &"long ".repeat(100_000));
    drop(client);
    wait_for("the tunnel's end at the upstream", || (upstream.used_and_open() == 0).then_some(()));
    let mut client = tunnel(&subject);
    upstream.kill();
    let begun = Instant::now();
    client.read_to_end();
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    subject.expect_no_fault();
}

#[test]
fn what_is_sent_with_the_switch_belongs_to_the_tunnel() {
    let upstream = Upstream::start(|connection| {
        if connection.request().is_some() {
            connection.send(format!("{SWITCH}hello"));
            connection.echo();
        }
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = tunnel(&subject);
    let mut came = Vec::new();
    while came.len() < 5 {
        came.extend(client.read_some().expect("the tunnel is open"));
    }
    assert_eq!(came, b"hello");
    expect_echo(&mut client, "back");
}

#[test]
fn bytes_behind_an_upgrade_that_was_refused_are_no_tunnel() {
    let upstream = Upstream::start(|connection| {
        while let Some(request) = connection.request() {
            let body = request.target().to_owned();
            connection.answer("200 OK", "", &body);
        }
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    client.send("GET /first HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.read().text(), "/first");
    // Either it is the client's next request, or the connection is closed; never bytes for the upstream.
    if let Ok(second) = client.try_read_for("GET") {
        assert_eq!(second.text(), "/second");
    }
    for request in upstream.seen() {
        assert!(request.body.is_empty(), "{request:?}");
    }
}

#[test]
fn a_tunnel_ends_after_stream_timeout() {
    let upstream = Upstream::start(tunnels);
    let subject =
        Subject::start(&format!("\treverse_proxy {} {{\n\t\tstream_timeout 700ms\n\t}}", upstream.address()));
    let begun = Instant::now();
    let mut client = tunnel(&subject);
    expect_echo(&mut client, "still open");
    client.read_to_end();
    let lived = begun.elapsed();
    assert!(lived >= Duration::from_millis(650) && lived < SOON, "{lived:?}");
    wait_for("the tunnel's end at the upstream", || (upstream.used_and_open() == 0).then_some(()));
}
