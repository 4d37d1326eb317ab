//! Heads of HTTP/2 requests, in the form of HTTP/1.1: both are checked by the same code.

use crate::framing::{Repeated, declared_length};
use crate::{BodyLength, Limits, Refusal, RequestHead, Version, target, tokenise};

/// Reads the head of an HTTP/2 request from `text`, which has it in the form of HTTP/1.1 (RFC 9113 section 8.3.1). Returns
/// the length that it declares for the body; `None` where it declares none.
///
/// # Errors
/// The request's first fault. Nothing of use is in the head then.
pub fn read_translated(text: &[u8], limits: &Limits, head: &mut RequestHead) -> Result<BodyLength, Refusal> {
    if text.len() > limits.head_bytes {
        return Err(Refusal::HeadTooLarge);
    }
    if tokenise::request(text, limits, head)?.is_none() {
        return Err(tokenise::request_fault(text, limits));
    }
    target::resolve(head)?;
    head.version = Version::Http2;
    declared_length(&head.fields, Version::Http2, Repeated::Refused)
}
