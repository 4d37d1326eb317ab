//! Requests that are malformed or not served: each is refused on its own stream, and reaches nobody.

use onehop_testkit::http2::{Frame, Http2, Response, code, flag, is_end, kind, literals};
use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Folder, wait_for};

use crate::subject::{Subject, encrypted, telling};

/// A request that is well-formed.
const WELL: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":authority", "localhost"), (":path", "/")];

/// With these fields behind it.
fn with(fields: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [&WELL[..], fields].concat()
}

/// Without one of its fields.
fn without(name: &str) -> Vec<(&'static str, &'static str)> {
    WELL.into_iter().filter(|(field, _)| *field != name).collect()
}

/// With another value of one of its fields.
fn but(name: &str, value: &'static str) -> Vec<(&'static str, &'static str)> {
    WELL.into_iter().map(|(field, was)| (field, if field == name { value } else { was })).collect()
}

fn proxying() -> (Upstream, Subject) {
    let upstream = telling();
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    (upstream, subject)
}

/// Checks that a request is refused by an error of its stream or by a response, and that the connection is served after it.
fn check(client: &mut Http2, fields: &[(&str, &str)], is_allowed: impl Fn(&Response) -> bool) {
    let stream = client.open(fields, true);
    let answer = client.answer(stream);
    assert!(is_allowed(&answer), "{fields:?}: status {}, reset {:?}", answer.status, answer.reset);
    assert!(client.goaways.is_empty(), "{fields:?}: {:?}", client.goaways);
    assert_eq!(client.get("/after").text(), "GET /after HTTP/1.1", "{fields:?}");
}

/// Checks that a request is refused by an error of its stream or of its connection, or by a response.
fn expect_refusal(client: &mut Http2, stream: u32, what: &str) {
    loop {
        let response = client.seen(stream);
        if response.is_over() {
            assert!(
                is_malformed(&response),
                "{what}: status {}, reset {:?}",
                response.status,
                response.reset
            );
            return;
        }
        if let Err(error) = client.pump() {
            // What no field can be is an error of the connection for h2, as RFC 9113 section 5.4.1 allows.
            assert!(is_end(&error), "{what}: {error}");
            let codes: Vec<u32> = client.goaways.iter().map(|goaway| goaway.code).collect();
            assert_eq!(codes, [code::PROTOCOL_ERROR], "{what}");
            return;
        }
    }
}

/// RFC 9113 section 8.1.1: PROTOCOL_ERROR, before which there may be a response that says so.
fn is_malformed(answer: &Response) -> bool {
    answer.reset == Some(code::PROTOCOL_ERROR) || (400..500).contains(&answer.status)
}

fn none_reaches_the_upstream(requests: &[Vec<(&'static str, &'static str)>]) {
    let (upstream, subject) = proxying();
    for fields in requests {
        let mut client = subject.connect();
        let stream = client.open(fields, true);
        expect_refusal(&mut client, stream, &format!("{fields:?}"));
    }
    assert_eq!(subject.connect().get("/after").status, 200);
    for seen in upstream.seen() {
        assert_eq!(seen.target(), "/after", "{}", seen.head);
    }
}

