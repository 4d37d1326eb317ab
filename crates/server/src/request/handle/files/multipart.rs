//! Several ranges of one file in one answer: multipart/byteranges (RFC 9110 section 14.6).
//!
//! Pure. The parts stay in the store; only what stands between them is made for the answer.

use std::ops::Range;

use super::ranges::content_range;
use super::serve::narrow;
use super::store::Form;
use crate::request::answer::{Answer, Body, Piece, Stored};

/// Fills the body with parts of a stored form and sets the Content-Type that belongs to it.
pub(super) fn answer(
    whole: Stored,
    parts: &[Range<u64>],
    content_type: &str,
    form: &Form,
    answer: &mut Answer,
) {
    let boundary = boundary(&form.etag);
    let length = form.bytes.len() as u64;
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
        head.push_str(&format!("Content-Range: {}\r\n\r\n", content_range(part, length)));
        pieces.push(Piece::Bytes(head.into_bytes()));
        pieces.push(Piece::Stored(Stored { range: narrow(part), ..whole.clone() }));
    }
    pieces.push(Piece::Bytes(format!("\r\n--{boundary}--\r\n").into_bytes()));
    answer.fields.set("Content-Type", format!("multipart/byteranges; boundary={boundary}").as_bytes());
    answer.body = Body::Pieces(pieces);
}

/// A text that does not occur in the content: it names the content's hash, which no content holds but
/// by an accident of 1 in 2^128. Only characters that need no quotes (RFC 2046 section 5.1.1).
fn boundary(etag: &str) -> String {
    let tag: String = etag.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    format!("onehop-part-{tag}")
}
