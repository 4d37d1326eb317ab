//! Which fields of a request and of an answer are passed on.
//!
//! A client can send no field that the server vouches for. Fields that are about one connection only stay behind
//! (RFC 9110 section 7.6.1), and so do those that `Connection` names; what the server adds is added after that, so
//! that nobody can name it away. Lines that are passed on are copied as they came, several at a time.

use std::net::SocketAddr;

use onehop_config::checked::request_fields::is_of_client;
use onehop_http1::{Field, Known, RequestHead, ResponseHead, Span, Version};

use crate::origin::Origin;
use crate::response::Fields;

/// Which fields of one request are passed on.
pub struct Rule<'h> {
    head: &'h RequestHead,
    /// The client asks properly for another protocol.
    upgrade: bool,
    /// What says who the client is may be passed on.
    is_trusted: bool,
    /// The client of this connection showed a certificate, and nobody else's counts.
    is_identified: bool,
    /// What Connection names (RFC 9110 section 7.6.1).
    named: Vec<&'h [u8]>,
    spellings: Spellings,
}

/// What becomes of names that stand for another name in a CGI-like environment: there `-`, `_` and, in PHP, `.` are
/// the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spellings {
    /// Those of fields that say who the client is are dropped.
    OursOnly,
    /// All with `_` or `.` are dropped, as Caddy 2.11 and nginx have it: whoever stands behind may take any of them
    /// for a field that somebody in front vouches for.
    All,
}

impl<'h> Rule<'h> {
    /// The rule for a request. What says who the client is, only from who `is_trusted`, and then whatever Connection
    /// names: a client could write that, through a proxy that passes it on.
    pub fn new(
        head: &'h RequestHead,
        origin: &Origin,
        upgrade: bool,
        is_trusted: bool,
        spellings: Spellings,
    ) -> Self {
        let is_identified = origin.verified_client().is_some();
        let named = names(head.get_all(Known::Connection));
        Self { head, upgrade, is_trusted, is_identified, named, spellings }
    }

    /// Whether a field of the request is passed on.
    pub fn passes(&self, field: &Field) -> bool {
        match field.known {
            Some(
                Known::Connection
                | Known::KeepAlive
                | Known::TransferEncoding
                | Known::Te
                | Known::Trailer
                | Known::Expect,
            ) => false,
            Some(Known::XForwardedFor | Known::XForwardedHost | Known::XForwardedProto) => self.is_trusted,
            Some(Known::Upgrade) => self.upgrade,
            Some(Known::Host | Known::ContentLength) => true,
            known => {
                let name = self.head.slice(field.name);
                let is_dropped = known.is_none() && self.is_dropped(name);
                let is_fronts = known.is_none() && self.is_trusted && is_forwarded(name);
                !is_dropped && (is_fronts || !is_named(&self.named, name))
            }
        }
    }

    fn is_dropped(&self, name: &[u8]) -> bool {
        let is_alias = match self.spellings {
            Spellings::OursOnly => false,
            Spellings::All => name.iter().any(|byte| matches!(byte, b'_' | b'.')),
        };
        let is_believed = self.is_trusted && is_spelled_out(name);
        let is_replaced = self.is_identified && is_client_certificate(name);
        is_alias || is_about_connection(name) || (is_of_client(name) && (is_replaced || !is_believed))
    }
}

/// The fields of a request that are passed on to an application. `Upgrade` only where the client asks for it properly.
pub fn passed_on<'h>(
    head: &'h RequestHead,
    origin: &Origin,
    upgrade: bool,
    is_trusted: bool,
) -> impl DoubleEndedIterator<Item = (&'h [u8], &'h [u8])> + use<'h> {
    let rule = Rule::new(head, origin, upgrade, is_trusted, Spellings::OursOnly);
    let fields = head.field_list().iter().filter(move |field| rule.passes(field));
    fields.map(|field| (head.slice(field.name), head.slice(field.value)))
}

