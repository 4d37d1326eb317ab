//! Placeholders filled in for a request.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use onehop_config::checked::tls::{ClientValue, NameKind, TlsValue};
use onehop_config::checked::{Part, Placeholder, Template};
use onehop_files::limits::PATH_BYTES_MAX;
use onehop_http1::RequestHead;
use onehop_message::path::ENCODED_SLASH;
use onehop_message::request::Request;
use onehop_message::tls_session::{ClientCertificate, TlsSession};
use onehop_message::trusted_proxies::Trust;
use onehop_message::uri::{
    decode_path, escape_path, escape_rest_of_path, file_extension, host_without_port, last_segment,
    query_values,
};
use onehop_message::{cookies, path};
use onehop_upstream::member::Member;

use super::captures::Of;
use super::root::Root;
use crate::request::context::{ErrorId, RequestContext};

/// Bytes of one expanded template: a few URIs long; more is an attempt to blow answers up.
const EXPANDED_BYTES_MAX: usize = 128 * 1024;

/// What the text becomes part of, which decides how values are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into {
    /// A URI: decoded paths are escaped again.
    Uri,
    /// A header value: control characters are dropped.
    HeaderValue,
    /// The replacement of a regular expression: a dollar sign in a value is only that.
    Replacement,
    /// The name of a file, decoded. An encoded slash is a NUL in it, so that it names nothing: no name has a slash.
    FileName,
    /// What requests are counted under: all spellings of a path are one.
    Key,
    /// Anything else: as it is.
    Text,
}

/// The folder that a `root` with placeholders names for this request; `None` where a value could lead
/// anywhere but one folder down: `Host: ..` must not be a way out.
pub(crate) fn expand_root(template: &Template, context: &RequestContext<'_>) -> Option<PathBuf> {
    let mut out = Vec::new();
    for part in &template.parts {
        match part {
            Part::Text(text) => out.extend_from_slice(text.as_bytes()),
            Part::Value(placeholder) => {
                let begin = out.len();
                value(placeholder, context, Into::FileName, &mut out);
                let value = out.get(begin..)?;
                let is_name = !value.is_empty()
                    && !value.starts_with(b".")
                    && !value.iter().any(|byte| matches!(byte, b'/' | b'\\' | 0))
                    && value.len() <= PATH_BYTES_MAX;
                if !is_name {
                    return None;
                }
            }
        }
    }
    Some(PathBuf::from(OsString::from_vec(out)))
}

/// A template's text for this request.
pub(crate) fn expand(template: &Template, context: &RequestContext<'_>, into: Into) -> Vec<u8> {
    let mut out = Vec::new();
    for part in &template.parts {
        match part {
            Part::Text(text) => out.extend_from_slice(text.as_bytes()),
            Part::Value(placeholder) => {
                let begin = out.len();
                value(placeholder, context, into, &mut out);
                escape_from(begin, placeholder, into, &mut out);
            }
        }
        if out.len() > EXPANDED_BYTES_MAX {
            out.truncate(EXPANDED_BYTES_MAX);
            break;
        }
    }
    if matches!(into, Into::HeaderValue | Into::Replacement) {
        // A value from the request can hold an encoded line break; it never begins a new field.
        out.retain(|byte| !matches!(byte, 0..=8 | 10..=31 | 127));
    }
    out
}

/// The replacement of a regular expression in a path: values stay parts of the path, and a dollar sign in one is only that.
pub(crate) fn expand_path_replacement(template: &Template, context: &RequestContext<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for part in &template.parts {
        match part {
            Part::Text(text) => out.extend_from_slice(text.as_bytes()),
            Part::Value(placeholder) => {
                let (mut raw, mut escaped) = (Vec::new(), Vec::new());
                value(placeholder, context, Into::Uri, &mut raw);
                escape_from(0, placeholder, Into::Uri, &mut raw);
                escape_rest_of_path(&raw, &mut escaped);
                escape_from(0, placeholder, Into::Replacement, &mut escaped);
                out.append(&mut escaped);
            }
        }
    }
    out.truncate(EXPANDED_BYTES_MAX);
    out
}

