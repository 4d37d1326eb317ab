//! What a server connection reads and writes, request after request.

mod drive;

use onehop_http1::{
    AnswerHead, BodyLength, BodyRead, EofMeaning, Known, Limits, Method, Next, Refusal, RequestHead,
    ServerCodec, Version,
};

const GET: &str = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

fn plain(status: u16, body: BodyLength) -> AnswerHead<'static> {
    AnswerHead { status, fields: b"", date: b"", body, upgrade: false }
}

fn ask(request: &str) -> (ServerCodec, RequestHead) {
    let mut codec = ServerCodec::new(Limits::default());
    let mut head = RequestHead::new();
    let consumed = codec.read_head(request.as_bytes(), &mut head).expect("good").expect("whole");
    assert!(consumed <= request.len());
    (codec, head)
}

/// The answer to `request`, with `data` for its body, and what becomes of the connection.
fn exchange(request: &str, answer: AnswerHead<'_>, data: &str) -> (String, Next) {
    let (mut codec, _) = ask(request);
    let mut out = Vec::new();
    codec.write_head(&mut out, answer);
    if codec.sends_body() {
        codec.write_data(&mut out, data.as_bytes());
    }
    let next = codec.finish(&mut out, b"");
    (String::from_utf8(out).expect("our own answers are ASCII"), next)
}

#[test]
fn an_ordinary_answer_is_framed_by_its_length_and_keeps_the_connection() {
    let fields = b"Content-Type: text/plain\r\n";
    let date = b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
    let answer = AnswerHead { status: 200, fields, date, body: BodyLength::Known(5), upgrade: false };
    let (out, next) = exchange(GET, answer, "hello");
    assert_eq!(next, Next::KeepAlive);
    assert_eq!(
        out,
        "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: text/plain\r\n\
         Content-Length: 5\r\n\r\nhello"
    );
}

#[test]
fn keep_alive_follows_version_connection_and_the_answers_framing() {
    use BodyLength::{Chunked, Known, None};
    let (keep, close) = (Next::KeepAlive, Next::Close);
    let rows = [
        ("1.1", "", Known(2), keep, ""),
        ("1.1", "", Chunked, keep, ""),
        ("1.1", "", None, keep, ""),
        ("1.1", "Connection: close\r\n", Known(2), close, "Connection: close\r\n"),
        ("1.1", "connection: CLOSE\r\n", Known(2), close, "Connection: close\r\n"),
        ("1.1", "Connection: keep-alive\r\n", Known(2), keep, ""),
        ("1.1", "Connection: keep-alive, close\r\n", Known(2), close, "Connection: close\r\n"),
        ("1.1", "Connection: x,\t close ,y\r\n", Known(2), close, "Connection: close\r\n"),
        ("1.1", "Connection: x\r\nConnection: close\r\n", Known(2), close, "Connection: close\r\n"),
        ("1.1", "Connection: closed\r\n", Known(2), keep, ""),
        ("1.0", "", Known(2), close, "Connection: close\r\n"),
        ("1.0", "Connection: keep-alive\r\n", Known(2), keep, "Connection: keep-alive\r\n"),
        ("1.0", "Connection: Keep-Alive\r\n", None, keep, "Connection: keep-alive\r\n"),
        ("1.0", "Connection: keep-alive\r\n", Chunked, close, "Connection: close\r\n"),
        ("1.0", "Connection: keep-alive, close\r\n", Known(2), close, "Connection: close\r\n"),
        ("1.0", "Keep-Alive: timeout=5\r\n", Known(2), close, "Connection: close\r\n"),
    ];
    for (version, fields, body, next, line) in rows {
        let request = format!("GET / HTTP/{version}\r\nHost: h\r\n{fields}\r\n");
        let data = if body == None { "" } else { "ok" };
        let (out, what) = exchange(&request, plain(200, body), data);
        assert_eq!(what, next, "{request}");
        let head =
            out.split_inclusive("\r\n").find(|line| line.starts_with("Connection")).unwrap_or_default();
        assert_eq!(head, line, "{request}");
        let chunked = out.contains("Transfer-Encoding: chunked\r\n");
        assert_eq!(chunked, body == Chunked && version == "1.1", "{request}");
        assert!(!(version == "1.0" && body == Chunked && !out.ends_with("\r\n\r\nok")), "{out}");
    }
}

