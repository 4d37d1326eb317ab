//! `sticky`: requests that belong together go to one worker, and to its successor.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use onehop_server::Event;
use onehop_server::control::AppEvent;

use crate::client::{Client, Response};
use crate::harness::{TestServer, application};
use crate::workers::serve_workers;

/// A server with so many workers, all of which serve.
pub(crate) fn serve(workers: usize, options: &str) -> TestServer {
    let server = serve_workers(application(), workers, "sessions", options);
    wait_for_workers(&server, workers);
    server
}

fn wait_for_workers(server: &TestServer, count: usize) {
    let begun = Instant::now();
    loop {
        let workers = &server.running().status().apps[0].workers;
        if workers.len() == count && workers.iter().all(|worker| worker.state == "serving") {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "waited in vain for {count} workers");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn get(server: &TestServer, path: &str, cookie: &str) -> Response {
    let mut client = server.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: a=b; {cookie}\r\n\r\n"));
    client.answer()
}

/// The worker that answers a request with this cookie, which it gets no other for.
fn worker_of(server: &TestServer, cookie: &str) -> String {
    let answer = get(server, "/api/x", cookie);
    assert_eq!((answer.status, answer.field("Set-Cookie")), (200, None));
    answer.text()
}

/// Cookies that lead to so many workers, with those.
fn cookies(server: &TestServer, count: usize) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    while found.len() < count {
        let answer = server.connect().get("/api/x");
        let cookie = answer.field("Set-Cookie").expect("a cookie").split(';').next().unwrap().to_owned();
        if !found.iter().any(|(known, _)| *known == cookie) {
            found.push((cookie, answer.text()));
        }
    }
    found
}

#[test]
fn a_cookie_leads_to_the_same_worker_and_others_spread() {
    let server = serve(3, "sticky cookie");
    let first = server.connect().get("/api/x");
    let line = first.field("Set-Cookie").expect("a cookie").to_owned();
    let (cookie, rest) = line.split_once("; ").unwrap();
    assert_eq!(rest, "Path=/; HttpOnly; SameSite=Lax");
    let value = cookie.strip_prefix("onehop_worker=").expect("the usual name");
    assert!(value.len() == 32 && value.bytes().all(|byte| byte.is_ascii_hexdigit()), "{value}");
    for _ in 0..200 {
        assert_eq!(worker_of(&server, cookie), first.text());
    }
    let others: BTreeSet<String> = (0..30).map(|_| server.connect().get("/api/x").text()).collect();
    assert_eq!(others.len(), 3);
    let forged = get(&server, "/api/x", "onehop_worker=0");
    assert!(forged.field("Set-Cookie").is_some(), "what is of no use is replaced");
}

#[test]
fn a_cookie_finds_the_successor_of_its_worker_after_a_death_and_after_a_roll() {
    let server = serve(3, "sticky cookie session-of");
    let all = cookies(&server, 3);
    assert!(all.iter().all(|(cookie, _)| cookie.starts_with("session-of=")));
    let workers: BTreeSet<&String> = all.iter().map(|(_, worker)| worker).collect();
    assert_eq!(workers.len(), 3, "each cookie has a worker of its own");
    assert_eq!(get(&server, "/api/die", &all[1].0).status, 502);
    server.wait_for(|event| {
        matches!(event, Event::App(AppEvent::WorkerEnded { failed: true, .. })).then_some(())
    });
    wait_for_workers(&server, 3);
    let now: Vec<String> = all.iter().map(|(cookie, _)| worker_of(&server, cookie)).collect();
    assert_eq!((&now[0], &now[2]), (&all[0].1, &all[2].1));
    assert!(!workers.contains(&now[1]), "its successor, which no other cookie had");
    for _ in 0..10 {
        assert_eq!(worker_of(&server, &all[1].0), now[1]);
    }
    for _ in 0..2 {
        server.running().restart().unwrap();
        wait_for_workers(&server, 3);
        let after: BTreeSet<String> = all.iter().map(|(cookie, _)| worker_of(&server, cookie)).collect();
        assert_eq!(after.len(), 3, "each cookie has a worker of its own");
        assert!(now.iter().all(|before| !after.contains(before)));
    }
}

#[test]
fn a_cookie_of_a_worker_that_is_gone_is_replaced_and_all_others_stay() {
    let server = serve(3, "sticky cookie");
    let all = cookies(&server, 3);
    let change = |count: usize| {
        let status = &server.running().status().apps[0];
        server.running().api().workers(&status.app, Some(count)).unwrap();
        wait_for_workers(&server, count);
    };
    change(2);
    let mut replaced = Vec::new();
    for (cookie, worker) in &all {
        let answer = get(&server, "/api/x", cookie);
        match answer.field("Set-Cookie") {
            Some(_) => replaced.push(cookie),
            None => assert_eq!(answer.text(), *worker),
        }
    }
    assert_eq!(replaced.len(), 1);
    change(3);
    let workers: BTreeSet<String> = all.iter().map(|(cookie, _)| worker_of(&server, cookie)).collect();
    assert_eq!(workers.len(), 3, "the seat is there again");
    change(1);
    assert_eq!(server.connect().get("/api/x").field("Set-Cookie"), None);
}

#[test]
fn with_one_worker_there_is_no_cookie() {
    let server = serve(1, "sticky cookie");
    assert_eq!(server.connect().get("/api/x").field("Set-Cookie"), None);
}

#[test]
fn a_value_that_a_worker_gives_out_leads_back_to_it() {
    let server = serve(3, "sticky query sid");
    let mut workers = BTreeSet::new();
    for _ in 0..30 {
        let handshake = server.connect().get("/api/begin").text();
        let sid = handshake.split('"').nth(3).unwrap().to_owned();
        let worker = sid.split('-').next().unwrap().to_owned();
        for _ in 0..5 {
            assert_eq!(server.connect().get(&format!("/api/x?EIO=4&sid={sid}")).text(), worker);
        }
        workers.insert(worker);
    }
    assert_eq!(workers.len(), 3, "handshakes spread");
}

#[test]
fn values_of_the_clients_own_choice_have_a_worker_each() {
    let server = serve(3, "sticky query room");
    let workers: BTreeSet<String> = (0..30)
        .map(|room| {
            let first = server.connect().get(&format!("/api/x?room=room{room}")).text();
            for _ in 0..4 {
                assert_eq!(server.connect().get(&format!("/api/x?a=b&room=room{room}")).text(), first);
            }
            first
        })
        .collect();
    assert_eq!(workers.len(), 3);
}

#[test]
fn an_address_has_one_worker_whatever_its_fields_say() {
    let server = serve(3, "sticky ip");
    let address: std::net::SocketAddr = server.address().parse().unwrap();
    let ask = |from: u8, number: u32| {
        let mut client = Client::over(connect_from(from, address));
        client.send(format!(
            "GET /api/x HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.{number}\r\n\r\n"
        ));
        client.answer().text()
    };
    let workers: BTreeSet<String> = (1..30)
        .map(|from| {
            let first = ask(from, 0);
            assert!((1..5).all(|number| ask(from, number) == first));
            first
        })
        .collect();
    assert_eq!(workers.len(), 3);
}

/// A connection from 127.0.0.`last`.
pub(crate) fn connect_from(last: u8, to: std::net::SocketAddr) -> std::net::TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &std::net::SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
    connect(&socket, &to).unwrap();
    std::net::TcpStream::from(socket)
}
