//! A proxy's connection and a server's, back to back: what one sends, the other reads.

#[path = "drive/feed.rs"]
mod feed;

use feed::Feed;
use onehop_http1::{
    AnswerHead, AnswerRead, AskHead, BodyLength, BodyRead, ClientCodec, Limits, Next, Refusal, RequestHead,
    ResponseHead, ServerCodec,
};
use proptest::prelude::*;

const TRAILERS: &[&[u8]] = &[b"", b"A: b\r\n", b"A: b\r\nX-Long-Name:\r\n"];

/// A body in pieces, of known length or chunked with trailers.
#[derive(Debug, Clone)]
struct Body {
    pieces: Vec<Vec<u8>>,
    chunked: bool,
    trailers: &'static [u8],
}

impl Body {
    fn whole(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    fn length(&self) -> BodyLength {
        if self.chunked { BodyLength::Chunked } else { BodyLength::Known(self.whole().len() as u64) }
    }

    fn received_trailers(&self) -> &[u8] {
        if self.chunked { self.trailers } else { b"" }
    }
}

fn bodies() -> impl Strategy<Value = Body> {
    let pieces = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6);
    let trailers = proptest::sample::select(TRAILERS);
    (pieces, any::<bool>(), trailers).prop_map(|(pieces, chunked, trailers)| Body {
        pieces,
        chunked,
        trailers,
    })
}

/// Reads a whole body that comes by `step` bytes; returns it and its length on the wire.
fn read_all(
    input: &[u8],
    step: usize,
    mut read: impl FnMut(&[u8]) -> Result<BodyRead, Refusal>,
) -> (Vec<u8>, usize) {
    let (mut feed, mut body) = (Feed::new(input, 0, step), Vec::new());
    loop {
        match read(feed.here()).expect("our own framing is good") {
            BodyRead::NeedMore => assert!(feed.more(), "the body is whole"),
            BodyRead::Data { at, consumed } => {
                body.extend_from_slice(&feed.here()[at]);
                feed.consume(consumed);
            }
            BodyRead::End { consumed } => {
                feed.consume(consumed);
                return (body, input.len() - feed.left());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_request_and_its_answer_arrive_as_they_were_sent_on_a_connection_that_is_kept(
        exchanges in proptest::collection::vec((bodies(), bodies()), 1..4),
        step in 1usize..30,
    ) {
        let mut client = ClientCodec::new(Limits::default());
        let mut server = ServerCodec::new(Limits::default());
        let (mut asked, mut answered) = (RequestHead::new(), ResponseHead::new());
        for (request, answer) in exchanges {
            let mut wire = Vec::new();
            let fields = b"Host: h\r\nX-A: b\r\n";
            let ask = AskHead { method: b"POST", target: b"/a?b", fields, body: request.length(), upgrade: false, trailers: false };
            client.write_request_head(&mut wire, ask).expect("reusable");
            request.pieces.iter().for_each(|piece| client.write_data(&mut wire, piece));
            client.finish(&mut wire, request.trailers);

            let head = server.read_head(&wire, &mut asked).expect("good").expect("whole");
            let (body, length) = read_all(&wire[head..], step, |input| server.read_body(input));
            prop_assert_eq!((body, head + length), (request.whole(), wire.len()));
            prop_assert_eq!(server.trailers(), request.received_trailers());
            prop_assert_eq!((asked.target(), asked.find("x-a")), (&b"/a?b"[..], Some(&b"b"[..])));

            wire.clear();
            let body = answer.length();
            server.write_head(&mut wire, AnswerHead { status: 200, fields: b"ETag: \"a\"\r\n", date: b"", body, upgrade: false });
            for piece in answer.pieces.iter().filter(|piece| !piece.is_empty()) {
                server.write_data_frame(&mut wire, piece.len() as u64);
                wire.extend_from_slice(piece);
                server.write_data_frame_end(&mut wire);
            }
            prop_assert_eq!(server.finish(&mut wire, answer.trailers), Next::KeepAlive);

            let read = client.read_head(&wire, &mut answered);
            let Ok(Some(AnswerRead::Final { consumed: head })) = read else { panic!("{read:?}") };
            let (body, length) = read_all(&wire[head..], step, |input| client.read_body(input));
            prop_assert_eq!((body, head + length), (answer.whole(), wire.len()));
            prop_assert_eq!(client.trailers(), answer.received_trailers());
            prop_assert_eq!(answered.status(), 200);
            prop_assert!(client.reuse(0));
        }
    }
}