#[test]
fn answers_without_body_send_none_and_say_only_what_they_may() {
    use BodyLength::{Chunked, Known, None};
    let head = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";
    let rows = [
        (head, 200, Known(788), "Content-Length: 788\r\n"),
        (head, 200, Chunked, ""),
        (head, 404, None, "Content-Length: 0\r\n"),
        (GET, 204, None, ""),
        (GET, 204, Known(5), ""),
        (GET, 304, None, ""),
        (GET, 304, Known(788), "Content-Length: 788\r\n"),
        (GET, 304, Chunked, ""),
    ];
    for (request, status, body, line) in rows {
        let (mut codec, _) = ask(request);
        let mut out = Vec::new();
        codec.write_head(&mut out, plain(status, body));
        assert!(!codec.sends_body());
        codec.write_data(&mut out, b"dropped");
        codec.write_data_frame(&mut out, 7);
        codec.write_data_frame_end(&mut out);
        assert_eq!(codec.finish(&mut out, b"A: b\r\n"), Next::KeepAlive, "{status} {body:?}");
        let out = String::from_utf8(out).expect("ASCII");
        let (_, fields) = out.split_once("\r\n").expect("a status line");
        assert_eq!(fields, format!("{line}\r\n"), "{status} {body:?}");
    }
    let (out, _) = exchange(GET, plain(200, None), "");
    assert_eq!(out, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

#[test]
fn a_body_of_unknown_length_is_chunked_with_trailers() {
    let (mut codec, _) = ask(GET);
    let mut out = Vec::new();
    codec.write_head(&mut out, plain(200, BodyLength::Chunked));
    codec.write_data(&mut out, b"hello");
    codec.write_data(&mut out, b"");
    codec.write_data_frame(&mut out, 26);
    out.extend_from_slice(b"abcdefghijklmnopqrstuvwxyz");
    codec.write_data_frame_end(&mut out);
    assert_eq!(codec.finish(&mut out, b"A: b\r\n"), Next::KeepAlive);
    let out = String::from_utf8(out).expect("ASCII");
    assert_eq!(
        out,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n\
         1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nA: b\r\n\r\n"
    );
}

#[test]
fn an_answer_that_is_shorter_than_promised_ends_the_connection() {
    let (_, next) = exchange(GET, plain(200, BodyLength::Known(5)), "hell");
    assert_eq!(next, Next::Close);
    let (mut codec, _) = ask(GET);
    let mut out = Vec::new();
    codec.write_head(&mut out, plain(200, BodyLength::Known(5)));
    codec.note_data_written_elsewhere(5);
    assert_eq!(codec.finish(&mut out, b""), Next::KeepAlive);
}

#[test]
fn a_request_whose_body_was_not_read_ends_the_connection() {
    for body in ["Content-Length: 5\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"] {
        let request = format!("POST / HTTP/1.1\r\nHost: h\r\n{body}");
        let (_, next) = exchange(&request, plain(200, BodyLength::Known(2)), "ok");
        assert_eq!(next, Next::Close);
    }
}

#[test]
fn nothing_is_read_while_a_request_is_open() {
    let (mut codec, mut head) = ask(GET);
    assert_eq!(codec.read_head(GET.as_bytes(), &mut head), Err(Refusal::OutOfOrder));
}

#[test]
fn a_client_that_waits_gets_one_100_continue_and_its_body_is_read() {
    let request = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n";
    let (mut codec, _) = ask(request);
    assert!(codec.expects_continue());
    let mut out = Vec::new();
    codec.write_continue(&mut out);
    codec.write_continue(&mut out);
    assert_eq!(out, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert!(!codec.expects_continue());
    assert_eq!(codec.read_body(b"hello"), Ok(BodyRead::Data { at: 0..5, consumed: 5 }));
    codec.write_head(&mut out, plain(204, BodyLength::None));
    assert_eq!(codec.finish(&mut out, b""), Next::KeepAlive);
}

#[test]
fn a_final_answer_to_a_client_that_still_waits_closes_and_says_so() {
    let request = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    let (out, next) = exchange(request, plain(413, BodyLength::None), "");
    assert!(out.contains("\r\nConnection: close\r\n"), "{out}");
    assert_eq!(next, Next::Close);
}

#[test]
fn a_refused_request_inherits_nothing_from_the_one_before() {
    let first = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n";
    let (mut codec, mut head) = ask(first);
    let mut out = Vec::new();
    codec.write_head(&mut out, plain(204, BodyLength::None));
    assert_eq!(codec.finish(&mut out, b""), Next::KeepAlive);
    assert_eq!(codec.read_head(b"GET / HTTP/1.1\r\n\r\n", &mut head), Err(Refusal::MissingHost));
    assert!(!codec.expects_continue() && !codec.body_is_read());
    assert_eq!(codec.read_body(b"GET / HTTP/1.1\r\n"), Err(Refusal::MissingHost));
    out.clear();
    codec.write_continue(&mut out);
    codec.write_head(&mut out, plain(400, BodyLength::Chunked));
    codec.write_data(&mut out, b"no");
    assert_eq!(codec.finish(&mut out, b""), Next::Close);
    assert_eq!(out, b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nno");
}

#[test]
fn expectations_of_http_1_0_and_of_requests_without_body_are_ignored() {
    for request in [
        "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
    ] {
        assert!(!ask(request).0.expects_continue(), "{request}");
    }
}

#[test]
fn early_hints_go_to_http_1_1_before_the_final_head_only() {
    let (mut codec, _) = ask(GET);
    let mut out = Vec::new();
    codec.write_informational(&mut out, 103, b"Link: </a.css>\r\n");
    assert_eq!(out, b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
    out.clear();
    codec.write_head(&mut out, plain(204, BodyLength::None));
    let length = out.len();
    codec.write_informational(&mut out, 103, b"");
    assert_eq!(out.len(), length);
    let (mut codec, _) = ask("GET / HTTP/1.0\r\n\r\n");
    out.clear();
    codec.write_informational(&mut out, 103, b"");
    assert!(out.is_empty());
}

#[test]
fn an_upgrade_and_a_connect_become_tunnels_without_a_length() {
    let (mut codec, _) =
        ask("GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
    let mut out = Vec::new();
    let fields = b"Upgrade: websocket\r\n";
    let answer = AnswerHead { status: 101, fields, date: b"", body: BodyLength::None, upgrade: true };
    codec.write_head(&mut out, answer);
    assert_eq!(codec.finish(&mut out, b""), Next::Tunnel);
    assert_eq!(out, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
    let unread = "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: a\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(exchange(unread, answer, "").1, Next::Close, "its body is not the new protocol's");
    let connect = "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n";
    assert_eq!(
        exchange(connect, plain(200, BodyLength::None), ""),
        ("HTTP/1.1 200 OK\r\n\r\n".into(), Next::Tunnel)
    );
    assert_eq!(exchange(connect, plain(403, BodyLength::None), "").1, Next::KeepAlive);
}

#[test]
fn a_server_that_wants_to_close_says_so_and_does() {
    let (mut codec, _) = ask(GET);
    let mut out = Vec::new();
    codec.close_after_answer();
    codec.write_head(&mut out, plain(204, BodyLength::None));
    assert_eq!(codec.finish(&mut out, b""), Next::Close);
    assert_eq!(out, b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
}

#[test]
fn a_client_that_never_asked_can_learn_why_it_is_closed() {
    let mut codec = ServerCodec::new(Limits::default());
    assert_eq!(codec.read_head(b"GET /", &mut RequestHead::new()), Ok(None));
    let mut out = Vec::new();
    codec.write_head(&mut out, plain(408, BodyLength::None));
    assert_eq!(codec.finish(&mut out, b""), Next::Close);
    assert_eq!(out, b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

#[test]
fn the_end_of_the_clients_bytes_is_clean_between_requests_and_after_a_whole_one() {
    let mut codec = ServerCodec::new(Limits::default());
    let mut head = RequestHead::new();
    assert_eq!(codec.at_eof(0), EofMeaning::Clean);
    assert_eq!(codec.read_head(b"GET", &mut head), Ok(None));
    assert_eq!(codec.at_eof(3), EofMeaning::Truncated);
    let (codec, _) = ask(GET);
    assert_eq!(codec.at_eof(0), EofMeaning::Clean, "half closed: still answered");
    let (mut codec, _) = ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(codec.at_eof(0), EofMeaning::Truncated);
    assert!(codec.read_body(b"hello").is_ok());
    assert_eq!(codec.at_eof(0), EofMeaning::Clean);
}

#[test]
fn statuses_without_a_known_reason_are_sent_with_an_empty_one() {
    for status in [299, 418, 599, 999] {
        let (out, _) = exchange(GET, plain(status, BodyLength::None), "");
        assert!(out.starts_with(&format!("HTTP/1.1 {status} \r\nContent-Length: 0\r\n")), "{out}");
    }
}

#[test]
fn every_form_of_target_is_taken_apart() {
    let host = Some(&b"h"[..]);
    type Row<'a> = (&'a str, &'a [u8], Option<&'a [u8]>, Option<&'a [u8]>);
    let rows: &[Row<'_>] = &[
        ("GET / HTTP/1.1\r\nHost: h", b"/", None, host),
        ("GET /? HTTP/1.1\r\nHost: h", b"/", Some(b""), host),
        ("GET /a%2Fb?c?d HTTP/1.1\r\nHost: h", b"/a%2Fb", Some(b"c?d"), host),
        ("GET //a/../b HTTP/1.1\r\nHost: h", b"//a/../b", None, host),
        ("GET /|{}[]^\\?`|{} HTTP/1.1\r\nHost: h", b"/|{}[]^\\", Some(b"`|{}"), host),
        ("GET http://h HTTP/1.1\r\nHost: h", b"/", None, host),
        ("GET http://H/a HTTP/1.1\r\nHost: h", b"/a", None, Some(b"H")),
        ("GET HTTP://h?a HTTP/1.1\r\nHost: h:80", b"/", Some(b"a"), host),
        ("GET https://h:443/a?b HTTP/1.1\r\nHost: h", b"/a", Some(b"b"), Some(b"h:443")),
        ("GET http://h/a HTTP/1.0", b"/a", None, host),
        ("GET /a HTTP/1.0", b"/a", None, None),
        ("OPTIONS * HTTP/1.1\r\nHost: h", b"*", None, host),
        ("CONNECT h:443 HTTP/1.1\r\nHost: h:443", b"", None, Some(b"h:443")),
        ("GET / HTTP/1.1\r\nHost: h:", b"/", None, Some(b"h:")),
        ("GET / HTTP/1.1\r\nHost: [::1]:", b"/", None, Some(b"[::1]:")),
        ("GET http://h:/a HTTP/1.1\r\nHost: h:80", b"/a", None, Some(b"h:")),
        ("GET https://h/a HTTP/1.1\r\nHost: h:", b"/a", None, host),
        ("GET / HTTP/1.1\r\nHost: [::1]:8080", b"/", None, Some(b"[::1]:8080")),
    ];
    for (request, path, query, host) in rows {
        let (_, head) = ask(&format!("{request}\r\n\r\n"));
        assert_eq!((head.path(), head.query(), head.host()), (*path, *query, *host), "{request}");
        assert_eq!(head.target(), request.split(' ').nth(1).unwrap_or_default().as_bytes());
    }
}

/// RFC 9110 section 2.5.
#[test]
fn a_higher_minor_version_is_read_as_1_1_at_every_cut() {
    let request = |version: &str| {
        format!(
            "POST /a?b {version}\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n\
             GET /c {version}\r\nHost: h\r\nConnection: close\r\n\r\n"
        )
    };
    let expected = drive::serve_at_once(request("HTTP/1.1").as_bytes(), Limits::default());
    assert_eq!((expected.seen.len(), expected.refused), (2, None));
    for version in ["HTTP/1.2", "HTTP/1.9"] {
        let request = request(version);
        for cut in 0..request.len() {
            let outcome = drive::serve(request.as_bytes(), Limits::default(), cut, 1);
            assert_eq!(outcome, expected, "{version} cut at {cut}");
        }
        assert_eq!(ask("GET / HTTP/1.2\r\nHost: h\r\n\r\n").1.version(), Version::Http11);
    }
}

#[test]
fn a_head_keeps_the_senders_bytes_and_is_looked_up_in_any_case() {
    let (_, head) =
        ask("PURGE /a HTTP/1.1\r\nhost:h\r\nACCEPT: a \r\nX-Other:\tb\r\naccept:\r\nx-OTHER: \u{e9}\r\n\r\n");
    assert_eq!(
        (head.method(), head.method_bytes(), head.version()),
        (Method::Other, &b"PURGE"[..], Version::Http11)
    );
    assert_eq!(head.get(Known::Accept), Some(&b"a"[..]));
    assert_eq!(head.get_all(Known::Accept).collect::<Vec<_>>(), [&b"a"[..], b""]);
    assert_eq!(head.get(Known::Cookie), None);
    assert_eq!(head.get_all(Known::Cookie).count(), 0);
    assert_eq!(head.find("x-other"), Some(&b"b"[..]));
    assert_eq!(head.find_all("X-Other").collect::<Vec<_>>(), [&b"b"[..], "\u{e9}".as_bytes()]);
    let names: Vec<_> = head.fields().map(|(name, _)| name).collect();
    assert_eq!(names, [&b"host"[..], b"ACCEPT", b"X-Other", b"accept", b"x-OTHER"]);
    assert_eq!(head.field_count(), 5);
    assert!(head.raw_fields().starts_with(b"host:h\r\nACCEPT: a \r\n"));
    assert!(head.raw_fields().ends_with(b"\r\n") && !head.raw_fields().ends_with(b"\r\n\r\n"));
}

#[test]
fn a_reused_head_holds_nothing_of_the_request_before() {
    let mut codec = ServerCodec::new(Limits::default());
    let mut head = RequestHead::new();
    assert_eq!(head.bytes_held(), 0);
    let first = b"POST http://h/a?b HTTP/1.1\r\nHost: h\r\nCookie: c\r\nX-A: b\r\n\r\n";
    assert!(codec.read_head(first, &mut head).is_ok());
    let held = head.bytes_held();
    let mut out = Vec::new();
    codec.write_head(&mut out, plain(204, BodyLength::None));
    assert_eq!(codec.finish(&mut out, b""), Next::KeepAlive);
    assert!(codec.read_head(b"GET / HTTP/1.0\r\n\r\n", &mut head).is_ok());
    assert_eq!(
        (head.get(Known::Cookie), head.find("x-a"), head.host(), head.query()),
        (None, None, None, None)
    );
    assert_eq!((head.field_count(), head.bytes_held()), (0, held));
    head.clear();
    assert_eq!((head.target(), head.path(), head.raw_fields()), (&b""[..], &b""[..], &b""[..]));
}

#[test]
fn a_connections_state_is_small() {
    assert!(size_of::<ServerCodec>() < 200, "{} bytes", size_of::<ServerCodec>());
}

#[test]
fn pipelined_requests_are_seen_one_by_one_at_every_cut() {
    let input = b"\r\nGET /1 HTTP/1.1\r\nHost: h\r\n\r\n\
        POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n\
        POST /3 HTTP/1.1\r\nHost: h\r\ntransfer-encoding: CHUNKED\r\n\r\n\
        5;a;b=c;d=\"e\\\"f\" ; g = h\r\nhello\r\n0006\r\n world\r\n000\r\nA: b\r\nC:\r\n\r\n\
        HEAD /4 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /5";
    let whole = drive::serve_at_once(input, Limits::default());
    let targets: Vec<_> = whole.seen.iter().map(|seen| seen.target.as_slice()).collect();
    assert_eq!(targets, [b"/1", b"/2", b"/3", b"/4"]);
    assert_eq!((&whole.seen[1].body[..], &whole.seen[2].body[..]), (&b"hello"[..], &b"hello world"[..]));
    assert_eq!(whole.seen[2].trailers, b"A: b\r\nC:\r\n");
    assert_eq!((whole.refused, whole.left), (None, 6));
    for cut in 0..input.len() {
        for step in [1, 2, 7, input.len()] {
            assert_eq!(drive::serve(input, Limits::default(), cut, step), whole, "{cut}, then by {step}");
        }
    }
}
