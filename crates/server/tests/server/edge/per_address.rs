//! `connections_per_address`: an address that has its connections gets no more, and nobody else notices.

use std::os::unix::net::UnixStream;

use super::wait_for;
use crate::client::Client;
use crate::harness::{TestServer, Wishes, application, write};
use crate::sticky::connect_from;

const REFUSED: &str = "onehop_connections_refused_total{cause=\"of_address\"}";

fn text(option: &str) -> String {
    format!("{{\n\t{option}\n}}\nhttp://localhost:0 {{\n\tbind 127.0.0.1\n\trespond hello\n}}\n")
}

fn start(option: &str) -> TestServer {
    TestServer::start(application(), &text(option), Wishes { threads: 2, ..Wishes::default() })
}

fn from(last: u8, server: &TestServer) -> Client {
    Client::over(connect_from(last, server.address().parse().unwrap()))
}

/// A connection of this address that is served, once the server has seen the end of another one.
fn served_soon(last: u8, server: &TestServer) -> Client {
    wait_for("a connection that is served", || {
        let mut client = from(last, server);
        client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.try_answer(true).ok().map(|_| client)
    })
}

#[test]
fn one_connection_too_many_of_an_address_is_closed_without_a_word_and_others_are_served() {
    let server = start("connections_per_address 3");
    let mut open: Vec<_> = (0..3).map(|_| from(1, &server)).collect();
    for client in &mut open {
        assert_eq!(client.get("/").status, 200);
    }
    for _ in 0..5 {
        let (bytes, _) = from(1, &server).rest();
        assert!(bytes.is_empty(), "{}", String::from_utf8_lossy(&bytes));
    }
    assert_eq!(from(2, &server).get("/").status, 200);
    assert_eq!(server.metric(REFUSED), 5);
    assert_eq!(server.metric("onehop_connections_refused_total{cause=\"in_all\"}"), 0);
    drop(open.pop());
    assert_eq!(served_soon(1, &server).get("/").status, 200);
}

#[test]
fn a_reload_changes_the_number_and_keeps_the_count() {
    let server = start("connections_per_address 4");
    let file = server.folder.path().to_path_buf();
    let reload = |option: &str| {
        write(&file, "Onehopfile", text(option).as_bytes());
        server.running().reload().unwrap();
    };
    let mut open: Vec<_> = (0..4).map(|_| from(1, &server)).collect();
    for client in &mut open {
        assert_eq!(client.get("/").status, 200);
    }
    reload("connections_per_address 2");
    // Those that are open stay.
    for client in &mut open {
        assert_eq!(client.get("/").status, 200);
    }
    open.truncate(2);
    wait_for("two ends", || (server.metric("onehop_connections_open") == 2).then_some(()));
    assert!(from(1, &server).is_closed());
    reload("admin off");
    let mut unbounded: Vec<_> = (0..3).map(|_| from(1, &server)).collect();
    for client in &mut unbounded {
        assert_eq!(client.get("/").status, 200);
    }
    drop(unbounded);
    reload("connections_per_address 3");
    assert_eq!(from(1, &server).get("/").status, 200, "the two that were counted still are");
    let third = served_soon(1, &server);
    assert!(from(1, &server).is_closed());
    drop((third, open));
    wait_for("all ends", || (server.metric("onehop_connections_open") == 0).then_some(()));
    let mut again: Vec<_> = (0..3).map(|_| served_soon(1, &server)).collect();
    assert!(again.iter_mut().all(|client| client.get("/").status == 200));
}

#[test]
fn trusted_proxies_and_unix_sockets_have_as_many_connections_as_they_like() {
    let folder = application();
    let path = folder.path().join("site.sock");
    let text = format!(
        "{{\n\tconnections_per_address 1\n\tservers {{\n\t\ttrusted_proxies static 127.0.0.9\n\t}}\n}}\n\
         http://localhost:0 {{\n\tbind 127.0.0.1 unix/{}|0600\n\trespond hello\n}}\n",
        path.display()
    );
    let server = TestServer::start(folder, &text, Wishes::default());
    let tcp = server.running().addresses().into_iter().find(|address| address.starts_with("127.")).unwrap();
    let mut proxy: Vec<_> = (0..4).map(|_| Client::over(connect_from(9, tcp.parse().unwrap()))).collect();
    assert!(proxy.iter_mut().all(|client| client.get("/").status == 200));
    let mut local: Vec<_> = (0..4).map(|_| Client::over(UnixStream::connect(&path).unwrap())).collect();
    assert!(local.iter_mut().all(|client| client.get("/").status == 200));
    let mut one = Client::over(connect_from(1, tcp.parse().unwrap()));
    assert_eq!(one.get("/").status, 200);
    assert!(Client::over(connect_from(1, tcp.parse().unwrap())).is_closed());
}