/// What a value must be turned into where it becomes part of something with a grammar of its own.
fn escape_from(begin: usize, placeholder: &Placeholder, into: Into, out: &mut Vec<u8>) {
    use Placeholder as P;
    match into {
        Into::Uri
            if matches!(
                placeholder,
                P::QueryValue(_)
                    | P::Header(_)
                    | P::Cookie(_)
                    | P::HostLabel(_)
                    | P::Tls(_)
                    | P::AuthUser
                    | P::Capture { .. }
            ) =>
        {
            let raw = out.split_off(begin);
            escape_path(&raw, out);
        }
        Into::Replacement => {
            let raw = out.split_off(begin);
            for byte in raw {
                if byte == b'$' {
                    out.push(b'$');
                }
                out.push(byte);
            }
        }
        Into::Uri | Into::HeaderValue | Into::FileName | Into::Key | Into::Text => {}
    }
}

fn value(placeholder: &Placeholder, context: &RequestContext<'_>, into: Into, out: &mut Vec<u8>) {
    use Placeholder as P;
    let head = &context.request.head;
    let host = head.host().unwrap_or_default();
    match placeholder {
        P::Method => out.extend_from_slice(head.method_bytes()),
        P::Uri if into == Into::Key => {
            push_uri(&path_for(context, into), context.request.query.as_deref(), out)
        }
        P::Uri => push_uri(context.request.path.sent(), context.request.query.as_deref(), out),
        P::Path => out.extend_from_slice(&path_for(context, into)),
        P::PathDir => out.extend_from_slice(folder_of(&path_for(context, into))),
        P::PathFile => out.extend_from_slice(last_segment(&path_for(context, into))),
        P::PathFileBase => {
            let path = path_for(context, into);
            let name = last_segment(&path);
            out.extend_from_slice(&name[..name.len() - file_extension(&path).len()]);
        }
        P::PathFileExt => out.extend_from_slice(file_extension(&path_for(context, into))),
        P::PathSegment(number) => {
            let path = path_for(context, into);
            let trimmed = path.strip_prefix(b"/").unwrap_or(&path);
            out.extend_from_slice(trimmed.split(|b| *b == b'/').nth(*number).unwrap_or_default());
        }
        P::Query => out.extend_from_slice(context.request.query.as_deref().unwrap_or_default()),
        P::PrefixedQuery => push_query(context.request.query.as_deref(), out),
        P::QueryValue(name) => push_query_value(context.request.query.as_deref(), name, out),
        P::OriginalUri => push_uri(head.path(), head.query(), out),
        P::OriginalPath => out.extend_from_slice(&original_path_for(head, into)),
        P::OriginalQuery => out.extend_from_slice(head.query().unwrap_or_default()),
        P::Host => out.extend_from_slice(host_without_port(host)),
        P::HostPort => out.extend_from_slice(host),
        P::Port => push_port(host, context, out),
        P::HostLabel(number) => {
            let label = host_without_port(host).rsplit(|b| *b == b'.').nth(*number);
            out.extend_from_slice(label.unwrap_or_default());
        }
        P::Scheme => out.extend_from_slice(context.request.origin.scheme().as_bytes()),
        P::Protocol => out.extend_from_slice(head.version().name().as_bytes()),
        P::Remote => push_text(context.request.origin.peer.map(|peer| peer.to_string()), out),
        P::RemoteHost => {
            push_text(context.request.origin.peer.map(|peer| peer.ip().to_canonical().to_string()), out)
        }
        P::AuthUser => out.extend_from_slice(context.user().unwrap_or_default().as_bytes()),
        P::ClientIp => {
            let Request { head, origin, .. } = &context.request;
            let client = Trust::of(context.trusted_proxies, origin).client(head, origin);
            push_text(client.map(|client| client.to_string()), out)
        }
        P::RemotePort => push_text(context.request.origin.peer.map(|peer| peer.port().to_string()), out),
        P::Header(name) => push_joined(head.find_all(name), out),
        P::Cookie(name) => out.extend_from_slice(cookies::values(head, name).next().unwrap_or_default()),
        P::Tls(value) => {
            if let Some(session) = context.request.origin.session.as_deref() {
                push_tls(*value, session, out);
            }
        }
        P::Capture { expression, group } => {
            if let Some((of, text)) = context.captures.get(expression.as_deref(), group) {
                push_captured(of, text, into, out);
            }
        }
        P::Root => push_root(context, out),
        P::FileMatchRelative => {
            let found = context.file_match.as_deref().unwrap_or_default();
            if into == Into::Uri { escape_path(found, out) } else { out.extend_from_slice(found) }
        }
        P::TimeUnix => push_text(unix_seconds(), out),
        P::Uuid => {
            // As in Caddy, one for the whole request.
            let uuid = context.uuid.get_or_init(|| random_id().into_boxed_str());
            out.extend_from_slice(uuid.as_bytes());
        }
        P::TraceId => {
            push_text(context.request.span.as_ref().map(|span| format!("{:032x}", span.trace_id)), out)
        }
        P::SpanId => {
            push_text(context.request.span.as_ref().map(|span| format!("{:016x}", span.span_id)), out)
        }
        P::UpstreamHostPort => push_upstream(context, Member::host_port, out),
        P::UpstreamHost => push_upstream(context, Member::host, out),
        P::UpstreamPort => push_upstream(context, Member::port, out),
        P::ErrorStatus => push_text(context.error_status().map(|status| status.to_string()), out),
        P::ErrorStatusText => {
            let reason = context.error_status().and_then(onehop_http1::reason);
            out.extend_from_slice(reason.unwrap_or_default().as_bytes());
        }
        P::ErrorMessage => match &context.error_message {
            Some(message) => out.extend_from_slice(message),
            None => {
                let name = context.failure.as_ref().map(|failure| failure.error.name().replace('_', " "));
                out.extend_from_slice(name.unwrap_or_default().as_bytes());
            }
        },
        P::ErrorId => {
            let id = context.failure.as_ref().and_then(|failure| failure.id);
            out.extend(id.iter().flat_map(ErrorId::letters));
        }
    }
}

