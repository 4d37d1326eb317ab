//! `{re.…}`: what expressions of matchers capture, in each place that takes placeholders.

use crate::harness::{TestServer, Wishes, application, write};
use crate::programs::program::Program;

fn server(directives: &str) -> TestServer {
    TestServer::start(application(), &format!("http://localhost:0 {{\n{directives}\n}}\n"), Wishes::default())
}

#[test]
fn captures_of_the_path_are_decoded_and_found_by_name_and_number() {
    let server = server(
        "@item path_regexp ^/items/(?<id>[^/]+)/([0-9]+)$\nrespond @item \"{re.item.id}|{re.item.1}|{re.2}|{re.id}|{re.item.0}\"\n\
         respond \"<{re.item.1}>\"",
    );
    for (path, text) in [
        ("/items/a/12", "a|a|12|a|/items/a/12"),
        ("/x/..//items/%61%20b/7", "a b|a b|7|a b|/items/a b/7"),
        ("/items/a/b", "<>"),
    ] {
        assert_eq!(server.connect().get(path).text(), text, "{path}");
    }
}

#[test]
fn captures_of_a_field_are_those_of_the_first_value_that_fits() {
    let server = server(
        "@beta header_regexp group X-Group ^beta-(.*)$\nheader @beta X-Group {re.group.1}\nrespond @beta {re.1}\nrespond none",
    );
    let mut client = server.connect();
    client.send(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX-Group: alpha\r\nX-Group: beta-2\r\nX-Group: beta-3\r\n\r\n",
    );
    let answer = client.answer();
    assert_eq!((answer.text().as_str(), answer.field("X-Group")), ("2", Some("2")));
    assert_eq!(client.get("/").text(), "none");
}

#[test]
fn a_capture_stays_a_part_of_the_path_that_it_is_written_into() {
    let server = server(
        "@old path_regexp ^/old/(.*)$\nrewrite @old /new/{re.old.1}\n@go path_regexp (?s)^/go/(.*)$\nredir @go /to/{re.go.1}\nrespond {uri}",
    );
    for (path, uri) in [
        ("/old/a/b?q=1", "/new/a/b?q=1"),
        ("/old/a%3fb%25c%20d", "/new/a%3Fb%25c%20d"),
        ("/old/%23x", "/new/%23x"),
    ] {
        assert_eq!(server.connect().get(path).text(), uri, "{path}");
    }
    let answer = server.connect().get("/go/a%0d%0aInjected:%20yes");
    assert_eq!(answer.field("Injected"), None);
    assert_eq!(answer.field("Location"), Some("/to/aInjected: yes"));
}

#[test]
fn a_root_from_a_capture_is_one_folder_and_no_way_out() {
    let folder = application();
    write(folder.path(), "sites/shop/index.html", b"shop");
    write(folder.path(), "secret/index.html", b"secret");
    let text = "http://localhost:0 {\n@site path_regexp ^/(.+)/page$\nrewrite @site /index.html\nroot @site ./sites/{re.site.1}\nfile_server\n}\n";
    let server = TestServer::start(folder, text, Wishes::default());
    assert_eq!(server.connect().get("/shop/page").text(), "shop");
    for path in
        ["/../secret/page", "/..%2fsecret/page", "/shop%2f..%2f..%2fsecret/page", "/a/b/page", "/.%2e/page"]
    {
        let answer = server.connect().get(path);
        assert!(answer.status >= 400, "{path}: {} {}", answer.status, answer.text());
    }
}

#[test]
fn a_file_is_not_found_by_an_encoded_slash_in_a_capture() {
    let folder = application();
    write(folder.path(), "dist/a/b.txt", b"found");
    let text = "http://localhost:0 {\nroot ./dist\n@f {\npath_regexp x ^/x/(.*)$\nfile /{re.x.1}.txt\n}\nrewrite @f {file_match.relative}\nfile_server\n}\n";
    let server = TestServer::start(folder, text, Wishes::default());
    assert_eq!(server.connect().get("/x/a/b").text(), "found");
    assert_eq!(server.connect().get("/x/a%2fb").status, 400);
}

#[test]
fn captures_choose_an_upstream_and_set_its_fields() {
    let program = Program::start(|talk, _| talk.answer("hello"));
    let port = program.address.port();
    let server = server(
        "@to path_regexp ^/to/([0-9]+)/(.*)$\nrequest_header @to X-Rest {re.to.2}\nreverse_proxy @to 127.0.0.1:{re.to.1}",
    );
    let answer = server.connect().get(&format!("/to/{port}/a%20b"));
    assert_eq!(answer.text(), "hello");
    assert!(program.heads().remove(0).contains("X-Rest: a b"));
    assert_eq!(server.connect().get("/to/0/x").status, 503);
}

#[test]
fn error_routes_see_what_was_captured_before() {
    let server = server(
        "@item path_regexp ^/items/(.+)$\nerror @item 404\nhandle_errors {\nrespond \"no {re.item.1}\"\n}",
    );
    assert_eq!(server.connect().get("/items/7").text(), "no 7");
}
