//! How long a message's body is and whether its connection may go on.
//!
//! Owns RFC 9112 sections 6.3 and 9.3. Where two fields could be read two ways it refuses; a message that
//! two parsers frame differently is how requests are smuggled.

use crate::fields::Fields;
use crate::{BodyLength, Known, Refusal, Version, grammar};

/// What one length that is said several times, in lines of their own, is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeated {
    /// For a fault: a request's sender has no reason to, unless another is to read it otherwise.
    Refused,
    /// For that length, as RFC 9112 section 6.3 item 5 allows: programs behind some gateways do it, and whoever reads
    /// any of the lines reads the same.
    One,
}

/// The length that Transfer-Encoding and Content-Length give a body. `BodyLength::None` where neither is
/// there, which means no body in a request and a body until the connection's end in an answer.
pub(crate) fn declared_length(
    fields: &Fields,
    version: Version,
    repeated: Repeated,
) -> Result<BodyLength, Refusal> {
    let length = fields.get(Known::ContentLength);
    if fields.get(Known::TransferEncoding).is_none() {
        return match length {
            None => Ok(BodyLength::None),
            Some(first) => content_length(fields, first, repeated).map(BodyLength::Known),
        };
    }
    if length.is_some() {
        // RFC 9112 section 6.3 item 3: an attempt at smuggling; Transfer-Encoding would win, we refuse.
        return Err(Refusal::BothLengths);
    }
    if version == Version::Http10 {
        // RFC 9112 section 6.1: faulty framing, whatever the coding.
        return Err(Refusal::ChunkedInHttp10);
    }
    check_transfer_codings(fields)?;
    Ok(BodyLength::Chunked)
}

/// Members of Connection in one head; beyond it 431. Each names a field that stays behind, and is compared with every
/// field; real heads have two or three.
const CONNECTION_OPTIONS_MAX: usize = 32;

/// Whether the sender of this head allows another message on the connection (RFC 9112 section 9.3).
pub(crate) fn keeps_alive(fields: &Fields, version: Version) -> Result<bool, Refusal> {
    let mut values = fields.get_all(Known::Connection);
    let Some(first) = values.next() else { return Ok(version == Version::Http11) };
    // What browsers send with every request is not taken apart.
    if first.eq_ignore_ascii_case(b"keep-alive") && values.next().is_none() {
        return Ok(true);
    }
    let (mut count, mut closes, mut keeps) = (0, false, version == Version::Http11);
    for member in fields.get_all(Known::Connection).flat_map(grammar::list_members) {
        count += 1;
        if count > CONNECTION_OPTIONS_MAX {
            return Err(Refusal::TooManyConnectionOptions);
        }
        closes |= member.eq_ignore_ascii_case(b"close");
        keeps |= member.eq_ignore_ascii_case(b"keep-alive");
    }
    Ok(keeps && !closes)
}

/// RFC 9112 section 6.3 item 5 lets a recipient take a list of equal values; we take none within one line.
fn content_length(fields: &Fields, first: &[u8], repeated: Repeated) -> Result<u64, Refusal> {
    if fields.get_all(Known::ContentLength).any(|value| value != first) {
        return Err(Refusal::DifferingContentLength);
    }
    let is_repeated = || fields.get_all(Known::ContentLength).count() > 1;
    if first.contains(&b',') || (repeated == Repeated::Refused && is_repeated()) {
        return Err(Refusal::ListedContentLength);
    }
    grammar::decimal(first).ok_or(Refusal::BadContentLength)
}

/// Accepts `chunked` and nothing else; tells an unknown coding from a broken list.
fn check_transfer_codings(fields: &Fields) -> Result<(), Refusal> {
    let mut codings = 0usize;
    let mut chunked = 0usize;
    let mut last_is_chunked = false;
    for coding in fields.get_all(Known::TransferEncoding).flat_map(|value| value.split(|byte| *byte == b','))
    {
        let coding = grammar::trim_ows(coding);
        if !grammar::is_token(coding) {
            // An empty member or one with parameters: legal for other codings, but chunked has none.
            return Err(Refusal::TransferEncodingNotChunked);
        }
        last_is_chunked = coding.eq_ignore_ascii_case(b"chunked");
        chunked += usize::from(last_is_chunked);
        codings += 1;
    }
    if !last_is_chunked || chunked != 1 {
        // RFC 9112 section 6.3 item 4: without a final chunked the length cannot be known.
        return Err(Refusal::TransferEncodingNotChunked);
    }
    if codings != 1 {
        // RFC 9112 section 6.1: 501 for a coding that is not understood.
        return Err(Refusal::UnknownTransferCoding);
    }
    Ok(())
}
