//! Requests that two parsers could read in two ways: what the upstream gets is one request, or none.

use std::time::Duration;

use onehop_testkit::upstream::Upstream;
use onehop_testkit::wait_for;

use crate::subject::Subject;

/// What has to happen.
enum Verdict {
    /// This status; the upstream gets nothing at all.
    Refused(u16),
    /// One request arrives with this head's beginning and this body, and nothing of what must not.
    Passed { line: &'static str, body: &'static str, without: &'static [&'static str] },
}

struct Case {
    what: &'static str,
    bytes: &'static [u8],
    verdict: Verdict,
}

const fn refused(what: &'static str, bytes: &'static [u8], status: u16) -> Case {
    Case { what, bytes, verdict: Verdict::Refused(status) }
}

const fn passed(
    what: &'static str,
    bytes: &'static [u8],
    line: &'static str,
    body: &'static str,
    without: &'static [&'static str],
) -> Case {
    Case { what, bytes, verdict: Verdict::Passed { line, body, without } }
}

const CASES: &[Case] = &[
    refused(
        "both lengths",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
    ),
    refused(
        "both lengths, the other way around",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        400,
    ),
    refused(
        "a coding behind a tab",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    refused(
        "white space before the colon",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    refused("an unknown coding", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
    refused(
        "chunked twice",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    refused(
        "chunked and then another",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        400,
    ),
    refused("two lengths", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", 400),
    refused("two equal lengths", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nabcd", 400),
    refused("a list of lengths", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4, 4\r\n\r\nabcd", 400),
    refused("a length with a sign", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +4\r\n\r\nabcd", 400),
    refused("a length in hexadecimal", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x4\r\n\r\nabcd", 400),
    refused("a length beyond all", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551620\r\n\r\nabcd", 400),
    refused("a coding in HTTP/1.0", b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    refused("a folded field", b"GET / HTTP/1.1\r\nHost: a\r\nX-Folded: one\r\n two\r\n\r\n", 400),
    refused(
        "a folded coding",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    refused("a bare LF as the end of a line", b"GET / HTTP/1.1\r\nHost: a\nX-Smuggled: s\r\n\r\n", 400),
    refused("a bare CR within a value", b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rX-Smuggled: s\r\n\r\n", 400),
    refused("a NUL within a value", b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 400),
    refused("no Host", b"GET / HTTP/1.1\r\n\r\n", 400),
    refused("two Hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    refused("a Host with a path", b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
    refused("a Host with a user", b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400),
    refused("a target with a space", b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    refused("a target with a bare LF", b"GET /a\nX-Smuggled: s HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    refused("a target with a control character", b"GET /a\x01b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    refused("a version that is none", b"GET / HTTP/1.1x\r\nHost: a\r\n\r\n", 400),
    refused("a method that is no token", b"GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    refused("a field name that is no token", b"GET / HTTP/1.1\r\nHost: a\r\nX(y: z\r\n\r\n", 400),
    refused("a field without a name", b"GET / HTTP/1.1\r\nHost: a\r\n: z\r\n\r\n", 400),
    refused("a field without a colon", b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding chunked\r\n\r\n", 400),
    refused(
        "an absolute target that contradicts Host",
        b"GET http://outer.example/path HTTP/1.1\r\nHost: inner.example\r\n\r\n",
        400,
    ),
    passed(
        "an absolute target is passed on as a path",
        b"GET http://outer.example/path?q HTTP/1.1\r\nHost: outer.example\r\n\r\n",
        "GET /path?q HTTP/1.1",
        "",
        &["http://"],
    ),
    passed(
        "CR and LF in a target stay escaped",
        b"GET /a%0d%0aX-Smuggled:%20s HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a%0d%0aX-Smuggled:%20s HTTP/1.1",
        "",
        &["\nX-Smuggled"],
    ),
    passed(
        "the bytes of a body are the upstream's body, whatever they look like",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 44\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "POST / HTTP/1.1",
        "GET /smuggled HTTP/1.1\r\nHost: evil.example\r\n",
        &[],
    ),
    passed(
        "chunk extensions are not passed on",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4;ext=\"x\"\r\nabcd\r\n0\r\n\r\n",
        "POST / HTTP/1.1",
        "abcd",
        &["ext"],
    ),
    passed(
        "a body of a GET is framed anew",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd",
        "GET / HTTP/1.1",
        "abcd",
        &[],
    ),
    passed(
        "trailers do not say who the client is",
        b"POST / HTTP/1.1\r\nHost: a\r\nTrailer: X-Forwarded-For\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n",
        "POST / HTTP/1.1",
        "ab",
        &["6.6.6.6"],
    ),
];

fn check(case: &Case, subject: &Subject, upstream: &Upstream) {
    let before = upstream.seen().len();
    let mut client = subject.connect();
    client.send(case.bytes);
    let answer = client.try_read_for("GET").unwrap_or_else(|error| panic!("{}: {error}", case.what));
    let seen = |count: usize| {
        wait_for(case.what, || {
            (upstream.seen().len() >= before + count).then(|| upstream.seen().split_off(before))
        })
    };
    match case.verdict {
        Verdict::Refused(status) => {
            let refused = answer.status == status || (status == 400 && answer.status == 501);
            assert!(refused, "{}: {}", case.what, answer.head);
            // What could have been smuggled has had its time; the connection is over.
            client.end_of_sending();
            client.read_to_end();
            assert_eq!(upstream.seen().len(), before, "{}: {:?}", case.what, upstream.seen().last());
        }
        Verdict::Passed { line, body, without } => {
            assert_eq!(answer.status, 200, "{}: {}", case.what, answer.head);
            let request = seen(1).remove(0);
            assert!(request.head.starts_with(line), "{}: {}", case.what, request.head);
            assert_eq!(request.text(), body, "{}", case.what);
            let all = format!("{}\r\n{}", request.head, request.trailers.join("\r\n"));
            for text in without {
                assert!(!all.contains(text), "{}: {all}", case.what);
            }
            assert!(
                request.all("Content-Length").len() + request.all("Transfer-Encoding").len() <= 1,
                "{all}"
            );
        }
    }
}

#[test]
fn what_could_be_read_in_two_ways_reaches_the_upstream_in_one_or_not_at_all() {
    let upstream = Upstream::answering(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell".to_vec());
    let subject = Subject::onehop("", &format!("\treverse_proxy {}", upstream.address()));
    for case in CASES {
        check(case, &subject, &upstream);
    }
    let smuggled = upstream.seen().into_iter().find(|request| request.target().contains("smuggled"));
    assert!(smuggled.is_none(), "{smuggled:?}");
}

#[test]
fn pipelined_requests_are_answered_in_their_order_and_each_is_one_at_the_upstream() {
    let upstream = Upstream::start(|connection| {
        while let Some(request) = connection.request() {
            let body = request.target().to_owned();
            // The first is the slowest.
            if body == "/0" {
                std::thread::sleep(Duration::from_millis(100));
            }
            connection.answer("200 OK", "", &body);
        }
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    let all: String = (0..10).map(|number| format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    client.send(all);
    for number in 0..10 {
        assert_eq!(client.read().text(), format!("/{number}"));
    }
    assert_eq!(upstream.requests(), 10);
}
