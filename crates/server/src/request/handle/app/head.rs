//! Heads on their way to a worker and back: what is passed on, what is told apart from fields, what is not.
//!
//! A client can send no field that the server vouches for: addresses are told out of band. What a trusted proxy
//! in front says about its own client ([`super::proxies`]) is passed on as it came.

use std::borrow::Cow;
use std::net::SocketAddr;

use onehop_http1::{BodyLength, Known, Method, RequestHead, Version};
use onehop_wire::{self as wire, Broken, Facts, FieldName, HeadBlock, HeadWriter, RequestParts};

use super::proxies::Trust;
use crate::request::answer::Fields;
use crate::request::trip::Trip;

/// What is told of a request beside its head block.
pub(super) fn parts(trip: &Trip<'_>, body: BodyLength, expects_continue: bool, id: u64) -> RequestParts {
    let mut facts = Facts::NONE;
    for (holds, fact) in [
        (trip.origin.tls, Facts::ENCRYPTED),
        (expects_continue, Facts::EXPECTS_CONTINUE),
        (asks_for_upgrade(trip.head), Facts::UPGRADE),
        (trip.head.version() == Version::Http10, Facts::HTTP_10),
    ] {
        if holds {
            facts = facts.with(fact);
        }
    }
    RequestParts {
        method_code: method_code(trip.head.method()),
        facts,
        client: trip.origin.peer.map(canonical),
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
pub(super) fn write_request(trip: &Trip<'_>, trust: Trust<'_>, writer: &mut HeadWriter<'_>) {
    let as_it_came = trip.head.target();
    match (&trip.path, &trip.query) {
        (path, None) => writer.target(path),
        // Most requests: nothing has to be put together.
        (Cow::Borrowed(_), Some(Cow::Borrowed(_))) if as_it_came.starts_with(b"/") => {
            writer.target(as_it_came)
        }
        (path, Some(query)) => writer.target(&[path, &b"?"[..], query].concat()),
    }
    writer.authority(trip.head.host().unwrap_or_default());
    writer.tls(b"");
    let method = if method_code(trip.head.method()) == 0 { trip.head.method_bytes() } else { b"" };
    writer.method(method);
    let upgrade = asks_for_upgrade(trip.head);
    for (name, value) in passed_on(trip.head, upgrade, trust.keeps_fields()) {
        writer.field(name, value);
    }
}

/// The fields of a request that are passed on. `Upgrade` only where the client asks for it properly; what says who
/// the client is only from who `is_trusted`. Such a field that is named in Connection is dropped like any other:
/// whoever arranges that loses trust and gains none.
pub(super) fn passed_on(
    head: &RequestHead,
    upgrade: bool,
    is_trusted: bool,
) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
    let is_listed = head.get(Known::Connection).is_some();
    let fields = head.field_list().iter().filter(move |field| match field.known {
        Some(
            Known::Connection
            | Known::KeepAlive
            | Known::TransferEncoding
            | Known::Te
            | Known::Trailer
            | Known::Expect,
        ) => false,
        Some(Known::XForwardedFor | Known::XForwardedHost | Known::XForwardedProto) if !is_trusted => false,
        Some(Known::Upgrade) => upgrade,
        Some(Known::Host | Known::ContentLength) => true,
        known => {
            let name = head.slice(field.name);
            !(known.is_none()
                && (is_about_connection(name) || (is_ours(name) && !(is_trusted && is_spelled_out(name)))))
                && !(is_listed && is_named_by_connection(head, name))
        }
    });
    fields.map(|field| (head.slice(field.name), head.slice(field.value)))
}

/// The values of a field of a trusted proxy, in the order in which they came.
pub(super) fn forwarded<'h>(
    head: &'h RequestHead,
    wanted: &'static [u8],
) -> impl DoubleEndedIterator<Item = &'h [u8]> {
    passed_on(head, false, true).filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
}

/// A trailer section's lines that are passed on: not those that would say who the client is, should the
/// other side add trailers to its fields.
pub(super) fn passed_on_trailers(lines: &[u8], mut pass_on: impl FnMut(&[u8])) {
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if !is_about_connection(name) && !is_ours(name) {
            pass_on(line);
        }
    }
}

