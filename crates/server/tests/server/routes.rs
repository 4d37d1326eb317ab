//! Directives as a request meets them.

use crate::client::Response;
use crate::harness::{TestServer, Wishes, application};

fn server(directives: &str) -> TestServer {
    TestServer::start(application(), &format!("http://localhost:0 {{\n{directives}\n}}\n"), Wishes::default())
}

fn get(server: &TestServer, path: &str) -> Response {
    server.connect().get(path)
}

#[test]
fn only_the_first_handle_that_matches_is_taken() {
    let server = server(
        "handle /api/* {\nrespond api\n}\nhandle_path /strip/* {\nrespond {path}\n}\nhandle {\nrespond rest\n}",
    );
    assert_eq!(get(&server, "/api/x").text(), "api");
    assert_eq!(get(&server, "/strip/a/b").text(), "/a/b");
    assert_eq!(get(&server, "/other").text(), "rest");
}

#[test]
fn a_redirect_has_its_status_and_place() {
    let server = server("redir /old /new permanent\nredir /web https://example.com{uri} html");
    let answer = get(&server, "/old");
    assert_eq!((answer.status, answer.field("Location")), (301, Some("/new")));
    assert!(get(&server, "/web?a='b'").text().contains("https://example.com/web?a=&#39;b&#39;"));
}

#[test]
fn a_rewrite_changes_what_comes_after_it() {
    let server = server("rewrite /a /b?x={query}\nrespond {uri}");
    assert_eq!(get(&server, "/a?q=1").text(), "/b?x=q=1");
    assert_eq!(get(&server, "/c").text(), "/c");
}

#[test]
fn fields_are_set_added_and_removed() {
    let server =
        server("header X-One 1\nheader +X-One 2\nheader -Content-Type\nheader ?X-Two 2\nrespond hello");
    let answer = get(&server, "/");
    assert_eq!(answer.head.matches("X-One").count(), 2);
    assert_eq!(answer.field("X-Two"), Some("2"));
    assert_eq!(answer.field("Content-Type"), None);
}

#[test]
fn a_value_from_the_request_never_begins_a_new_field() {
    let server = server("header X-Path {path}\nredir /go {query.to}\nrespond hello");
    let answer = get(&server, "/a%0d%0aInjected:%20yes");
    assert_eq!(answer.field("Injected"), None);
    let answer = get(&server, "/go?to=%0d%0aInjected:%20yes");
    assert_eq!(answer.field("Injected"), None);
}

#[test]
fn a_configuration_cannot_frame_an_answer_twice() {
    let server = server("header Content-Length 1\nheader Transfer-Encoding chunked\nrespond hello");
    let answer = get(&server, "/");
    assert_eq!((answer.text(), answer.field("Transfer-Encoding")), ("hello".into(), None));
}

#[test]
fn try_files_falls_back_in_order() {
    let server = server("root * ./dist\ntry_files {path} /robots.txt\nfile_server");
    assert!(get(&server, "/index.html").status < 400);
    assert!(get(&server, "/nowhere").text().starts_with("User-agent"));
    let strict = TestServer::start(
        application(),
        "http://localhost:0 {\nroot * ./dist\ntry_files {path} =404\nfile_server\n}\n",
        Wishes::default(),
    );
    assert_eq!(get(&strict, "/nowhere").status, 404);
}

#[test]
fn a_text_is_compressed_where_the_client_takes_it() {
    let long = "a".repeat(2000);
    let server = server(&format!("encode gzip\nrespond {long}"));
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.field("Content-Encoding"), Some("gzip"));
    assert!(answer.body.len() < 100);
    assert_eq!(client.get("/").body.len(), 2000);
}

#[test]
fn where_no_route_answers_the_answer_is_an_empty_200() {
    let server = server("respond /only here");
    assert_eq!(get(&server, "/only").text(), "here");
    assert_eq!((get(&server, "/x").status, get(&server, "/x").body.len()), (200, 0));
}

#[test]
fn a_prefix_is_taken_off_however_the_path_is_written() {
    let server = server("handle_path /static/* {\nrespond {path}\n}\nrespond outside");
    for path in ["/static/a", "//static/a", "/x/../static/a", "/%73tatic/a"] {
        assert_eq!(get(&server, path).text(), "/a", "{path}");
    }
}

#[test]
fn a_value_in_a_rewrite_stays_a_part_of_the_path() {
    let server = server("rewrite /go /srv/{query.p}\nrespond {uri}");
    assert_eq!(get(&server, "/go?p=a%0d%0ab%3fx%252e").text(), "/srv/a%0D%0Ab%3Fx%252e?p=a%0d%0ab%3fx%252e");
}

#[test]
fn a_replacement_takes_groups_from_the_configuration_only() {
    let server = server("header X-A one-two\nheader >X-A (\\w+)-(\\w+) $2-{query.x}\nrespond hello");
    assert_eq!(get(&server, "/?x=$1").field("X-A"), Some("two-$1"));
}

#[test]
fn a_prefix_is_taken_off_for_what_follows() {
    let server = server(
        "@api path /v1/*\nuri @api strip_prefix v1\nrespond @never x\n@never path /never\nrespond {uri}",
    );
    assert_eq!(get(&server, "/v1/items?a=/v1/").text(), "/items?a=/v1/");
    assert_eq!(get(&server, "//v1/items").text(), "/items", "the prefix is read as matchers read it");
    assert_eq!(get(&server, "/v2/items").text(), "/v2/items");
    assert_eq!(get(&server, "/v1/").text(), "/");
}

#[test]
fn an_end_is_taken_off_and_a_text_replaced_for_what_follows() {
    let server = server("uri strip_suffix .html\nuri replace /old /new 1\nrespond {uri}");
    assert_eq!(get(&server, "/old/old/a.html?b=/old/old").text(), "/new/old/a?b=/new/old");
    assert_eq!(get(&server, "/OLD/a.HTML").text(), "/OLD/a");
    assert_eq!(get(&server, "/.html").text(), "/");
}

#[test]
fn a_replacement_in_a_field_does_not_grow_beyond_the_bound() {
    let server = server("header X-A {query.x}\nheader >X-A () {query.x}\nrespond hello");
    assert_eq!(get(&server, "/?x=ab").field("X-A"), Some("abaabbab"));
    let answer = get(&server, &format!("/?x={}", "a".repeat(7_000)));
    assert_eq!((answer.text().as_str(), answer.field("X-A")), ("hello", None));
}

#[test]
fn an_error_that_the_file_asks_for_takes_the_error_routes_with_its_message() {
    let server = server(
        "error /gone/* \"{path} is gone\" 410\nerror /broken \"oh no\"\nerror /plain 404\nrespond open\nhandle_errors {\n\
         error /gone/again \"not this\" 500\nrespond \"{err.status_code} {err.message}\"\n}",
    );
    for (path, status, text) in [
        ("/gone/x", 410, "410 /gone/x is gone"),
        ("/gone/again", 410, ""),
        ("/broken", 500, "500 oh no"),
        ("/plain", 404, "404 "),
        ("/", 200, "open"),
    ] {
        let answer = get(&server, path);
        assert_eq!((answer.status, answer.text().as_str()), (status, text), "{path}");
    }
}
