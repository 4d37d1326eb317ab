//! What a placeholder means. Its short names are Caddy's.

use crate::checked::tls::{ClientValue, NameKind, TlsValue};
use crate::checked::{CaptureGroup, Placeholder};
use crate::nearest::nearest;
use crate::problem::{Location, Problem};
use crate::vocabulary::{PLACEHOLDER_PREFIXES, PLACEHOLDER_SHORTHANDS, PLACEHOLDERS};

/// What stands for a placeholder.
pub(crate) enum Meaning<'a> {
    /// Filled in for each request.
    Value(Placeholder),
    /// An environment variable, read at load.
    Environment(&'a str),
}

/// Whether the text between two braces looks like a placeholder, and not like JSON or CSS.
pub(crate) fn has_shape(key: &str) -> bool {
    if key.starts_with("args[") {
        return true;
    }
    let begins = key.trim_start_matches(['?', '%']).starts_with(|first: char| first.is_ascii_alphabetic());
    begins && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-/?%*,".contains(&byte))
}

/// What a placeholder means; an error where onehop does not know it.
pub(crate) fn meaning<'a>(key: &'a str, place: &Location) -> Result<Meaning<'a>, Box<Problem>> {
    if let Some(name) = key.strip_prefix("env.") {
        return Ok(Meaning::Environment(name));
    }
    if key.starts_with("args[") {
        let message = format!("`{{{key}}}` stands outside of an imported snippet or file");
        return Err(Problem::error("placeholder", place, message)
            .help("arguments are filled in where a snippet or a file is imported"));
    }
    let long = long_name(key);
    if let Some(value) = value(&long) {
        return Ok(Meaning::Value(value));
    }
    let is_caddys = PLACEHOLDERS
        .iter()
        .any(|known| if known.ends_with(['.', '/']) { long.starts_with(known) } else { long == **known });
    if is_caddys {
        let message = format!("`{{{key}}}` is a placeholder of Caddy that onehop does not have yet");
        return Err(Problem::error("not-yet", place, message));
    }
    let problem = Problem::error("placeholder", place, format!("there is no placeholder `{{{key}}}`"));
    let short = PLACEHOLDER_SHORTHANDS.iter().map(|(short, _)| short);
    let known = PLACEHOLDERS.iter().chain(short).copied().filter(|known| !known.ends_with(['.', '/']));
    Err(match nearest(key, known) {
        Some(near) => {
            problem.help(format!("did you mean `{{{near}}}`? For the text itself, write `\\{{{key}\\}}`"))
        }
        None => problem.help(format!("for the text itself, write `\\{{{key}\\}}`")),
    })
}

fn long_name(key: &str) -> String {
    if let Some((_, long)) = PLACEHOLDER_SHORTHANDS.iter().find(|(short, _)| *short == key) {
        return (*long).to_owned();
    }
    for (short, long) in PLACEHOLDER_PREFIXES {
        if let Some(name) = key.strip_prefix(short) {
            return format!("{long}{name}");
        }
    }
    key.to_owned()
}

