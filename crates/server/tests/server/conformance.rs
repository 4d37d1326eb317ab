//! What RFC 9110 and RFC 9112 ask of requests that the server answers itself.

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::client::Response;
use crate::harness::{TestServer, Wishes, application, write};

const FILES: &str = "root * ./dist\n\tfile_server";
const SPA: &str = "spa ./dist";
const RESPOND: &str = "respond hello";
/// Files are looked for on disk, because only the request names their root.
const DISK: &str = "root * ./{host}\n\tfile_server browse";

fn site(directives: &str) -> TestServer {
    let folder = application();
    write(folder.path(), "localhost/robots.txt", b"User-agent: *\n");
    TestServer::start(folder, &text(directives), Wishes::default())
}

fn text(directives: &str) -> String {
    format!("http://localhost:0 {{\n\tbind 127.0.0.1\n\t{directives}\n}}\n")
}

fn ask(server: &TestServer, line: &str, fields: &str) -> Response {
    let mut client = server.connect();
    client.send(format!("{line} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    client.answer()
}

/// RFC 9110 sections 9.1 and 15.6.2.
#[test]
fn an_unknown_method_of_any_length_is_501_where_the_server_itself_answers() {
    let handled = "respond hello\n\thandle_errors {\n\t\trespond \"sorry, {err.status_code}\"\n\t}";
    let none = "handle /elsewhere/* {\n\t\trespond hello\n\t}";
    for directives in [FILES, SPA, RESPOND, DISK, handled, none] {
        let server = site(directives);
        let methods = ["BREW", "PROPFIND", "get", &"A".repeat(33), &"A".repeat(9_000), &"A".repeat(40_000)];
        for (method, path) in
            methods.iter().flat_map(|method| ["/robots.txt", "/missing"].map(|path| (method, path)))
        {
            let answer = ask(&server, &format!("{method} {path}"), "");
            assert_eq!(answer.status, 501, "{directives}: {:.20} {path}", method);
            if directives == handled && method.len() < 33 {
                assert_eq!(answer.text(), "sorry, 501");
            }
        }
        assert_ne!(ask(&server, "GET /robots.txt", "").status, 501, "{directives}");
    }
    let server = site(RESPOND);
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        assert_eq!(ask(&server, &format!("{method} /"), "").text(), "hello", "{method}");
    }
}

#[test]
fn a_file_server_that_passes_on_leaves_unknown_methods_to_the_next_handler() {
    let program = crate::programs::program::Program::start(|talk, head| {
        talk.answer(head.split(' ').next().unwrap_or_default())
    });
    let address = program.address;
    let directives = format!(
        "root * ./dist\n\troute {{\n\t\tfile_server {{\n\t\t\tpass_thru\n\t\t}}\n\t\treverse_proxy {address}\n\t}}"
    );
    let server = site(&directives);
    assert_eq!(ask(&server, "PROPFIND /missing", "").text(), "PROPFIND");
    assert_eq!(ask(&server, "PROPFIND /robots.txt", "").status, 501);
}

const ONLY_FILES: &str = "GET, HEAD";
const ONLY_FILES_AND_OPTIONS: &str = "GET, HEAD, OPTIONS";
const ALL: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// RFC 9110 sections 9.3.7 and 10.2.1.
#[test]
fn options_of_the_server_as_a_whole_is_204_with_the_methods_that_it_answers() {
    for (directives, allow) in [
        (FILES, ONLY_FILES_AND_OPTIONS),
        (SPA, ONLY_FILES_AND_OPTIONS),
        ("handle /api/* {\n\t\trespond hello\n\t}\n\tspa ./dist", ALL),
        ("reverse_proxy 127.0.0.1:9", ALL),
    ] {
        let server = site(directives);
        let mut client = server.connect();
        client.send("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let answer = client.answer();
        assert_eq!((answer.status, answer.field("Allow")), (204, Some(allow)), "{directives}");
        assert_eq!(answer.field("Content-Length"), None, "RFC 9110 section 8.6");
        client.send("OPTIONS * HTTP/1.1\r\nHost: elsewhere\r\n\r\n");
        assert_eq!(client.answer().status, 421, "{directives}: another host learns nothing");
    }
}

/// RFC 9110 sections 9.3.6 and 15.5.6.
#[test]
fn connect_is_refused_with_the_methods_that_the_server_answers() {
    for (directives, allow) in
        [(FILES, ONLY_FILES), (SPA, ONLY_FILES), (RESPOND, ALL), ("reverse_proxy 127.0.0.1:9", ALL)]
    {
        let server = site(directives);
        let mut client = server.connect();
        client.send("CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n");
        let answer = client.answer();
        assert_eq!((answer.status, answer.field("Allow")), (405, Some(allow)), "{directives}");
    }
}

/// RFC 9110 section 2.5.
#[test]
fn a_higher_minor_version_is_served_as_1_1() {
    let server = site(SPA);
    let mut client = server.connect();
    for version in ["HTTP/1.2", "HTTP/1.9", "HTTP/1.1"] {
        client.send(format!("GET /robots.txt {version}\r\nHost: localhost\r\n\r\n"));
        let answer = client.answer();
        assert_eq!(answer.text(), "User-agent: *\n", "{version}");
        assert!(answer.head.starts_with("HTTP/1.1 200"), "{version}: {}", answer.head);
    }
    client.send("GET /robots.txt HTTP/2.0\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().status, 505);
}

/// RFC 3986 section 3.2.3: a port may be empty, and is then the scheme's.
#[test]
fn a_host_with_an_empty_port_is_valid() {
    let server = site("respond {host}|{port}");
    for lines in [
        "GET / HTTP/1.1\r\nHost: localhost:",
        "GET http://localhost:/ HTTP/1.1\r\nHost: localhost:80",
        "GET http://localhost/ HTTP/1.1\r\nHost: localhost:",
    ] {
        let mut client = server.connect();
        client.send(format!("{lines}\r\n\r\n"));
        let answer = client.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, "localhost|80"), "{lines}");
    }
}

fn changed_at(file: &Path, time: SystemTime) {
    std::fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
}

/// RFC 9110 sections 8.8.2.2 and 13.1.5: within its own second a file may change once more under the same date.
#[test]
fn a_date_in_if_range_counts_only_once_its_second_is_over() {
    let now = SystemTime::now();
    for (time, status) in [(now - Duration::from_secs(60), 206), (now + Duration::from_secs(60), 200)] {
        for directives in [FILES, DISK] {
            let folder = application();
            for root in ["dist", "localhost"] {
                write(folder.path(), &format!("{root}/robots.txt"), b"User-agent: *\n");
                changed_at(&folder.path().join(root).join("robots.txt"), time);
            }
            let server = TestServer::start(folder, &text(directives), Wishes::default());
            let date = httpdate::fmt_http_date(time);
            let answer =
                ask(&server, "GET /robots.txt", &format!("Range: bytes=0-3\r\nIf-Range: {date}\r\n"));
            assert_eq!(answer.status, status, "{directives}: {date}");
        }
    }
}

/// RFC 9110 sections 13.1.3, 13.1.4 and 13.1.5: each is one date, and what is more than one member is ignored.
#[test]
fn a_date_that_is_given_twice_is_ignored() {
    const OLD: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const RECENT: &str = "Sat, 01 Jan 2050 00:00:00 GMT";
    for directives in [FILES, DISK] {
        let server = site(directives);
        for (fields, once, twice) in [
            (format!("If-Modified-Since: {RECENT}\r\n"), 304, 200),
            (format!("If-Unmodified-Since: {OLD}\r\n"), 412, 200),
        ] {
            assert_eq!(ask(&server, "GET /robots.txt", &fields).status, once, "{directives}: {fields}");
            assert_eq!(
                ask(&server, "GET /robots.txt", &fields.repeat(2)).status,
                twice,
                "{directives}: {fields}"
            );
        }
        let tag = ask(&server, "GET /robots.txt", "").field("ETag").unwrap().to_owned();
        for (count, status) in [(1, 206), (2, 200)] {
            let fields = format!("Range: bytes=0-3\r\n{}", format!("If-Range: {tag}\r\n").repeat(count));
            assert_eq!(ask(&server, "GET /robots.txt", &fields).status, status, "{directives}: {fields}");
        }
    }
}

/// RFC 9110 section 12.5.5: the same path is 404 for those who do not name HTML.
#[test]
fn a_navigation_that_spa_answers_varies_by_accept() {
    let server = site(SPA);
    let varies = |path: &str, fields: &str| {
        let answer = ask(&server, &format!("GET {path}"), &format!("Accept: text/html\r\n{fields}"));
        let vary = answer.field("Vary").unwrap_or_default().to_owned();
        let by_accept = vary.split(',').any(|name| name.trim() == "Accept");
        (answer.status, by_accept, answer.field("ETag").map(str::to_owned))
    };
    let (status, by_accept, tag) = varies("/users/7", "");
    assert_eq!((status, by_accept), (200, true));
    let (status, by_accept, _) = varies("/users/7", &format!("If-None-Match: {}\r\n", tag.unwrap()));
    assert_eq!((status, by_accept), (304, true));
    for path in ["/", "/robots.txt", "/assets/index-B3xKq9aZ.js"] {
        assert_eq!((varies(path, "").0, varies(path, "").1), (200, false), "{path}");
    }
}

/// RFC 9110 section 14.6.
#[test]
fn several_ranges_of_a_file_on_disk_are_multipart() {
    let folder = application();
    let body: Vec<u8> = (0..200_000_u32).map(|number| b'a' + u8::try_from(number % 26).unwrap()).collect();
    write(folder.path(), "localhost/file.txt", &body);
    let server = TestServer::start(folder, &text(DISK), Wishes::default());
    let mut client = server.connect();
    for ranges in ["0-1,4-5", "0-0,-1", "100-120000,150000-199999,3-7"] {
        client.send(format!("GET /file.txt HTTP/1.1\r\nHost: localhost\r\nRange: bytes={ranges}\r\n\r\n"));
        let answer = client.answer();
        assert_eq!(answer.status, 206, "{ranges}");
        let kind = answer.field("Content-Type").unwrap();
        let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect(kind);
        let mut expected = Vec::new();
        for (number, range) in ranges.split(',').enumerate() {
            let (first, last) = range.split_once('-').unwrap();
            let (first, last) = match first {
                "" => (body.len() - last.parse::<usize>().unwrap(), body.len() - 1),
                first => (first.parse().unwrap(), last.parse().unwrap()),
            };
            let before = if number == 0 { "" } else { "\r\n" };
            expected.extend(format!(
                "{before}--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes {first}-{last}/200000\r\n\r\n"
            ).bytes());
            expected.extend(&body[first..=last]);
        }
        expected.extend(format!("\r\n--{boundary}--\r\n").bytes());
        assert!(answer.body == expected, "{ranges}");
    }
    // The connection is at its next request.
    assert_eq!(client.get("/file.txt").body.len(), body.len());
}

#[test]
fn every_name_on_a_directory_page_can_be_asked_for() {
    const NAMES: [&str; 8] =
        ["a b.txt", "100%.txt", "b..%2fx", "x:y", "%2e%2e", "\u{e9}.txt", "q?u#e.txt", "a\\b.txt"];
    for root in ["./dist", "./{host}"] {
        let folder = tempfile::TempDir::new().unwrap();
        for name in NAMES {
            write(folder.path(), &format!("dist/{name}"), b"x");
            write(folder.path(), &format!("localhost/{name}"), b"x");
        }
        for folder_name in ["dist", "localhost"] {
            write(folder.path(), &format!("{folder_name}/c\\d/file.txt"), b"x");
        }
        let server = TestServer::start(
            folder,
            &text(&format!("root * {root}\n\tfile_server browse")),
            Wishes::default(),
        );
        let page = ask(&server, "GET /", "Accept: application/json\r\n").text();
        let entries: Vec<serde_json::Value> = serde_json::from_str(&page).unwrap();
        let urls: Vec<&str> = entries.iter().map(|entry| entry["url"].as_str().unwrap()).collect();
        assert_eq!(urls.len(), NAMES.len() - 1, "{urls:?}");
        for url in urls {
            let path = url.strip_prefix('.').unwrap();
            assert_eq!(ask(&server, &format!("GET {path}"), "").status, 200, "{root}: {path}");
        }
        assert!(!ask(&server, "GET /", "").text().contains('\\'), "{root}");
    }
}