fn push_tls(value: TlsValue, session: &TlsSession, out: &mut Vec<u8>) {
    let text = match value {
        TlsValue::Version => session.version,
        TlsValue::CipherSuite => &session.cipher_suite,
        TlsValue::Resumed if session.is_resumed => "true",
        TlsValue::Resumed => "false",
        TlsValue::Protocol => &session.protocol,
        TlsValue::ServerName => &session.server_name,
        TlsValue::Client(value) => {
            if let Some(client) = &session.client {
                push_client(value, client, out);
            }
            return;
        }
    };
    out.extend_from_slice(text.as_bytes());
}

fn push_client(value: ClientValue, client: &ClientCertificate, out: &mut Vec<u8>) {
    let text = match value {
        ClientValue::Subject => &client.subject,
        ClientValue::Issuer => &client.issuer,
        ClientValue::Serial => &client.serial,
        ClientValue::Fingerprint => &client.fingerprint,
        ClientValue::PublicKey => &client.public_key,
        ClientValue::PublicKeySha256 => &client.public_key_sha256,
        ClientValue::CertificateDerBase64 => client.base64(),
        ClientValue::CertificatePem => return client.write_pem(out),
        ClientValue::AlternativeName(kind, number) => {
            let names = match kind {
                NameKind::Dns => &client.dns_names,
                NameKind::Email => &client.emails,
                NameKind::IpAddress => &client.ips,
                NameKind::Uri => &client.uris,
            };
            return match number {
                Some(number) => push_text(names.get(number).cloned(), out),
                // As Caddy writes a list.
                None => push_text(Some(format!("[{}]", names.join(" "))), out),
            };
        }
    };
    out.extend_from_slice(text.as_bytes());
}

