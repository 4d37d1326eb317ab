//! Requests that `reverse_proxy` passes on in HTTP/1.1, and what comes back.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use onehop_testkit::http2::{Frame, flag, kind, literals};
use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Folder, wait_for};

use crate::subject::{Subject, encrypted, telling};

fn before(upstream: &Upstream) -> Subject {
    Subject::start(&format!("\treverse_proxy {}", upstream.address()))
}

#[test]
fn an_upstream_sees_an_ordinary_request() {
    let upstream = telling();
    let subject = before(&upstream);
    let mut client = subject.connect();
    let fields = [("accept", "text/html"), ("user-agent", "a test"), ("te", "trailers")];
    assert_eq!(client.ask("GET", "/a%20b?c=d", &fields).text(), "GET /a%20b?c=d HTTP/1.1");
    assert_eq!(client.ask("HEAD", "/h", &[]).status, 200);
    assert_eq!(client.ask("DELETE", "/d", &[]).text(), "DELETE /d HTTP/1.1");
    let seen = upstream.seen();
    let first = &seen[0];
    assert_eq!(first.field("Host"), Some("localhost"), "{}", first.head);
    assert_eq!(first.field("X-Forwarded-Host"), Some("localhost"), "{}", first.head);
    assert_eq!(first.field("X-Forwarded-Proto"), Some("http"), "{}", first.head);
    assert_eq!(first.field("X-Forwarded-For"), Some("127.0.0.1"), "{}", first.head);
    assert_eq!((first.field("Accept"), first.field("User-Agent")), (Some("text/html"), Some("a test")));
    assert!(first.lines().all(|line| !line.starts_with(':')), "{}", first.head);
    for seen in &seen {
        assert_eq!(seen.field("Content-Length"), None, "{}", seen.head);
        assert_eq!(seen.field("Transfer-Encoding"), None, "{}", seen.head);
    }
}

#[test]
fn an_upstream_gets_changed_fields_and_none_of_the_removed() {
    let upstream = telling();
    let changes =
        "\trequest_header X-User {header.X-Claim}\n\trequest_header -X-Secret*\n\trequest_header Cookie a b";
    let subject = Subject::start(&format!("{changes}\n\treverse_proxy {}", upstream.address()));
    let fields =
        [("x-user", "root"), ("x-claim", "ann"), ("x-secret-key", "s"), ("cookie", "a=1"), ("cookie", "c=a")];
    assert_eq!(subject.connect().ask("GET", "/", &fields).status, 200);
    let seen = &upstream.seen()[0];
    assert_eq!((seen.all("X-User"), seen.all("X-Secret-Key")), (vec!["ann"], vec![]), "{}", seen.head);
    assert_eq!(seen.all("Cookie"), ["b=1; c=b"], "{}", seen.head);
    assert_eq!(seen.field("Host"), Some("localhost"), "{}", seen.head);
}

#[test]
fn a_body_of_unknown_length_is_passed_on_in_chunks_and_one_of_a_known_length_is_not() {
    let upstream = telling();
    let subject = before(&upstream);
    let mut client = subject.connect();
    for fields in [&[][..], &[("content-length", "6")]] {
        let stream = client.request("POST", "/", fields, false);
        client.upload(stream, b"abc", false);
        client.upload(stream, b"def", true);
        assert_eq!(client.answer(stream).status, 200);
    }
    // Empty, ended by a frame of its own.
    let stream = client.request("POST", "/", &[], false);
    client.upload(stream, b"", true);
    assert_eq!(client.answer(stream).status, 200);
    let seen = upstream.seen();
    assert_eq!(seen[0].text(), "abcdef", "{}", seen[0].head);
    assert_eq!((seen[1].text(), seen[1].field("Content-Length")), ("abcdef".to_owned(), Some("6")));
    assert_eq!((seen[1].field("Transfer-Encoding"), seen[2].text()), (None, String::new()));
}

#[test]
fn upstreams_learn_that_the_scheme_is_https() {
    let upstream = telling();
    let site = encrypted(&format!("\treverse_proxy {}", upstream.address()));
    let subject = Subject::start_in(Folder::new(), "", &site);
    assert_eq!(subject.connect_tls("localhost").get("/").text(), "GET / HTTP/1.1");
    assert_eq!(upstream.seen()[0].all("X-Forwarded-Proto"), ["https"]);
}

#[test]
fn what_a_response_says_about_its_connection_stays_behind() {
    let upstream = Upstream::answering(|_| {
        b"HTTP/1.1 200 Fine\r\nConnection: X-Hop, keep-alive\r\nX-Hop: a\r\nKeep-Alive: timeout=9\r\n\
          Proxy-Connection: keep-alive\r\nUpgrade: h2c\r\nX-CASE: b\r\nSet-Cookie: c=d\r\nSet-Cookie: e=f\r\n\
          Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            .to_vec()
    });
    let subject = before(&upstream);
    // The client itself refuses fields of a connection and names with upper-case letters.
    let answer = subject.connect().get("/");
    assert_eq!((answer.text(), answer.field("x-hop"), answer.field("x-case")), ("abc", None, Some("b")));
    let cookies: Vec<&str> = answer
        .fields
        .iter()
        .filter(|(name, _)| name == "set-cookie")
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(cookies, ["c=d", "e=f"]);
}

