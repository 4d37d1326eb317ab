//! Heads that are written in the form of HTTP/1.1: those of HTTP/2, and those whose fields were changed. All are
//! checked by the same code.

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

/// The same request with other field lines. Method, target and version stay.
///
/// # Errors
/// The first fault of the lines.
pub fn with_fields(received: &RequestHead, lines: &[u8], limits: &Limits) -> Result<RequestHead, Refusal> {
    let text = [received.fields.before_lines(), lines, b"\r\n"].concat();
    if text.len() > limits.head_bytes {
        return Err(Refusal::HeadTooLarge);
    }
    let mut head = RequestHead::new();
    if tokenise::request(&text, limits, &mut head)?.is_none_or(|length| length != text.len()) {
        return Err(tokenise::request_fault(&text, limits));
    }
    target::resolve(&mut head)?;
    head.version = received.version;
    Ok(head)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerCodec;

    fn read(text: &[u8]) -> RequestHead {
        let mut head = RequestHead::new();
        assert_eq!(ServerCodec::new(Limits::default()).read_head(text, &mut head), Ok(Some(text.len())));
        head
    }

    #[test]
    fn other_fields_leave_the_rest_of_a_request_as_it_is() {
        for version in ["1.0", "1.1"] {
            let received = read(format!("POST /a?b HTTP/{version}\r\nHost: a\r\nX-A: 1\r\n\r\n").as_bytes());
            let changed = with_fields(&received, b"Host: a\r\nX-B: 2\r\n", &Limits::default()).unwrap();
            assert_eq!((changed.method_bytes(), changed.target()), (&b"POST"[..], &b"/a?b"[..]));
            assert_eq!((changed.version(), changed.host()), (received.version(), Some(&b"a"[..])));
            assert_eq!((changed.find("x-a"), changed.find("x-b")), (None, Some(&b"2"[..])));
        }
    }

    #[test]
    fn other_fields_are_read_as_strictly_as_those_of_a_client() {
        let received = read(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        for (lines, refusal) in [
            (&b"Host: a\r\nX A: 1\r\n"[..], Refusal::BadFieldName),
            (b"Host: a\r\nX-A : 1\r\n", Refusal::SpaceBeforeColon),
            (b"X-A: 1\r\n", Refusal::MissingHost),
            (b"Host: a\r\nHost: b\r\n", Refusal::DoubledHost),
        ] {
            let read = with_fields(&received, lines, &Limits::default());
            assert_eq!(read.err(), Some(refusal), "{}", lines.escape_ascii());
        }
        assert!(with_fields(&received, b"Host: a\r\nX-A: 1\nX-B: 2\r\n", &Limits::default()).is_err());
        let beyond = [b"Host: a\r\nX-A: ".to_vec(), vec![b'a'; 40_000], b"\r\n".to_vec()].concat();
        let read = with_fields(&received, &beyond, &Limits::default());
        assert_eq!(read.err(), Some(Refusal::HeadTooLarge));
    }
}