/// The same of a request with these lines of fields.
fn none_passes_with(requests: &[&'static str]) {
    let fields = |lines: &'static str| lines.split('\n').filter_map(|line| line.split_once(": "));
    let requests = requests.iter().map(|lines| with(&fields(lines).collect::<Vec<_>>()));
    none_reaches_the_upstream(&requests.collect::<Vec<_>>());
}

#[test]
fn field_names_with_upper_case_letters_are_refused() {
    none_reaches_the_upstream(&[with(&[("Accept", "a")]), with(&[("x-A", "a")])]);
}

#[test]
fn names_and_values_that_no_field_may_have_are_refused() {
    none_reaches_the_upstream(&[
        with(&[("", "a")]),
        with(&[("a b", "a")]),
        with(&[("a:b", "a")]),
        with(&[("a\r\nb", "a")]),
        with(&[("a\0", "a")]),
        with(&[("a", "b\r\nc: d")]),
        with(&[("a", "b\nc: d")]),
        with(&[("a", "b\rc")]),
        with(&[("a", "b\0c")]),
    ]);
}

#[test]
fn fields_of_a_connection_are_refused() {
    none_passes_with(&[
        "connection: close",
        "connection: x\nx: y",
        "keep-alive: timeout=5",
        "proxy-connection: keep-alive",
        "transfer-encoding: chunked",
        "upgrade: websocket",
        "te: gzip",
        "te: trailers, gzip",
    ]);
}

#[test]
fn te_with_trailers_is_the_one_that_passes() {
    let (_upstream, subject) = proxying();
    let answer = subject.connect().ask("GET", "/", &[("te", "trailers")]);
    assert_eq!((answer.status, answer.text()), (200, "GET / HTTP/1.1"));
}

#[test]
fn pseudo_header_fields_are_there_once_and_first() {
    none_reaches_the_upstream(&[
        without(":method"),
        without(":scheme"),
        without(":path"),
        with(&[(":method", "GET")]),
        with(&[(":path", "/")]),
        with(&[(":scheme", "http")]),
        with(&[(":authority", "localhost")]),
        with(&[(":status", "200")]),
        with(&[(":unknown", "x")]),
        [&[("accept", "a")], &WELL[..]].concat(),
        with(&[("accept", "a"), (":authority", "localhost")]),
        // Of extended CONNECT (RFC 8441 section 4) alone.
        with(&[(":protocol", "websocket")]),
    ]);
}

#[test]
fn pseudo_header_fields_with_values_that_are_none_are_refused() {
    none_reaches_the_upstream(&[
        but(":method", ""),
        but(":method", "GET /x HTTP/1.1\r\nHost: x\r\n\r\nGET"),
        but(":method", "G T"),
        but(":path", ""),
        but(":path", "*"),
        but(":path", "after"),
        but(":path", "/a b"),
        but(":path", "/a\r\nX: y"),
        but(":path", "/a\0"),
        but(":authority", ""),
        but(":authority", "user@localhost"),
        but(":authority", "localhost/x"),
        but(":authority", "local host"),
        but(":authority", "localhost:99999999"),
        without(":authority"),
        [without(":authority"), vec![("host", "")]].concat(),
    ]);
}

#[test]
fn a_host_that_differs_from_the_authority_is_refused() {
    none_reaches_the_upstream(&[
        with(&[("host", "other.example")]),
        with(&[("host", "localhost:81")]),
        with(&[("host", "localhost"), ("host", "localhost")]),
        with(&[("host", "localhost"), ("host", "other.example")]),
        with(&[("host", "")]),
        [without(":authority"), vec![("host", "localhost"), ("host", "other.example")]].concat(),
    ]);
}

#[test]
fn a_content_length_that_is_none_is_refused() {
    none_passes_with(&[
        "content-length: x",
        "content-length: -1",
        "content-length: +1",
        "content-length: 1\ncontent-length: 2",
        "content-length: 1, 2",
        "content-length: ",
        "content-length: 99999999999999999999999",
        // END_STREAM says that there is no body.
        "content-length: 5",
    ]);
}

#[test]
fn a_body_of_another_length_than_its_content_length_is_no_whole_request() {
    let (upstream, subject) = proxying();
    let mut client = subject.connect();
    for (length, body) in [("5", "abcd"), ("3", "abcd"), ("0", "abcd"), ("4", "")] {
        let stream = client.request("POST", "/", &[("content-length", length)], false);
        client.send(&Frame::new(kind::DATA, flag::END_STREAM, stream, body));
        let answer = client.answer(stream);
        // With a length of 0 the request is whole before its body comes, and its response may be.
        let may_be_over = length == "0" && answer.status == 200;
        let shown = format!("{length} for {body:?}: {} {:?}", answer.status, answer.reset);
        assert!(is_malformed(&answer) || may_be_over, "{shown}");
        assert_eq!(client.get("/after").status, 200);
    }
    for seen in upstream.seen().iter().filter(|seen| seen.method() != "GET") {
        assert_eq!((seen.field("Content-Length"), seen.text()), (Some("0"), String::new()), "{}", seen.head);
    }
}

#[test]
fn trailers_that_are_malformed_end_their_request() {
    let (upstream, subject) = proxying();
    for (trailers, flags) in [
        (&[("X", "y")][..], flag::END_STREAM),
        (&[("connection", "close")], flag::END_STREAM),
        (&[("x", "a\r\nb: c")], flag::END_STREAM),
        // Not the last of the stream.
        (&[("x", "y")], 0),
    ] {
        let mut client = subject.connect();
        let stream = client.request("POST", "/", &[], false);
        client.send(&Frame::new(kind::DATA, 0, stream, *b"abc"));
        client.send(&Frame::new(kind::HEADERS, flags | flag::END_HEADERS, stream, literals(trailers)));
        expect_refusal(&mut client, stream, &format!("{trailers:?}"));
    }
    assert_eq!(subject.connect().get("/after").status, 200);
    assert!(upstream.seen().iter().all(|seen| seen.method() == "GET"));
}

#[test]
fn connect_is_refused() {
    let (upstream, subject) = proxying();
    let mut client = subject.connect();
    let refused = |answer: &Response| (400..600).contains(&answer.status) || answer.reset.is_some();
    check(&mut client, &[(":method", "CONNECT"), (":authority", "example.com:443")], refused);
    // With the fields that belong to other methods it is malformed besides (RFC 9113 section 8.5).
    check(&mut client, &but(":method", "CONNECT"), refused);
    assert!(upstream.seen().iter().all(|seen| seen.method() == "GET"));
}

#[test]
fn options_of_the_whole_server_are_answered_as_over_http_1() {
    let (_upstream, subject) = proxying();
    let expected = subject.connect_http1().ask("OPTIONS", "*", "").status;
    assert_eq!(subject.connect().ask("OPTIONS", "*", &[]).status, expected);
}

#[test]
fn cookies_in_several_fields_are_joined() {
    let (upstream, subject) = proxying();
    subject.connect().ask("GET", "/", &[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("cookie", "c=3")]);
    let seen = &upstream.seen()[0];
    assert_eq!(seen.all("Cookie"), ["a=1; b=2; c=3"], "{}", seen.head);
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let (upstream, subject) = proxying();
    // One field, many fields, and many small ones: for each 32 octets count besides (RFC 9113 section 6.5.2).
    for (count, bytes) in [(1, 60_000), (20, 3000), (1500, 1)] {
        let value = "x".repeat(bytes);
        let names: Vec<String> = (0..count).map(|number| format!("x-{number}")).collect();
        let fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
        let mut client = subject.connect();
        let stream = client.open_in_pieces(&literals(&[&WELL[..], &fields].concat()));
        let answer = client.answer(stream);
        assert!(answer.status == 431 || answer.reset.is_some(), "{count} of {bytes}: {answer:?}");
        assert_eq!(client.get("/after").status, 200);
    }
    assert!(upstream.seen().iter().all(|seen| seen.target() == "/after"));
}

#[test]
fn a_large_head_within_the_bound_is_served() {
    let (upstream, subject) = proxying();
    let value = "x".repeat(20_000);
    let mut client = subject.connect();
    let stream = client.open_in_pieces(&literals(&[&WELL[..], &[("x", value.as_str())]].concat()));
    assert_eq!(client.answer(stream).status, 200);
    assert_eq!(upstream.seen()[0].field("X").map(str::len), Some(20_000));
}

#[test]
fn a_request_for_a_site_with_other_tls_settings_is_misdirected() {
    let site = |name: &str, tls: &str| {
        format!("https://{name}.localhost:0 {{\n\tbind 127.0.0.1\n{tls}\n\trespond {name}\n}}\n")
    };
    let other = "\ttls {\n\t\tissuer internal\n\t\tprotocols tls1.3\n\t}";
    let sites = [site("a", ""), site("b", ""), site("c", other)].concat();
    let subject = Subject::start_in(Folder::new(), "", &sites);
    let mut client = subject.connect_tls("a.localhost");
    let mut ask = |name: &str| {
        client.authority = format!("{name}.localhost");
        let answer = client.get("/");
        (answer.status, answer.text().to_owned())
    };
    assert_eq!(ask("a"), (200, "a".to_owned()));
    assert_eq!(ask("b"), (200, "b".to_owned()));
    assert_eq!(ask("c").0, 421);
    assert_eq!(ask("unknown").0, 421);
    assert_eq!(ask("a"), (200, "a".to_owned()));
    let mut client = subject.connect_tls("c.localhost");
    assert_eq!(client.get("/").text(), "c");
}

#[test]
fn what_is_refused_is_counted() {
    let (_upstream, subject) = proxying();
    let mut client = subject.connect();
    let stream = client.open(&with(&[("host", "other.example")]), true);
    let answer = client.answer(stream);
    assert!(is_malformed(&answer));
    let count = || {
        let metrics = subject.onehop.metrics();
        let refused = metrics.lines().filter(|line| line.starts_with("onehop_refused_total{"));
        refused.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>()
    };
    wait_for("a refusal", || (count() > 0).then_some(()));
}

#[test]
fn the_connection_decides_about_the_scheme_whatever_the_request_says() {
    let check = |mut client: Http2, expected: &str| {
        for scheme in ["http", "https"] {
            let fields = WELL.map(|(name, was)| (name, if name == ":scheme" { scheme } else { was }));
            let stream = client.open(&fields, true);
            let answer = client.answer(stream);
            let is_right = answer.status == 200 && answer.text() == expected;
            assert!(is_right || (scheme != expected && is_malformed(&answer)), "{scheme}: {answer:?}");
        }
    };
    check(Subject::start("\trespond {scheme}").connect(), "http");
    let subject = Subject::start_in(Folder::new(), "", &encrypted("\trespond {scheme}"));
    check(subject.connect_tls("localhost"), "https");
}
