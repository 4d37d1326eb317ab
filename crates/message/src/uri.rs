//! Pieces of URIs: decoding, escaping, what a rewrite gives.
//!
//! Works on the escaped path of the request. What may name a file is decided in `onehop_files::path`,
//! by its stricter rules; nothing here lets a path reach the file system.

use std::borrow::Cow;

/// A path with its escapes resolved, as matchers compare it; a broken escape stays as it is.
pub fn decode_path(path: &[u8]) -> Cow<'_, [u8]> {
    if !path.contains(&b'%') {
        return Cow::Borrowed(path);
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some((byte, next)) = decode_at(path, at) {
        decoded.push(byte);
        at = next;
    }
    Cow::Owned(decoded)
}

/// A name or a value of a query with its escapes resolved; `+` is a space, as forms and `URLSearchParams` write one. A
/// broken escape stays as it is.
pub fn decode_query(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'+') {
        return decode_path(text);
    }
    let spaced: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    Cow::Owned(decode_path(&spaced).into_owned())
}

/// The values of a parameter in a query, without their escapes, in their order. `name` has none.
pub fn query_values<'q>(query: &'q [u8], name: &'q [u8]) -> impl Iterator<Item = Cow<'q, [u8]>> {
    let pairs = query.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).map(|pair| {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        (halves.next().unwrap_or_default(), halves.next().unwrap_or_default())
    });
    pairs.filter(move |(key, _)| *decode_query(key) == *name).map(|(_, value)| decode_query(value))
}

