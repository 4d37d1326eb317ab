//! Drives a client codec over an answer that comes in any cut, and records what a proxy would have seen.

use onehop_http1::{AnswerRead, AskHead, BodyLength, BodyRead, ClientCodec, Limits, Refusal, ResponseHead};

/// What came of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) informational: Vec<u16>,
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<u8>,
    pub(crate) end: End,
    pub(crate) reusable: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    Tunnel,
    Refused(Refusal),
}

pub(crate) fn ask(method: &str, body: BodyLength, upgrade: bool) -> AskHead<'_> {
    AskHead { method: method.as_bytes(), target: b"/a", fields: b"Host: h\r\n", body, upgrade }
}

pub(crate) fn asked(method: &str, upgrade: bool) -> ClientCodec {
    let mut codec = ClientCodec::new(Limits::default());
    let mut out = Vec::new();
    codec.write_request_head(&mut out, ask(method, BodyLength::None, upgrade)).expect("a new connection");
    codec.finish(&mut out, b"");
    codec
}

/// Reads an answer that comes first in a piece of `cut` bytes and then by `step`, and then the end of the
/// connection.
pub(crate) fn read(codec: &mut ClientCodec, input: &[u8], cut: usize, step: usize) -> Got {
    let mut head = ResponseHead::new();
    let mut got = Got {
        informational: Vec::new(),
        status: 0,
        body: Vec::new(),
        trailers: Vec::new(),
        end: End::Whole,
        reusable: false,
    };
    let (mut at, mut end) = (0, cut.min(input.len()));
    let mut in_body = false;
    loop {
        let here = &input[at..end];
        let result = if in_body {
            codec.read_body(here).map(|read| match read {
                BodyRead::NeedMore => None,
                BodyRead::Data { at, consumed } => {
                    got.body.extend_from_slice(&here[at]);
                    Some((consumed, false))
                }
                BodyRead::End { consumed } => Some((consumed, true)),
            })
        } else {
            codec.read_head(here, &mut head).map(|read| {
                read.map(|read| match read {
                    AnswerRead::Informational { consumed } => {
                        got.informational.push(head.status());
                        (consumed, false)
                    }
                    AnswerRead::Final { consumed } => {
                        in_body = true;
                        (consumed, false)
                    }
                    AnswerRead::Tunnel { consumed } => {
                        got.end = End::Tunnel;
                        (consumed, true)
                    }
                })
            })
        };
        match result {
            Ok(Some((consumed, over))) => {
                at += consumed;
                assert!(at <= end);
                if over {
                    break;
                }
            }
            Ok(None) if end < input.len() => end = (end + step.max(1)).min(input.len()),
            Ok(None) => {
                got.status = head.status();
                if let Err(refusal) = codec.read_eof(end - at) {
                    got.end = End::Refused(refusal);
                }
                return got;
            }
            Err(refusal) => {
                got.end = End::Refused(refusal);
                assert!(!codec.reusable(0));
                return got;
            }
        }
    }
    got.status = head.status();
    got.trailers = codec.trailers().to_vec();
    got.reusable = codec.reusable(input.len() - at);
    got
}
