//! Drives a client codec over an answer that comes in any cut, and records what a proxy would have seen.

#[path = "../drive/feed.rs"]
mod feed;

use feed::Feed;
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
    AskHead {
        method: method.as_bytes(),
        target: b"/a",
        fields: b"Host: h\r\n",
        body,
        upgrade,
        trailers: false,
    }
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
    let mut feed = Feed::new(input, cut, step);
    let mut got = Got {
        informational: Vec::new(),
        status: 0,
        body: Vec::new(),
        trailers: Vec::new(),
        end: End::Whole,
        reusable: false,
    };
    let read = read_head(codec, &mut head, &mut feed, &mut got).and_then(|end| match end {
        Some(End::Whole) => read_body(codec, &mut feed, &mut got),
        end => Ok(end),
    });
    got.status = head.status();
    got.end = match read {
        Ok(Some(end)) => {
            got.trailers = codec.trailers().to_vec();
            got.reusable = codec.reusable(feed.left());
            end
        }
        Ok(None) => codec.read_eof(feed.left()).map_or_else(End::Refused, |()| End::Whole),
        Err(refusal) => {
            assert!(!codec.reusable(0), "a refusal ends the connection");
            End::Refused(refusal)
        }
    };
    got
}

/// All heads up to the final one; `None` where the input ends before it does.
fn read_head(
    codec: &mut ClientCodec,
    head: &mut ResponseHead,
    feed: &mut Feed<'_>,
    got: &mut Got,
) -> Result<Option<End>, Refusal> {
    loop {
        match codec.read_head(feed.here(), head)? {
            Some(AnswerRead::Informational { consumed }) => {
                feed.consume(consumed);
                got.informational.push(head.status());
            }
            Some(AnswerRead::Final { consumed }) => {
                feed.consume(consumed);
                return Ok(Some(End::Whole));
            }
            Some(AnswerRead::Tunnel { consumed }) => {
                feed.consume(consumed);
                return Ok(Some(End::Tunnel));
            }
            None if feed.more() => {}
            None => return Ok(None),
        }
    }
}

fn read_body(codec: &mut ClientCodec, feed: &mut Feed<'_>, got: &mut Got) -> Result<Option<End>, Refusal> {
    loop {
        match codec.read_body(feed.here())? {
            BodyRead::Data { at, consumed } => {
                got.body.extend_from_slice(&feed.here()[at]);
                feed.consume(consumed);
            }
            BodyRead::End { consumed } => {
                feed.consume(consumed);
                return Ok(Some(End::Whole));
            }
            BodyRead::NeedMore if feed.more() => {}
            BodyRead::NeedMore => return Ok(None),
        }
    }
}
