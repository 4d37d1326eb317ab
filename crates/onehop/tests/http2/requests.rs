//! Requests that are answered by the server itself, and what it says about them.

use onehop_testkit::http2::Http2;
use onehop_testkit::{Folder, wait_for};
use serde_json::Value;

use crate::subject::{Subject, clear, encrypted};

const FILES: &str = "\troot files\n\tencode gzip br\n\tfile_server";

fn with_files() -> Subject {
    let folder = Folder::new();
    folder.write("files/digits.txt", "0123456789".repeat(100));
    Subject::start_in(folder, "", &clear(FILES))
}

#[test]
fn a_file_is_served_by_get_and_by_head() {
    let subject = with_files();
    let mut client = subject.connect();
    let got = client.get("/digits.txt");
    assert_eq!((got.status, got.body.len(), got.field("content-length")), (200, 1000, Some("1000")));
    let head = client.ask("HEAD", "/digits.txt", &[]);
    assert_eq!((head.status, head.body.len(), head.is_whole), (200, 0, true));
    for name in ["content-length", "content-type", "etag", "last-modified", "accept-ranges"] {
        assert_eq!(head.field(name), got.field(name), "{name}");
        assert!(got.field(name).is_some(), "{name} of {:?}", got.fields);
    }
    assert_eq!(client.get("/missing").status, 404);
    let stream = client.request("POST", "/digits.txt", &[("content-length", "3")], false);
    client.upload(stream, b"abc", true);
    let refused = client.answer(stream);
    assert_eq!((refused.status, refused.field("allow").is_some()), (405, true));
}