/// The bytes that a percent-encoded text stands for (RFC 3986 section 2.1); `None` where an escape is broken.
pub fn percent_decode(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !text.contains(&b'%') {
        return Some(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some((byte, next)) = decode_at(text, at) {
        // A percent sign that stands for itself begins no escape.
        if next == at + 1 && byte == b'%' {
            return None;
        }
        decoded.push(byte);
        at = next;
    }
    Some(Cow::Owned(decoded))
}

/// The path and the query that a rewrite gives; `None` for a part that stays. An empty query takes the query away.
pub fn rewrite(to: &[u8]) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let to = to.split(|b| *b == b'#').next().unwrap_or(to);
    let (path, query) = match to.iter().position(|b| *b == b'?') {
        Some(mark) => (&to[..mark], Some(to[mark + 1..].to_vec())),
        None => (to, None),
    };
    ((!path.is_empty()).then(|| with_leading_slash(path)), query)
}

/// The text with its first `most` occurrences of `find` replaced by `by`. An empty `find` replaces nothing.
pub fn replace(text: &[u8], find: &[u8], by: &[u8], most: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let (mut at, mut count) = (0, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if count < most && !find.is_empty() && rest.starts_with(find) {
            out.extend_from_slice(by);
            at += find.len();
            count += 1;
        } else {
            out.extend(rest.first());
            at += 1;
        }
    }
    out
}

/// Bytes that may stand in a path as they are (RFC 3986 section 3.3); everything else is escaped.
pub fn escape_path(decoded: &[u8], out: &mut Vec<u8>) {
    for byte in decoded {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(byte) {
            out.push(*byte);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// A name or a value of a query, as forms write it: all but letters, digits and `-_.~` is escaped, a space is `+`.
pub fn escape_query(decoded: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(decoded.len());
    for byte in decoded {
        match byte {
            b' ' => out.push(b'+'),
            byte if byte.is_ascii_alphanumeric() || b"-_.~".contains(byte) => out.push(*byte),
            byte => out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
        }
    }
    out
}

/// Replaces all bytes that a path cannot have, where they belong to no escape.
pub fn escape_rest_of_path(path: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some((byte, next)) = decode_at(path, at) {
        match path.get(at..next) {
            Some(escape) if next > at + 1 => out.extend_from_slice(escape),
            _ => escape_path(&[byte], out),
        }
        at = next;
    }
}

/// The last segment of a path.
pub fn last_segment(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// The extension of a path with its dot, or empty.
pub fn file_extension(path: &[u8]) -> &[u8] {
    let name = last_segment(path);
    name.iter().rposition(|b| *b == b'.').map_or(b"", |dot| &name[dot..])
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// With a slash at its beginning.
pub fn with_leading_slash(path: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(path.len() + 1);
    if !path.starts_with(b"/") {
        whole.push(b'/');
    }
    whole.extend_from_slice(path);
    whole
}

/// A host without its port; the brackets of an IPv6 literal go too, and the dot that ends a name which
/// is written out to the root. Every comparison of hosts begins here, so that none can be evaded.
pub fn host_without_port(host: &[u8]) -> &[u8] {
    if let Some(rest) = host.strip_prefix(b"[") {
        return rest.split(|b| *b == b']').next().unwrap_or(rest);
    }
    let name = match host.iter().rposition(|b| *b == b':') {
        Some(colon) => &host[..colon],
        None => host,
    };
    name.strip_suffix(b".").unwrap_or(name)
}

/// The byte at a place, without its escape, and where the next one is. A broken escape is no escape.
pub fn decode_at(path: &[u8], at: usize) -> Option<(u8, usize)> {
    let byte = *path.get(at)?;
    if byte == b'%'
        && let (Some(high), Some(low)) = (hex(path.get(at + 1)), hex(path.get(at + 2)))
    {
        return Some((high * 16 + low, at + 3));
    }
    Some((byte, at + 1))
}

fn hex(byte: Option<&u8>) -> Option<u8> {
    let digit = (*byte? as char).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_sign_in_a_query_is_a_space_and_an_escaped_one_is_not() {
        for (escaped, plain) in [
            ("a%2Bb", "a+b"),
            ("a%2", "a%2"),
            ("%", "%"),
            ("%zz%+1", "%zz% 1"),
            ("a+b%20c%2B", "a b c+"),
            ("ab", "ab"),
        ] {
            assert_eq!(&*decode_query(escaped.as_bytes()), plain.as_bytes(), "{escaped}");
        }
    }

    #[test]
    fn what_a_path_cannot_have_is_escaped_and_its_escapes_stay() {
        for (path, escaped) in [
            ("/a%2fb", "/a%2fb"),
            ("/a?b#c", "/a%3Fb%23c"),
            ("/%2", "/%252"),
            ("%", "%25"),
            ("/\u{fc}", "/%C3%BC"),
        ] {
            let mut out = Vec::new();
            escape_rest_of_path(path.as_bytes(), &mut out);
            assert_eq!(out, escaped.as_bytes(), "{path}");
        }
    }

    #[test]
    fn escapes_are_resolved_and_broken_ones_stay() {
        let cases = [("/a%20b", "/a b"), ("/a%2", "/a%2"), ("/%zz", "/%zz"), ("/%2e%2E", "/.."), ("/", "/")];
        for (path, expected) in cases {
            assert_eq!(decode_path(path.as_bytes()), expected.as_bytes(), "{path}");
            let unbroken = (!expected.contains('%')).then_some(expected.as_bytes());
            assert_eq!(percent_decode(path.as_bytes()).as_deref(), unbroken, "{path}");
        }
    }

    #[test]
    fn a_rewrite_without_a_question_mark_keeps_the_query() {
        let text = |part: Option<Vec<u8>>| part.map(|part| String::from_utf8(part).unwrap());
        for (to, path, query) in [
            ("/new", Some("/new"), None),
            ("/new?", Some("/new"), Some("")),
            ("?a=b", None, Some("a=b")),
            ("new#part", Some("/new"), None),
        ] {
            let (new_path, new_query) = rewrite(to.as_bytes());
            assert_eq!((text(new_path).as_deref(), text(new_query).as_deref()), (path, query), "{to}");
        }
    }
}
