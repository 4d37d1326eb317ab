//! Where a request wants to go: the forms of a request-target and what an authority may be.
//!
//! Owns RFC 9112 section 3.2. Never decodes and never resolves: the path's meaning is the router's.

use core::net::Ipv6Addr;
use core::ops::Range;

use crate::fields::Span;
use crate::head::TargetForm;
use crate::{Known, Method, Refusal, RequestHead, Version, grammar};

/// Digits of a port; more cannot be a number below 65536 without padding that no one needs.
const PORT_DIGITS_MAX: usize = 5;

/// Where the parts of a target stand in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parts {
    form: TargetForm,
    authority: Option<Range<usize>>,
    path: Range<usize>,
    query: Option<Range<usize>>,
}

/// The parts of the target and the effective host (RFC 9112 sections 3.2 and 3.3).
pub(crate) fn resolve(head: &mut RequestHead) -> Result<(), Refusal> {
    let parts = parts(head.method, head.target())?;
    let at = head.target.start as usize;
    let host = check_host(head, parts.authority.clone())?;
    let span = |range: Range<usize>| Span::new(at + range.start, at + range.end);
    head.form = parts.form;
    head.path = span(parts.path);
    head.query = parts.query.map(span);
    head.host = parts.authority.map(span).or(host);
    Ok(())
}

/// The parts of `target`, or what is wrong with it.
fn parts(method: Method, target: &[u8]) -> Result<Parts, Refusal> {
    let path_end = path_end(target)?;
    if method == Method::Connect {
        // RFC 9112 section 3.2.3: authority-form is CONNECT's only one; the port is not optional in it.
        check_authority(target)?;
        // RFC 9110 section 9.3.6: nor may it be empty.
        if split_port(target).1.is_none_or(<[u8]>::is_empty) {
            return Err(Refusal::BadTarget);
        }
        let end = target.len();
        return Ok(Parts {
            form: TargetForm::Authority,
            authority: Some(0..end),
            path: end..end,
            query: None,
        });
    }
    let query = (path_end < target.len()).then_some(path_end + 1..target.len());
    if target.first() == Some(&b'/') {
        let path = 0..path_end;
        return Ok(Parts { form: TargetForm::Origin, authority: None, path, query });
    }
    if target == b"*" {
        // RFC 9112 section 3.2.4: asterisk-form is for OPTIONS only.
        if method != Method::Options {
            return Err(Refusal::BadTarget);
        }
        return Ok(Parts { form: TargetForm::Asterisk, authority: None, path: 0..1, query: None });
    }
    let start = absolute_form_prefix(target).ok_or(Refusal::BadTarget)?;
    let rest = target.get(start..).unwrap_or_default();
    let length = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    check_authority(rest.get(..length).unwrap_or_default())?;
    let path = start + length..path_end;
    Ok(Parts { form: TargetForm::Absolute, authority: Some(start..start + length), path, query })
}

/// Refuses an authority that is not `host [ ":" port ]`: no user information (RFC 9110 section 4.2.4), no
/// empty host (section 4.2.1). The port may be empty (RFC 3986 section 3.2.3). A percent-encoded host is refused too, since it is a second spelling of a
/// site's name, and a comma, since it is what joined fields look like.
fn check_authority(authority: &[u8]) -> Result<(), Refusal> {
    if authority.is_empty() {
        return Err(Refusal::EmptyHost);
    }
    let (host, port) = split_port(authority);
    if host.is_empty() {
        return Err(Refusal::BadHost);
    }
    if let Some(port) = port.filter(|port| !port.is_empty()) {
        let number = if port.len() <= PORT_DIGITS_MAX { grammar::decimal(port) } else { None };
        if number.is_none_or(|number| number > u64::from(u16::MAX)) {
            return Err(Refusal::BadHost);
        }
    }
    let good = match host {
        [b'[', address @ .., b']'] => {
            core::str::from_utf8(address).is_ok_and(|address| address.parse::<Ipv6Addr>().is_ok())
        }
        name => name.iter().all(|byte| is_of(IN_HOST, *byte)),
    };
    if good { Ok(()) } else { Err(Refusal::BadHost) }
}

