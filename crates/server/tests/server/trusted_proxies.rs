//! `trusted_proxies`: what a proxy in front says about its client arrives, and what anybody else says does not.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::client::Client;
use crate::harness::{TestServer, Wishes, application};
use crate::programs::program::{Program, field};
use crate::programs::serve_with;
use crate::sticky::{connect_from, serve as serve_sessions};
use crate::workers::serve;

/// The proxy in front; everybody else on loopback is a client.
const FRONT: u8 = 2;
const OPTION: &str = "trusted_proxies 127.0.0.2";

/// A connection from 127.0.0.`last`.
fn from(last: u8, server: &TestServer) -> Client {
    Client::over(connect_from(last, server.address().parse().unwrap()))
}

/// The body of the answer to a GET with these field lines.
fn ask<S: Read + Write>(client: &mut Client<S>, fields: &str) -> String {
    client.send(format!("GET /api/x HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    let answer = client.answer();
    assert_eq!(answer.status, 200);
    answer.text()
}

const SAID: &str = "X-Forwarded-For: 192.0.2.1\r\nx-forwarded-for: 192.0.2.2\r\nX-Forwarded-Proto: https2\r\n\
    X-Forwarded-Host: shop.example\r\nX-Forwarded-Port: 192443\r\nForwarded: for=192.0.2.3\r\nX-Real-IP: 192.0.2.4\r\n";

#[test]
fn a_worker_gets_the_fields_of_a_trusted_proxy_as_they_came_and_of_nobody_else() {
    let server = serve("show_head", OPTION);
    let values = ["192.0.2.1", "192.0.2.2", "https2", "shop.example", "192443", "for=192.0.2.3", "192.0.2.4"];
    let mut front = from(FRONT, &server);
    let text = ask(&mut front, SAID);
    assert!(values.iter().all(|value| text.contains(value)), "{text}");
    let text = ask(&mut from(1, &server), &format!("{SAID}X-Kept: yes\r\n"));
    assert!(text.contains("X-Kept:yes") && !values.iter().any(|value| text.contains(value)), "{text}");
    // The same connection again: nothing is remembered from request to request.
    assert!(!ask(&mut front, "").contains("192"));
}

#[test]
fn another_spelling_is_no_way_around_and_connection_drops_nothing_of_a_trusted_proxy() {
    let aliases = "X_Forwarded_For: 6.6.6.6\r\nx-forwarded_proto: 6.6.6.6\r\nX_Real_IP: 6.6.6.6\r\n\
        X_Forwarded-Port: 6.6.6.6\r\nX-Kept: yes\r\n";
    let named = "Connection: X-Forwarded-For, x-real-ip, X-FORWARDED-PROTO\r\nX-Forwarded-For: 6.6.6.6\r\n\
        X-Real-IP: 6.6.6.6\r\nX-Forwarded-Proto: 6.6.6.6\r\nX-Kept: yes\r\n";
    let server = serve("show_head", OPTION);
    for (last, fields, is_passed_on) in
        [(1, aliases, false), (FRONT, aliases, false), (1, named, false), (FRONT, named, true)]
    {
        let text = ask(&mut from(last, &server), fields);
        assert!(text.contains("X-Kept:yes") && text.contains("6.6.6.6") == is_passed_on, "{last} {text}");
    }
    let program = Program::start(|talk, _| talk.answer("hello"));
    let server = serve_with(program.address, OPTION, "");
    ask(&mut from(FRONT, &server), named);
    let head = program.heads().remove(0);
    assert_eq!(field(&head, "X-Forwarded-For"), Some("6.6.6.6, 127.0.0.2"));
    assert_eq!(field(&head, "X-Forwarded-Proto"), Some("6.6.6.6"));
}

#[test]
fn a_program_gets_the_list_with_the_proxy_appended_and_what_is_missing_made() {
    let program = Program::start(|talk, _| talk.answer("hello"));
    let server = serve_with(program.address, OPTION, "");
    let begin = "GET /api/x HTTP/1.1\r\nHost: localhost\r\n";
    for (last, fields, expected) in [
        (
            FRONT,
            SAID,
            "X-Forwarded-Proto: https2\r\nX-Forwarded-Host: shop.example\r\nX-Forwarded-Port: 192443\r\n\
             Forwarded: for=192.0.2.3\r\nX-Real-IP: 192.0.2.4\r\n\
             X-Forwarded-For: 192.0.2.1, 192.0.2.2, 127.0.0.2",
        ),
        (
            FRONT,
            "X-Forwarded-For:\r\n",
            "X-Forwarded-For: 127.0.0.2\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: localhost",
        ),
        (1, SAID, "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: localhost"),
    ] {
        ask(&mut from(last, &server), fields);
        assert_eq!(program.heads().pop().unwrap(), format!("{begin}{expected}"));
    }
}

#[test]
fn who_comes_through_a_unix_socket_is_trusted_where_anybody_is() {
    let program = Program::start(|talk, _| talk.answer("hello"));
    let folder = application();
    let path = folder.path().join("site.sock");
    let address = program.address;
    let text = format!(
        "http://localhost {{\n\tbind unix/{}\n\tapp /* {{\n\t\tsupervise off {address}\n\t\t{OPTION}\n\t}}\n}}\n",
        path.display()
    );
    let _server = TestServer::start(folder, &text, Wishes::default());
    let mut client = Client::over(UnixStream::connect(&path).unwrap());
    ask(&mut client, "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n");
    let head = program.heads().remove(0);
    assert_eq!(field(&head, "X-Forwarded-For"), Some("192.0.2.1"));
    assert_eq!(field(&head, "X-Forwarded-Proto"), Some("https"));
}

#[test]
fn sticky_ip_goes_by_the_last_address_that_is_no_trusted_proxy() {
    let server = serve_sessions(3, "sticky ip\n\t\ttrusted_proxies 127.0.0.2 10.0.0.0/8");
    let worker =
        |last: u8, list: &str| ask(&mut from(last, &server), &format!("X-Forwarded-For: {list}\r\n"));
    let workers: BTreeSet<String> = (1..30)
        .map(|client| {
            let first = worker(FRONT, &format!("192.0.2.{client}"));
            for list in [
                format!("198.51.100.{client}, 192.0.2.{client}"),
                format!("unknown, 192.0.2.{client}:4711"),
                format!("192.0.2.{client}, 10.0.0.7, 10.1.2.3"),
                format!("10.0.0.7\r\nX-Forwarded-For: 192.0.2.{client}"),
            ] {
                assert_eq!(worker(FRONT, &list), first, "{list}");
            }
            first
        })
        .collect();
    assert_eq!(workers.len(), 3);
    let own = worker(FRONT, "unknown");
    assert_eq!(worker(FRONT, "10.0.0.7"), own, "without an address, the proxy's own counts");
    let client = worker(1, "192.0.2.1");
    assert!((2..30).all(|number| worker(1, &format!("192.0.2.{number}")) == client));
}

#[test]
fn a_cookie_is_secure_where_a_trusted_proxy_says_that_the_client_came_encrypted() {
    let server = serve_sessions(2, &format!("sticky cookie\n\t\t{OPTION}"));
    for (last, scheme, is_secure) in [
        (FRONT, "https", true),
        (FRONT, "HTTPS, http", true),
        (FRONT, "http, https", false),
        (1, "https", false),
    ] {
        let mut client = from(last, &server);
        client.send(format!("GET /api/x HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Proto: {scheme}\r\n\r\n"));
        let answer = client.answer();
        let cookie = answer.field("Set-Cookie").expect("a cookie");
        assert_eq!(cookie.ends_with("; Secure"), is_secure, "{last} {scheme} {cookie}");
    }
}