/// The values of a field of a trusted proxy, in the order in which they came.
pub fn forwarded<'h>(
    head: &'h RequestHead,
    wanted: &'static [u8],
) -> impl DoubleEndedIterator<Item = &'h [u8]> {
    let fields = head.field_list().iter().map(|field| (head.slice(field.name), head.slice(field.value)));
    fields.filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
}

/// Copies the lines of the fields that `keep` wants: neighbours in one piece, as they came. Only white space behind a
/// value is left out, and with it the line is written anew.
pub fn copy_lines<'h>(
    list: &[Field],
    slice: impl Fn(Span) -> &'h [u8],
    keep: impl Fn(&Field) -> bool,
    mut copy: impl FnMut(&[u8]),
) {
    let mut run: Option<Span> = None;
    for field in list {
        let is_kept = keep(field);
        let end = field.value.end.saturating_add(2);
        let is_tight = slice(Span { start: field.value.end, end }) == b"\r\n";
        if is_kept && is_tight {
            match &mut run {
                Some(run) if run.end == field.name.start => run.end = end,
                _ => {
                    if let Some(before) = run.replace(Span { start: field.name.start, end }) {
                        copy(slice(before));
                    }
                }
            }
            continue;
        }
        if let Some(before) = run.take() {
            copy(slice(before));
        }
        if is_kept {
            for piece in [slice(field.name), b": ", slice(field.value), b"\r\n"] {
                copy(piece);
            }
        }
    }
    if let Some(before) = run {
        copy(slice(before));
    }
}

/// A trailer section's lines that are passed on: not those that would say who the client is, should the
/// other side add trailers to its fields.
pub fn passed_on_trailers(lines: &[u8], mut pass_on: impl FnMut(&[u8])) {
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if !is_about_connection(name) && !is_of_client(name) {
            pass_on(line);
        }
    }
}

/// RFC 9110 section 7.8: named in Connection too, not in HTTP/1.0, and without a body before it. HTTP/2 in the clear is
/// never passed on: RFC 7540 section 3.2.1 has it for one hop only, and within it nobody sees requests any more.
pub fn asks_for_upgrade(head: &RequestHead) -> bool {
    head.get(Known::Upgrade).is_some()
        && head.version() != Version::Http10
        && head.get(Known::TransferEncoding).is_none()
        && head.get(Known::ContentLength).is_none_or(|length| length == b"0")
        && members(head.get_all(Known::Connection)).any(|option| option.eq_ignore_ascii_case(b"upgrade"))
        && !members(head.get_all(Known::Upgrade)).any(|protocol| protocol.eq_ignore_ascii_case(b"h2c"))
}

/// Of `TE` this much holds for every hop: trailers are passed on.
pub fn accepts_trailers(head: &RequestHead) -> bool {
    members(head.get_all(Known::Te)).any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
}

/// What an answer's fields are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The usual.
    Plain,
    /// The answer may have trailers.
    Chunked,
    /// The connection becomes a tunnel.
    Upgrade,
}

/// Who answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// An application of this site: what it says of the site's other addresses holds.
    App,
    /// A server that has an address and a user of its own.
    Upstream,
}

/// Adds the fields of an answer that are passed on, in the sender's own spelling.
pub fn fill(head: &ResponseHead, fields: &mut Fields, kind: Kind, voice: Voice) {
    let named = names(head.get_all(Known::Connection));
    let keep = |field: &Field| {
        let name = head.slice(field.name);
        let is_announced = kind == Kind::Chunked && field.known == Some(Known::Trailer);
        let is_framing = !is_announced && is_dropped(name, kind == Kind::Upgrade);
        let is_theirs = voice == Voice::Upstream && field.known.is_none() && is_about_its_hop(name);
        !is_framing && !is_theirs && !is_named(&named, name)
    };
    copy_lines(head.field_list(), |span| head.slice(span), keep, |piece| fields.add_lines(piece));
}

/// Fields of an answer that the server decides about.
pub fn is_dropped(name: &[u8], is_upgrade: bool) -> bool {
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

/// An IPv4 client of a socket for both kinds.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// What an upstream says to whoever asked it itself: where else it listens, who may ask. Caddy drops the same.
fn is_about_its_hop(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"alt-svc") || is_about_connection(name)
}