/// Whether two authorities name the same place: case does not matter (RFC 9110 section 4.2.3), nor does a
/// port that is the default of its scheme, as an empty one is (RFC 3986 section 6.2.3).
fn same_authority(scheme_port: &[u8], one: &[u8], other: &[u8]) -> bool {
    let (one_host, one_port) = split_port(one);
    let (other_host, other_port) = split_port(other);
    let number =
        |port: Option<&[u8]>| grammar::decimal(port.filter(|port| !port.is_empty()).unwrap_or(scheme_port));
    one_host.eq_ignore_ascii_case(other_host) && number(one_port) == number(other_port)
}

/// Where the Host field's value stands, after it was checked (RFC 9112 section 3.2).
fn check_host(head: &RequestHead, authority: Option<Range<usize>>) -> Result<Option<Span>, Refusal> {
    let mut hosts = head.field_list().iter().filter(|field| field.known == Some(Known::Host));
    let Some(host) = hosts.next() else {
        // HTTP/1.0 had no Host; in 1.1 its absence MUST be refused.
        return if head.version == Version::Http11 { Err(Refusal::MissingHost) } else { Ok(None) };
    };
    if hosts.next().is_some() {
        return Err(Refusal::DoubledHost);
    }
    let value = head.slice(host.value);
    check_authority(value)?;
    if let Some(authority) = authority {
        // RFC 9112 section 3.2.2 would let the target win; a peer before us may have let the field win.
        let named = head.target().get(authority).unwrap_or_default();
        if !same_authority(default_port(head.target()), named, value) {
            return Err(Refusal::HostDisagrees);
        }
    }
    Ok(Some(host.value))
}

/// The default port of an absolute form's scheme.
fn default_port(target: &[u8]) -> &'static [u8] {
    if has_prefix(target, b"https://") { b"443" } else { b"80" }
}

/// Host and port of an authority; the colons of an IPv6 literal are no port's.
fn split_port(authority: &[u8]) -> (&[u8], Option<&[u8]>) {
    let colon = authority.iter().rposition(|byte| *byte == b':');
    match colon {
        Some(at) if authority.last() != Some(&b']') => {
            (authority.get(..at).unwrap_or_default(), authority.get(at + 1..))
        }
        _ => (authority, None),
    }
}

/// Where the path of a target ends: at its first question mark or its end. One look in a table for each byte.
fn path_end(target: &[u8]) -> Result<usize, Refusal> {
    let mut end = None;
    let mut class = IN_PATH;
    for (at, byte) in target.iter().enumerate() {
        if *byte == b'?' && end.is_none() {
            (end, class) = (Some(at), IN_QUERY);
        } else if !is_of(class, *byte) {
            return Err(Refusal::BadTarget);
        }
    }
    Ok(end.unwrap_or(target.len()))
}

fn absolute_form_prefix(target: &[u8]) -> Option<usize> {
    [&b"http://"[..], b"https://"].iter().find(|prefix| has_prefix(target, prefix)).map(|prefix| prefix.len())
}

fn has_prefix(target: &[u8], prefix: &[u8]) -> bool {
    target.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// A byte of a target in front of its query. Printable ASCII but for a fragment's mark and the delimiters that every client
/// escapes. Wider than RFC 3986: browsers send `|`, `{`, `[`, `^`, a backslash and, in a query, a backtick as they are.
const IN_PATH: u8 = 1;
/// The same behind the question mark.
const IN_QUERY: u8 = 2;
/// unreserved and sub-delims without the comma (RFC 3986 section 3.2.2).
const IN_HOST: u8 = 4;

/// Of each byte, what it may be in.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        if !matches!(byte, b'#' | b'<' | b'>' | b'"') {
            classes[byte as usize] |= if byte == b'`' { IN_QUERY } else { IN_PATH | IN_QUERY };
        }
        let is_mark =
            matches!(byte, b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*');
        if byte.is_ascii_alphanumeric() || is_mark || matches!(byte, b'+' | b';' | b'=') {
            classes[byte as usize] |= IN_HOST;
        }
        byte += 1;
    }
    classes
};

fn is_of(class: u8, byte: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}
