//! The small pages of those whose file has none.

use super::{ask, server};
use crate::client::Response;
use crate::harness::{TestServer, nowhere};

fn accepting(server: &TestServer, path: &str, accept: &str) -> Response {
    ask(&mut server.connect(), &format!("GET {path}"), &format!("Accept: {accept}\r\n"), "")
}

#[test]
fn a_failed_upstream_is_reported_in_what_the_client_accepts() {
    let address = nowhere();
    let server = server(&format!("header X-Always 1\nreverse_proxy {address}"));
    let page = accepting(&server, "/", "text/html,*/*;q=0.8");
    assert_eq!((page.status, page.field("Content-Type")), (502, Some("text/html; charset=utf-8")));
    assert_eq!((page.field("X-Always"), page.field("Cache-Control")), (Some("1"), Some("no-store")));
    assert!(page.text().contains("Bad Gateway"), "{}", page.text());
    let problem = accepting(&server, "/", "application/json");
    assert_eq!((problem.status, problem.field("Content-Type")), (502, Some("application/json")));
    let parsed: serde_json::Value = serde_json::from_slice(&problem.body).unwrap();
    assert_eq!((&parsed["status"], &parsed["title"]), (&502.into(), &"Bad Gateway".into()));
    for answer in [page, problem] {
        let inside = address.to_string();
        assert!(!answer.text().contains(&inside) && !answer.head.contains(&inside), "{}", answer.text());
    }
    let plain = accepting(&server, "/", "*/*");
    assert_eq!((plain.status, plain.text().as_str()), (502, ""));
}

#[test]
fn a_head_has_no_page_but_its_length() {
    let server = server(&format!("reverse_proxy {}", nowhere()));
    let length = accepting(&server, "/", "text/html").body.len().to_string();
    let mut client = server.connect();
    client.send("HEAD / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n");
    let head = client.answer_to_head();
    assert_eq!((head.status, head.field("Content-Length")), (502, Some(length.as_str())));
    assert_eq!(ask(&mut client, "GET /", "", "").status, 502);
}

#[test]
fn a_post_has_the_same_page() {
    let server = server(&format!("reverse_proxy {}", nowhere()));
    let mut client = server.connect();
    let fields = "Accept: text/html\r\nContent-Length: 4\r\n";
    assert!(ask(&mut client, "POST /", fields, "body").text().contains("Bad Gateway"));
    assert!(ask(&mut client, "POST /", fields, "body").text().contains("Bad Gateway"));
}

#[test]
fn other_errors_have_no_page_unless_the_file_asks_for_it() {
    let without = server("root * ./dist\nfile_server");
    assert_eq!(accepting(&without, "/missing", "text/html").text(), "");
    let with = server("root * ./dist\nfile_server\nhandle_errors {\n}");
    let page = accepting(&with, "/missing", "text/html");
    assert_eq!(page.status, 404);
    assert!(page.text().contains("Not Found"), "{}", page.text());
    assert_eq!(accepting(&with, "/missing", "*/*").text(), "");
}

#[test]
fn a_page_of_the_file_goes_before_ours() {
    let server = server(&format!("reverse_proxy {}\nhandle_errors {{\nrespond /own/* own\n}}", nowhere()));
    assert_eq!(accepting(&server, "/own/x", "text/html").text(), "own");
    assert!(accepting(&server, "/other", "text/html").text().contains("Bad Gateway"));
}
