//! When a connection to a program is used again, and when a request is sent again.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::program::Program;
use super::{serve, serve_with, text};
use crate::client::Client;
use crate::harness::{TestServer, Wishes, application};

#[test]
fn requests_of_many_clients_share_a_connection() {
    let program = Program::start(|talk, _| talk.answer("same"));
    let server = serve(&program);
    for _ in 0..20 {
        assert_eq!(server.connect().get("/").text(), "same");
    }
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.answer().text(), "same");
    assert_eq!(program.connections(), 1);
}

#[test]
fn a_connection_on_which_more_came_than_was_asked_for_is_not_used_again() {
    let answers = [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nevil",
        "HTTP/1.1 304 Not Modified\r\n\r\nevil",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nevil",
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ];
    for bytes in answers {
        let program =
            Program::start(
                move |talk, head| {
                    if head.contains("/first") { talk.say(bytes) } else { talk.answer("mine") }
                },
            );
        let server = serve(&program);
        let mut client = server.connect();
        assert!(client.get("/first").text().len() <= 2);
        assert_eq!(client.get("/second").text(), "mine", "{bytes:?}");
        assert_eq!(program.connections(), 2, "{bytes:?}");
    }
}

#[test]
fn bytes_that_come_between_two_requests_are_no_answer() {
    let (sender, said) = std::sync::mpsc::channel();
    let program = Program::start(move |talk, head| {
        if !head.contains("/first") {
            return talk.answer("mine");
        }
        talk.answer("first");
        // The first answer is with its client before this is said.
        let _ = talk.stream.set_read_timeout(Some(std::time::Duration::from_millis(50)));
        assert!(talk.bytes(1).is_none());
        talk.answer("evil");
        sender.send(()).unwrap();
        talk.rest();
        false
    });
    let server = serve(&program);
    let mut client = server.connect();
    assert_eq!(client.get("/first").text(), "first");
    said.recv().unwrap();
    assert_eq!(client.get("/second").text(), "mine");
}

#[test]
fn a_connection_that_the_program_closes_is_noticed_without_a_request() {
    let program = Program::start(|talk, _| {
        talk.answer("last");
        false
    });
    let server = serve(&program);
    let mut client = server.connect();
    for round in 0..5 {
        assert_eq!(client.get("/").text(), "last");
        program.wait_for_ends(2 * round + 1);
        client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(client.answer().text(), "last");
        program.wait_for_ends(2 * round + 2);
    }
}

/// A program that reads a second request on a connection and closes over it.
fn stale() -> Program {
    Program::start(|talk, _| talk.number == 1 && talk.answer("fresh"))
}

#[test]
fn what_means_the_same_twice_is_sent_again_on_a_fresh_connection() {
    for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] {
        let program = stale();
        let server = serve(&program);
        let mut client = server.connect();
        assert_eq!(client.get("/").text(), "fresh");
        client.send(format!("{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"));
        assert_eq!(client.answer_to_head().status, 200, "{method}");
        assert_eq!(program.heads().len(), 3, "{method}");
    }
}

#[test]
fn what_does_not_mean_the_same_twice_is_sent_once() {
    for method in ["POST", "PATCH", "MOVE"] {
        let program = stale();
        let server = serve(&program);
        let mut client = server.connect();
        assert_eq!(client.get("/").text(), "fresh");
        client.send(format!("{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"));
        assert_eq!(client.answer().status, 502, "{method}");
        assert_eq!(program.heads().len(), 2, "{method}");
    }
}

#[test]
fn a_request_whose_body_is_not_wholly_there_is_sent_once() {
    let program = stale();
    let server = serve_with(program.address, "request_buffers off", "");
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "fresh");
    client.send("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc");
    assert_eq!(client.answer().status, 502);
    assert_eq!(program.heads().len(), 2);
}

#[test]
fn a_request_that_began_to_be_answered_is_not_sent_again() {
    let program = Program::start(|talk, _| {
        if talk.number == 1 {
            return talk.answer("fresh");
        }
        talk.say("HTTP/1.1 2");
        false
    });
    let server = serve(&program);
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "fresh");
    assert_eq!(client.get("/").status, 502);
    assert_eq!(program.heads().len(), 2);
}

#[test]
fn a_fresh_connection_that_ends_without_an_answer_is_the_answer() {
    let program = Program::start(|_, _| false);
    let server = serve(&program);
    assert_eq!(server.connect().get("/").status, 502);
    assert_eq!(program.heads().len(), 1);
}

#[test]
fn a_connection_that_the_program_gives_up_within_the_second_is_not_used_again() {
    static USED: AtomicUsize = AtomicUsize::new(0);
    let program = Program::start(|talk, _| {
        USED.fetch_add(1, Ordering::SeqCst);
        talk.say("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=0, max=9\r\nContent-Length: 2\r\n\r\nok")
    });
    let server = serve_with(program.address, "", "");
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.get("/").text(), "ok");
    }
    assert_eq!((USED.load(Ordering::SeqCst), program.connections()), (3, 3));
}

#[test]
fn an_idle_connection_is_closed_before_the_program_closes_it() {
    let program = Program::start(|talk, _| {
        talk.say("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=2\r\nContent-Length: 2\r\n\r\nok")
    });
    let server = serve(&program);
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "ok");
    assert_eq!(client.get("/").text(), "ok");
    program.wait_for_ends(1);
    assert_eq!(client.get("/").text(), "ok");
    assert_eq!(program.connections(), 2);
}

#[test]
fn connections_to_a_program_that_is_configured_no_more_are_closed() {
    let program = Program::start(|talk, _| talk.answer("ok"));
    let server = serve(&program);
    assert_eq!(server.connect().get("/").text(), "ok");
    let without = "http://localhost:0 {\n\tbind 127.0.0.1\n\trespond gone\n}\n";
    std::fs::write(server.folder.path().join("Onehopfile"), without).unwrap();
    server.running().reload().unwrap();
    program.wait_for_ends(1);
}

#[test]
fn a_program_may_listen_on_a_unix_socket() {
    let folder = application();
    let path = folder.path().join("program.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut client = Client::over(stream.unwrap());
            std::thread::spawn(move || {
                // What reads answers reads requests too.
                while client.try_head().is_ok() {
                    client.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nunix");
                }
            });
        }
    });
    let text = text(&format!("unix/{}", path.display()), "", "");
    let server = TestServer::start(folder, &text, Wishes::default());
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "unix");
    assert_eq!(client.get("/").text(), "unix");
}
