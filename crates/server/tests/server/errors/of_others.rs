//! Errors of those who answer for the site: upstreams and applications.

use super::{ask, folder, get, server};
use crate::harness::{TestServer, Wishes, nowhere};
use crate::programs::program::Program;
use crate::workers;

const PAGE: &str = "handle_errors 5xx {\nroot * ./errors\nrewrite * /50x.html\nfile_server\n}";

#[test]
fn an_upstream_that_is_not_there_is_answered_with_the_sites_page() {
    let address = nowhere();
    let server = server(&format!("reverse_proxy {address}\n{PAGE}"));
    let mut client = server.connect();
    for (line, fields, body) in [
        ("GET /a", "", ""),
        ("POST /a", "Content-Length: 4\r\n", "body"),
        ("POST /a", "Transfer-Encoding: chunked\r\n", "4\r\nbody\r\n0\r\n\r\n"),
    ] {
        let answer = ask(&mut client, line, fields, body);
        assert_eq!((answer.status, answer.text().as_str()), (502, "<!doctype html>broken for now"), "{line}");
        assert!(!answer.head.contains(&address.to_string()), "{}", answer.head);
    }
    client.send("HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer_to_head().status, 502);
    // Those who failed are counted, not those who made the page.
    let site = "onehop_requests_total{site=\"http://localhost:0\"";
    for (method, failed) in [("GET", 1), ("POST", 2), ("HEAD", 1)] {
        let counted =
            format!("{site},handler=\"reverse_proxy\",route=\"*\",method=\"{method}\",class=\"5xx\"");
        assert_eq!(server.metric(&counted), failed, "{method}");
    }
    assert_eq!(server.metric("onehop_refused_total{cause=\"upstream_unreachable\""), 4);
}

#[test]
fn an_answer_of_the_upstream_is_never_an_error_of_the_site() {
    let program = Program::start(|talk, _| {
        talk.say("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\ntheir")
    });
    let server = server(&format!("reverse_proxy {}\n{PAGE}", program.address));
    let answer = get(&server, "/");
    assert_eq!((answer.status, answer.text().as_str()), (503, "their"));
}

#[test]
fn a_page_below_a_root_of_the_request_is_read_from_disk_after_a_call_too() {
    let server = server(&format!(
        "reverse_proxy {}\nhandle_errors {{\nroot * ./errors/{{host}}\nrewrite * /404.html\nfile_server\n}}",
        nowhere()
    ));
    let mut client = server.connect();
    for (line, fields, body) in [("GET /", "", ""), ("POST /", "Content-Length: 4\r\n", "body")] {
        let answer = ask(&mut client, line, fields, body);
        assert_eq!((answer.status, answer.text().as_str()), (502, "<!doctype html>nothing on this host"));
    }
}

#[test]
fn another_upstream_may_make_the_page() {
    let pages = Program::start(|talk, head| {
        let line = head.lines().next().unwrap().to_owned();
        talk.answer(format!("a page for {line}"))
    });
    let server = server(&format!(
        "log {{\noutput file ./access.log\n}}\nreverse_proxy {}\nhandle_errors {{\nheader X-Error {{err.status_code}}\n\
         rewrite * /{{err.status_code}}{{uri}}\nreverse_proxy {}\n}}",
        nowhere(),
        pages.address
    ));
    let answer = get(&server, "/a?b");
    // As in Caddy, whoever makes the page also says its status.
    assert_eq!((answer.status, answer.text().as_str()), (200, "a page for GET /502/a?b HTTP/1.1"));
    assert_eq!(answer.field("X-Error"), Some("502"));
    // The log tells of the one that failed.
    let line: serde_json::Value = serde_json::from_str(&crate::observed::logged(&server, 1)[0]).unwrap();
    assert_eq!(line["refused"], "upstream_unreachable");
    assert_ne!(line["upstream"], pages.address.to_string());
}

#[test]
fn an_error_of_the_one_who_makes_the_page_is_the_plain_answer() {
    let server =
        server(&format!("reverse_proxy {}\nhandle_errors {{\nreverse_proxy {}\n}}", nowhere(), nowhere()));
    let mut client = server.connect();
    for _ in 0..2 {
        let answer = client.get("/");
        assert_eq!((answer.status, answer.text().as_str()), (502, ""));
    }
}

#[test]
fn a_body_that_is_gone_is_not_sent_to_the_one_who_makes_the_page() {
    let broken = Program::start(|talk, head| {
        talk.body(head);
        false
    });
    let pages = Program::start(|talk, _| talk.answer("a page"));
    let server = server(&format!(
        "reverse_proxy {}\nhandle_errors {{\nreverse_proxy {}\n}}",
        broken.address, pages.address
    ));
    let mut client = server.connect();
    let answer = ask(&mut client, "POST /", "Content-Length: 4\r\n", "body");
    assert_eq!((answer.status, answer.text().as_str()), (502, ""));
    assert_eq!(pages.heads().len(), 0);
    // What has no body can be asked for again.
    assert_eq!(get(&server, "/").text(), "a page");
}

#[test]
fn a_body_that_nobody_has_taken_goes_to_the_one_who_makes_the_page() {
    let pages = Program::start(|talk, head| match talk.body(head) {
        Some(body) => talk.answer(body),
        None => false,
    });
    let server =
        server(&format!("root * ./dist\nfile_server\nhandle_errors {{\nreverse_proxy {}\n}}", pages.address));
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "POST /missing", "Content-Length: 4\r\n", "body").text(), "body");
    assert_eq!(client.get("/robots.txt").status, 200);
}

#[test]
fn an_application_that_fails_is_answered_with_the_sites_page() {
    let text = |behaviour: &str, path: &str| {
        let server = workers::serve_in_site(folder(), behaviour, "timeout 300ms\n\t\tstuck_after 30s", PAGE);
        let mut client = server.connect();
        let answer = client.get(path);
        (answer.status, answer.text(), client.get("/robots.txt").status)
    };
    let page = "<!doctype html>broken for now".to_owned();
    assert_eq!(text("dies", "/api/die"), (502, page.clone(), 200));
    assert_eq!(text("late 1.2", "/api/slow"), (504, page, 200));
}

#[test]
fn an_application_that_does_not_run_says_when_to_ask_again_also_on_a_page() {
    let server = workers::serve_in_site(folder(), "exits_at_start", "", PAGE);
    server.wait_for(|event| match event {
        onehop_server::Event::App(onehop_server::control::AppEvent::Failing { .. }) => Some(()),
        _ => None,
    });
    let answer = get(&server, "/api/x");
    assert_eq!((answer.status, answer.text().as_str()), (503, "<!doctype html>broken for now"));
    assert!(answer.field("Retry-After").is_some(), "{}", answer.head);
}

#[test]
fn a_server_without_error_routes_is_unchanged_where_nobody_asks_for_a_page() {
    let text = format!("http://localhost:0 {{\nbind 127.0.0.1\nreverse_proxy {}\n}}\n", nowhere());
    let server = TestServer::start(folder(), &text, Wishes::default());
    let answer = get(&server, "/");
    assert_eq!((answer.status, answer.text().as_str(), answer.field("Content-Type")), (502, "", None));
}
