//! Stops and reloads lose no request.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use onehop_server::Event;

use crate::client::Client;
use crate::harness::{Wishes, serve_application, write};

#[test]
fn a_stop_finishes_what_is_in_flight_and_closes_idle_connections() {
    let server = serve_application(Wishes { threads: 4, ..Wishes::default() });
    let address = server.address();
    let mut idle = Client::connect(&address);
    assert_eq!(idle.get("/").status, 200);
    let mut busy = Client::connect(&address);
    // An answer larger than the socket's buffers is in flight until the client has read it.
    busy.send("GET /assets/large-C4yLr0bA.bin HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut first = [0; 1];
    std::io::Read::read_exact(&mut busy.stream, &mut first).unwrap();
    let stopping = std::thread::spawn(move || server.stop());
    assert!(idle.is_closed());
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut busy.stream, &mut rest).unwrap();
    assert!(rest.len() > 3 << 20, "{} bytes came", rest.len());
    assert_eq!(stopping.join().unwrap(), 0, "connections were cut off");
    assert!(std::net::TcpStream::connect(&address).is_err(), "somebody still listens");
}

#[test]
fn connections_that_wait_to_be_accepted_are_served_by_a_stop() {
    let server = serve_application(Wishes::default());
    let address = server.address();
    let mut waiting: Vec<_> = (0..100).map(|_| Client::connect(&address)).collect();
    for client in &mut waiting {
        client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    assert_eq!(server.stop(), 0);
    for client in &mut waiting {
        assert_eq!(client.answer().status, 200);
    }
}

#[test]
fn a_connection_that_does_not_end_is_cut_off_when_the_grace_period_is_over() {
    let folder = crate::harness::application();
    let text = "{\n\tgrace_period 1s\n}\nhttp://localhost:0 {\n\tspa ./dist\n}\n";
    let server = crate::harness::TestServer::start(folder, text, Wishes::default());
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: loc");
    while server.metric("onehop_connections_open") == 0 {
        std::thread::yield_now();
    }
    let begun = Instant::now();
    assert_eq!(server.stop(), 1);
    assert!(begun.elapsed() < Duration::from_secs(9), "the stop took {:?}", begun.elapsed());
}

#[test]
fn no_request_fails_over_reloads_and_a_stop() {
    let server = serve_application(Wishes { threads: 2, ..Wishes::default() });
    let address = server.address();
    let (answered, over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| keep_asking(&address, &answered, &over));
        }
        for round in 0..10 {
            while answered.load(Ordering::Relaxed) < (round + 1) * 300 {
                std::thread::yield_now();
            }
            server.running().reload().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(server.stop(), 0);
    });
}

/// Asks until it is over. A connection may end between two answers, never within one.
fn keep_asking(address: &str, answered: &AtomicU64, over: &AtomicBool) {
    'connections: while !over.load(Ordering::Relaxed) {
        let Ok(stream) = std::net::TcpStream::connect(address) else {
            assert!(over.load(Ordering::Relaxed), "nobody listens");
            return;
        };
        let mut client = Client::over(stream);
        for _ in 0..50 {
            client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
            match client.try_answer(true) {
                Ok(answer) => {
                    assert_eq!(answer.status, 200);
                    answered.fetch_add(1, Ordering::Relaxed);
                    if answer.field("Connection") == Some("close") {
                        continue 'connections;
                    }
                }
                // The server closed a kept connection just as the request was sent.
                Err(error) => assert!(over.load(Ordering::Relaxed), "a request failed: {error}"),
            }
        }
    }
}

#[test]
fn a_reload_with_an_error_changes_nothing_and_says_why() {
    let server = serve_application(Wishes::default());
    write(server.folder.path(), "Onehopfile", b"http://localhost:0 {\n\tnonsense\n}\n");
    let reason = server.running().reload().unwrap_err();
    assert!(reason.contains("nonsense"), "{reason}");
    assert_eq!(server.connect().get("/").status, 200);
    server.wait_for(|event| matches!(event, Event::ReloadFailed { .. }).then_some(()));
}

#[test]
fn a_reload_opens_and_closes_listeners() {
    let server = serve_application(Wishes::default());
    let before = server.address();
    write(
        server.folder.path(),
        "Onehopfile",
        b"http://localhost:0 {\n\tbind 127.0.0.2\n\trespond other\n}\n",
    );
    server.running().reload().unwrap();
    assert!(server.address().starts_with("127.0.0.2:"));
    assert_eq!(server.connect().get("/").text(), "other");
    let begun = Instant::now();
    while std::net::TcpStream::connect(&before).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(10), "the old address still answers");
    }
}

#[test]
fn a_connection_that_is_new_when_a_stop_begins_still_gets_its_first_answer() {
    let server = serve_application(Wishes::default());
    let address = server.address();
    let mut fresh = Client::connect(&address);
    while server.metric("onehop_connections_open") == 0 {
        std::thread::yield_now();
    }
    let stopping = std::thread::spawn(move || server.stop());
    while std::net::TcpStream::connect(&address).is_ok() {
        std::thread::yield_now();
    }
    assert_eq!(fresh.get("/").status, 200);
    assert_eq!(stopping.join().unwrap(), 0);
}

#[test]
fn the_last_line_of_a_log_is_written_before_the_end() {
    let text = "http://localhost:0 {\n\tlog {\n\t\toutput file ./access.log\n\t}\n\trespond hello\n}\n";
    let server = crate::harness::TestServer::start(crate::harness::application(), text, Wishes::default());
    let path = server.folder.path().join("access.log");
    let mut client = server.connect();
    client.get("/");
    drop(client);
    let (running, _folder) = server.into_running();
    running.stop();
    running.wait();
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 1);
}
