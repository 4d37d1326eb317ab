//! Lines after a template (`format transform`), as Caddy's plugin transform-encoder writes them.
//!
//! A field without a value is written as `-`, or what `placeholder` says. Bytes that could end a field or a line are escaped
//! as in `common` and `combined`.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::SystemTime;

use onehop_config::checked::{LogField, LogTemplate, LogTemplatePart};

use super::apache::push_escaped;
use super::{Entry, EntryFormat, json, time};

/// Adds the line of a request.
pub(super) fn line(
    entry: &Entry<'_>,
    line: &EntryFormat,
    template: &LogTemplate,
    at: SystemTime,
    out: &mut Vec<u8>,
) {
    for part in &template.parts {
        match part {
            LogTemplatePart::Text(text) => out.extend_from_slice(text.as_bytes()),
            LogTemplatePart::Value(fields) => {
                let begin = out.len();
                for (field, index) in fields {
                    match (field, index) {
                        (LogField::Time, _) => time::push(out, at, template.time, ""),
                        _ => push(field, *index, entry, line, out),
                    }
                    if out.len() > begin {
                        break;
                    }
                }
                if out.len() == begin {
                    out.extend_from_slice(template.empty.as_bytes());
                }
            }
        }
    }
    out.push(b'\n');
}

/// Adds an address; behind a Unix socket there is none.
fn push_address(address: Option<IpAddr>, out: &mut Vec<u8>) {
    match address {
        Some(address) => _ = write!(out, "{address}"),
        None => out.push(b'@'),
    }
}

/// Adds the value of a field, or nothing.
fn push(field: &LogField, index: Option<usize>, entry: &Entry<'_>, line: &EntryFormat, out: &mut Vec<u8>) {
    let head = entry.head;
    match field {
        LogField::Level => out.extend_from_slice(if entry.is_error() { "error" } else { "info" }.as_bytes()),
        LogField::Logger => push_escaped(out, line.logger.as_bytes()),
        LogField::Message => out.extend_from_slice(entry.message().as_bytes()),
        LogField::RemoteIp => push_address(entry.origin.peer.map(|peer| peer.ip().to_canonical()), out),
        LogField::ClientIp => push_address(entry.client, out),
        LogField::RemotePort => {
            if let Some(peer) = entry.origin.peer {
                let _ = write!(out, "{}", peer.port());
            }
        }
        LogField::Protocol => out.extend_from_slice(head.map_or("", |head| head.version().name()).as_bytes()),
        LogField::Method => push_escaped(out, head.map(|head| head.method_bytes()).unwrap_or_default()),
        LogField::Host => push_escaped(out, head.and_then(|head| head.host()).unwrap_or_default()),
        LogField::Uri => push_escaped(out, head.map(|head| head.target()).unwrap_or_default()),
        LogField::RequestHeaders => {
            if let Some(head) = head {
                json::push_fields(out, || head.fields(), line);
            }
        }
        LogField::RequestHeader(name) => {
            if let Some(head) = head {
                push_header(head.fields(), name, index, line, out);
            }
        }
        LogField::Duration => _ = write!(out, "{:.9}", entry.took.as_secs_f64()),
        LogField::Size => _ = write!(out, "{}", entry.sent),
        LogField::Status => _ = write!(out, "{}", entry.response.status),
        LogField::RequestId => {
            if let Some(id) = entry.id {
                let _ = write!(out, "{id:016x}");
            }
        }
        LogField::Upstream => push_escaped(out, entry.upstream.unwrap_or_default().as_bytes()),
        LogField::Refused => out.extend_from_slice(entry.error.map_or("", |error| error.name()).as_bytes()),
        LogField::Detail => {
            let detail = entry.error.and_then(|error| error.detail().or(entry.reason));
            push_escaped(out, detail.unwrap_or_default().as_bytes());
        }
        LogField::ErrorId => push_escaped(out, &entry.error_id.map(Vec::from).unwrap_or_default()),
        LogField::Aborted => out.extend_from_slice(if entry.aborted { "true" } else { "" }.as_bytes()),
        LogField::ResponseHeaders => json::push_fields(out, || entry.response.fields.iter(), line),
        LogField::ResponseHeader(name) => push_header(entry.response.fields.iter(), name, index, line, out),
        LogField::Appended(key) => push_escaped(out, entry.appended(key).unwrap_or_default()),
        LogField::Time | LogField::Request | LogField::Tls => {}
    }
}

/// One value of a header field, or all of them as a list.
fn push_header<'a>(
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    name: &str,
    index: Option<usize>,
    line: &EntryFormat,
    out: &mut Vec<u8>,
) {
    let values = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name.as_bytes()));
    let mut values = values.map(|(field, value)| line.shown(field, value)).peekable();
    match index {
        Some(index) => push_escaped(out, values.nth(index).unwrap_or_default()),
        None if values.peek().is_some() => json::push_list(out, values),
        None => {}
    }
}
