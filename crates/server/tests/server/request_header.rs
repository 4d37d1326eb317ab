//! `request_header`: what later routes and upstreams see of a request's fields.

use crate::harness::{TestServer, Wishes, application};
use crate::programs::program::{Program, field};
use crate::workers::serve_in_site;

fn server(directives: &str) -> TestServer {
    let text = format!("http://localhost:0 {{\n\tbind 127.0.0.1\n{directives}\n}}\n");
    TestServer::start(application(), &text, Wishes::default())
}

/// The status and the text of the answer to a GET with these fields.
fn get(server: &TestServer, target: &str, fields: &str) -> (u16, String) {
    let mut client = server.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    let answer = client.answer();
    (answer.status, answer.text())
}

/// The head that an upstream gets behind these directives.
fn passed_on(directives: &str, request: &str) -> String {
    let program = Program::start(|talk, head| {
        let Some(body) = talk.body(head) else { return false };
        talk.answer(body)
    });
    let server = server(&format!("{directives}\nreverse_proxy {}", program.address));
    let mut client = server.connect();
    client.send(request);
    assert_eq!(client.answer().status, 200);
    program.heads().remove(0)
}

#[test]
fn a_changed_field_is_what_later_matchers_and_placeholders_see() {
    let text = "@beta header X-Group beta\nrespond @beta \"beta {header.X-New} {header.X-Old}\"\nrespond \"{header.X-New} {header.X-Old}\"\n";
    for (changes, fields, expected) in [
        ("request_header X-Group beta", "", "beta  "),
        ("request_header X-Group beta", "X-Group: alpha\r\n", "beta  "),
        ("request_header X-New {header.X-Old}!", "X-Old: 1\r\n", "1! 1"),
        ("request_header +X-Old 2", "X-Old: 1\r\n", " 1,2"),
        ("request_header -X-Old", "X-Old: 1\r\nx-old: 2\r\n", " "),
        ("request_header -X-O*", "X-Old: 1\r\nX-New: 2\r\n", "2 "),
        ("request_header -*Old", "X-Old: 1\r\nX-New: 2\r\n", "2 "),
        ("request_header -*-N*", "X-Old: 1\r\nX-New: 2\r\n", " 1"),
        ("request_header X-Old (\\w+)-(\\w+) $2-$1", "X-Old: one-two\r\n", " two-one"),
        ("request_header /other X-New 1", "", " "),
        ("@m header X-Old *\nrequest_header @m X-New yes\nrequest_header @m -X-Old", "X-Old: 1\r\n", "yes "),
    ] {
        let server = server(&format!("{changes}\n{text}"));
        assert_eq!(get(&server, "/", fields), (200, expected.to_owned()), "{changes}");
    }
}

#[test]
fn an_upstream_gets_the_changed_fields_and_none_of_the_removed() {
    let head = passed_on(
        "request_header X-User {header.X-Claim}\nrequest_header -X-Secret*\nrequest_header -Accept-Encoding",
        "GET /a?b HTTP/1.1\r\nHost: localhost\r\nX-User: root\r\nX-Claim: ann\r\nX-Secret-Key: s\r\nAccept-Encoding: gzip\r\n\r\n",
    );
    assert!(head.starts_with("GET /a?b HTTP/1.1\r\nHost: localhost\r\n"), "{head}");
    assert_eq!(head.matches("X-User").count(), 1, "{head}");
    assert_eq!(field(&head, "X-User"), Some("ann"), "{head}");
    assert_eq!(field(&head, "X-Secret-Key"), None, "{head}");
    assert_eq!(field(&head, "Accept-Encoding"), None, "{head}");
}

#[test]
fn an_application_gets_the_changed_fields() {
    let directives =
        "request_header X-User ann\n\trequest_header -X-Secret\n\trequest_header X-Group (.*)-old $1-new";
    let server = serve_in_site(application(), "facts", "", directives);
    let mut client = server.connect();
    client.send(
        "GET /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: X-User\r\nX-User: root\r\nX-Secret: 1\r\nX-Group: a-old\r\n\r\n",
    );
    let head = client.answer().text();
    assert!(head.contains("X-User:ann") && head.contains("a-new"), "{head}");
    assert!(!head.contains("root") && !head.contains("X-Secret"), "{head}");
}

#[test]
fn a_client_cannot_name_away_what_the_configuration_sets() {
    for change in ["request_header X-User ann", "request_header +X-User ann"] {
        let head = passed_on(
            change,
            "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: x-user, X-Hop\r\nX-User: root\r\nX-Hop: 1\r\n\r\n",
        );
        assert_eq!(head.matches("X-User").count(), 1, "{head}");
        assert_eq!(field(&head, "X-User"), Some("ann"), "{head}");
        assert_eq!(field(&head, "X-Hop"), None, "{head}");
    }
}

#[test]
fn removing_every_field_leaves_host_and_the_length_of_the_body() {
    let head = passed_on(
        "request_header -*",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nX-Forwarded-For: 6.6.6.6\r\nCookie: a=b\r\n\r\nhello",
    );
    assert_eq!(field(&head, "Host"), Some("localhost"), "{head}");
    assert_eq!(field(&head, "Content-Length"), Some("5"), "{head}");
    assert_eq!(field(&head, "X-Forwarded-For"), Some("127.0.0.1"), "{head}");
    assert_eq!(field(&head, "Cookie"), None, "{head}");
}

#[test]
fn a_connection_is_used_again_behind_a_changed_head() {
    let server = server("request_header X-New {query.a}\nrespond \"{header.X-New} {header.X-Old}\"");
    let mut client = server.connect();
    for number in 0..3 {
        client.send(format!("GET /?a={number} HTTP/1.1\r\nHost: localhost\r\nX-Old: {number}\r\n\r\n"));
        assert_eq!(client.answer().text(), format!("{number} {number}"));
    }
}

#[test]
fn a_value_never_begins_a_new_request_field() {
    let server = server("request_header X-New {query.a}\nrespond \"{header.X-New}|{header.Injected}\"");
    assert_eq!(get(&server, "/?a=1%0d%0aInjected:%20yes", ""), (200, "1Injected: yes|".to_owned()));
}

#[test]
fn fields_that_grow_beyond_the_bound_are_refused() {
    let server = server(&format!("request_header X-Big {}\nrespond ok", "{query.a}".repeat(16)));
    assert_eq!(get(&server, "/?a=1", "").0, 200);
    assert_eq!(get(&server, &format!("/?a={}", "a".repeat(7_000)), "").0, 431);
}

#[test]
fn error_routes_see_changed_fields() {
    let server = server("request_header X-New 1\nerror 500\nhandle_errors {\nrespond \"{header.X-New}\"\n}");
    assert_eq!(get(&server, "/", ""), (500, "1".to_owned()));
}
