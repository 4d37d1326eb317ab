//! Heads of HTTP/2, in the form of HTTP/1.1: both are checked by the same code.

use crate::framing::{Repeated, declared_length};
use crate::{BodyLength, Limits, Refusal, RequestHead, ResponseHead, Version, target, tokenise};

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

/// Reads the head of an HTTP/2 response from `text`, which has it in the form of HTTP/1.1. Returns the length that it declares
/// for the body; `None` where it declares none.
///
/// # Errors
/// The response's first fault. Nothing is in the head then.
pub fn read_translated_response(
    text: &[u8],
    limits: &Limits,
    head: &mut ResponseHead,
) -> Result<BodyLength, Refusal> {
    head.clear();
    let read = try_read_response(text, limits, head);
    if read.is_err() {
        head.clear();
    }
    read
}

fn try_read_response(text: &[u8], limits: &Limits, head: &mut ResponseHead) -> Result<BodyLength, Refusal> {
    if text.len() > limits.head_bytes {
        return Err(Refusal::HeadTooLarge);
    }
    tokenise::answer(text, limits, head)?;
    head.version = Version::Http2;
    declared_length(&head.fields, Version::Http2, Repeated::Refused)
}
