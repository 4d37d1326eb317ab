//! `early_hints`: 103 (RFC 8297) with what a browser can load while an application or an upstream works.
//!
//! Only for navigations over HTTP/2: clients of HTTP/1.1 are known to take a 103 for the response, and only a page has a use
//! for what it names. What is sent is configured, or learned from earlier responses ([`learned`]). What is learned is told to
//! every client, so it is taken from responses that say nothing about one ([`may_teach`]).

mod directive;
mod learned;

use onehop_http1::{Method, RequestHead, Version};
use onehop_message::link::{Link, links};
use onehop_message::response::{Fields, Response};
use onehop_metrics::Handler;

use super::context::RequestContext;
use crate::limits::{LEARNED_KEY_BYTES_MAX, LEARNED_LINKS_BYTES_MAX, LEARNED_LINKS_MAX};
pub use directive::EarlyHints;

/// Relation types that browsers act upon before the response is there.
const RELATIONS: [&str; 3] = ["preload", "modulepreload", "preconnect"];

/// Parameters that say how a URL is loaded. No others are passed on: `nonce` belongs to one response.
const PARAMETERS: [&str; 10] = [
    "rel",
    "as",
    "type",
    "crossorigin",
    "integrity",
    "media",
    "fetchpriority",
    "imagesrcset",
    "imagesizes",
    "referrerpolicy",
];

/// Whether a request is one for which hints are of use: a navigation, over a version whose clients know interim responses.
pub(super) fn are_for(head: &RequestHead) -> bool {
    head.version() == Version::Http2
        && head.method() == Method::Get
        && head.find("sec-fetch-mode") == Some(b"navigate")
}

/// The fields of the 103 for a request that calls an application or an upstream; `None` where there is nothing to send.
pub(super) fn fields(context: &RequestContext<'_>) -> Option<Fields> {
    if context.early_hints.is_empty() || context.failure.is_some() {
        return None;
    }
    let mut fields = Fields::default();
    let mut add = |value: &[u8]| {
        if !fields.iter().any(|(_, known)| known == value) {
            fields.add("Link", value);
        }
    };
    let key = key(&context.request.head);
    for hints in &context.early_hints {
        hints.links.iter().for_each(|link| add(link));
        if let (Some(learned), Some(key)) = (&hints.learned, &key) {
            learned.each(key, &mut add);
        }
    }
    (!fields.lines().is_empty()).then_some(fields)
}

/// Learns from a response as it goes out. One that may not teach still makes forgotten what it does not name.
pub(super) fn learn(context: &RequestContext<'_>, response: &Response) {
    let head = &context.request.head;
    let is_of_backend = matches!(context.at.handler, Handler::App | Handler::Proxy);
    if context.early_hints.is_empty()
        || !is_of_backend
        || context.failure.is_some()
        || response.status != 200
        // What a query asks for may be another page, and the query may be a secret.
        || head.query().is_some()
    {
        return;
    }
    let Some(key) = key(head) else { return };
    let teaches = may_teach(context, response);
    for hints in &context.early_hints {
        if let Some(learned) = &hints.learned {
            learned.note(&key, of_response(hints, response), teaches);
        }
    }
}

/// Whether what a response names may be told to other clients: as a shared cache would have it, and where cookies or an identity
/// come into it only if the response calls itself public.
fn may_teach(context: &RequestContext<'_>, response: &Response) -> bool {
    let head = &context.request.head;
    let says = |directive: &[u8]| {
        let fields = response.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"cache-control"));
        let mut directives = fields.flat_map(|(_, value)| value.split(|byte| *byte == b','));
        directives.any(|text| {
            let name = text.split(|byte| *byte == b'=').next().unwrap_or_default();
            name.trim_ascii().eq_ignore_ascii_case(directive)
        })
    };
    // Also what the client sent and `request_header` has taken away.
    let has = |name| head.find(name).is_some() || head.received().find(name).is_some();
    let names_client = has("authorization") || context.request.origin.verified_client().is_some();
    if names_client || says(b"private") || says(b"no-store") {
        return false;
    }
    let has_cookies = || {
        // Our own cookie says which worker answers, and nothing about the client.
        let is_own = |value: &[u8]| context.own_cookie.as_deref() == Some(value);
        let mut fields = response.fields.iter();
        has("cookie")
            || fields.any(|(name, value)| name.eq_ignore_ascii_case(b"set-cookie") && !is_own(value))
    };
    says(b"public") || !has_cookies()
}

/// What a response names that hints are for, within bounds.
fn of_response(hints: &EarlyHints, response: &Response) -> Vec<Vec<u8>> {
    let fields = response.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"link"));
    let named = fields.flat_map(|(_, value)| links(value));
    let wanted = named.filter(|link| RELATIONS.iter().any(|relation| link.has_relation(relation)));
    let mut bytes = 0;
    wanted
        .filter(|link| !hints.names(*link))
        .map(written)
        .take_while(|value| {
            bytes += value.len();
            bytes <= LEARNED_LINKS_BYTES_MAX
        })
        .take(LEARNED_LINKS_MAX)
        .collect()
}

/// A link with the parameters that may be passed on.
fn written(link: Link<'_>) -> Vec<u8> {
    let mut value = [b"<", link.target, b">"].concat();
    for (name, text) in link.parameters() {
        if PARAMETERS.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())) {
            value.extend_from_slice(b"; ");
            value.extend_from_slice(name);
            if !text.is_empty() {
                value.push(b'=');
                value.extend_from_slice(text);
            }
        }
    }
    value
}

/// Under which what is learned is kept: the host and the path that the client asked for. `None`: it is too long.
fn key(head: &RequestHead) -> Option<Vec<u8>> {
    let (host, path) = (head.host().unwrap_or_default(), head.path());
    if host.len() + path.len() > LEARNED_KEY_BYTES_MAX {
        return None;
    }
    let mut key = host.to_ascii_lowercase();
    key.extend_from_slice(path);
    Some(key)
}

#[cfg(test)]
mod tests;
