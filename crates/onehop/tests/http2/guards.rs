//! Guards in front of whoever answers: the spellings of tests/e2e/guards.test.mjs, a part of them, over HTTP/2.

use onehop_testkit::Folder;
use onehop_testkit::http2::Http2;
use onehop_testkit::upstream::{Received, Upstream};

use crate::subject::{Subject, clear};

const FETCH: &str = "export default { fetch: (request) => new Response(new URL(request.url).pathname) };\n";
const NODE: &str = "require('node:http').createServer((request, response) => response.end(request.url))\
                    .listen(process.env.PORT ?? 0);\n";

const LEADS: &[&str] = &[
    "/",
    "//",
    "/./",
    "/../",
    "/x/../",
    "/x/..//",
    "/.\\",
    "/x/..\\",
    "/\\",
    "/%2e/",
    "/%2E%2e/",
    "/x/%2e%2e/",
    "/x/.%2E/",
    "/%2f",
    "/..%2f",
    "/x%2f..%2f",
    "/%5c",
    "//x/../",
    "/..;/",
    "/;x/",
    "/x/%252e%252e/",
    "/%252f",
    "/x/%c0%ae%c0%ae/",
];
const NAMES: &[&str] =
    &["admin", "Admin", "%61dmin", "%41DMIN", "adm%69N", "%2561dmin", "admin;x", "admin%20", "admin%00"];
const SEPARATORS: &[&str] =
    &["/", "//", "\\", "%2f", "%5c", "/./", "/x/../", "/%2e%2e/admin/", "//../", "/..%2f", ";x/", "%252f"];
const TAILS: &[&str] = &["u", "", "u/", "..", "../public", "..%2fpublic", "u?x=1", "u?/../public"];

/// Every lead, name and separator with one of the tails.
fn spellings() -> Vec<String> {
    let mut tails = TAILS.iter().cycle();
    let mut all = Vec::new();
    for lead in LEADS {
        for name in NAMES {
            for separator in SEPARATORS {
                all.push(format!("{lead}{name}{separator}{}", tails.next().expect("a tail")));
            }
        }
    }
    all
}

/// The path without its escapes, whatever they stand for, and without dot segments.
fn readings(path: &str) -> [String; 2] {
    let path = path.split('?').next().unwrap_or_default();
    let mut decoded = Vec::new();
    let bytes = path.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let escape = path.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[at], escape) {
            (b'%', Some(byte)) => (decoded.push(byte), at += 3),
            (byte, _) => (decoded.push(byte), at += 1),
        };
    }
    let decoded = String::from_utf8_lossy(&decoded).to_lowercase();
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split('/') {
        match segment {
            ".." => drop(segments.pop()),
            "." | "" => {}
            _ => segments.push(segment),
        }
    }
    [path.to_lowercase(), format!("/{}", segments.join("/"))]
}

fn site(directive: &str) -> String {
    clear(&format!("\thandle /admin/* {{\n\t\trespond blocked 403\n\t}}\n\thandle {{\n\t\t{directive}\n\t}}"))
}

/// Asks for every spelling, many at once; `path_of` is what whoever answered says that it saw.
fn nothing_passes(subject: &Subject, path_of: fn(&str) -> &str) {
    let mut client = subject.connect();
    let mut counts = [0, 0, 0];
    for chunk in spellings().chunks(50) {
        let streams: Vec<u32> = chunk.iter().map(|path| client.request("GET", path, &[], true)).collect();
        for (path, stream) in chunk.iter().zip(streams) {
            let answer = client.answer(stream);
            match answer.status {
                200 => {
                    counts[0] += 1;
                    let seen = path_of(answer.text());
                    let is_below = readings(seen).iter().any(|path| path.starts_with("/admin/"));
                    assert!(!is_below, "{path} passed as {seen}");
                }
                403 => counts[1] += 1,
                status => {
                    counts[2] += 1;
                    assert!(status == 400 || answer.reset.is_some(), "{path}: {answer:?}");
                }
            }
        }
    }
    assert!(counts[0] > 50 && counts[1] > 50 && counts[2] > 500, "{counts:?}");
    same_as_over_http1(subject, &mut client);
}

/// One answer for one spelling, whatever the version.
fn same_as_over_http1(subject: &Subject, client: &mut Http2) {
    let mut other = subject.connect_http1();
    for path in spellings().iter().step_by(7) {
        let answer = client.get(path);
        if other.try_send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).is_err() {
            other = subject.connect_http1();
            other.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        }
        let (status, is_last) = match other.try_read_for("GET") {
            Ok(response) => (response.status, response.field("Connection") == Some("close")),
            Err(error) => panic!("{path}: {error}"),
        };
        if is_last {
            other = subject.connect_http1();
        }
        assert!(
            answer.status == status || (status == 400 && answer.reset.is_some()),
            "{path}: {status}, {answer:?}"
        );
    }
}

#[test]
fn a_fetch_handler_behind_a_guard_gets_nothing_below_it() {
    let folder = Folder::with(&[("server.mjs", FETCH)]);
    let subject = Subject::start_in(folder, "", &site("app ./server.mjs"));
    nothing_passes(&subject, |text| text);
}

#[test]
fn a_node_application_behind_a_guard_gets_nothing_below_it() {
    let folder = Folder::with(&[("server.cjs", NODE)]);
    let subject = Subject::start_in(folder, "", &site("app ./server.cjs"));
    nothing_passes(&subject, |text| text);
}

#[test]
fn an_upstream_behind_a_guard_gets_nothing_below_it() {
    let upstream = Upstream::answering(|request: &Received| {
        let target = request.target();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{target}", target.len()).into_bytes()
    });
    let directive = format!("reverse_proxy {}", upstream.address());
    let subject = Subject::start_in(Folder::new(), "", &site(&directive));
    nothing_passes(&subject, |text| text);
}

#[test]
fn ordinary_paths_reach_the_upstream_as_they_were_sent() {
    let upstream = Upstream::answering(|request: &Received| {
        let target = request.target();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{target}", target.len()).into_bytes()
    });
    let directive = format!("reverse_proxy {}", upstream.address());
    let subject = Subject::start_in(Folder::new(), "", &site(&directive));
    let mut client = subject.connect();
    for path in [
        "/",
        "/public/x",
        "/public/a%20b",
        "/%C3%BC/%e2%82%ac",
        "/a%2Fb",
        "/npm/@scope%2fpackage",
        "/a;b=c;d/e",
        "/a!$&'()*+,;=:@-._~",
        "/a//b",
        "/%7Euser/%61",
        "/.well-known/x",
        "/100%25",
        "/a%3Fb%23c",
        "/a:b",
        "/admin",
        "/administrator/u",
        "/search?q=a%5Cb%00..%2f",
        "/search?next=//host/../admin/x",
        "/search?",
        "/a%26b=c",
    ] {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.text()), (200, path));
    }
}
