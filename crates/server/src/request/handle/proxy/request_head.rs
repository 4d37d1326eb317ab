//! A request's head on its way to an upstream.
//!
//! Fields go as they came, in one piece where nothing between them is left out; what says who the client is, is
//! written here, as Caddy 2.11 does (modules/caddyhttp/reverseproxy/reverseproxy.go, `addForwardedHeaders`). Then the
//! configuration has its say (`header_up`), and last the transport, which asks for gzip where nobody else has asked
//! for a coding.

use onehop_config::checked::proxy::AmbiguousHeaders;
use onehop_http1::{AskHead, BodyLength, Field, Known, Refusal};
use onehop_message::forwarded::{write_client_certificate, write_forwarded_for, write_line, write_target};
use onehop_message::forwarding::{self, Rule, Spellings, accepts_trailers, asks_for_upgrade, copy_lines};
use onehop_message::response::Fields;
use onehop_message::trace_context::TRACEPARENT;

use super::{Call, max_forwards};
use crate::request::context::RequestContext;
use crate::request::handle::header;
use onehop_connection::RequestBody;
use onehop_upstream::Link;
use onehop_upstream::connection::Buffers;

/// Writes the head to the connection's output; true if it says that the client waits to be asked for its body.
pub(super) fn write(
    call: &Call<'_>,
    context: &RequestContext<'_>,
    connection: &Link,
    request_body: &RequestBody<'_, '_>,
    buffers: &mut Buffers,
) -> Result<bool, Refusal> {
    let Buffers { output, scratch: lines, .. } = buffers;
    let body = call.opening.length;
    // Bytes that follow an upgrade belong to the other protocol; with a body before them, both sides would
    // have to agree where it ends and whether it was read. Ignoring `Upgrade` is allowed (RFC 9110 section 7.8).
    let has_body = !matches!(body, BodyLength::None | BodyLength::Known(0));
    let upgrade = !has_body && asks_for_upgrade(&context.request.head);
    write_target(&context.request.path, context.request.query.as_deref(), lines);
    let target_bytes = lines.len();
    write_fields(call, context, upgrade, lines);
    let expects = !call.opening.is_complete && request_body.expects_continue();
    if expects {
        lines.extend_from_slice(b"Expect: 100-continue\r\n");
    }
    let changed = change(call, context, target_bytes, lines);
    // What `header_up` has deleted is not asked for.
    let has = |name| changed.as_ref().is_none_or(|fields| fields.get(name).is_some());
    let (upgrade, waits) = (upgrade && has("upgrade"), expects && has("expect"));
    let (target, fields) = lines.split_at_checked(target_bytes).unwrap_or_default();
    let method = context.request.head.method_bytes();
    let trailers = accepts_trailers(&context.request.head);
    let head = AskHead { method, target, fields, body, upgrade, trailers };
    connection.codec().write_request_head(output, head)?;
    Ok(waits)
}

