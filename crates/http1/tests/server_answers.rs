//! What a server connection reads and writes, request after request.

use onehop_http1::{AnswerHead, BodyLength, BodyRead, EofMeaning, Limits, Next, RequestHead, ServerCodec};

fn plain(body: BodyLength) -> AnswerHead<'static> {
    AnswerHead { status: 200, fields: b"Content-Type: text/plain\r\n", date: b"", body, upgrade: false }
}

fn ask(request: &str) -> (ServerCodec, RequestHead) {
    let mut codec = ServerCodec::new(Limits::default());
    let mut head = RequestHead::new();
    assert_eq!(codec.read_head(request.as_bytes(), &mut head), Ok(Some(request.len())));
    (codec, head)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("our own answers are ASCII")
}

#[test]
fn an_ordinary_answer_is_framed_by_its_length_and_keeps_the_connection() {
    let (mut codec, head) = ask("GET /a?b HTTP/1.1\r\nHost: example.com\r\n\r\n");
    assert_eq!(
        (head.path(), head.query(), head.host()),
        (&b"/a"[..], Some(&b"b"[..]), Some(&b"example.com"[..]))
    );
    let mut out = Vec::new();
    codec.write_head(&mut out, plain(BodyLength::Known(5)));
    codec.write_data(&mut out, b"hello");
    assert_eq!(codec.finish(&mut out, b""), Next::KeepAlive);
    assert_eq!(text(&out), "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(codec.at_eof(0), EofMeaning::Clean);
    assert_eq!(codec.at_eof(1), EofMeaning::Truncated);
}

#[test]
fn a_chunked_request_is_read_with_its_trailers() {
    let request =
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\nGET";
    let mut codec = ServerCodec::new(Limits::default());
    let mut head = RequestHead::new();
    let mut at = codec.read_head(request, &mut head).expect("good").expect("whole");
    assert_eq!(codec.request_body(), BodyLength::Chunked);
    let mut body = Vec::new();
    loop {
        match codec.read_body(&request[at..]).expect("good") {
            BodyRead::NeedMore => panic!("the body is whole"),
            BodyRead::Data { at: data, consumed } => {
                body.extend_from_slice(&request[at..][data]);
                at += consumed;
            }
            BodyRead::End { consumed } => {
                at += consumed;
                break;
            }
        }
    }
    assert_eq!((&body[..], codec.trailers(), &request[at..]), (&b"hello"[..], &b"A: b\r\n"[..], &b"GET"[..]));
    assert!(codec.body_is_read());
}
