//! `encode` in front of what applications and upstreams answer: what an answer says of its coding.

use std::io::Read;

use onehop_config::checked::Step;

use crate::client::{Client, Response};
use crate::harness::{TestServer, Wishes, application};
use crate::programs::program::{Program, field};

/// A page with a strong tag that knows conditions and ranges, as Express's static middleware does.
fn page() -> Program {
    Program::start(|talk, head| {
        let body = "a page of text. ".repeat(200);
        let common = "ETag: \"x\"\r\nAccept-Ranges: bytes\r\nCache-Control: no-cache\r\n";
        if field(head, "If-None-Match").is_some_and(|tags| tags.contains("\"x\""))
            || field(head, "If-Modified-Since").is_some()
        {
            return talk.say(format!("HTTP/1.1 304 Not Modified\r\n{common}\r\n"));
        }
        let kind = match head.split(' ').nth(1) {
            Some("/image") => "image/png",
            _ => "text/html; charset=utf-8",
        };
        let common = format!("Content-Type: {kind}\r\n{common}");
        if field(head, "Range").is_some() {
            let range = format!("Content-Range: bytes 0-9/{}\r\nContent-Length: 10\r\n", body.len());
            return talk.say(format!("HTTP/1.1 206 Partial Content\r\n{common}{range}\r\n{}", &body[..10]));
        }
        let head_of_it = format!("HTTP/1.1 200 OK\r\n{common}Content-Length: {}\r\n\r\n", body.len());
        talk.say(head_of_it) && (head.starts_with("HEAD") || talk.say(&body))
    })
}

const OWN: &str = "encode gzip";

fn servers(program: &Program) -> Vec<(&'static str, TestServer)> {
    let address = program.address;
    let proxy = format!("reverse_proxy {address}");
    let app = format!("app /* {{\n\t\tsupervise off {address}\n\t}}");
    let start = |handler: &str| {
        let text = format!("http://localhost:0 {{\n\tbind 127.0.0.1\n\t{OWN}\n\t{handler}\n}}\n");
        TestServer::start(application(), &text, Wishes::default())
    };
    vec![("reverse_proxy", start(&proxy)), ("app", start(&app))]
}

fn ask(client: &mut Client, method: &str, path: &str, fields: &str) -> Response {
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    if method == "HEAD" { client.answer_to_head() } else { client.answer() }
}

/// What is looked at: status, ETag, Vary, Content-Encoding, Accept-Ranges.
type Shown<'a> = (u16, Option<&'a str>, Option<&'a str>, Option<&'a str>, Option<&'a str>);

fn shown(answer: &Response) -> Shown<'_> {
    let of = |name| answer.field(name);
    (answer.status, of("ETag"), of("Vary"), of("Content-Encoding"), of("Accept-Ranges"))
}

fn check(method: &str, path: &str, fields: &str, expected: Shown<'_>) {
    for (handler, server) in servers(&page()) {
        let answer = ask(&mut server.connect(), method, path, fields);
        assert_eq!(shown(&answer), expected, "{handler}: {method} {path} {fields}");
    }
}

const ACCEPTS: &str = "Accept-Encoding: gzip\r\n";
const VARY: Option<&str> = Some("Accept-Encoding");
const STRONG: Option<&str> = Some("\"x\"");
const WEAK: Option<&str> = Some("W/\"x\"");
const BYTES: Option<&str> = Some("bytes");

#[test]
fn an_encoded_answer_has_a_weak_tag_and_offers_no_ranges() {
    check("GET", "/", ACCEPTS, (200, WEAK, VARY, Some("gzip"), None));
    check("GET", "/", "", (200, STRONG, VARY, None, BYTES));
    check("GET", "/image", ACCEPTS, (200, STRONG, None, None, BYTES));
}

/// RFC 9110 section 15.4.5: what 200 would have said.
#[test]
fn a_304_has_the_tag_and_vary_of_the_encoded_200() {
    let weak = "If-None-Match: W/\"x\"\r\n";
    check("GET", "/", &format!("{ACCEPTS}{weak}"), (304, WEAK, VARY, None, None));
    check("HEAD", "/", &format!("{ACCEPTS}{weak}"), (304, WEAK, VARY, None, None));
    // The client's copy was not encoded, and keeps the tag that it has.
    check("GET", "/", &format!("{ACCEPTS}If-None-Match: \"y\", \"x\"\r\n"), (304, STRONG, VARY, None, BYTES));
    check("GET", "/", "If-None-Match: \"x\"\r\n", (304, STRONG, VARY, None, BYTES));
    // Which copy it has is not known: what it is given now would be encoded.
    let since = "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    check("GET", "/", &format!("{ACCEPTS}{since}"), (304, WEAK, VARY, None, None));
    check("GET", "/", since, (304, STRONG, VARY, None, BYTES));
}

