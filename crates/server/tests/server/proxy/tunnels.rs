//! Upgraded connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use onehop_config::checked::{Checked, Step};
use onehop_server::limits::Timeouts;

use super::{before, refused};
use crate::client::Client;
use crate::harness::{TestServer, Wishes};
use crate::programs::program::Program;

const ASK: &str = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";

/// Sends back what comes.
fn echo() -> Program {
    Program::start(|talk, _| {
        talk.say(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Kept: 1\r\n\r\n",
        );
        while let Some(bytes) = talk.bytes(1) {
            talk.say(bytes);
        }
        false
    })
}

fn open(server: &TestServer) -> Client {
    let mut client = server.connect();
    client.send(ASK);
    let head = client.try_head().unwrap();
    assert!(head.starts_with("HTTP/1.1 101") && head.contains("X-Kept: 1"), "{head}");
    client
}

fn talk(client: &mut Client) {
    client.send("ping");
    assert_eq!(client.bytes(4), b"ping");
}

#[test]
fn bytes_pass_both_ways_after_the_101_and_each_direction_ends_by_itself() {
    let program = echo();
    let server = before(&program, |_| {});
    let mut client = server.connect();
    client.send(ASK);
    client.send("early");
    assert!(client.try_head().unwrap().starts_with("HTTP/1.1 101"));
    assert_eq!(client.bytes(5), b"early");
    talk(&mut client);
    client.finish_sending();
    assert!(client.rest().1);
    program.wait_for_ends(1);
    let head = &program.heads()[0];
    assert!(head.contains("Upgrade: echo") && head.to_lowercase().contains("connection: upgrade"), "{head}");
}

#[test]
fn a_client_that_takes_nothing_for_a_while_keeps_its_tunnel() {
    const LENGTH: usize = 32 << 20;
    let program = Program::start(|talk, _| {
        talk.say(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Kept: 1\r\n\r\n",
        ) && talk.say(vec![b'x'; LENGTH])
    });
    let timeouts = Timeouts { write_progress: Duration::from_millis(250), ..Timeouts::default() };
    let wishes = Wishes { timeouts, ..Wishes::default() };
    let server = super::serve_wishing("", &[program.address], |_| {}, wishes);
    let mut client = open(&server);
    // As long as this, twice and more: nothing is read.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(client.bytes(LENGTH).len(), LENGTH);
}

#[test]
fn an_upgrade_that_is_answered_otherwise_is_an_answer_and_its_connection_is_not_kept() {
    let program = Program::start(|talk, _| talk.answer("no"));
    let server = before(&program, |_| {});
    let mut client = server.connect();
    for _ in 0..2 {
        client.send(ASK);
        assert_eq!(client.answer().text(), "no");
    }
    assert_eq!(program.connections(), 2);
}

#[test]
fn another_protocol_than_the_one_asked_for_is_refused() {
    let program = Program::start(|talk, _| {
        talk.say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\nsecret")
    });
    let server = before(&program, |_| {});
    let mut client = server.connect();
    client.send(ASK);
    assert_eq!(client.answer().status, 502);
    assert_eq!(refused(&server, "upstream_broken"), 1);
}

#[test]
fn a_tunnel_ends_with_its_time() {
    let program = echo();
    let server = before(&program, |proxy| proxy.stream_timeout = Some(Duration::from_millis(200)));
    let begun = Instant::now();
    let mut client = open(&server);
    talk(&mut client);
    client.rest();
    assert!(begun.elapsed() >= Duration::from_millis(200));
    program.wait_for_ends(1);
}

#[test]
fn tunnels_survive_a_reload_and_end_where_configured_some_time_after_their_route_is_gone() {
    for delay in [None, Some(Duration::from_millis(50))] {
        let program = echo();
        let is_gone = Arc::new(AtomicBool::new(false));
        let signalled = Arc::clone(&is_gone);
        let (address, text) =
            (program.address, "http://localhost:0 {\n\tbind 127.0.0.1\n\trespond \"here\"\n}\n");
        let amend = move |checked: &mut Checked| {
            if signalled.load(Ordering::SeqCst) {
                return;
            }
            let mut proxy = super::settings(&[address]);
            proxy.stream_close_delay = delay;
            let routes = checked.sites.iter_mut().flat_map(|site| &mut site.routes);
            routes.for_each(|route| route.step = Step::Proxy(Arc::new(proxy.clone())));
        };
        let wishes = Wishes { amend: Some(Arc::new(amend)), ..Wishes::default() };
        let server = TestServer::start(crate::harness::application(), text, wishes);
        let mut client = open(&server);
        talk(&mut client);
        for _ in 0..3 {
            server.running().reload().unwrap();
            talk(&mut client);
        }
        is_gone.store(true, Ordering::SeqCst);
        server.running().reload().unwrap();
        assert_eq!(server.connect().get("/").text(), "here");
        if delay.is_some() {
            client.rest();
            program.wait_for_ends(1);
        } else {
            talk(&mut client);
        }
    }
}
