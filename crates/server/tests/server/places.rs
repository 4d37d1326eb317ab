//! How many requests a worker is handed at a time, by what it is.

use std::net::TcpListener;

use crate::client::Client;
use crate::harness::{TestServer, Wishes, application};
use crate::workers::serve;

/// More than a handler is handed where nothing is written.
const MANY: usize = 300;

fn send(server: &TestServer, count: usize) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..count).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send("GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    clients
}

fn check_all_answered(clients: Vec<Client>) {
    for mut client in clients {
        assert_eq!(client.answer().text(), "all are here");
    }
}

/// Waits until the application has so many requests, and so many wait for it.
fn wait_until_there_are(server: &TestServer, in_flight: usize, queued: usize) {
    let begun = std::time::Instant::now();
    loop {
        let app = server.running().api().status().apps.remove(0);
        let worker = app.workers.first().map_or(0, |worker| worker.in_flight);
        if (worker, app.queued) == (in_flight, queued) {
            return;
        }
        assert!(begun.elapsed().as_secs() < 20, "{worker} are there and {} wait", app.queued);
        std::thread::yield_now();
    }
}

fn bound(server: &TestServer) -> Option<usize> {
    server.running().api().status().apps[0].workers.first()?.concurrency
}

#[test]
fn a_server_of_the_applications_own_is_handed_more_than_a_handler() {
    let server = serve(&format!("server_gathers {MANY}"), "");
    check_all_answered(send(&server, MANY));
    assert_eq!(bound(&server), Some(4096));
}

#[test]
fn a_handler_is_handed_256_and_the_rest_waits() {
    // Without `limit off` the adaptive bound in front may hold some of them back.
    let server = serve(&format!("handler_gathers {MANY}"), "limit off");
    let clients = send(&server, MANY);
    wait_until_there_are(&server, 256, MANY - 256);
    assert_eq!(bound(&server), Some(256));
    clients.into_iter().for_each(Client::reset);
    wait_until_there_are(&server, 0, 0);
}

#[test]
fn what_is_written_holds_for_all() {
    for behaviour in ["server_gathers 2", "handler_gathers 2"] {
        let server = serve(behaviour, "concurrency 2");
        check_all_answered(send(&server, 6));
        assert_eq!(bound(&server), Some(2), "{behaviour}");
    }
    let server = serve("server_gathers 5", "concurrency 2");
    let clients = send(&server, 5);
    wait_until_there_are(&server, 2, 3);
    clients.into_iter().for_each(Client::reset);
    wait_until_there_are(&server, 0, 0);
}

#[test]
fn a_worker_over_http_is_handed_as_many_as_a_server() {
    let server = serve("http", "");
    assert_eq!(server.connect().get("/api/x").status, 200);
    assert_eq!(bound(&server), Some(4096));
    let server = serve("http", "concurrency 7");
    assert_eq!(server.connect().get("/api/x").status, 200);
    assert_eq!(bound(&server), Some(7));
}

#[test]
fn a_program_of_which_nothing_is_known_is_handed_256() {
    let program = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = program.local_addr().unwrap();
    let text =
        format!("http://localhost:0 {{\n\tbind 127.0.0.1\n\tapp {{\n\t\tsupervise off {address}\n\t}}\n}}\n");
    let server = TestServer::start(application(), &text, Wishes::default());
    let begun = std::time::Instant::now();
    while bound(&server) != Some(256) {
        assert!(begun.elapsed().as_secs() < 20, "{:?}", bound(&server));
        std::thread::yield_now();
    }
}
