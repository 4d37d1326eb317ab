//! `handle_errors` and the small pages: what clients see of requests that failed.

mod error_pages;
mod of_others;

use tempfile::TempDir;

use crate::client::{Client, Response};
use crate::harness::{TestServer, Wishes, application, write};
use crate::observed::logged;

/// A folder with pages of errors beside the application.
fn folder() -> TempDir {
    let folder = application();
    write(folder.path(), "errors/404.html", b"<!doctype html>nothing here");
    write(folder.path(), "errors/50x.html", b"<!doctype html>broken for now");
    write(folder.path(), "errors/localhost/404.html", b"<!doctype html>nothing on this host");
    folder
}

fn server(directives: &str) -> TestServer {
    let text = format!("http://localhost:0 {{\nbind 127.0.0.1\n{directives}\n}}\n");
    TestServer::start(folder(), &text, Wishes::default())
}

fn get(server: &TestServer, path: &str) -> Response {
    server.connect().get(path)
}

/// The answer to a request with these lines, which is no HEAD.
fn ask(client: &mut Client, line: &str, fields: &str, body: &str) -> Response {
    client.send(format!("{line} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n{body}"));
    client.answer()
}

const FILES_WITH_PAGES: &str = "root * ./dist\nfile_server\n\
     handle_errors {\nroot * ./errors\nrewrite * /{err.status_code}.html\nfile_server\n}";

#[test]
fn an_error_route_knows_the_error_and_keeps_its_status() {
    let server = server(
        "root * ./dist\nfile_server\nhandle_errors {\nrespond \"{err.status_code} {err.status_text}\"\n}",
    );
    let answer = get(&server, "/missing");
    assert_eq!((answer.status, answer.text().as_str()), (404, "404 Not Found"));
    let answer = get(&server, "/robots.txt");
    assert_eq!((answer.status, answer.text().as_str()), (200, "User-agent: *\n"));
}

#[test]
fn a_route_may_say_another_status() {
    let server = server(
        "root * ./dist\nfile_server\nhandle_errors {\nredir /moved/* /robots.txt 302\nrespond /gone/* gone 410\n\
         respond kept\n}",
    );
    let answer = get(&server, "/moved/away");
    assert_eq!((answer.status, answer.field("Location")), (302, Some("/robots.txt")));
    assert_eq!(get(&server, "/gone/away").status, 410);
    assert_eq!(get(&server, "/missing").status, 404);
}

#[test]
fn statuses_choose_their_routes_and_those_without_come_last() {
    let server = server(
        "root * ./dist\nhandle /pot/* {\ntry_files {path} =418\n}\nhandle /down/* {\ntry_files {path} =503\n}\n\
         handle {\nfile_server\n}\nhandle_errors {\nrespond any\n}\nhandle_errors 404 {\nrespond absent\n}\n\
         handle_errors 4xx {\nrespond class\n}",
    );
    for (path, status, text) in
        [("/missing", 404, "absent"), ("/pot/x", 418, "class"), ("/down/x", 503, "any")]
    {
        let answer = get(&server, path);
        assert_eq!((answer.status, answer.text().as_str()), (status, text), "{path}");
    }
}

#[test]
fn where_no_route_answers_the_error_is_what_it_was() {
    let server =
        server("root * ./dist\nfile_server\nhandle_errors {\nheader X-Seen yes\nrespond /only hello\n}");
    let answer = get(&server, "/missing");
    assert_eq!((answer.status, answer.text().as_str(), answer.field("X-Seen")), (404, "", Some("yes")));
}

#[test]
fn an_error_within_an_error_route_is_the_plain_answer() {
    let server = server(
        "root * ./dist\nfile_server\nhandle_errors {\nroot * ./errors\nrewrite * /no-such-page.html\nfile_server\n}",
    );
    let mut client = server.connect();
    for _ in 0..2 {
        let answer = client.get("/missing");
        assert_eq!((answer.status, answer.text().as_str()), (404, ""));
    }
    assert_eq!(server.metric("onehop_refused_total{cause=\"not_found\""), 2);
}