/// The members of list-valued fields.
fn members<'h>(values: impl Iterator<Item = &'h [u8]>) -> impl Iterator<Item = &'h [u8]> {
    values.flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}

/// The fields that the lines of a Connection field name; the codec has bounded their number. Usual options, which are
/// about no field that is passed on anyway, cost no allocation.
fn names<'h>(lines: impl Iterator<Item = &'h [u8]>) -> Vec<&'h [u8]> {
    const USUAL: [&[u8]; 5] = [b"", b"close", b"keep-alive", b"upgrade", b"te"];
    let is_usual = |option: &&[u8]| USUAL.iter().any(|usual| option.eq_ignore_ascii_case(usual));
    members(lines).filter(|option| !is_usual(option)).collect()
}

fn is_named(named: &[&[u8]], name: &[u8]) -> bool {
    named.iter().any(|own| own.eq_ignore_ascii_case(name))
}

fn is_about_connection(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 3] = [b"proxy-connection", b"proxy-authorization", b"proxy-authenticate"];
    NAMES.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// What a proxy in front writes.
fn is_forwarded(name: &[u8]) -> bool {
    const PREFIX: &[u8] = b"x-forwarded-";
    name.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX)) || is_of_client(name)
}

/// RFC 9440.
fn is_client_certificate(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"client-cert") || name.eq_ignore_ascii_case(b"client-cert-chain")
}

/// Another spelling is not what proxies write: they pass it on for whoever tries it.
fn is_spelled_out(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use onehop_http1::{Limits, ServerCodec};
    use proptest::prelude::*;

    use super::*;

    fn read(text: &[u8]) -> RequestHead {
        let mut head = RequestHead::new();
        let read = ServerCodec::new(Limits::default()).read_head(text, &mut head);
        assert_eq!(read, Ok(Some(text.len())), "{}", text.escape_ascii());
        head
    }

    proptest! {
        #[test]
        fn exactly_the_fields_that_are_kept_are_copied(
            lines in prop::collection::vec(("[a-d][a-z-]{0,6}", "[ \t]{0,2}", "[!-~]{0,5}", "[ \t]{0,2}"), 0..12),
        ) {
            let mut text = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
            for (name, before, value, after) in &lines {
                text.extend_from_slice(format!("x-{name}:{before}{value}{after}\r\n").as_bytes());
            }
            text.extend_from_slice(b"\r\n");
            let head = read(&text);
            let keep = |field: &Field| !head.slice(field.name).starts_with(b"x-d");
            let mut copied = b"GET / HTTP/1.1\r\n".to_vec();
            copy_lines(head.field_list(), |span| head.slice(span), keep, |piece| copied.extend_from_slice(piece));
            copied.extend_from_slice(b"\r\n");
            let again = read(&copied);
            let kept = head.fields().filter(|(name, _)| !name.starts_with(b"x-d"));
            prop_assert_eq!(again.fields().collect::<Vec<_>>(), kept.collect::<Vec<_>>());
            // No white space stands behind a value, where some have taken it for a part of it.
            for line in copied.split(|byte| *byte == b'\n') {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                prop_assert!(!line.ends_with(b"\t") && (!line.ends_with(b" ") || line.ends_with(b": ")));
            }
        }
    }

    #[test]
    fn what_says_who_the_client_is_is_ours_however_it_is_spelled() {
        for (name, expected) in [
            (&b"X-Forwarded-For"[..], true),
            (b"x_forwarded_FOR", true),
            (b"X-Forwarded_Proto", true),
            (b"X.Real.IP", true),
            (b"x.forwarded~for", true),
            (b"Forwarded", true),
            (b"X-Real-Ip", true),
            (b"X-Forwarded-Fo", false),
            (b"Client-Cert", true),
            (b"client_cert", true),
            (b"Client.Cert-Chain", true),
            (b"Client-Certs", false),
            (b"X-Forwarded-Server", false),
            (b"", false),
        ] {
            assert_eq!(is_of_client(name), expected, "{}", name.escape_ascii());
        }
    }
}
