//! Paths as they are routed: decoding, rewriting, taking prefixes off.
//!
//! Works on the escaped path of the request. What may name a file is decided in `handle/files/`,
//! by its stricter rules; nothing here lets a path reach the file system.

use std::borrow::Cow;

/// A path with its escapes resolved, as matchers compare it; a broken escape stays as it is.
pub(crate) fn decode_path(path: &[u8]) -> Cow<'_, [u8]> {
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

/// A path as Go's `path.Clean` has it, but keeping a final slash: matchers must not be evaded by
/// `//` or `/./`.
pub(crate) fn clean(path: &[u8]) -> Cow<'_, [u8]> {
    let has = |needle: &[u8]| path.windows(needle.len()).any(|w| w == needle);
    if !has(b"//") && !has(b"/.") {
        return Cow::Borrowed(path);
    }
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|b| *b == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    let mut cleaned = vec![b'/'];
    cleaned.extend_from_slice(&kept.join(&b'/'));
    let is_folder = path.ends_with(b"/") || path.ends_with(b"/.") || path.ends_with(b"/..");
    if is_folder && cleaned.len() > 1 {
        cleaned.push(b'/');
    }
    Cow::Owned(cleaned)
}

/// Splits what a rewrite gives into path and query and applies it: a part that is absent stays.
pub(crate) fn rewrite<'a>(
    to: &[u8],
    path: Cow<'a, [u8]>,
    query: Option<Cow<'a, [u8]>>,
) -> (Cow<'a, [u8]>, Option<Cow<'a, [u8]>>) {
    let to = to.split(|b| *b == b'#').next().unwrap_or(to);
    let mark = to.iter().position(|b| *b == b'?');
    let (new_path, new_query) = match mark {
        Some(mark) => (&to[..mark], Some(&to[mark + 1..])),
        None => (to, None),
    };
    let path = if new_path.is_empty() { path } else { Cow::Owned(with_leading_slash(new_path)) };
    let query = match new_query {
        None => query,
        Some(b"") => None,
        Some(new) => Some(Cow::Owned(new.to_vec())),
    };
    (path, query)
}

/// The escaped path without a prefix that is given decoded; `None` where it does not begin so.
/// Compared without regard to case, as matchers are.
pub(crate) fn strip_prefix(path: &[u8], prefix: &str) -> Option<Vec<u8>> {
    let mut at = 0;
    for expected in prefix.bytes() {
        let (byte, next) = decode_at(path, at)?;
        if !byte.eq_ignore_ascii_case(&expected) {
            return None;
        }
        at = next;
    }
    Some(with_leading_slash(&path[at..]))
}

/// Bytes that may stand in a path as they are (RFC 3986 section 3.3); everything else is escaped.
pub(crate) fn escape_path(decoded: &[u8], out: &mut Vec<u8>) {
    for byte in decoded {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(byte) {
            out.push(*byte);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// The last segment of a path.
pub(crate) fn last_segment(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// The extension of a path with its dot, or empty.
pub(crate) fn file_extension(path: &[u8]) -> &[u8] {
    let name = last_segment(path);
    name.iter().rposition(|b| *b == b'.').map_or(b"", |dot| &name[dot..])
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

fn with_leading_slash(path: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(path.len() + 1);
    if !path.starts_with(b"/") {
        whole.push(b'/');
    }
    whole.extend_from_slice(path);
    whole
}

fn decode_at(path: &[u8], at: usize) -> Option<(u8, usize)> {
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
    fn escapes_are_resolved_and_broken_ones_stay() {
        let cases = [("/a%20b", "/a b"), ("/a%2", "/a%2"), ("/%zz", "/%zz"), ("/%2e%2E", "/.."), ("/", "/")];
        for (path, expected) in cases {
            assert_eq!(decode_path(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }

    #[test]
    fn a_cleaned_path_has_no_empty_or_dot_segments_and_keeps_its_final_slash() {
        let cases = [
            ("//a", "/a"),
            ("/a/./b", "/a/b"),
            ("/a/../b/", "/b/"),
            ("/../..", "/"),
            ("/a/..", "/"),
            ("/.x", "/.x"),
        ];
        for (path, expected) in cases {
            assert_eq!(clean(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }

    #[test]
    fn a_rewrite_without_a_question_mark_keeps_the_query() {
        let apply = |to: &str| {
            let (path, query) = rewrite(to.as_bytes(), Cow::Borrowed(b"/old"), Some(Cow::Borrowed(b"q=1")));
            format!(
                "{}?{}",
                String::from_utf8_lossy(&path),
                String::from_utf8_lossy(&query.unwrap_or_default())
            )
        };
        assert_eq!(apply("/new"), "/new?q=1");
        assert_eq!(apply("/new?"), "/new?");
        assert_eq!(apply("?a=b"), "/old?a=b");
        assert_eq!(apply("new#part"), "/new?q=1");
    }

    #[test]
    fn a_prefix_is_taken_off_however_it_is_escaped() {
        assert_eq!(strip_prefix(b"/api/x", "/api"), Some(b"/x".to_vec()));
        assert_eq!(strip_prefix(b"/%61PI/x%20y", "/api"), Some(b"/x%20y".to_vec()));
        assert_eq!(strip_prefix(b"/api", "/api"), Some(b"/".to_vec()));
        assert_eq!(strip_prefix(b"/ap", "/api"), None);
    }
}
