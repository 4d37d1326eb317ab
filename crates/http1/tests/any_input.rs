//! What holds for every input: no panic, nothing consumed that was not there, and no difference between one
//! read and many.

mod drive;

use onehop_http1::{BodyRead, Limits, RequestHead, ServerCodec};
use proptest::prelude::*;

const SMALL: Limits =
    Limits { head_bytes: 60, target_bytes: 2, fields: 3, chunk_line_bytes: 6, trailer_bytes: 8 };

/// Pieces of which messages are made, whole and broken.
const PIECES: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: h\r\n",
    "POST /a?b HTTP/1.1\r\nHost: h\r\n",
    "GET http://h/ HTTP/1.0\r\n",
    "CONNECT h:1 HTTP/1.1\r\n",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: keep-alive\r\n",
    "Expect: 100-continue\r\n",
    "A:\r\n",
    "\r\n",
    "\r",
    "\n",
    "\0",
    " ",
    ":",
    "3\r\nabc\r\n",
    "3;a=\"b\"\r\nabc\r\n",
    "0\r\n\r\n",
    "0\r\nA: b\r\n\r\n",
    "fffffffffffffff0\r\n",
    "abc",
];

fn messages() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => proptest::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 1..4),
    ];
    proptest::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(input in proptest::collection::vec(any::<u8>(), 0..300)) {
        drive::serve_at_once(&input, Limits::default());
    }

    #[test]
    fn a_full_input_buffer_is_always_taken_from_or_refused(input in messages(), rest in any::<u8>()) {
        let limits = SMALL;
        let full: Vec<u8> = input.into_iter().chain(std::iter::repeat(rest)).take(limits.input_bytes()).collect();
        let mut codec = ServerCodec::new(limits);
        prop_assert_ne!(codec.read_head(&full, &mut RequestHead::new()), Ok(None));
        let mut codec = ServerCodec::new(Limits::default());
        let chunked = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        prop_assert_eq!(codec.read_head(chunked, &mut RequestHead::new()), Ok(Some(chunked.len())));
        let full = [&full[..], &[rest; 10_000]].concat();
        prop_assert_ne!(codec.read_body(&full), Ok(BodyRead::NeedMore));
    }

    #[test]
    fn messages_are_read_alike_however_they_are_cut(input in messages(), cut in 0usize..400, step in 1usize..40) {
        for limits in [
            Limits::default(),
            SMALL,
        ] {
            let whole = drive::serve_at_once(&input, limits);
            prop_assert_eq!(&drive::serve(&input, limits, cut, step), &whole);
            prop_assert_eq!(&drive::serve(&input, limits, 0, 1), &whole);
        }
    }
}
