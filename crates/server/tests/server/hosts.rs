//! Which site answers.

use crate::harness::{TestServer, Wishes, application};

const SITES: &str = "\
http://localhost:0 {
	bind 127.0.0.1
	respond \"exact\"
}
http://*.example.com:0 {
	bind 127.0.0.1
	respond \"wildcard\"
}
";

fn ask(server: &TestServer, host: &str) -> (u16, String) {
    let mut client = server.connect();
    client.send(format!("GET /robots.txt HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let answer = client.answer();
    (answer.status, answer.text())
}

#[test]
fn a_site_is_found_by_exact_host_or_wildcard() {
    let server = TestServer::start(application(), SITES, Wishes::default());
    assert_eq!(ask(&server, "localhost"), (200, "exact".into()));
    assert_eq!(ask(&server, "LOCALHOST:1234"), (200, "exact".into()));
    assert_eq!(ask(&server, "a.example.com"), (200, "wildcard".into()));
    assert_eq!(ask(&server, "a.b.example.com").0, 421);
}

#[test]
fn an_unknown_host_learns_nothing() {
    let server = TestServer::start(application(), SITES, Wishes::default());
    assert_eq!(ask(&server, "other.test"), (421, String::new()));
    assert_eq!(server.metric("onehop_refused_total{cause=\"unknown_host\""), 1);
    assert_eq!(server.metric("onehop_requests_total{site=\"_other\""), 1);
}

#[test]
fn the_host_of_an_absolute_target_counts() {
    let server = TestServer::start(application(), SITES, Wishes::default());
    let mut client = server.connect();
    client.send("GET http://a.example.com/ HTTP/1.1\r\nHost: a.example.com\r\n\r\n");
    assert_eq!(client.answer().text(), "wildcard");
}
