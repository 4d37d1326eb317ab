//! onehop against hyper and httparse, on inputs made of pieces that matter. The fuzz target
//! `http1_differential` does the same with inputs of its own.

mod against;
mod drive;

use proptest::prelude::*;

const LINES: &[&str] = &[
    "GET / HTTP/1.1\r\n",
    "POST /a?b HTTP/1.1\r\n",
    "PUT http://h/a HTTP/1.1\r\n",
    "GET http://h HTTP/1.0\r\n",
    "GET HTTP://h?a HTTP/1.1\r\n",
    "OPTIONS * HTTP/1.1\r\n",
    "CONNECT h:443 HTTP/1.1\r\n",
    "PURGE /a%20|{}[]^\\?`{}|\\ HTTP/1.1\r\n",
    "GET /\" HTTP/1.1\r\n",
    "GET  / HTTP/1.1\r\n",
    "GET / HTTP/1.2\r\n",
    "\r\nGET / HTTP/1.1\r\n",
    "GET / HTTP/1.1\n",
];

const FIELDS: &[&str] = &[
    "Host: h\r\n",
    "Host: h\r\n",
    "host:[::1]:80\r\n",
    "Content-Length: 3\r\n",
    "Content-Length: 003\r\n",
    "Content-Length: 3, 3\r\n",
    "Content-Length: +3\r\n",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: CHUNKED\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: chunked, identity\r\n",
    "Transfer-Encoding: \tchunked \r\n",
    "Transfer-Encoding : chunked\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Connection: a, close\r\n",
    "Expect: 100-continue\r\n",
    "Upgrade: websocket\r\n",
    "A:\r\n",
    "A: b\r\n c\r\n",
    "A: b\n",
    "A: \r\r\n",
    "A: \u{e9}\r\n",
    "A: \u{0}\r\n",
    "nothing\r\n",
];

const BODIES: &[&str] = &[
    "",
    "abc",
    "abcd",
    "3\r\nabc\r\n0\r\n\r\n",
    "3;a=\"b\"\r\nabc\r\n00\r\nA: b\r\n\r\n",
    "0\r\n\r\n",
    "3\nabc\r\n0\r\n\r\n",
    "3\r\nabc0\r\n\r\n",
    "3 \r\nabc\r\n0\r\n\r\n",
    "3 ;a\r\nabc\r\n0\r\n\r\n",
    "3;\r\nabc\r\n0\r\n\r\n",
    "0x3\r\nabc\r\n0\r\n\r\n",
    "3\r\nabc\r\n0\r\nA : b\r\n\r\n",
    "ffffffffffffffffff\r\nabc",
    "G",
];

fn request() -> impl Strategy<Value = String> {
    let fields = proptest::collection::vec(proptest::sample::select(FIELDS), 0..5);
    let parts = (proptest::sample::select(LINES), fields, any::<bool>(), proptest::sample::select(BODIES));
    parts.prop_map(|(line, fields, host, body)| {
        let host = if host { "Host: h\r\n" } else { "" };
        format!("{line}{host}{}\r\n{body}", fields.concat())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_onehop_takes_hyper_takes_alike(requests in proptest::collection::vec(request(), 1..4)) {
        against::compare_with_hyper(requests.concat().as_bytes());
    }

    #[test]
    fn what_onehop_takes_httparse_takes_alike(request in request()) {
        against::compare_with_httparse(request.as_bytes());
    }
}
