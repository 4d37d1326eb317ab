//! Several ranges of one file in one answer: multipart/byteranges (RFC 9110 section 14.6).
//!
//! Pure. The parts stay where they are, in the store or on disk; only what stands between them is made for the answer.

use std::ops::Range;

use onehop_message::response::{Body, Piece, Response};

use crate::ranges::content_range;

/// What the parts have in common.
pub(super) struct Kind<'a> {
    /// The file's own media type; empty: none.
    pub(super) content_type: &'a str,
    /// Bytes of the whole file.
    pub(super) length: u64,
    /// A text that does not occur in the content.
    pub(super) boundary: String,
}

/// Fills the body with these parts and sets the Content-Type that belongs to it.
pub(super) fn answer(
    kind: &Kind<'_>,
    parts: &[Range<u64>],
    piece: impl Fn(&Range<u64>) -> Piece,
    answer: &mut Response,
) {
    let Kind { content_type, length, boundary } = kind;
    let mut pieces = Vec::with_capacity(parts.len() * 2 + 1);
    for (at, part) in parts.iter().enumerate() {
        let mut head = String::new();
        if at > 0 {
            head.push_str("\r\n");
        }
        head.push_str(&format!("--{boundary}\r\n"));
        if !content_type.is_empty() {
            head.push_str(&format!("Content-Type: {content_type}\r\n"));
        }
        head.push_str(&format!("Content-Range: {}\r\n\r\n", content_range(part, *length)));
        pieces.push(Piece::Bytes(head.into_bytes()));
        pieces.push(piece(part));
    }
    pieces.push(Piece::Bytes(format!("\r\n--{boundary}--\r\n").into_bytes()));
    answer.fields.set("Content-Type", format!("multipart/byteranges; boundary={boundary}").as_bytes());
    answer.body = Body::Pieces(pieces);
}

/// A boundary for content whose hash is its tag, which no content holds but by an accident of 1 in 2^128. Only characters
/// that need no quotes (RFC 2046 section 5.1.1).
pub(super) fn boundary(etag: &str) -> String {
    let tag: String = etag.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    format!("onehop-part-{tag}")
}

/// A boundary for content that has not been read.
pub(super) fn boundary_by_chance() -> String {
    format!("onehop-part-{:032x}", fastrand::u128(..))
}
