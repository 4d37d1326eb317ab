//! Handlers' workers that ask to be spoken to in HTTP: served as programs are, watched as workers are.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use onehop_server::Event;
use onehop_server::control::AppEvent;

use crate::client::Client;
use crate::harness::{TestServer, application};
use crate::workers::{serve, serve_in, serve_workers};

fn ended(server: &TestServer) -> (String, bool) {
    server.wait_for(|event| match event {
        Event::App(AppEvent::WorkerEnded { reason, failed, .. }) => Some((reason.clone(), *failed)),
        _ => None,
    })
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_worker_that_asks_for_http_is_served_over_it_and_that_is_said() {
    let server = serve("http", "");
    let mut client = server.connect();
    for number in 0..20 {
        let text = client.get(&format!("/api/{number}")).text();
        assert!(text.ends_with(&format!(" /api/{number} None None")), "{text}");
    }
    let (runtime, is_asked) = server.wait_for(|event| match event {
        Event::App(AppEvent::SpeaksHttp { runtime, is_asked, .. }) => Some((runtime.clone(), *is_asked)),
        _ => None,
    });
    assert_eq!((runtime.as_str(), is_asked), ("scripted 1.0", false));
    let workers = &server.running().status().apps[0].workers;
    assert_eq!((workers[0].protocol, workers[0].requests, workers[0].in_flight), (Some("http"), 20, 0));
    let frames = serve("answer", "");
    frames.connect().get("/api/x");
    assert_eq!(frames.running().status().apps[0].workers[0].protocol, Some("frames"));
}

#[test]
fn what_the_settings_say_reaches_the_worker() {
    let server = serve("http", "protocol http\n\t\tport 3000");
    assert!(server.connect().get("/api/x").text().ends_with(" /api/x http 3000"));
    let is_asked = server.wait_for(|event| match event {
        Event::App(AppEvent::SpeaksHttp { is_asked, .. }) => Some(*is_asked),
        _ => None,
    });
    assert!(is_asked);
}

#[test]
fn an_upgrade_passes_both_ways() {
    let server = serve("http", "");
    let mut client = server.connect();
    client.send("GET /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    let head = client.try_head().unwrap();
    assert!(head.starts_with("HTTP/1.1 101") && head.contains("Upgrade: echo"), "{head}");
    client.send("over and out");
    assert_eq!(client.bytes(12), b"OVER AND OUT");
}

#[test]
fn a_restart_lets_the_old_worker_finish_what_it_has() {
    let folder = application();
    let marker = folder.path().join("go-on");
    let begun = folder.path().join("go-on.begun");
    let server = serve_in(folder, &format!("http {}", marker.display()), "");
    let old = server.connect().get("/api/x").text();
    let mut held: Vec<Client> = (0..8).map(|_| server.connect()).collect();
    for client in &mut held {
        client.send("GET /api/hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    wait_until("the handlers to begin", || begun.exists());
    wait_until("all to be handed over", || {
        server.running().status().apps[0].workers.iter().any(|worker| worker.in_flight == 8)
    });
    server.running().restart().unwrap();
    let new = server.connect().get("/api/x").text();
    assert_ne!(new, old);
    std::fs::write(&marker, "").unwrap();
    let pid = old.split(' ').next().unwrap();
    for client in &mut held {
        let answer = client.answer();
        assert_eq!((answer.status, answer.text().split(' ').next()), (200, Some(pid)));
    }
    let (reason, failed) = ended(&server);
    assert!(reason.contains("finished what it had") && !failed, "{reason}");
}

#[test]
fn a_worker_that_dies_over_a_request_is_replaced() {
    let server = serve("http", "");
    let first = server.connect().get("/api/x").text();
    assert_eq!(server.connect().get("/api/die").status, 502);
    let (reason, failed) = ended(&server);
    assert!(failed && reason.contains("code 7"), "{reason}");
    let second = server.connect().get("/api/x");
    assert_eq!(second.status, 200);
    assert_ne!(second.text(), first);
}

#[test]
fn a_worker_that_does_not_listen_or_asks_for_what_nobody_knows_is_not_served() {
    let server = serve("http_nowhere", "");
    let (reason, failed) = ended(&server);
    assert!(failed && reason.contains("takes no connection"), "{reason}");
    let server = serve("http_unknown", "");
    let (reason, failed) = ended(&server);
    assert!(failed && reason.contains("cannot be spoken to in way 7"), "{reason}");
}

/// A folder that every user may enter, with a socket in it that answers everybody.
fn with_a_tempting_socket() -> (tempfile::TempDir, String) {
    let folder = application();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("private.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret");
        }
    });
    (folder, path.display().to_string())
}

#[test]
fn a_link_in_place_of_the_socket_leads_nowhere_where_another_user_runs_the_worker() {
    if !rustix::process::geteuid().is_root() {
        // Nobody else can run it.
        return;
    }
    let (folder, tempting) = with_a_tempting_socket();
    let server = serve_in(folder, &format!("http_link {tempting}"), "user nobody");
    let (reason, failed) = ended(&server);
    assert!(failed && reason.contains("is no socket but a link"), "{reason}");
    let (folder, tempting) = with_a_tempting_socket();
    let server = serve_in(folder, &format!("http {tempting}"), "user nobody");
    assert!(server.connect().get("/api/swap").text().contains("/api/swap"));
    let answer = server.connect().get("/api/x");
    assert_eq!((answer.status, answer.text().contains("secret")), (502, false));
}

#[test]
fn sessions_stay_with_their_worker_over_http_too() {
    let server = serve_workers(application(), 2, "http", "sticky query sid");
    wait_until("both workers", || {
        server.running().status().apps[0].workers.iter().filter(|worker| worker.state == "serving").count()
            == 2
    });
    for _ in 0..10 {
        let handshake = server.connect().get("/api/begin").text();
        let sid = handshake.split('"').nth(3).unwrap().to_owned();
        let pid = sid.split('-').next().unwrap();
        for _ in 0..5 {
            let text = server.connect().get(&format!("/api/poll?sid={sid}")).text();
            assert_eq!(text.split(' ').next(), Some(pid));
        }
    }
}
