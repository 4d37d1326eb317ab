//! `encode` for bodies that are made while a request runs: small ones are compressed on the spot, those that
//! come piece by piece as they come.
//!
//! Files in memory bring their compressed forms along (`files/`). Files streamed from disk are sent as
//! they are.

use std::sync::Arc;

use onehop_config::checked::{Encode, Encoding};
use onehop_connection::compressor::{Compressor, CompressorMemory, StreamCoding, compress};
use onehop_files::accept_encoding::Accepted;
use onehop_files::conditional;
use onehop_files::content_type::is_listed;
use onehop_files::store::variant::coding_name;
use onehop_http1::Method;
use onehop_message::response::{Body, Response, media_type};
use onehop_metrics::Handler;

use crate::request::context::RequestContext;
use onehop_connection::limits::COMPRESSED_ON_THE_SPOT_BYTES_MAX;

/// Compresses the body of an answer where client, configuration and answer allow it. One that has no body says of it what
/// it would say with one.
pub(crate) fn apply(context: &RequestContext<'_>, answer: &mut Response) {
    match &answer.body {
        Body::Bytes(body) => {
            let length = body.len();
            if length <= COMPRESSED_ON_THE_SPOT_BYTES_MAX {
                compress_body(context, answer, length as u64);
            }
        }
        Body::Empty | Body::Withheld(_) if is_of_others(context) => without_body(context, answer),
        Body::Empty | Body::Withheld(_) | Body::Stored(_) | Body::Pieces(_) | Body::Disk(_) => {}
    }
}

fn compress_body(context: &RequestContext<'_>, answer: &mut Response, length: u64) {
    let Some(encoding) = choose(context, answer, Some(length)) else { return };
    let Body::Bytes(body) = &answer.body else { return };
    let Ok(compressed) = compress(body, encoding) else { return };
    announce(encoding, answer);
    answer.body = Body::Bytes(compressed);
}

/// Files bring their own forms, tags and `Vary` along.
fn is_of_others(context: &RequestContext<'_>) -> bool {
    matches!(context.at.handler, Handler::App | Handler::Proxy)
}

/// What an answer without a body says of the coding that it would have with one: HEAD what GET would (RFC 9110 section
/// 9.3.2), 304 what 200 would (section 15.4.5).
fn without_body(context: &RequestContext<'_>, answer: &mut Response) {
    if answer.status == 304 {
        let has_plain_copy = || {
            let etag = answer.fields.get("ETag").unwrap_or_default();
            conditional::names_as_strong(&context.request.head, etag)
        };
        // The type is rarely there. A client whose copy has the tag as the application wrote it got that without a coding.
        let keeps_tag = has_plain_copy();
        if choose(context, answer, None).is_some() && !keeps_tag {
            change_fields(answer);
        }
    } else if let (Method::Head, Body::Withheld(length)) = (context.request.head.method(), &answer.body) {
        let length = *length;
        if let Some(encoding) = choose(context, answer, length) {
            announce(encoding, answer);
            answer.body = Body::Withheld(None);
        }
    }
}

/// Chooses the coding of a body that comes piece by piece; `length` where it is known. The response's fields say so from
/// now on, and its length is not known any more. Without room in `memory` for a compressor, the body is sent as it is.
pub(crate) fn in_pieces(
    context: &RequestContext<'_>,
    answer: &mut Response,
    length: Option<u64>,
    memory: &Arc<CompressorMemory>,
) -> StreamCoding {
    if context.encode.is_none() {
        return StreamCoding::Identity;
    }
    // Events wait for nothing, least of all for more of them.
    if answer.is_event_stream() || matches!(answer.status, 100..200 | 204 | 304) {
        return StreamCoding::Identity;
    }
    let Some(encoding) = choose(context, answer, length) else { return StreamCoding::Identity };
    if context.request.head.method() == Method::Head {
        announce(encoding, answer);
        return StreamCoding::Announced;
    }
    let Some(compressor) = Compressor::new(encoding, length, memory) else { return StreamCoding::Identity };
    announce(encoding, answer);
    StreamCoding::Compressed(Box::new(compressor))
}

/// The coding, where there is to be one; the answer says from now on that there could be.
fn choose(context: &RequestContext<'_>, answer: &mut Response, length: Option<u64>) -> Option<Encoding> {
    let encode = context.encode?;
    let is_partial = is_partial(answer);
    let is_short = !is_partial && length.is_some_and(|length| length < encode.minimum_length);
    if is_short || !may_be_encoded(encode, answer) {
        return None;
    }
    // A part as well: the whole would have it (RFC 9110 section 15.3.7).
    add_vary(answer);
    if is_partial {
        return None;
    }
    let accepted = Accepted::parse(context.request.head.get_all(onehop_http1::Known::AcceptEncoding));
    accepted.choose(encode.encodings.iter().copied())
}

fn announce(encoding: Encoding, answer: &mut Response) {
    answer.fields.add("Content-Encoding", coding_name(encoding).as_bytes());
    change_fields(answer);
}

/// What an answer says of its own bytes does not hold of those that are sent: a strong tag (RFC 9110 section 8.8.1), and
/// that ranges of them can be had (section 14.3).
fn change_fields(answer: &mut Response) {
    answer.fields.remove("Accept-Ranges");
    if let Some(etag) = answer.fields.get("ETag")
        && !etag.starts_with(b"W/")
    {
        let weak = [b"W/", etag].concat();
        answer.fields.set("ETag", &weak);
    }
}

/// Whether answers of this kind are encoded, as far as it shows.
fn may_be_encoded(encode: &Encode, answer: &Response) -> bool {
    let listed = match answer.fields.get("Content-Type").map(media_type) {
        // That of several parts is not that of the whole.
        Some(own) if is_partial(answer) && own.starts_with(b"multipart/") => true,
        Some(own) => is_listed(&encode.types, &own),
        None => answer.status == 304 || is_partial(answer),
    };
    listed
        && answer.fields.get("Content-Encoding").is_none()
        // RFC 9111 section 5.2.2.6
        && !answer.fields.get("Cache-Control").is_some_and(|value| lists(value, b"no-transform"))
}

/// RFC 9110 section 14.4: parts are parts of one coding.
fn is_partial(answer: &Response) -> bool {
    answer.status == 206 || answer.fields.get("Content-Range").is_some()
}

fn lists(value: &[u8], member: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|own| own.trim_ascii().eq_ignore_ascii_case(member))
}

fn add_vary(answer: &mut Response) {
    let says_so = answer.fields.get("Vary").is_some_and(|vary| {
        let lower = vary.to_ascii_lowercase();
        lower.windows(15).any(|window| window == b"accept-encoding")
    });
    if !says_so {
        answer.fields.add("Vary", b"Accept-Encoding");
    }
}
