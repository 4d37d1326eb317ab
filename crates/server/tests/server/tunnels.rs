//! Upgraded connections whose directions end one after the other, as with `socket.end()` in Node.

use std::time::{Duration, Instant};

use onehop_server::limits::Timeouts;

use crate::client::Client;
use crate::harness::{TestServer, Wishes, application};
use crate::workers::serve_wishing;

/// A server whose worker behaves so, and the file in which it says what it heard.
fn serve(behaviour: &str, timeout: Duration) -> (TestServer, std::path::PathBuf) {
    let folder = application();
    let file = folder.path().join("heard");
    let timeouts = Timeouts { body_progress: timeout, linger: SHORT, ..Timeouts::default() };
    let behaviour = format!("{behaviour} {}", file.display());
    (serve_wishing(folder, 1, &behaviour, "", Wishes { timeouts, ..Wishes::default() }), file)
}

fn upgrade(server: &TestServer) -> Client {
    let mut client = server.connect();
    client.send("GET /api/bye HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    let head = client.try_head().unwrap();
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    client
}

fn heard(file: &std::path::Path) -> String {
    let begun = Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(file) {
            return text;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "the worker hears nothing of the end");
        std::thread::yield_now();
    }
}

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);

#[test]
fn what_a_client_says_after_the_workers_end_reaches_the_worker() {
    for behaviour in ["tunnel_bye", "http"] {
        let (server, file) = serve(behaviour, LONG);
        let mut client = upgrade(&server);
        assert_eq!(client.rest(), (b"bye".to_vec(), true), "{behaviour}");
        client.send("still ").send("here");
        client.finish_sending();
        assert_eq!(heard(&file), "still here|end", "{behaviour}");
    }
}

#[test]
fn what_a_worker_says_after_the_clients_end_reaches_the_client() {
    let (server, file) = serve("tunnel_last", LONG);
    let mut client = upgrade(&server);
    client.send("over and out");
    client.finish_sending();
    assert_eq!(client.rest(), (b"last words".to_vec(), true));
    assert_eq!(heard(&file), "over and out|end");
    // Both have ended: the slot is free, and nobody is told of a reset.
    std::fs::remove_file(&file).unwrap();
    let mut client = upgrade(&server);
    client.finish_sending();
    assert_eq!(heard(&file), "|end");
    assert_eq!(client.rest(), (b"last words".to_vec(), true));
}

#[test]
fn a_client_that_does_not_close_after_the_workers_end_has_its_time() {
    let (server, file) = serve("tunnel_bye", SHORT);
    let mut client = upgrade(&server);
    assert_eq!(client.rest(), (b"bye".to_vec(), true));
    assert_eq!(heard(&file), "|reset 1");
    let (server, file) = serve("http", SHORT);
    let mut client = upgrade(&server);
    assert_eq!(client.rest(), (b"bye".to_vec(), true));
    assert_eq!(heard(&file), "|end");
}

#[test]
fn a_client_that_has_gone_after_the_workers_end_is_reported_as_its_end() {
    let (server, file) = serve("tunnel_bye", LONG);
    let mut client = upgrade(&server);
    assert_eq!(client.bytes(3), b"bye");
    drop(client);
    assert_eq!(heard(&file), "|end");
}

#[test]
fn a_reset_after_the_workers_end_ends_the_tunnel() {
    let (server, _) = serve("tunnel_reset", LONG);
    let mut client = upgrade(&server);
    assert_eq!(client.rest(), (b"bye".to_vec(), true));
    // The client's own direction is closed too, and its connection counts as open until then.
    let begun = Instant::now();
    while server.running().status().apps[0].workers[0].in_flight > 0
        || server.running().status().open_connections > 0
    {
        client.send("x");
        assert!(begun.elapsed() < Duration::from_secs(10), "the tunnel is still there");
        std::thread::yield_now();
    }
}
