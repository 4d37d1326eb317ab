//! What a proxy's connection to an upstream sends, reads, and when it may be used again.

mod drive_client;

use onehop_http1::{AnswerBody, AnswerRead, BodyLength, ClientCodec, Known, Limits, Refusal, ResponseHead};
use proptest::prelude::*;

use drive_client::{End, Got, ask, asked, read};

/// The same at every cut.
fn read_at_every_cut(method: &str, upgrade: bool, input: &[u8]) -> Got {
    let whole = read(&mut asked(method, upgrade), input, usize::MAX, 1);
    for cut in 0..input.len() {
        for step in [1, input.len()] {
            let again = read(&mut asked(method, upgrade), input, cut, step);
            assert_eq!(again, whole, "cut at {cut}, then by {step}");
        }
    }
    whole
}

#[test]
fn a_request_is_framed_by_its_body() {
    let rows = [
        ("GET", BodyLength::None, false, "", ""),
        ("POST", BodyLength::None, false, "Content-Length: 0\r\n", ""),
        ("POST", BodyLength::Known(2), false, "Content-Length: 2\r\n", "ok"),
        (
            "POST",
            BodyLength::Chunked,
            false,
            "Transfer-Encoding: chunked\r\n",
            "2\r\nok\r\n0\r\nA: b\r\n\r\n",
        ),
        ("GET", BodyLength::None, true, "Connection: upgrade\r\n", ""),
    ];
    for (method, body, upgrade, fields, sent) in rows {
        let mut codec = ClientCodec::new(Limits::default());
        let mut out = Vec::new();
        assert_eq!(codec.write_request_head(&mut out, ask(method, body, upgrade)), Ok(()));
        if body != BodyLength::None {
            codec.write_data(&mut out, b"ok");
        }
        codec.finish(&mut out, b"A: b\r\n");
        let expected = format!("{method} /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n{sent}");
        assert_eq!(String::from_utf8(out).expect("ASCII"), expected);
        assert!(!codec.reusable(0), "not answered");
        assert_eq!(
            codec.write_request_head(&mut Vec::new(), ask("GET", BodyLength::None, false)),
            Err(Refusal::OutOfOrder)
        );
    }
}

#[test]
fn an_answers_body_ends_where_the_rules_say() {
    let rows: [(&str, &[u8], &[u8], bool); 17] = [
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello", true),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", true),
        ("GET", b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", b"", true),
        (
            "GET",
            b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            b"hello",
            true,
        ),
        ("GET", b"HTTP/1.1 200 OK\r\n\r\nhello", b"hello", false),
        ("GET", b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello", false),
        (
            "GET",
            b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
            b"hello",
            true,
        ),
        ("GET", b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", b"hello", false),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"", true),
        ("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"", true),
        ("HEAD", b"HTTP/1.1 200 OK\r\n\r\n", b"", true),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", b"", true),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", b"", true),
        ("GET", b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", b"", false),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n", b"hello", false),
        ("CONNECT", b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", b"no", true),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\ncontent-length:2\r\n\r\nhi", b"hi", true),
    ];
    for (method, input, body, reusable) in rows {
        let got = read_at_every_cut(method, false, input);
        let shown = String::from_utf8_lossy(input);
        assert_eq!((got.end, &got.body[..]), (End::Whole, body), "{shown}");
        assert_eq!(got.reusable, reusable, "{shown}");
    }
}

#[test]
fn answers_with_two_readings_or_cut_off_are_refused() {
    let rows: [(&[u8], Refusal); 29] = [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", Refusal::BothLengths),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            Refusal::DifferingContentLength,
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", Refusal::ListedContentLength),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", Refusal::BadContentLength),
        (b"HTTP/1.1 200 OK\r\nContent-Length:\r\nContent-Length: \r\n\r\n", Refusal::BadContentLength),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 05\r\n\r\n",
            Refusal::DifferingContentLength,
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nContent-Length: 5, 5\r\n\r\n",
            Refusal::ListedContentLength,
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", Refusal::TransferEncodingNotChunked),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Refusal::UnknownTransferCoding),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Refusal::ChunkedInHttp10),
        (b"HTTP/1.1 204 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", Refusal::BothLengths),
        (b"HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", Refusal::BareLf),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", Refusal::ObsoleteFold),
        (b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", Refusal::SpaceBeforeColon),
        (b"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", Refusal::BareCr),
        (b"HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", Refusal::Nul),
        (b"HTTP/1.1 20 OK\r\n\r\n", Refusal::BadStatusLine),
        (b"HTTP/1.1 2000 OK\r\n\r\n", Refusal::BadStatusLine),
        (b"HTTP/1.1 099 OK\r\n\r\n", Refusal::BadStatusLine),
        (b"HTTP/1.1  200 OK\r\n\r\n", Refusal::BadStatusLine),
        (b"\r\nHTTP/1.1 200 OK\r\n\r\n", Refusal::BadStatusLine),
        (b"ICY 200 OK\r\n\r\n", Refusal::BadStatusLine),
        (b"HTTP/2.0 200 OK\r\n\r\n", Refusal::UnsupportedVersion),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\n", Refusal::UnexpectedAnswer),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", Refusal::UnexpectedEnd),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Refusal::UnexpectedEnd),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello", Refusal::BareLf),
        (b"HTTP/1.1 200 OK\r\nContent-Le", Refusal::UnexpectedEnd),
        (b"", Refusal::UnexpectedEnd),
    ];
    for (input, refusal) in rows {
        let got = read_at_every_cut("GET", false, input);
        assert_eq!(got.end, End::Refused(refusal), "{}", String::from_utf8_lossy(input));
    }
}