#[test]
fn a_page_is_sent_to_every_method_and_a_head_has_no_body() {
    let server = server(FILES_WITH_PAGES);
    let mut client = server.connect();
    let page = client.get("/missing");
    assert_eq!((page.status, page.text().as_str()), (404, "<!doctype html>nothing here"));
    assert!(page.field("Content-Type").unwrap().starts_with("text/html"), "{}", page.head);
    for (line, fields, body) in [
        ("POST /missing", "Content-Length: 4\r\n", "body"),
        ("PUT /missing", "Transfer-Encoding: chunked\r\n", "4\r\nbody\r\n0\r\n\r\n"),
        ("DELETE /missing", "", ""),
        ("TRACE /missing", "", ""),
    ] {
        let answer = ask(&mut client, line, fields, body);
        assert_eq!((answer.status, answer.body == page.body), (404, true), "{line}");
    }
    client.send("HEAD /missing HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let head = client.answer_to_head();
    assert_eq!((head.status, head.field("Content-Length")), (404, page.field("Content-Length")));
    assert_eq!(client.get("/robots.txt").status, 200);
}

#[test]
fn a_page_is_sent_as_a_whole_and_whatever_the_client_holds() {
    let server = server(FILES_WITH_PAGES);
    let mut client = server.connect();
    let page = client.get("/missing");
    let tag = page.field("ETag").unwrap().to_owned();
    for fields in [
        "Range: bytes=0-3\r\n".to_owned(),
        format!("If-None-Match: {tag}\r\n"),
        "If-Match: \"another\"\r\n".to_owned(),
        "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n".to_owned(),
    ] {
        let answer = ask(&mut client, "GET /missing", &fields, "");
        assert_eq!((answer.status, answer.body == page.body), (404, true), "{fields}");
    }
}

#[test]
fn a_method_that_files_do_not_know_is_answered_with_those_they_do() {
    let server = server(
        "root * ./dist\nfile_server\nhandle_errors 405 {\nroot * ./errors\nrewrite * /404.html\nfile_server\n}",
    );
    let mut client = server.connect();
    let answer = ask(&mut client, "POST /robots.txt", "Content-Length: 4\r\n", "body");
    assert_eq!((answer.status, answer.field("Allow")), (405, Some("GET, HEAD")));
    assert_eq!(answer.text(), "<!doctype html>nothing here");
}

#[test]
fn the_request_is_again_as_it_came_and_its_root_stays() {
    let server = server(
        "root * ./dist\nrewrite * /elsewhere{uri}?changed=yes\nfile_server\n\
         handle_errors {\nheader X-Root {http.vars.root}\nrespond {uri}\n}",
    );
    let answer = get(&server, "/missing?a=b");
    assert_eq!(answer.text(), "/missing?a=b");
    assert!(answer.field("X-Root").unwrap().ends_with("/dist"), "{}", answer.head);
}

#[test]
fn fields_that_do_not_wait_for_an_answer_stay() {
    let server = server(
        "header X-Now 1\nheader X-Later 1 {\ndefer\n}\nroot * ./dist\nfile_server\n\
         handle_errors {\nheader X-Own 1\nheader X-Own-Later 1 {\ndefer\n}\nrespond hello\n}",
    );
    let answer = get(&server, "/missing");
    assert_eq!(answer.field("X-Now"), Some("1"));
    assert_eq!(answer.field("X-Later"), None);
    assert_eq!(answer.field("X-Own"), Some("1"));
    assert_eq!(answer.field("X-Own-Later"), Some("1"));
}

#[test]
fn what_is_no_request_and_what_is_no_error_of_the_site_is_not_handled() {
    let server = server("root * ./dist\nfile_server\nhandle_errors {\nrespond handled\n}");
    let mut client = server.connect();
    let answer = ask(&mut client, "GET /", "Content-Length: x\r\n", "");
    assert!(answer.status == 400 && answer.text() != "handled", "{}", answer.head);
    let mut client = server.connect();
    let other = client.send("GET / HTTP/1.1\r\nHost: other.test\r\n\r\n").answer();
    assert_eq!((other.status, other.text().as_str()), (421, ""));
    let mut client = server.connect();
    let failed = ask(&mut client, "GET /robots.txt", "If-Match: \"another\"\r\n", "");
    assert_eq!((failed.status, failed.text().as_str()), (412, ""));
    let range = ask(&mut client, "GET /robots.txt", "Range: bytes=999-\r\n", "");
    assert_eq!((range.status, range.text().as_str()), (416, ""));
}

#[test]
fn a_page_below_a_root_of_the_request_is_read_from_disk() {
    let server = server(
        "root * ./dist\nfile_server\nhandle_errors {\nroot * ./errors/{host}\nrewrite * /{err.status_code}.html\n\
         file_server\n}",
    );
    let mut client = server.connect();
    let answer = client.get("/missing");
    assert_eq!((answer.status, answer.text().as_str()), (404, "<!doctype html>nothing on this host"));
    let answer = ask(&mut client, "POST /missing", "Content-Length: 4\r\n", "body");
    assert_eq!((answer.status, answer.text().as_str()), (404, "<!doctype html>nothing on this host"));
}

#[test]
fn an_error_has_the_same_name_in_its_answer_and_in_the_log() {
    let server = server(
        "log {\noutput file ./access.log\n}\nroot * ./dist\nfile_server\nhandle_errors {\nrespond {err.id}\n}",
    );
    let id = get(&server, "/missing").text();
    assert_eq!(id.len(), 9);
    assert_ne!(get(&server, "/missing").text(), id);
    let line: serde_json::Value = serde_json::from_str(&logged(&server, 1)[0]).unwrap();
    assert_eq!((&line["err_id"], &line["refused"]), (&id.into(), &"not_found".into()));
}
