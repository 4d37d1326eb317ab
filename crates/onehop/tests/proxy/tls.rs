//! Encrypted upstreams: whom the proxy believes, and what it says where it does not.

use std::time::Duration;

use onehop_testkit::upstream::{AUTHORITY_PEM, Connection, Upstream, tls_settings};
use onehop_testkit::{Folder, wait_for};

use crate::subject::{SOON, Subject};

fn well(connection: &mut Connection) {
    while connection.request().is_some() {
        connection.answer("200 OK", "", "well");
    }
}

/// A proxy to `HOST:PORT` of an encrypted upstream, with these lines of `transport http`.
fn proxy(host: &str, upstream: &Upstream, transport: &str) -> (Subject, Folder) {
    let folder = Folder::with(&[("authority.pem", AUTHORITY_PEM)]);
    let transport = transport.replace("AUTHORITY", &folder.join("authority.pem").display().to_string());
    let subject = Subject::start(&format!(
        "\treverse_proxy https://{host}:{} {{\n\t\ttransport http {{\n{transport}\n\t\t}}\n\t}}",
        upstream.port()
    ));
    (subject, folder)
}

const TRUSTED: &str = "\t\t\ttls_trust_pool file AUTHORITY";

#[test]
fn an_upstream_with_the_right_certificate_is_believed() {
    let upstream = Upstream::start_tls(tls_settings(), well);
    for host in ["localhost", "127.0.0.1"] {
        let (subject, _folder) = proxy(host, &upstream, TRUSTED);
        let mut client = subject.connect();
        for _ in 0..3 {
            client.send("GET / HTTP/1.1\r\nHost: site.example\r\n\r\n");
            let answer = client.read();
            assert_eq!((answer.status, answer.text()), (200, "well"));
        }
        let request = upstream.seen().pop().expect("a request");
        // Its own name is asked for; the client's stands in X-Forwarded-Host.
        assert_eq!(request.all("Host"), [format!("{host}:{}", upstream.port())]);
        assert_eq!(request.all("X-Forwarded-Host"), ["site.example"]);
        assert_eq!(request.all("X-Forwarded-Proto"), ["http"]);
        subject.expect_no_fault();
    }
}

#[test]
fn a_certificate_of_an_unknown_authority_is_502_and_no_request_leaves() {
    let upstream = Upstream::start_tls(tls_settings(), well);
    let (subject, _folder) = proxy("localhost", &upstream, "");
    let (answer, took) = subject.get("/");
    assert_eq!(answer.status, 502);
    assert!(took < SOON && answer.body.is_empty(), "{took:?}");
    subject.expect_refused("upstream_tls", 502, 1);
    assert_eq!(upstream.requests(), 0);
}

#[test]
fn a_certificate_for_another_name_is_502_and_no_request_leaves() {
    let upstream = Upstream::start_tls(tls_settings(), well);
    let (subject, _folder) =
        proxy("localhost", &upstream, &format!("{TRUSTED}\n\t\t\ttls_server_name other.test"));
    assert_eq!(subject.get("/").0.status, 502);
    subject.expect_refused("upstream_tls", 502, 1);
    assert_eq!(upstream.requests(), 0);
    let (subject, _folder) =
        proxy("localhost", &upstream, &format!("{TRUSTED}\n\t\t\ttls_server_name upstream.test"));
    assert_eq!(subject.get("/").0.status, 200);
}

#[test]
fn whoever_answers_is_believed_where_the_file_says_so() {
    let upstream = Upstream::start_tls(tls_settings(), well);
    let (subject, _folder) = proxy("localhost", &upstream, "\t\t\ttls_insecure_skip_verify");
    assert_eq!(subject.get("/").0.text(), "well");
}

#[test]
fn an_upstream_that_speaks_no_tls_is_502() {
    let upstream = Upstream::start(|connection| {
        connection.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        connection.wait_for_end();
    });
    let (subject, _folder) = proxy("localhost", &upstream, TRUSTED);
    let (answer, took) = subject.get("/");
    assert_eq!(answer.status, 502);
    assert!(took < SOON, "{took:?}");
    subject.expect_refused("upstream_tls", 502, 1);
}

#[test]
fn a_handshake_that_never_ends_is_given_up() {
    let upstream = Upstream::start(|connection| {
        connection.wait_for_end();
    });
    let (subject, _folder) = proxy("localhost", &upstream, &format!("{TRUSTED}\n\t\t\ttls_timeout 400ms"));
    let (answer, took) = subject.get("/");
    assert!([502, 504].contains(&answer.status), "{}", answer.status);
    assert!(took >= Duration::from_millis(350) && took < SOON, "{took:?}");
    if subject.is_onehop() {
        wait_for("the cause in the metrics", || {
            (subject.refused("upstream_tls") + subject.refused("upstream_dial_timeout") == 1).then_some(())
        });
    }
}

#[test]
fn the_floor_has_shaken_hands_before_the_first_request() {
    let upstream = Upstream::start_tls(tls_settings(), well);
    let folder = Folder::with(&[("authority.pem", AUTHORITY_PEM)]);
    let subject = Subject::onehop(
        "\tthreads 2",
        &format!(
            "\treverse_proxy https://localhost:{} {{\n\t\tpool min 4\n\t\ttransport http {{\n\t\t\ttls_trust_pool file {}\n\t\t}}\n\t}}",
            upstream.port(),
            folder.join("authority.pem").display()
        ),
    );
    wait_for("four connections", || (upstream.ready() == 4).then_some(()));
    for _ in 0..20 {
        assert_eq!(subject.get("/").0.text(), "well");
    }
    assert_eq!((upstream.accepted(), upstream.open(), upstream.requests()), (4, 4, 20));
}