#[test]
fn informational_heads_come_before_the_final_one_and_are_bounded() {
    let hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
    let last = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let got = read_at_every_cut("GET", false, &[&b"HTTP/1.1 100 Continue\r\n\r\n"[..], hint, last].concat());
    assert_eq!((got.informational, got.status, got.reusable), (vec![100, 103], 200, true));
    let got = read(&mut asked("GET", false), &[&hint.repeat(17)[..], last].concat(), usize::MAX, 1);
    assert_eq!(got.end, End::Refused(Refusal::UnexpectedAnswer));
}

#[test]
fn an_upgrade_that_was_asked_for_becomes_a_tunnel_and_is_never_reused() {
    let switched =
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nrest";
    let got = read_at_every_cut("GET", true, switched);
    assert_eq!((got.end, got.status, got.reusable), (End::Tunnel, 101, false));
    let refused = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let got = read_at_every_cut("GET", true, refused);
    assert_eq!((got.end, got.reusable), (End::Whole, false));
    let got = read_at_every_cut("CONNECT", false, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    assert_eq!((got.end, got.reusable), (End::Tunnel, false));
}

#[test]
fn an_answer_before_the_request_is_sent_whole_leaves_the_connection_unusable() {
    let answer = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
    let mut codec = ClientCodec::new(Limits::default());
    let mut out = Vec::new();
    assert!(codec.write_request_head(&mut out, ask("POST", BodyLength::Known(5), false)).is_ok());
    codec.write_data(&mut out, b"he");
    let got = read(&mut codec, answer, usize::MAX, 1);
    assert_eq!((got.end, got.reusable), (End::Whole, false));
    codec.finish(&mut out, b"");
    assert!(!codec.reusable(0), "ended short of its length");
    assert!(!codec.reuse(0));
}

#[test]
fn a_clean_connection_is_used_again_and_bytes_that_nobody_asked_for_end_it() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n\r\nok";
    let mut codec = asked("GET", false);
    for _ in 0..3 {
        let got = read(&mut codec, answer, usize::MAX, 1);
        assert!(got.reusable && codec.reuse(0));
        let mut out = Vec::new();
        assert_eq!(codec.write_request_head(&mut out, ask("GET", BodyLength::None, false)), Ok(()));
        codec.finish(&mut out, b"");
    }
    assert!(read(&mut codec, answer, usize::MAX, 1).reusable && codec.reuse(0));
    assert_eq!(codec.read_head(answer, &mut ResponseHead::new()), Err(Refusal::UnexpectedAnswer));
    assert!(!codec.reusable(0));
}

#[test]
fn a_connection_that_the_upstream_closed_is_not_reused() {
    let mut codec = asked("GET", false);
    assert!(read(&mut codec, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", usize::MAX, 1).reusable);
    assert_eq!(codec.read_eof(0), Ok(()));
    assert!(!codec.reusable(0));
    let mut idle = ClientCodec::new(Limits::default());
    assert_eq!(idle.read_eof(0), Ok(()));
    assert!(!idle.reusable(0));
}

#[test]
fn an_answers_head_keeps_the_upstreams_bytes() {
    let mut codec = asked("GET", false);
    let mut head = ResponseHead::new();
    let input = b"HTTP/1.0 299 So So\r\nset-cookie: a\r\nSet-Cookie:b\r\nETAG:  \"c\" \r\n\r\n";
    assert_eq!(codec.read_head(input, &mut head), Ok(Some(AnswerRead::Final { consumed: input.len() })));
    assert_eq!(
        (head.status(), head.reason(), codec.answer_body()),
        (299, &b"So So"[..], AnswerBody::UntilClose)
    );
    assert_eq!(head.get(Known::Etag), Some(&b"\"c\""[..]));
    assert_eq!(head.find_all("Set-Cookie").collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!(head.raw_fields(), &input[20..input.len() - 2]);
}

/// Pieces of which answers are made, whole and broken.
const PIECES: &[&str] = &[
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 200\r\n",
    "HTTP/1.1 103 \r\n",
    "HTTP/1.1 101 a\r\nUpgrade: a\r\n",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "A:\r\n",
    "\r\n",
    "\r",
    "\n",
    "\0",
    " ",
    "3\r\nabc\r\n",
    "0\r\n\r\n",
    "0\r\nA: b\r\n\r\n",
    "abc",
];

proptest! {
    #[test]
    fn answers_are_read_alike_however_they_are_cut(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..12),
        method in proptest::sample::select(&["GET", "HEAD", "CONNECT"][..]),
        upgrade in any::<bool>(),
    ) {
        read_at_every_cut(method, upgrade, pieces.concat().as_bytes());
    }

    #[test]
    fn random_answers_never_panic(input in proptest::collection::vec(any::<u8>(), 0..300)) {
        read(&mut asked("GET", true), &input, usize::MAX, 1);
    }
}