/// A part of a path becomes what all of it would.
fn push_captured(of: Of, text: &[u8], into: Into, out: &mut Vec<u8>) {
    match (of, into) {
        (Of::Path { .. }, Into::Key) => out.extend(text.iter().map(u8::to_ascii_lowercase)),
        // Which of its slashes was encoded shows no more: none names a folder.
        (Of::Path { has_encoded_slash: true }, Into::FileName) => {
            out.extend(text.iter().map(|byte| if *byte == b'/' { ENCODED_SLASH } else { *byte }));
        }
        _ => out.extend_from_slice(text),
    }
}

/// The root that applies.
fn push_root(context: &RequestContext<'_>, out: &mut Vec<u8>) {
    let is_root = |part: &Part| matches!(part, Part::Value(Placeholder::Root));
    match context.root {
        // A root may name placeholders, but not itself.
        Some(Root::Disk(template)) if !template.parts.iter().any(is_root) => {
            out.extend_from_slice(&expand(template, context, Into::Text));
        }
        Some(root) => out.extend_from_slice(context.root_in_memory(root).unwrap_or_default()),
        None => {}
    }
}

fn push_uri(path: &[u8], query: Option<&[u8]>, out: &mut Vec<u8>) {
    out.extend_from_slice(path);
    push_query(query, out);
}

fn push_query(query: Option<&[u8]>, out: &mut Vec<u8>) {
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        out.push(b'?');
        out.extend_from_slice(query);
    }
}

/// The path of a request in the form in which it becomes part of something.
fn path_for<'t>(context: &'t RequestContext<'_>, into: Into) -> Cow<'t, [u8]> {
    match into {
        // As in Caddy, what is escaped stays so: an encoded slash is none afterwards.
        Into::Uri => Cow::Borrowed(context.request.path.sent()),
        Into::FileName => Cow::Borrowed(context.request.path.decoded()),
        Into::Key => Cow::Owned(context.request.path.merged().to_ascii_lowercase()),
        Into::HeaderValue | Into::Replacement | Into::Text => decode_path(context.request.path.sent()),
    }
}

/// The same for the path as it came.
fn original_path_for(head: &RequestHead, into: Into) -> Cow<'_, [u8]> {
    match into {
        Into::Uri => Cow::Borrowed(head.path()),
        Into::FileName => path::decode(head.path()),
        Into::Key | Into::HeaderValue | Into::Replacement | Into::Text => decode_path(head.path()),
    }
}

fn push_text(text: Option<String>, out: &mut Vec<u8>) {
    out.extend_from_slice(text.unwrap_or_default().as_bytes());
}

/// Only where a request has been handed to an upstream; the checker lets these stand nowhere else.
fn push_upstream(context: &RequestContext<'_>, which: fn(&Member) -> &str, out: &mut Vec<u8>) {
    let failed = || context.failure.as_ref().and_then(|failure| failure.upstream.as_deref());
    let member = context.upstream.as_deref().or_else(failed);
    out.extend_from_slice(member.map(which).unwrap_or_default().as_bytes());
}

fn push_joined<'a>(values: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    for (number, value) in values.enumerate() {
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(value);
    }
}

fn push_port(host: &[u8], context: &RequestContext<'_>, out: &mut Vec<u8>) {
    let name = host_without_port(host);
    let port = host.rsplit(|b| *b == b':').next().filter(|port| {
        !port.is_empty() && port.len() < host.len() - name.len() && port.iter().all(u8::is_ascii_digit)
    });
    match port {
        Some(port) => out.extend_from_slice(port),
        None => out.extend_from_slice(if context.request.origin.tls { b"443" } else { b"80" }),
    }
}

fn push_query_value(query: Option<&[u8]>, name: &str, out: &mut Vec<u8>) {
    if let Some(value) = query_values(query.unwrap_or_default(), name.as_bytes()).next() {
        out.extend_from_slice(&value);
    }
}

fn folder_of(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|b| *b == b'/') {
        Some(slash) => &path[..=slash],
        None => path,
    }
}

fn unix_seconds() -> Option<String> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(since.as_secs().to_string())
}

/// A version 4 UUID (RFC 9562 section 5.4) from the process's seeded hasher: unique, not secret.
fn random_id() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let draw = || RandomState::new().build_hasher().finish();
    let bits = (u128::from(draw()) << 64) | u128::from(draw());
    let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