#[test]
fn trailers_pass_both_ways() {
    let upstream = Upstream::answering(|_| {
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n"
            .to_vec()
    });
    let subject = before(&upstream);
    let mut client = subject.connect();
    let stream = client.request("POST", "/", &[("te", "trailers"), ("trailer", "x-up")], false);
    client.send(&Frame::new(kind::DATA, 0, stream, *b"de"));
    let trailers = literals(&[("x-up", "5")]);
    client.send(&Frame::new(kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, stream, trailers));
    let answer = client.answer(stream);
    assert_eq!((answer.text(), answer.trailer("x-sum")), ("abc", Some("6")), "{:?}", answer.trailers);
    let seen = &upstream.seen()[0];
    assert_eq!(seen.text(), "de");
    assert!(
        seen.trailers.iter().any(|line| line.eq_ignore_ascii_case("x-up: 5")),
        "{:?} behind {}",
        seen.trailers,
        seen.head
    );
}

#[test]
fn a_client_that_expects_100_gets_100_continue() {
    let upstream = Upstream::start(|connection| {
        while let Some(mut request) = connection.head() {
            if request.field("Expect").is_some() && !connection.send("HTTP/1.1 100 Continue\r\n\r\n") {
                return;
            }
            if connection.body(&mut request).is_none() || !connection.answer("200 OK", "", &request.text()) {
                return;
            }
        }
    });
    let subject = before(&upstream);
    let mut client = subject.connect();
    let stream = client.request("POST", "/", &[("expect", "100-continue"), ("content-length", "5")], false);
    let answer = client.wait_on(stream, "100 Continue", |answer| !answer.interim.is_empty());
    assert_eq!((answer.interim[0].0, answer.status), (100, 0));
    client.upload(stream, b"hello", true);
    let answer = client.answer(stream);
    assert_eq!((answer.status, answer.text(), answer.interim.len()), (200, "hello", 1));
}

#[test]
fn early_hints_pass() {
    let upstream = Upstream::answering(|_| {
        b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n\
          HTTP/1.1 103 Early Hints\r\nLink: </b.css>; rel=preload\r\n\r\n\
          HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell"
            .to_vec()
    });
    let answer = before(&upstream).connect().get("/");
    let hints: Vec<(u16, &str)> =
        answer.interim.iter().map(|(status, fields)| (*status, fields[0].1.as_str())).collect();
    assert_eq!(hints, [(103, "</a.css>; rel=preload"), (103, "</b.css>; rel=preload")]);
    assert_eq!((answer.status, answer.text()), (200, "well"));
}

#[test]
fn a_response_comes_as_its_parts_do() {
    let (next, parts) = channel::<&str>();
    let parts = Mutex::new(parts);
    let upstream = Upstream::start(move |connection| {
        if connection.request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            while let Ok(part) = parts.lock().expect("a receiver").recv() {
                connection.send(format!("{:x}\r\n{part}\r\n", part.len()));
            }
            connection.send("0\r\n\r\n");
        }
    });
    let subject = before(&upstream);
    let mut client = subject.connect();
    let stream = client.request("GET", "/", &[], true);
    client.wait_on(stream, "a head", |answer| answer.status == 200);
    let mut expected = String::new();
    for part in ["one", " two", " three"] {
        next.send(part).expect("the upstream's script");
        expected.push_str(part);
        client.wait_on(stream, "a part", |answer| answer.body == expected.as_bytes());
    }
    drop(next);
    assert_eq!(client.answer(stream).text(), expected);
}

#[test]
fn a_response_that_is_cut_off_is_not_taken_for_a_whole_one() {
    let upstream = Upstream::start(|connection| {
        if let Some(request) = connection.request() {
            let framing = match request.target() {
                "/length" => "Content-Length: 1000\r\n\r\nabc",
                _ => "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            };
            connection.send(format!("HTTP/1.1 200 OK\r\n{framing}"));
        }
    });
    let subject = before(&upstream);
    let mut client = subject.connect();
    for path in ["/length", "/chunked"] {
        let answer = client.get(path);
        assert!(answer.reset.is_some() && !answer.is_whole, "{path}: {answer:?}");
        assert_eq!(answer.text(), "abc", "{path}");
    }
    assert!(client.goaways.is_empty(), "{:?}", client.goaways);
}

#[test]
fn an_upstream_that_is_not_there_is_a_502() {
    let subject = Subject::start(&format!("\treverse_proxy {}", Upstream::nobody()));
    let mut client = subject.connect();
    let stream = client.request("POST", "/", &[], false);
    client.upload(stream, &[b'x'; 100_000], true);
    assert_eq!(client.answer(stream).status, 502);
    assert_eq!(client.get("/").status, 502);
}

#[test]
fn a_stream_that_is_reset_ends_the_upstreams_exchange() {
    let upstream = Upstream::start(|connection| {
        if connection.request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc");
            connection.wait_for_end();
        }
    });
    let subject = before(&upstream);
    let mut client = subject.connect();
    let stream = client.request("GET", "/", &[], true);
    client.wait_on(stream, "a part", |answer| answer.body == b"abc");
    assert_eq!(upstream.used_and_open(), 1);
    client.send(&Frame::reset(stream, onehop_testkit::http2::code::CANCEL));
    wait_for("the end of the upstream's connection", || (upstream.used_and_open() == 0).then_some(()));
    client.ping();
}

#[test]
fn many_requests_at_once_are_answered() {
    let upstream = telling();
    let subject = before(&upstream);
    let mut client = subject.connect();
    let streams: Vec<(u32, String)> = (0..100)
        .map(|number| {
            let path = format!("/{number}");
            (client.request("GET", &path, &[], true), path)
        })
        .collect();
    for (stream, path) in streams {
        assert_eq!(client.answer(stream).text(), format!("GET {path} HTTP/1.1"));
    }
}
