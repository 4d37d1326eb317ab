//! Heads on their way to a worker and back: the facts that a frame carries beside the fields, and the fields.
//!
//! A client can send no field that the server vouches for: addresses are sent outside of the fields. What a trusted proxy
//! in front says about its own client is passed on as it came. Which fields are passed on at all decides [`forwarding`].

use std::borrow::Cow;

use onehop_http1::{BodyLength, Method, Version};
use onehop_message::forwarded::CLIENT_CERTIFICATE;
use onehop_message::forwarding::{self, Kind, asks_for_upgrade};
use onehop_message::request::Request;
use onehop_message::response::Fields;
use onehop_message::trace_context::TRACEPARENT;
use onehop_message::trusted_proxies::Trust;
use onehop_wire::{self as wire, Broken, Facts, FieldName, HeadBlock, HeadWriter, RequestParts};

/// The facts of a request beside its head block.
pub(crate) fn parts(
    request: &Request<'_>,
    body: BodyLength,
    expects_continue: bool,
    id: u64,
) -> RequestParts {
    let mut facts = Facts::NONE;
    for (holds, fact) in [
        (request.origin.tls, Facts::ENCRYPTED),
        (expects_continue, Facts::EXPECTS_CONTINUE),
        (asks_for_upgrade(&request.head), Facts::UPGRADE),
        (request.head.version() == Version::Http10, Facts::HTTP_10),
    ] {
        if holds {
            facts = facts.with(fact);
        }
    }
    RequestParts {
        method_code: method_code(request.head.method()),
        facts,
        client: request.origin.peer.map(forwarding::canonical),
        id,
        length: match body {
            BodyLength::None => Some(0),
            BodyLength::Known(length) => Some(length),
            BodyLength::Chunked => None,
        },
    }
}

/// Writes a request's head block: the URI as the routes have made it, the fields as the client sent them,
/// without those that are about the connection (RFC 9110 section 7.6.1) or that only a trusted proxy may set.
pub(crate) fn write_request(request: &Request<'_>, trust: Trust<'_>, writer: &mut HeadWriter<'_>) {
    let as_sent = request.head.target();
    match &request.query {
        None => writer.target(request.path.sent()),
        // Most requests: nothing has to be put together.
        Some(Cow::Borrowed(_)) if request.path.is_borrowed() && as_sent.starts_with(b"/") => {
            writer.target(as_sent);
        }
        Some(query) => writer.target(&[request.path.sent(), b"?", query].concat()),
    }
    writer.authority(request.head.host().unwrap_or_default());
    writer.tls(b"");
    let method = if method_code(request.head.method()) == 0 { request.head.method_bytes() } else { b"" };
    writer.method(method);
    let upgrade = asks_for_upgrade(&request.head);
    let origin = &request.origin;
    for (name, value) in forwarding::passed_on(&request.head, origin, upgrade, trust.keeps_fields()) {
        if !request.replaces(name) {
            writer.field(name, value);
        }
    }
    if let Some(traceparent) = request.traceparent() {
        writer.field(TRACEPARENT.as_bytes(), traceparent.as_bytes());
    }
    if let Some(client) = origin.verified_client() {
        writer.field(CLIENT_CERTIFICATE, client.field_value.as_bytes());
    }
}

/// Fills a response's fields. The framing is the server's own: `length` is what the frame says, or else a
/// Content-Length field (for HEAD and 304, whose bodies do not come).
pub(crate) fn read_response(
    head: HeadBlock<'_>,
    into: &mut Fields,
    kind: Kind,
) -> Result<Option<u64>, Broken> {
    let mut length = None;
    for field in head.fields() {
        let field = field?;
        let name = field.name.as_bytes();
        let is_announced = kind == Kind::Chunked && name.eq_ignore_ascii_case(b"trailer");
        if forwarding::is_dropped(name, kind == Kind::Upgrade) && !is_announced {
            if name.eq_ignore_ascii_case(b"content-length") {
                length = std::str::from_utf8(field.value).ok().and_then(|text| text.parse().ok());
            }
            continue;
        }
        match field.name {
            // RFC 9110 section 5.5: white space around a value is no part of it.
            FieldName::Interned(interned) => {
                into.add_parts(interned.line_start(), field.value.trim_ascii());
            }
            FieldName::Literal(_) => into.add_bytes(name, field.value.trim_ascii()),
        }
    }
    Ok(length)
}

/// Field lines of a head block that are sent as they are: informational responses and trailers.
pub(crate) fn plain_lines(head: HeadBlock<'_>) -> Result<Fields, Broken> {
    let mut plain = Fields::default();
    read_response(head, &mut plain, Kind::Plain)?;
    Ok(plain)
}

/// Writes a request's trailer lines that are passed on as a head block.
pub(crate) fn write_trailers(lines: &[u8], writer: &mut HeadWriter<'_>) {
    forwarding::passed_on_trailers(lines, |line| {
        if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            let (name, value) = line.split_at(colon);
            writer.field(name, value.get(1..).unwrap_or_default().trim_ascii());
        }
    });
}

fn method_code(method: Method) -> u8 {
    match method {
        Method::Other => 0,
        Method::Get => 1,
        Method::Head => 2,
        Method::Post => 3,
        Method::Put => 4,
        Method::Delete => 5,
        Method::Options => 6,
        Method::Patch => 7,
        Method::Connect => 8,
        Method::Trace => 9,
    }
}

const _: () = assert!(wire::limits::VERSION == 1);