fn value(long: &str) -> Option<Placeholder> {
    Some(match long {
        "http.request.method" => Placeholder::Method,
        "http.request.uri" => Placeholder::Uri,
        "http.request.uri.path" => Placeholder::Path,
        "http.request.uri.path.dir" => Placeholder::PathDir,
        "http.request.uri.path.file" => Placeholder::PathFile,
        "http.request.uri.path.file.base" => Placeholder::PathFileBase,
        "http.request.uri.path.file.ext" => Placeholder::PathFileExt,
        "http.request.uri.query" => Placeholder::Query,
        "http.request.uri.prefixed_query" => Placeholder::PrefixedQuery,
        "http.request.orig_uri" => Placeholder::OriginalUri,
        "http.request.orig_uri.path" => Placeholder::OriginalPath,
        "http.request.orig_uri.query" => Placeholder::OriginalQuery,
        "http.request.host" => Placeholder::Host,
        "http.request.hostport" => Placeholder::HostPort,
        "http.request.port" => Placeholder::Port,
        "http.request.scheme" => Placeholder::Scheme,
        "http.request.proto" => Placeholder::Protocol,
        "http.request.remote" => Placeholder::Remote,
        "http.request.remote.host" => Placeholder::RemoteHost,
        "http.auth.user.id" => Placeholder::AuthUser,
        "http.vars.client_ip" => Placeholder::ClientIp,
        "http.request.remote.port" => Placeholder::RemotePort,
        "http.vars.root" => Placeholder::Root,
        "http.matchers.file.relative" => Placeholder::FileMatchRelative,
        "time.now.unix" => Placeholder::TimeUnix,
        "http.request.uuid" => Placeholder::Uuid,
        "http.vars.trace_id" => Placeholder::TraceId,
        "http.vars.span_id" => Placeholder::SpanId,
        "http.reverse_proxy.upstream.hostport" | "http.reverse_proxy.upstream.address" => {
            Placeholder::UpstreamHostPort
        }
        "http.reverse_proxy.upstream.host" => Placeholder::UpstreamHost,
        "http.reverse_proxy.upstream.port" => Placeholder::UpstreamPort,
        "http.error.status_code" => Placeholder::ErrorStatus,
        "http.error.status_text" => Placeholder::ErrorStatusText,
        "http.error.message" => Placeholder::ErrorMessage,
        "http.error.id" => Placeholder::ErrorId,
        _ => return named_value(long),
    })
}

/// Those with a name or a number at their end.
fn named_value(long: &str) -> Option<Placeholder> {
    let (prefix, name) = long.rsplit_once('.')?;
    if name.is_empty() {
        return None;
    }
    if let Some(name) = long.strip_prefix("http.request.uri.query.") {
        return Some(Placeholder::QueryValue(name.to_owned()));
    }
    if let Some(name) = long.strip_prefix("http.request.header.") {
        return Some(Placeholder::Header(name.to_ascii_lowercase()));
    }
    if long.starts_with("http.regexp.") {
        return capture(long);
    }
    if let Some(name) = long.strip_prefix("http.request.tls.") {
        return tls_value(name).map(Placeholder::Tls);
    }
    match prefix {
        "http.request.cookie" => Some(Placeholder::Cookie(name.to_owned())),
        "http.request.uri.path" => name.parse().ok().map(Placeholder::PathSegment),
        "http.request.host.labels" => name.parse().ok().map(Placeholder::HostLabel),
        _ => None,
    }
}

/// `re.NAME.GROUP`, `re.GROUP`, or the long form. A group has no dot in its name.
pub(super) fn capture(key: &str) -> Option<Placeholder> {
    let name = key.strip_prefix("re.").or_else(|| key.strip_prefix("http.regexp."))?;
    let (expression, group) = match name.rsplit_once('.') {
        Some((expression, group)) => (Some(expression), group),
        None => (None, name),
    };
    if group.is_empty() || expression.is_some_and(str::is_empty) {
        return None;
    }
    let number = group.parse().ok();
    Some(Placeholder::Capture {
        expression: expression.map(str::to_owned),
        group: number.map_or_else(|| CaptureGroup::Name(group.to_owned()), CaptureGroup::Number),
    })
}

fn tls_value(name: &str) -> Option<TlsValue> {
    if let Some((_, value)) = TlsValue::NAMED.iter().find(|(known, _)| *known == name) {
        return Some(*value);
    }
    let names = name.strip_prefix("client.san.")?;
    let (kind, number) = match names.split_once('.') {
        Some((kind, number)) => (kind, Some(number.parse().ok()?)),
        None => (names, None),
    };
    let (_, kind) = NameKind::NAMED.iter().find(|(known, _)| *known == kind)?;
    Some(TlsValue::Client(ClientValue::AlternativeName(*kind, number)))
}