#[test]
fn responses_are_the_same_as_over_http_1() {
    let subject = with_files();
    let (mut client, mut other) = (subject.connect(), subject.connect_http1());
    for (method, path, fields) in [
        ("GET", "/digits.txt", &[][..]),
        ("HEAD", "/digits.txt", &[]),
        ("GET", "/digits.txt", &[("range", "bytes=5-14")]),
        ("GET", "/missing", &[]),
        ("OPTIONS", "/digits.txt", &[]),
        ("TRACE", "/digits.txt", &[]),
        ("OPTIONS", "*", &[]),
        ("BREW", "/digits.txt", &[]),
    ] {
        let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let (one, two) = (other.ask(method, path, &lines), client.ask(method, path, fields));
        assert_eq!(two.status, one.status, "{method} {path}");
        assert!(two.body == one.body, "{method} {path}: {:?}", two.body);
        let of_connections = ["date", "connection", "keep-alive", "transfer-encoding"];
        let mut expected: Vec<(String, String)> = Vec::new();
        for line in one.head.lines().skip(1) {
            let (name, value) = line.split_once(':').expect("a field");
            expected.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        expected.retain(|(name, _)| !of_connections.contains(&name.as_str()));
        let mut fields = two.fields.clone();
        fields.retain(|(name, _)| !of_connections.contains(&name.as_str()));
        expected.sort();
        fields.sort();
        assert_eq!(fields, expected, "{method} {path}");
    }
}

#[test]
fn a_known_entity_tag_is_answered_with_304() {
    let subject = with_files();
    let mut client = subject.connect();
    let etag = client.get("/digits.txt").field("etag").expect("a tag").to_owned();
    let unchanged = client.ask("GET", "/digits.txt", &[("if-none-match", &etag)]);
    assert_eq!((unchanged.status, unchanged.body.len(), unchanged.is_whole), (304, 0, true));
    assert_eq!(unchanged.field("etag"), Some(etag.as_str()));
}

#[test]
fn a_part_of_a_file_is_served() {
    let subject = with_files();
    let mut client = subject.connect();
    let part = client.ask("GET", "/digits.txt", &[("range", "bytes=5-14")]);
    assert_eq!((part.status, part.text()), (206, "5678901234"));
    assert_eq!(part.field("content-range"), Some("bytes 5-14/1000"));
    let none = client.ask("GET", "/digits.txt", &[("range", "bytes=1000-")]);
    assert_eq!((none.status, none.field("content-range")), (416, Some("bytes */1000")));
}

#[test]
fn a_compressed_form_is_served_to_clients_that_take_it() {
    let subject = with_files();
    let mut client = subject.connect();
    for coding in ["gzip", "br"] {
        // Forms are made behind the first responses.
        let answer = wait_for(coding, || {
            let answer = client.ask("GET", "/digits.txt", &[("accept-encoding", coding)]);
            (answer.field("content-encoding") == Some(coding)).then_some(answer)
        });
        assert!(answer.body.len() < 200, "{} bytes", answer.body.len());
        let length = answer.body.len().to_string();
        assert_eq!(answer.field("content-length"), Some(length.as_str()));
    }
}

#[test]
fn a_fixed_response_is_served_to_every_method() {
    let subject = Subject::start("\trespond hello");
    let mut client = subject.connect();
    assert_eq!(client.get("/").text(), "hello");
    let head = client.ask("HEAD", "/", &[]);
    assert_eq!((head.status, head.body.len(), head.field("content-length")), (200, 0, Some("5")));
    for length in [0, 10, 200_000] {
        let stream = client.request("POST", "/", &[], false);
        client.upload(stream, &vec![b'x'; length], true);
        assert_eq!(client.answer(stream).text(), "hello", "{length} bytes");
    }
}

#[test]
fn a_request_with_host_instead_of_authority_is_served() {
    let subject = Subject::start("\trespond {host}");
    let mut client = subject.connect();
    let pseudo = [(":method", "GET"), (":scheme", "http"), (":path", "/")];
    for fields in [
        [&pseudo[..], &[("host", "one.example")]].concat(),
        [&pseudo[..], &[(":authority", "one.example")]].concat(),
        [&pseudo[..], &[(":authority", "one.example"), ("host", "one.example")]].concat(),
    ] {
        let stream = client.open(&fields, true);
        let answer = client.answer(stream);
        assert_eq!((answer.status, answer.text()), (200, "one.example"), "{fields:?}");
    }
}

#[test]
fn placeholders_know_the_version_and_the_scheme() {
    let directives = "\trespond \"{http.request.proto} {scheme} {method} {uri}\"";
    let subject = Subject::start(directives);
    assert_eq!(subject.connect().get("/a?b").text(), "HTTP/2.0 http GET /a?b");
    assert_eq!(subject.connect_http1().get("/a?b").text(), "HTTP/1.1 http GET /a?b");
    let subject = Subject::start_in(Folder::new(), "", &encrypted(directives));
    assert_eq!(subject.connect_tls("localhost").get("/a?b").text(), "HTTP/2.0 https GET /a?b");
}

#[test]
fn the_access_log_tells_the_version() {
    let folder = Folder::new();
    let log = folder.join("access.log");
    let directives = format!("\tlog {{\n\t\toutput file {}\n\t}}\n\trespond hello", log.display());
    let subject = Subject::start_in(folder, "", &clear(&directives));
    subject.connect().ask("GET", "/by/two?x", &[("user-agent", "a test"), ("cookie", "a=b")]);
    subject.connect_http1().get("/by/one");
    let line = |text: &str| {
        wait_for(text, || {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            let line = log.lines().find(|line| line.contains(text))?;
            Some(serde_json::from_str::<Value>(line).expect("JSON"))
        })
    };
    let (two, one) = (line("/by/two"), line("/by/one"));
    assert_eq!(one["request"]["proto"], "HTTP/1.1", "{one}");
    assert_eq!(two["request"]["proto"], "HTTP/2.0", "{two}");
    assert_eq!(two["request"]["method"], "GET", "{two}");
    assert_eq!(two["request"]["uri"], "/by/two?x", "{two}");
    assert_eq!((&two["status"], &two["size"]), (&Value::from(200), &Value::from(5)), "{two}");
}

#[test]
fn both_versions_are_spoken_on_one_listener() {
    let subject = Subject::start("\trespond hello");
    let (mut one, mut two) = (subject.connect_http1(), subject.connect());
    for _ in 0..3 {
        assert_eq!(one.get("/").text(), "hello");
        assert_eq!(two.get("/").text(), "hello");
    }
    // The preface may come in pieces, and what begins like it may be HTTP/1 (RFC 9113 section 3.4).
    let mut client = subject.connect_http1();
    client.send("P");
    client.send(format!("UT / HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", subject.address()));
    assert_eq!(client.read().text(), "hello");
}

#[test]
fn a_client_over_tls_chooses_the_version_by_alpn() {
    let subject = Subject::start_in(Folder::new(), "", &encrypted("\trespond {http.request.proto}"));
    for (offered, chosen) in [
        (&["h2", "http/1.1"][..], Some(&b"h2"[..])),
        (&["http/1.1", "h2"], Some(b"h2")),
        (&["h2"], Some(b"h2")),
        (&["http/1.1"], Some(b"http/1.1")),
        (&[], None),
    ] {
        let connection = subject.handshake("localhost", offered).expect("a connection");
        assert_eq!(connection.protocol(), chosen, "{offered:?}");
        if chosen == Some(b"h2") {
            let mut client = Http2::over_tls(connection, "localhost", &[]);
            assert_eq!(client.get("/").text(), "HTTP/2.0");
        } else {
            let mut client = onehop_testkit::Client::over_tls(connection, "localhost");
            assert_eq!(client.get("/").text(), "HTTP/1.1");
        }
    }
}

#[test]
fn a_site_with_alpn_http_1_speaks_that_alone() {
    let site = encrypted("\ttls {\n\t\tissuer internal\n\t\talpn http/1.1\n\t}\n\trespond hello");
    let subject = Subject::start_in(Folder::new(), "", &site);
    let connection = subject.handshake("localhost", &["h2", "http/1.1"]).expect("a connection");
    assert_eq!(connection.protocol(), Some(&b"http/1.1"[..]));
    assert!(subject.handshake("localhost", &["h2"]).is_err());
}
