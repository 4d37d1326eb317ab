//! Drives a server codec over bytes that come in any cut, and records what a handler would have seen.

mod feed;

use feed::Feed;
use onehop_http1::{
    AnswerHead, BodyLength, BodyRead, EofMeaning, Limits, Next, Refusal, RequestHead, ServerCodec,
};

/// One request as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) method: Vec<u8>,
    pub(crate) target: Vec<u8>,
    pub(crate) path: Vec<u8>,
    pub(crate) host: Option<Vec<u8>>,
    pub(crate) fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<u8>,
}

/// What a connection came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) seen: Vec<Seen>,
    pub(crate) refused: Option<Refusal>,
    /// Whether the bytes ended inside a message.
    pub(crate) truncated: bool,
    /// Bytes that were left when the connection closed.
    pub(crate) left: usize,
    pub(crate) out: Vec<u8>,
}

/// Reads all of `input`, of which at first only `cut` bytes are there and then `step` more each time that
/// the codec asks.
pub(crate) fn serve(input: &[u8], limits: Limits, cut: usize, step: usize) -> Outcome {
    let mut codec = ServerCodec::new(limits);
    let mut head = RequestHead::new();
    let mut feed = Feed::new(input, cut, step);
    let mut outcome = Outcome { seen: Vec::new(), refused: None, truncated: false, left: 0, out: Vec::new() };
    loop {
        match read_request(&mut codec, &mut head, &mut feed) {
            Ok(Some(seen)) => outcome.seen.push(seen),
            Ok(None) => {
                outcome.truncated = codec.at_eof(feed.here().len()) == EofMeaning::Truncated;
                break;
            }
            Err(refusal) => {
                refuse(&mut codec, refusal, &mut outcome);
                break;
            }
        }
        codec.write_head(&mut outcome.out, answer(200));
        codec.write_data(&mut outcome.out, b"ok");
        if codec.finish(&mut outcome.out, b"") != Next::KeepAlive {
            break;
        }
    }
    outcome.left = feed.left();
    outcome
}

/// The whole input at once.
pub(crate) fn serve_at_once(input: &[u8], limits: Limits) -> Outcome {
    serve(input, limits, usize::MAX, 1)
}

/// One request with its body; `None` where the input ends before it does.
fn read_request(
    codec: &mut ServerCodec,
    head: &mut RequestHead,
    feed: &mut Feed<'_>,
) -> Result<Option<Seen>, Refusal> {
    loop {
        if let Some(consumed) = codec.read_head(feed.here(), head)? {
            feed.consume(consumed);
            break;
        }
        if !feed.more() {
            return Ok(None);
        }
    }
    let mut seen = record(head);
    loop {
        match codec.read_body(feed.here())? {
            BodyRead::Data { at, consumed } => {
                assert!(!at.is_empty() && at.end <= consumed);
                seen.body.extend_from_slice(&feed.here()[at]);
                feed.consume(consumed);
            }
            BodyRead::End { consumed } => {
                feed.consume(consumed);
                seen.trailers = codec.trailers().to_vec();
                return Ok(Some(seen));
            }
            BodyRead::NeedMore if feed.more() => {}
            BodyRead::NeedMore => return Ok(None),
        }
    }
}

fn answer(status: u16) -> AnswerHead<'static> {
    AnswerHead { status, fields: b"", date: b"", body: BodyLength::Known(2), upgrade: false }
}

fn refuse(codec: &mut ServerCodec, refusal: Refusal, outcome: &mut Outcome) {
    outcome.refused = Some(refusal);
    codec.write_head(&mut outcome.out, answer(refusal.status()));
    codec.write_data(&mut outcome.out, b"no");
    assert_eq!(codec.finish(&mut outcome.out, b""), Next::Close, "a refusal ends the connection");
}

fn record(head: &RequestHead) -> Seen {
    Seen {
        method: head.method_bytes().to_vec(),
        target: head.target().to_vec(),
        path: head.path().to_vec(),
        host: head.host().map(<[u8]>::to_vec),
        fields: head.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect(),
        body: Vec::new(),
        trailers: Vec::new(),
    }
}
