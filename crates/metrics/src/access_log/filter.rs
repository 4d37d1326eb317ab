//! `format filter`: fields of a line that are changed or left out. The filters are Caddy's.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use aws_lc_rs::digest::{SHA256, digest};
use onehop_config::checked::{FieldAction, FieldRule, LogField, LogFilter, LogTime, ValueAction, ValueRule};
use onehop_message::uri::decode_query;
use regex_lite::Regex;

/// A compiled [`LogFilter`].
#[derive(Debug)]
pub(super) struct Filter {
    pub(super) time: LogTime,
    rules: Vec<FieldRule>,
    /// The expressions of the rules, by their text.
    expressions: Vec<(String, Regex)>,
}

impl Filter {
    pub(super) fn new(settings: &LogFilter) -> Self {
        let expressions = settings.rules.iter().filter_map(|rule| match &rule.action {
            FieldAction::Regexp { find, .. } => Some((find.clone(), Regex::new(find).ok()?)),
            _ => None,
        });
        Self { time: settings.time, rules: settings.rules.clone(), expressions: expressions.collect() }
    }

    /// What is done with a field that has a fixed name.
    pub(super) fn rule(&self, field: &LogField) -> Option<&FieldAction> {
        self.find(|known| known == field)
    }

    /// What is done with a header field of the request.
    pub(super) fn request_header(&self, name: &[u8]) -> Option<&FieldAction> {
        self.find(|known| matches!(known, LogField::RequestHeader(header) if name.eq_ignore_ascii_case(header.as_bytes())))
    }

    /// What is done with a header field of the response.
    pub(super) fn response_header(&self, name: &[u8]) -> Option<&FieldAction> {
        self.find(|known| matches!(known, LogField::ResponseHeader(header) if name.eq_ignore_ascii_case(header.as_bytes())))
    }

    /// What is done with a field of `log_append`.
    pub(super) fn appended(&self, key: &str) -> Option<&FieldAction> {
        self.find(|known| matches!(known, LogField::Appended(name) if name == key))
    }

    fn find(&self, is_meant: impl Fn(&LogField) -> bool) -> Option<&FieldAction> {
        self.rules.iter().find(|rule| is_meant(&rule.field)).map(|rule| &rule.action)
    }

    fn expression(&self, find: &str) -> Option<&Regex> {
        self.expressions.iter().find(|(text, _)| text == find).map(|(_, expression)| expression)
    }
}

/// A value after a rule that changes it.
pub(super) fn changed<'v>(rule: &FieldAction, filter: Option<&Filter>, value: &'v [u8]) -> Cow<'v, [u8]> {
    match rule {
        FieldAction::Replace(text) => Cow::Owned(text.clone().into_bytes()),
        FieldAction::Hash => Cow::Owned(hash(value).into_bytes()),
        FieldAction::IpMask { ipv4, ipv6 } => Cow::Owned(masked(value, *ipv4, *ipv6).into_bytes()),
        FieldAction::Query(rules) => Cow::Owned(query(rules, value)),
        FieldAction::Regexp { find, replace } => {
            let text = String::from_utf8_lossy(value);
            match filter.and_then(|filter| filter.expression(find)) {
                Some(expression) => {
                    Cow::Owned(expression.replace_all(&text, replace.as_str()).into_owned().into_bytes())
                }
                // One that does not compile was refused; nothing is shown rather than too much.
                None => Cow::Borrowed(b""),
            }
        }
        FieldAction::Delete | FieldAction::Rename(_) | FieldAction::Cookie(_) => Cow::Borrowed(value),
    }
}