/// RFC 9110 section 15.3.7.
#[test]
fn a_206_that_is_passed_on_has_the_vary_of_the_200() {
    let range = "Range: bytes=0-9\r\n";
    check("GET", "/", &format!("{ACCEPTS}{range}"), (206, STRONG, VARY, None, BYTES));
    check("GET", "/", range, (206, STRONG, VARY, None, BYTES));
    check("GET", "/image", &format!("{ACCEPTS}{range}"), (206, STRONG, None, None, BYTES));
}

/// RFC 9110 section 9.3.2.
#[test]
fn head_says_what_get_would() {
    check("HEAD", "/", ACCEPTS, (200, WEAK, VARY, Some("gzip"), None));
    check("HEAD", "/", "", (200, STRONG, VARY, None, BYTES));
    check("HEAD", "/image", ACCEPTS, (200, STRONG, None, None, BYTES));
    for (handler, server) in servers(&page()) {
        let mut client = server.connect();
        let length = |answer: &Response| answer.field("Content-Length").map(str::to_owned);
        assert_eq!(length(&ask(&mut client, "HEAD", "/", ACCEPTS)), None, "{handler}: of the encoded body");
        assert_eq!(length(&ask(&mut client, "HEAD", "/", "")).as_deref(), Some("3200"), "{handler}");
        let gzipped = ask(&mut client, "GET", "/", ACCEPTS).body;
        let mut text = String::new();
        flate2::read::GzDecoder::new(&*gzipped).read_to_string(&mut text).unwrap();
        assert_eq!(text.len(), 3200, "{handler}");
    }
}

/// A worker that speaks frames answers 304 and HEAD through the same rules.
#[test]
fn a_304_over_the_worker_protocol_has_the_tag_and_vary_of_the_encoded_200() {
    let server = crate::workers::serve_in_site(application(), "conditional", "", OWN);
    let mut client = server.connect();
    for (method, fields, expected) in [
        ("GET", ACCEPTS.to_owned(), (200, WEAK, VARY, Some("gzip"), None)),
        ("HEAD", ACCEPTS.to_owned(), (200, WEAK, VARY, Some("gzip"), None)),
        ("GET", format!("{ACCEPTS}If-None-Match: W/\"x\"\r\n"), (304, WEAK, VARY, None, None)),
        ("GET", "If-None-Match: \"x\"\r\n".to_owned(), (304, STRONG, VARY, None, BYTES)),
    ] {
        let answer = ask(&mut client, method, "/api/x", &fields);
        assert_eq!(shown(&answer), expected, "{method} {fields}");
    }
}

/// RFC 9110 section 8.3.1: parameters and case are no part of what a type is.
#[test]
fn media_types_are_compared_without_parameters_and_case() {
    let body = "data: a line of text\n\n".repeat(100);
    let program = Program::start(move |talk, head| {
        let kind = field(head, "X-Type").unwrap_or_default();
        talk.say(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        ))
    });
    let text = format!(
        "http://localhost:0 {{\n\tbind 127.0.0.1\n\t{OWN}\n\treverse_proxy {}\n}}\n",
        program.address
    );
    let amend = |checked: &mut onehop_config::checked::Checked| {
        for route in checked.sites.iter_mut().flat_map(|site| &mut site.routes) {
            if let Step::Encode(encode) = &mut route.step {
                encode.types = vec!["application/json".to_owned(), "text/*".to_owned()];
            }
        }
    };
    let wishes = Wishes { amend: Some(std::sync::Arc::new(amend)), ..Wishes::default() };
    let server = TestServer::start(application(), &text, wishes);
    for (kind, is_encoded) in [
        ("application/json", true),
        ("application/json; charset=utf-8", true),
        ("Application/JSON;charset=utf-8", true),
        ("application/json ; a=b", true),
        ("application/jsonx", false),
        ("text/plain;charset=utf-8", true),
        // Events wait for nothing.
        ("text/event-stream", false),
        ("Text/Event-Stream; charset=utf-8", false),
        ("text/event-streams", true),
    ] {
        let answer = ask(&mut server.connect(), "GET", "/", &format!("{ACCEPTS}X-Type: {kind}\r\n"));
        assert_eq!(answer.field("Content-Encoding").is_some(), is_encoded, "{kind}");
        assert_eq!(answer.status, 200);
    }
}