fn write_fields(call: &Call<'_>, context: &RequestContext<'_>, upgrade: bool, out: &mut Vec<u8>) {
    let head = &context.request.head;
    let host = head.host().unwrap_or_default();
    // As in Caddy since 2.11: whoever has a certificate rarely responses for another name.
    let is_upstreams = call.proxy.settings.transport.tls.is_some();
    let upstream =
        context.upstream.as_ref().filter(|_| is_upstreams).map(|member| member.host_port().as_bytes());
    write_line(out, b"Host", upstream.unwrap_or_else(|| host_to_name(call, context)));
    let is_trusted = call.trust.keeps_fields();
    let spellings = match call.proxy.settings.ambiguous_headers {
        AmbiguousHeaders::Drop => Spellings::All,
        AmbiguousHeaders::Pass => Spellings::OursOnly,
    };
    let rule = Rule::new(head, &context.request.origin, upgrade, is_trusted, spellings);
    let is_ours = |field: &Field| {
        use Known as K;
        // The codec writes the length.
        let ours = [K::Host, K::ContentLength, K::XForwardedFor, K::XForwardedHost, K::XForwardedProto];
        field.known.is_some_and(|known| ours.contains(&known))
    };
    // What follows the body is passed on, and so is its announcement.
    let is_announcement =
        |field: &Field| field.known == Some(Known::Trailer) && call.opening.length == BodyLength::Chunked;
    let hops = max_forwards::counted_down(head);
    let is_counted = |field: &Field| {
        hops.is_some() && head.slice(field.name).eq_ignore_ascii_case(max_forwards::NAME.as_bytes())
    };
    let is_replaced =
        |field: &Field| field.known.is_none() && context.request.replaces(head.slice(field.name));
    let is_withheld = |field: &Field| is_ours(field) || is_counted(field) || is_replaced(field);
    let keep = |field: &Field| is_announcement(field) || (!is_withheld(field) && rule.passes(field));
    copy_lines(head.field_list(), |span| head.slice(span), keep, |piece| out.extend_from_slice(piece));
    if let Some(hops) = hops {
        write_line(out, b"Max-Forwards", hops.to_string().as_bytes());
    }
    if let Some(traceparent) = context.request.traceparent() {
        write_line(out, TRACEPARENT.as_bytes(), traceparent.as_bytes());
    }
    write_client_certificate(&context.request.origin, out);
    // Of whoever comes through a Unix socket and is not trusted nothing is known.
    if is_trusted || context.request.origin.peer.is_some() {
        write_forwarded_for(&context.request.head, &context.request.origin, call.trust, out);
        let reported = |name| forwarding::forwarded(head, name).next_back().filter(|value| !value.is_empty());
        let reported = |name| if is_trusted { reported(name) } else { None };
        let scheme = reported(b"x-forwarded-proto").unwrap_or(context.request.origin.scheme().as_bytes());
        write_line(out, b"X-Forwarded-Proto", scheme);
        let host = reported(b"x-forwarded-host").unwrap_or(host);
        if !host.is_empty() {
            write_line(out, b"X-Forwarded-Host", host);
        }
    }
    // RFC 9110 section 7.6.3: behind those of others.
    let via = [b"Via: ", head.version().number().as_bytes(), b" onehop\r\n"];
    via.iter().for_each(|piece| out.extend_from_slice(piece));
}

/// The effective authority: a Host field that the target has overruled is not passed on (RFC 9112 section 3.2.2). The
/// upstream's address where the client names none, as an HTTP/1.0 one need not: HTTP/1.1 asks us for one. Empty for a
/// socket, as section 3.2 has it.
fn host_to_name<'t>(call: &Call<'_>, context: &'t RequestContext<'_>) -> &'t [u8] {
    let host = context.request.head.host().unwrap_or_default();
    let (true, Some(member)) = (host.is_empty(), &context.upstream) else { return host };
    let host_port = if member.port().is_empty() { "" } else { member.host_port() };
    let is_plain = call.proxy.settings.transport.tls.is_none();
    // RFC 9110 section 4.2.1: a port that goes without saying is left out.
    let shortened = host_port.strip_suffix(":80").filter(|host| is_plain && !host.is_empty());
    shortened.unwrap_or(host_port).as_bytes()
}

/// Makes the changes of `header_up` to the lines behind the target. There is one Host field afterwards in any case
/// (RFC 9112 section 3.2). `None` where there are no changes.
fn change(call: &Call<'_>, context: &RequestContext<'_>, from: usize, lines: &mut Vec<u8>) -> Option<Fields> {
    let ops = &call.proxy.settings.request_fields;
    if ops.is_empty() {
        return None;
    }
    let mut changed = Fields::default();
    changed.add_lines(lines.get(from..).unwrap_or_default());
    let [expressions, _] = &call.proxy.expressions;
    header::change(ops, expressions, context, &mut changed);
    let host = match changed.get("host") {
        Some(host) => host.to_vec(),
        None => host_to_name(call, context).to_vec(),
    };
    changed.remove("host");
    lines.truncate(from);
    write_line(lines, b"Host", &host);
    lines.extend_from_slice(changed.lines());
    Some(changed)
}