/// The first four bytes of the SHA-256 (FIPS 180-4), in hexadecimal digits.
fn hash(value: &[u8]) -> String {
    let digest = digest(&SHA256, value);
    digest.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Addresses of a list with commas, each with or without a port, of which only the first bits stay.
fn masked(value: &[u8], ipv4: u8, ipv6: u8) -> String {
    let text = String::from_utf8_lossy(value);
    let parts = text.split(',').map(|part| {
        let part = part.trim();
        if let Ok(address) = part.trim_start_matches('[').trim_end_matches(']').parse() {
            return mask(address, ipv4, ipv6).to_string();
        }
        match part.parse::<SocketAddr>() {
            Ok(address) => SocketAddr::new(mask(address.ip(), ipv4, ipv6), address.port()).to_string(),
            Err(_) => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn mask(address: IpAddr, ipv4: u8, ipv6: u8) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(ipv4.min(32))).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(ipv6.min(128))).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

/// A URI with changed parameters. All others stay as they were sent.
fn query(rules: &[ValueRule], uri: &[u8]) -> Vec<u8> {
    let Some(at) = uri.iter().position(|byte| *byte == b'?') else { return uri.to_vec() };
    let (path, query) = (uri.get(..at).unwrap_or_default(), uri.get(at + 1..).unwrap_or_default());
    let mut out = path.to_vec();
    let mut separator = b'?';
    for pair in query.split(|byte| *byte == b'&') {
        let (name, value) = halves(pair);
        let name = decode_query(name);
        let rule = rules.iter().find(|rule| rule.name.as_bytes() == &*name);
        let value = match rule.map(|rule| &rule.action) {
            Some(ValueAction::Delete) => continue,
            Some(ValueAction::Replace(text)) => Some(text.clone()),
            Some(ValueAction::Hash) => Some(hash(&decode_query(value.unwrap_or_default()))),
            None => None,
        };
        out.push(separator);
        separator = b'&';
        match value {
            Some(value) => {
                push_encoded(&mut out, &name);
                out.push(b'=');
                push_encoded(&mut out, value.as_bytes());
            }
            None => out.extend_from_slice(pair),
        }
    }
    out
}

/// The cookies of all values in one field, as in Caddy; none leaves none.
pub(super) fn cookies(rules: &[ValueRule], values: &mut dyn Iterator<Item = &[u8]>) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for cookie in values.flat_map(|value| value.split(|byte| *byte == b';')) {
        let cookie = cookie.trim_ascii();
        let (name, value) = halves(cookie);
        if name.is_empty() {
            continue;
        }
        let rule = rules.iter().find(|rule| rule.name.as_bytes() == name);
        let value = match rule.map(|rule| &rule.action) {
            Some(ValueAction::Delete) => continue,
            Some(ValueAction::Replace(text)) => Cow::Borrowed(text.as_bytes()),
            Some(ValueAction::Hash) => Cow::Owned(hash(value.unwrap_or_default()).into_bytes()),
            None => Cow::Borrowed(value.unwrap_or_default()),
        };
        if !out.is_empty() {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(name);
        out.push(b'=');
        out.extend_from_slice(&value);
    }
    if out.is_empty() { Vec::new() } else { vec![out] }
}

/// What is before the first `=`, and what is behind it.
fn halves(pair: &[u8]) -> (&[u8], Option<&[u8]>) {
    match pair.iter().position(|byte| *byte == b'=') {
        Some(at) => (pair.get(..at).unwrap_or_default(), pair.get(at + 1..)),
        None => (pair, None),
    }
}

/// As forms encode (WHATWG URL, application/x-www-form-urlencoded).
fn push_encoded(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => out.push(byte),
            b' ' => out.push(b'+'),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, action: ValueAction) -> ValueRule {
        ValueRule { name: name.to_owned(), action }
    }

    fn rules() -> Vec<ValueRule> {
        vec![
            rule("gone", ValueAction::Delete),
            rule("secret", ValueAction::Replace("REDACTED".to_owned())),
            rule("hashed", ValueAction::Hash),
        ]
    }

    #[test]
    fn parameters_are_changed_and_the_others_stay_as_sent() {
        for (uri, expected) in [
            ("/a", "/a"),
            ("/a?", "/a?"),
            ("/a?b=%41&c", "/a?b=%41&c"),
            ("/a?gone=1", "/a"),
            ("/a?gone=1&b=2&gone", "/a?b=2"),
            ("/a?secret=1&secret", "/a?secret=REDACTED&secret=REDACTED"),
            ("/a?s%65cret=1", "/a?secret=REDACTED"),
            ("/a?hashed=abc", "/a?hashed=ba7816bf"),
        ] {
            assert_eq!(String::from_utf8_lossy(&query(&rules(), uri.as_bytes())), expected, "{uri}");
        }
    }

    #[test]
    fn cookies_are_changed_and_joined() {
        let shown = |values: &[&[u8]]| {
            let cookies = cookies(&rules(), &mut values.iter().copied());
            cookies.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(&[b"a=1; secret=2", b"hashed=abc;gone=3"]),
            ["a=1; secret=REDACTED; hashed=ba7816bf"]
        );
        assert_eq!(shown(&[b"gone=1; ;"]), Vec::<String>::new());
    }

    #[test]
    fn addresses_keep_their_first_bits() {
        for (value, expected) in [
            ("192.0.2.77", "192.0.0.0"),
            ("192.0.2.77:8080", "192.0.0.0:8080"),
            ("2001:db8:1:2::9", "2001:db8::"),
            ("[2001:db8:1:2::9]:443", "[2001:db8::]:443"),
            ("::ffff:192.0.2.77", "192.0.0.0"),
            ("192.0.2.77, unknown,10.1.2.3", "192.0.0.0, unknown, 10.1.0.0"),
            ("@", "@"),
        ] {
            assert_eq!(masked(value.as_bytes(), 16, 32), expected, "{value}");
        }
        assert_eq!(masked(b"192.0.2.77, 2001:db8::1", 0, 0), "0.0.0.0, ::");
        assert_eq!(masked(b"192.0.2.77, 2001:db8::1", 32, 128), "192.0.2.77, 2001:db8::1");
    }
}
