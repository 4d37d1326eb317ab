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

#[test]
fn a_final_dot_or_a_port_evades_no_host_matcher() {
    let text = "http://admin.test:0, http://pub.test:0 {\n\tbind 127.0.0.1\n\t@admin host admin.test\n\trespond @admin forbidden 403\n\trespond public\n}\n";
    let server = TestServer::start(application(), text, Wishes::default());
    for host in ["admin.test", "admin.test.", "ADMIN.test.:80", "admin.test:80"] {
        assert_eq!(ask(&server, host).0, 403, "{host}");
    }
    assert_eq!(ask(&server, "pub.test.").1, "public");
}

#[test]
fn connect_is_never_answered_as_if_a_tunnel_were_open() {
    let server = TestServer::start(application(), SITES, Wishes::default());
    let mut client = server.connect();
    client.send("CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n");
    assert_eq!(client.answer().status, 405);
}