/// RFC 9110 section 7.8: named in Connection too, HTTP/1.1, and without a body before it.
pub(super) fn asks_for_upgrade(head: &RequestHead) -> bool {
    head.get(Known::Upgrade).is_some()
        && head.version() == Version::Http11
        && head.get(Known::TransferEncoding).is_none()
        && head.get(Known::ContentLength).is_none_or(|length| length == b"0")
        && is_named_by_connection(head, b"upgrade")
}

fn is_named_by_connection(head: &RequestHead, name: &[u8]) -> bool {
    let members = head.get_all(Known::Connection).flat_map(|value| value.split(|byte| *byte == b','));
    members.map(<[u8]>::trim_ascii).any(|member| member.eq_ignore_ascii_case(name))
}

fn is_about_connection(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 3] = [b"proxy-connection", b"proxy-authorization", b"proxy-authenticate"];
    NAMES.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// What says who the client is, also in spellings that become the same name in a CGI-like environment.
fn is_ours(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 6] = [
        b"forwarded",
        b"x-real-ip",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-proto",
        b"x-forwarded-port",
    ];
    if !matches!(name.first(), Some(b'f' | b'F' | b'x' | b'X')) {
        return false;
    }
    let same = |own: &[u8]| {
        own.len() == name.len()
            && own
                .iter()
                .zip(name)
                .all(|(own, byte)| *own == byte.to_ascii_lowercase() || (*own == b'-' && *byte == b'_'))
    };
    NAMES.iter().any(|own| same(own))
}

/// A spelling with an underscore is not what proxies write: they pass it on for whoever tries it.
fn is_spelled_out(name: &[u8]) -> bool {
    !name.contains(&b'_')
}

/// What an answer's fields are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// The answer may have trailers.
    Chunked,
    Upgrade,
}

/// Fills an answer's fields. The framing is the server's own: `length` is what the frame says, or else a
/// Content-Length field (for HEAD and 304, whose bodies do not come).
pub(super) fn read_answer(
    head: HeadBlock<'_>,
    fields: &mut Fields,
    kind: Kind,
) -> Result<Option<u64>, Broken> {
    let mut length = None;
    for field in head.fields() {
        let field = field?;
        let name = field.name.as_bytes();
        let is_announced = kind == Kind::Chunked && name.eq_ignore_ascii_case(b"trailer");
        if is_dropped(name, kind == Kind::Upgrade) && !is_announced {
            if name.eq_ignore_ascii_case(b"content-length") {
                length = std::str::from_utf8(field.value).ok().and_then(|text| text.parse().ok());
            }
            continue;
        }
        match field.name {
            // RFC 9110 section 5.5: white space around a value is no part of it.
            FieldName::Interned(interned) => {
                fields.add_parts(interned.line_start(), field.value.trim_ascii());
            }
            FieldName::Literal(_) => fields.add_bytes(name, field.value.trim_ascii()),
        }
    }
    Ok(length)
}

/// Fields that the server decides about.
pub(super) fn is_dropped(name: &[u8], is_upgrade: bool) -> bool {
    let is = |own: &str| name.eq_ignore_ascii_case(own.as_bytes());
    match (name.len(), name.first().map(u8::to_ascii_lowercase)) {
        (10, Some(b'c')) => is("connection"),
        (10, Some(b'k')) => is("keep-alive"),
        (14, Some(b'c')) => is("content-length"),
        (16, Some(b'p')) => is("proxy-connection"),
        (2, Some(b't')) => is("te"),
        (7, Some(b't')) => is("trailer"),
        (7, Some(b'u')) => !is_upgrade && is("upgrade"),
        (17, Some(b't')) => is("transfer-encoding"),
        _ => false,
    }
}

/// Field lines of a head block that are sent as they are: informational answers and trailers.
pub(super) fn plain_lines(head: HeadBlock<'_>) -> Result<Fields, Broken> {
    let mut fields = Fields::default();
    read_answer(head, &mut fields, Kind::Plain)?;
    Ok(fields)
}

/// Writes a request's trailer lines that are passed on as a head block.
pub(super) fn write_trailers(lines: &[u8], writer: &mut HeadWriter<'_>) {
    passed_on_trailers(lines, |line| {
        if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            let (name, value) = line.split_at(colon);
            writer.field(name, value.get(1..).unwrap_or_default().trim_ascii());
        }
    });
}

/// An IPv4 client of a socket for both kinds.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
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
