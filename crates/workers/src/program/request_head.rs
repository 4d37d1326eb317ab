//! A request's head on its way to a program.
//!
//! The URI as the routes have made it, the fields as the client sent them; what says who the client is, is
//! written here. Only what a trusted proxy says about that is passed on, and its own address added to it. `Via` is not sent: RFC 9110 section 7.6.3 asks it of gateways, and to
//! its own application onehop is the server, not one more hop. Caddy sends `Via: 1.1 Caddy` both ways.

use onehop_http1::{AskHead, BodyLength, Refusal};
use onehop_message::forwarded::{
    FORWARDED_FOR, write_client_certificate, write_forwarded_for, write_line, write_target,
};
use onehop_message::forwarding::{accepts_trailers, asks_for_upgrade, passed_on};
use onehop_message::request::Request;
use onehop_message::trace_context::TRACEPARENT;
use onehop_message::trusted_proxies::Trust;

use onehop_connection::RequestBody;
use onehop_upstream::Link;
use onehop_upstream::connection::Buffers;

/// Writes the head to the connection's output.
pub(super) fn write(
    request: &Request<'_>,
    trust: Trust<'_>,
    connection: &Link,
    request_body: &RequestBody<'_, '_>,
    buffers: &mut Buffers,
) -> Result<(), Refusal> {
    let Buffers { output, scratch: lines, .. } = buffers;
    let body = request_body.length();
    // Bytes that follow an upgrade belong to the other protocol; with a body before them, both sides would
    // have to agree where it ends and whether it was read. Ignoring `Upgrade` is allowed (section 7.8).
    let has_body = !matches!(body, BodyLength::None | BodyLength::Known(0));
    let upgrade = !has_body && asks_for_upgrade(&request.head);
    write_target(&request.path, request.query.as_deref(), lines);
    let target_bytes = lines.len();
    write_fields(request, trust, upgrade, lines);
    if request_body.expects_continue() {
        lines.extend_from_slice(b"Expect: 100-continue\r\n");
    }
    let (target, fields) = lines.split_at_checked(target_bytes).unwrap_or_default();
    let method = request.head.method_bytes();
    let trailers = accepts_trailers(&request.head);
    connection.codec().write_request_head(output, AskHead { method, target, fields, body, upgrade, trailers })
}

fn write_fields(request: &Request<'_>, trust: Trust<'_>, upgrade: bool, out: &mut Vec<u8>) {
    // The effective authority: a Host field that the target has overruled is not passed on (RFC 9112
    // section 3.2.2). Empty for an HTTP/1.0 client without one, as section 3.2 has it.
    let host = request.head.host().unwrap_or_default();
    write_line(out, b"Host", host);
    let (mut has_scheme, mut has_host) = (false, false);
    for (name, value) in passed_on(&request.head, &request.origin, upgrade, trust.keeps_fields()) {
        let is = |own: &[u8]| name.eq_ignore_ascii_case(own);
        // The codec writes the length.
        if is(b"host") || is(b"content-length") || is(FORWARDED_FOR) || request.replaces(name) {
            continue;
        }
        has_scheme |= is(b"x-forwarded-proto");
        has_host |= is(b"x-forwarded-host");
        write_line(out, name, value);
    }
    if let Some(traceparent) = request.traceparent() {
        write_line(out, TRACEPARENT.as_bytes(), traceparent.as_bytes());
    }
    write_forwarded_for(&request.head, &request.origin, trust, out);
    write_client_certificate(&request.origin, out);
    if !has_scheme {
        write_line(out, b"X-Forwarded-Proto", request.origin.scheme().as_bytes());
    }
    if !has_host && !host.is_empty() {
        write_line(out, b"X-Forwarded-Host", host);
    }
}
