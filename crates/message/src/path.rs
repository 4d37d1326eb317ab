//! The path of a request: read once, for matchers, prefixes, limits, files, applications and upstreams alike.
//!
//! Owns the two forms of a path. What is passed on keeps every byte that the client sent, with dot segments resolved.
//! What is compared is decoded too, so that one resource has one spelling. A path that two readers could take for two
//! resources has neither form: it is refused. The query is never looked at.

use std::borrow::Cow;

use onehop_config::checked::PathPattern;

use crate::glob;
use crate::uri::{decode_at, replace, with_leading_slash};

/// Stands for `%2f` in the canonical form. A NUL is in no path: both of its spellings are refused.
pub const ENCODED_SLASH: u8 = 0;

/// The path of a request, as it is at some point of its routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath<'a> {
    /// As it is passed on.
    sent: Cow<'a, [u8]>,
    /// As it is compared, where that is not the same.
    canonical: Option<Canonical>,
}

/// A path as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Canonical {
    /// Without escapes; an encoded slash is [`ENCODED_SLASH`].
    decoded: Vec<u8>,
    /// The same with `%2f` and runs of slashes as one slash.
    merged: Vec<u8>,
}

/// A path with more than one reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ambiguous;

impl<'a> RequestPath<'a> {
    /// The path `/`: that of a target without one (RFC 9112 section 3.2.1), and of a request whose own is refused.
    pub const ROOT: Self = Self { sent: Cow::Borrowed(b"/"), canonical: None };

    /// Reads a path as it was sent, or as a rewrite has made it. One scan, and no allocation unless there is something
    /// to decode, to resolve or to refuse.
    pub fn read(sent: Cow<'a, [u8]>) -> Result<Self, Ambiguous> {
        if sent.is_empty() {
            return Ok(Self::ROOT);
        }
        if is_plain(&sent) {
            return Ok(Self { sent, canonical: None });
        }
        let sent = if has_dot_segments(&sent)? { Cow::Owned(without_dot_segments(&sent)) } else { sent };
        let canonical = Canonical::of(&sent)?;
        Ok(Self { sent, canonical })
    }

    /// The path as it is passed on: dot segments are resolved, all other bytes are the client's.
    pub fn sent(&self) -> &[u8] {
        &self.sent
    }

    /// Whether it is the client's own, unchanged.
    pub fn is_borrowed(&self) -> bool {
        matches!(self.sent, Cow::Borrowed(_))
    }

    /// The path without escapes. An encoded slash stays apart from others, as [`ENCODED_SLASH`].
    pub fn decoded(&self) -> &[u8] {
        self.canonical.as_ref().map_or(&self.sent, |canonical| &canonical.decoded)
    }

    /// The path without escapes and doubled slashes, with `%2f` as a slash.
    pub fn merged(&self) -> &[u8] {
        self.canonical.as_ref().map_or(&self.sent, |canonical| &canonical.merged)
    }

    /// Whether it begins with two slashes. Resolved as a reference it names another host (RFC 3986 section 4.2):
    /// `new URL("//a/b", base)` has the path `/b`.
    pub fn is_network_path(&self) -> bool {
        self.sent.starts_with(b"//")
    }

    /// Whether it fits one of the patterns, without regard to case.
    pub fn fits_any(&self, patterns: &[PathPattern]) -> bool {
        patterns.iter().any(|pattern| self.fits(pattern))
    }

    fn fits(&self, pattern: &PathPattern) -> bool {
        match pattern {
            PathPattern::Any => true,
            PathPattern::Exact(text) => self.as_compared_with(text).eq_ignore_ascii_case(text.as_bytes()),
            PathPattern::Prefix(text) => {
                let start = self.as_compared_with(text);
                start.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text.as_bytes()))
            }
            PathPattern::Suffix(text) => {
                let path = self.as_compared_with(text);
                let end = path.len().checked_sub(text.len()).and_then(|at| path.get(at..));
                end.is_some_and(|end| end.eq_ignore_ascii_case(text.as_bytes()))
            }
            PathPattern::Contains(text) => {
                let path = self.as_compared_with(text);
                let is_it = |part: &[u8]| part.eq_ignore_ascii_case(text.as_bytes());
                text.is_empty() || path.windows(text.len()).any(is_it)
            }
            PathPattern::Glob(text) => {
                glob::matches(text.as_bytes(), &self.as_compared_with(text).to_ascii_lowercase())
            }
            PathPattern::Escaped(text) => {
                let path = self.decoded();
                let path = if text.contains("//") { Cow::Borrowed(path) } else { merge(path) };
                glob::matches(&without_escapes(text.as_bytes()), &path.to_ascii_lowercase())
            }
        }
    }

    /// A pattern with a double slash means it; for all others `//` is one slash, so that it is no way around them.
    fn as_compared_with(&self, text: &str) -> Cow<'_, [u8]> {
        if text.contains("//") { plain_slashes(self.decoded()) } else { Cow::Borrowed(self.merged()) }
    }

    /// Takes off a prefix, which is given decoded; `None` where the path does not begin so. Compared as patterns are.
    pub fn without_prefix(&self, prefix: &str) -> Option<Result<RequestPath<'static>, Ambiguous>> {
        let slash_at = |at: usize| match decode_at(&self.sent, at) {
            Some((b'/', next)) => Some(next),
            _ => None,
        };
        let (merges, keeps_escapes) = (!prefix.contains("//"), prefix.contains('%'));
        let (mut at, mut after_slash) = (0, false);
        for expected in &*decode(prefix.as_bytes()) {
            while merges
                && after_slash
                && let Some(next) = slash_at(at)
            {
                at = next;
            }
            let (byte, next) = decode_at(&self.sent, at)?;
            let is_encoded_slash = keeps_escapes && byte == b'/' && next > at + 1;
            let byte = if is_encoded_slash { ENCODED_SLASH } else { byte };
            if !byte.eq_ignore_ascii_case(expected) {
                return None;
            }
            (at, after_slash) = (next, byte == b'/');
        }
        let rest = self.sent.get(at..).unwrap_or_default();
        // Slashes where the prefix ended are one slash, as they were for the matcher.
        let doubled = rest.iter().take_while(|byte| **byte == b'/').count().saturating_sub(1);
        let rest = with_leading_slash(rest.get(doubled..).unwrap_or_default());
        Some(RequestPath::read(Cow::Owned(rest)))
    }

    /// Removes a suffix, which is given decoded, in any case, as in patterns; `None` if the path does not end with it.
    pub fn without_suffix(&self, suffix: &str) -> Option<Result<RequestPath<'static>, Ambiguous>> {
        let keeps_escapes = suffix.contains('%');
        let mut ends = Vec::new();
        let mut at = 0;
        while let Some((byte, next)) = decode_at(&self.sent, at) {
            let is_encoded_slash = keeps_escapes && byte == b'/' && next > at + 1;
            ends.push((if is_encoded_slash { ENCODED_SLASH } else { byte }, at));
            at = next;
        }
        let expected = decode(suffix.as_bytes());
        let end = ends.split_off(ends.len().checked_sub(expected.len())?);
        let is_same =
            end.iter().zip(&*expected).all(|((byte, _), expected)| byte.eq_ignore_ascii_case(expected));
        let rest = self.sent.get(..end.first().map_or(at, |(_, begin)| *begin)).unwrap_or_default();
        is_same.then(|| RequestPath::read(Cow::Owned(rest.to_vec())))
    }

    /// Replaces the first `most` occurrences of `find` in the path as it is passed on, escapes included. As in Caddy,
    /// several slashes in a row count as one, unless `find` has two in a row.
    pub fn replaced(&self, find: &[u8], by: &[u8], most: usize) -> Result<RequestPath<'static>, Ambiguous> {
        let has_run = find.windows(2).any(|pair| pair == b"//");
        let path = if has_run { Cow::Borrowed(&*self.sent) } else { merge(&self.sent) };
        RequestPath::read(Cow::Owned(with_leading_slash(&replace(&path, find, by, most))))
    }
}

impl Canonical {
    /// `None` where the path is its own canonical form.
    fn of(sent: &[u8]) -> Result<Option<Self>, Ambiguous> {
        let decoded = decode(sent);
        let merged = merge(&plain_slashes(&decoded)).into_owned();
        if matches!(decoded, Cow::Borrowed(_)) && merged == sent {
            return Ok(None);
        }
        Ok(Some(Self { decoded: decoded.into_owned(), merged }))
    }
}

/// Whether there is nothing to decode, to resolve or to refuse.
fn is_plain(path: &[u8]) -> bool {
    // Without a slash in front, the first segment begins with the path.
    let mut before = if path.first() == Some(&b'/') { 0 } else { b'/' };
    for byte in path {
        match byte {
            b'%' | b'\\' | 0 => return false,
            b'/' | b'.' if before == b'/' => return false,
            _ => before = *byte,
        }
    }
    true
}

/// Whether a path has dot segments to resolve. Refuses what has two readings:
///
/// - a backslash and `%5c`: for WHATWG's URL a slash, for RFC 3986 none;
/// - a NUL, which ends a name in system calls;
/// - dot segments with an escape in them: for RFC 3986 section 6.2.2 they are dot segments, but whoever splits a path
///   before decoding it sees none;
/// - dot segments with parameters, `..;a`: servlet containers take parameters off first;
/// - dot segments behind `//`: they take an empty segment away (RFC 3986 section 5.2.4), or the one before it where
///   slashes are merged first;
/// - dot segments beside `%2f`, and `..` anywhere behind one: they take away more or less, depending on whether it
///   separates segments.
fn has_dot_segments(path: &[u8]) -> Result<bool, Ambiguous> {
    let (mut found, mut is_doubled, mut has_encoded) = (false, false, false);
    let mut rest = path.strip_prefix(b"/").unwrap_or(path);
    // A segment here ends at a slash, plain or encoded.
    let mut before = Separator::Slash;
    loop {
        let (segment, behind, next) = first_segment(rest);
        if has_backslash_or_nul(segment) {
            return Err(Ambiguous);
        }
        match dots(segment) {
            Dots::None => {}
            Dots::Disguised => return Err(Ambiguous),
            Dots::Plain(count) => {
                let beside = before == Separator::Encoded || behind == Some(Separator::Encoded);
                if beside || is_doubled || (count == 2 && has_encoded) {
                    return Err(Ambiguous);
                }
                found = true;
            }
        }
        let Some(separator) = behind else { return Ok(found) };
        is_doubled |= segment.is_empty();
        has_encoded |= separator == Separator::Encoded;
        (before, rest) = (separator, next);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    Slash,
    Encoded,
}

/// The segment that a path begins with, what ends it, and what is behind that.
fn first_segment(path: &[u8]) -> (&[u8], Option<Separator>, &[u8]) {
    for (at, byte) in path.iter().enumerate() {
        let (separator, length) = match byte {
            b'/' => (Separator::Slash, 1),
            b'%' if matches!(path.get(at + 1..at + 3), Some([b'2', b'f' | b'F'])) => (Separator::Encoded, 3),
            _ => continue,
        };
        let (segment, rest) = path.split_at(at);
        return (segment, Some(separator), rest.get(length..).unwrap_or_default());
    }
    (path, None, &[])
}

fn has_backslash_or_nul(segment: &[u8]) -> bool {
    let mut at = 0;
    while let Some((byte, next)) = decode_at(segment, at) {
        if matches!(byte, b'\\' | 0) {
            return true;
        }
        at = next;
    }
    false
}

enum Dots {
    None,
    /// As many, as they are.
    Plain(u8),
    /// With an escape, or with parameters.
    Disguised,
}

fn dots(segment: &[u8]) -> Dots {
    let (mut at, mut count, mut is_plain) = (0, 0, true);
    while let Some((byte, next)) = decode_at(segment, at) {
        match byte {
            b'.' if count < 2 => count += 1,
            b';' if count > 0 && next == at + 1 => return Dots::Disguised,
            _ => return Dots::None,
        }
        is_plain &= next == at + 1;
        at = next;
    }
    match (count, is_plain) {
        (0, _) => Dots::None,
        (count, true) => Dots::Plain(count),
        (_, false) => Dots::Disguised,
    }
}

/// Resolves dot segments as RFC 3986 section 5.2.4 has it: `..` at the root stays there.
fn without_dot_segments(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut segments = path.strip_prefix(b"/").unwrap_or(path).split(|byte| *byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"." => {}
            b".." => out.truncate(out.iter().rposition(|byte| *byte == b'/').unwrap_or(0)),
            _ => {
                out.push(b'/');
                out.extend_from_slice(segment);
                continue;
            }
        }
        if is_last {
            out.push(b'/');
        }
    }
    out
}

/// Without escapes, a broken one stays as it is; an encoded slash becomes [`ENCODED_SLASH`].
pub fn decode(path: &[u8]) -> Cow<'_, [u8]> {
    if !path.contains(&b'%') {
        return Cow::Borrowed(path);
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some((byte, next)) = decode_at(path, at) {
        decoded.push(if byte == b'/' && next > at + 1 { ENCODED_SLASH } else { byte });
        at = next;
    }
    Cow::Owned(decoded)
}

/// A shell pattern for decoded paths, of one with escapes. What an escape stands for is never a wildcard.
fn without_escapes(pattern: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(pattern.len());
    let mut at = 0;
    while let Some((byte, next)) = decode_at(pattern, at) {
        match (byte, next > at + 1) {
            (b'/', true) => plain.push(ENCODED_SLASH),
            (b'*' | b'?' | b'[' | b'\\', true) => plain.extend_from_slice(&[b'\\', byte]),
            (byte, _) => plain.push(byte.to_ascii_lowercase()),
        }
        at = next;
    }
    plain
}

/// With encoded slashes as slashes.
fn plain_slashes(decoded: &[u8]) -> Cow<'_, [u8]> {
    if !decoded.contains(&ENCODED_SLASH) {
        return Cow::Borrowed(decoded);
    }
    let plain = decoded.iter().map(|byte| if *byte == ENCODED_SLASH { b'/' } else { *byte });
    Cow::Owned(plain.collect())
}

/// With runs of slashes as one slash.
fn merge(path: &[u8]) -> Cow<'_, [u8]> {
    if !path.windows(2).any(|pair| pair == b"//") {
        return Cow::Borrowed(path);
    }
    let mut merged = path.to_vec();
    merged.dedup_by(|byte, before| *byte == b'/' && *before == b'/');
    Cow::Owned(merged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(path: &str) -> Result<RequestPath<'_>, Ambiguous> {
        RequestPath::read(Cow::Borrowed(path.as_bytes()))
    }

    fn fits(pattern: &PathPattern, path: &str) -> bool {
        read(path).unwrap().fits_any(std::slice::from_ref(pattern))
    }

    #[test]
    fn a_path_is_passed_on_with_its_dot_segments_resolved_and_no_other_byte_changed() {
        for (path, sent) in [
            ("", "/"),
            ("*", "*"),
            (".", "/"),
            ("..", "/"),
            ("./a", "/a"),
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/a/./b", "/a/b"),
            ("/a/../b/", "/b/"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/..", "/"),
            ("/../..", "/"),
            ("/../a", "/a"),
            ("/a/b/../../../c", "/c"),
            ("/./%7Ea/%2F/b%20c//d;e=f/", "/%7Ea/%2F/b%20c//d;e=f/"),
            ("/../a%2fb", "/a%2fb"),
            ("/a%2fb/./c", "/a%2fb/c"),
            ("/a/..//b", "//b"),
            ("//a//", "//a//"),
            ("/...", "/..."),
            ("/.well-known/a..b/.c", "/.well-known/a..b/.c"),
            ("/%2e%2e%2e/%2ehidden/a%2e", "/%2e%2e%2e/%2ehidden/a%2e"),
            ("/%252e%252e/%255c/%2500", "/%252e%252e/%255c/%2500"),
            ("/%/%2/%zz/%u002e", "/%/%2/%zz/%u002e"),
            ("/a;../b;.", "/a;../b;."),
            ("/;a", "/;a"),
            ("/\u{fc}/%C3%BC", "/\u{fc}/%C3%BC"),
        ] {
            assert_eq!(read(path).unwrap().sent(), sent.as_bytes(), "{path}");
        }
    }

    #[test]
    fn a_path_with_two_readings_is_refused() {
        for path in [
            "/a\\b",
            "/.\\admin",
            "\\",
            "/%5c",
            "/a%5Cb",
            "/\0",
            "/%00",
            "/a%00.png",
            "/%2e",
            "/%2E/a",
            "/%2e%2e/a",
            "/.%2e/a",
            "/%2e./a",
            "/a/%2e%2E",
            "/a/%2e",
            "/..;/a",
            "/.;x/a",
            "/%2e%2e;/a",
            "/a/..;x=y",
            "/a//../b",
            "/a//./b",
            "/a//b/c/..",
            "//..",
            "//a/../b",
            "/a%2f/../b",
            "/..%2fa",
            "/a/..%2f",
            "/a%2f..",
            "/a/%2f..",
            "/%2f../a",
            "/a%2F../b",
            "/.%2fa",
            "/a%2f.",
            "/a%2fb/../c",
            "/%2f./a",
            "/a%2f%2e%2e/b",
            "/a%2fb%2f../c",
        ] {
            assert_eq!(read(path), Err(Ambiguous), "{path}");
        }
    }

    #[test]
    fn a_plain_path_is_neither_copied_nor_decoded() {
        for path in ["/", "/a/b.c", "/assets/index-B3kq9zXw.js", "/a;b=c/d.e..f/", "*", "/.well-known/x"] {
            let read = read(path).unwrap();
            assert!(read.is_borrowed() && read.canonical.is_none(), "{path}");
        }
    }

    #[test]
    fn a_pattern_is_compared_without_regard_to_case_escapes_and_doubled_slashes() {
        let prefix = PathPattern::Prefix("/admin/".into());
        for path in [
            "/admin/",
            "/Admin/x",
            "/%61dmin/x",
            "//admin/x",
            "/admin//x",
            "/x/../admin/",
            "/./admin/x",
            "/admin%2fx",
            "/%2fadmin/x",
            "/../admin/x",
        ] {
            assert!(fits(&prefix, path), "{path}");
        }
        for path in ["/admin", "/xadmin/", "/x//admin/", "/admin;/x", "/%2561dmin/x", "/admin/../x"] {
            assert!(!fits(&prefix, path), "{path}");
        }
        for (pattern, path, expected) in [
            (PathPattern::Any, "*", true),
            (PathPattern::Exact("/a b/(c)".into()), "/a%20b/%28c%29", true),
            (PathPattern::Exact("/login".into()), "/login/", false),
            (PathPattern::Exact("/login".into()), "//LOGIN", true),
            (PathPattern::Suffix(".php".into()), "/a%2ePHP", true),
            (PathPattern::Suffix(".php".into()), "hp", false),
            (PathPattern::Contains("/b/".into()), "/a//b//c", true),
            (PathPattern::Contains("/b/".into()), "/a", false),
            (PathPattern::Glob("/a/*/c".into()), "/A//b/c", true),
            (PathPattern::Glob("/a/*/c".into()), "/a/b/b/c", false),
            (PathPattern::Glob("/[ab]c?".into()), "/bcd", true),
        ] {
            assert_eq!(fits(&pattern, path), expected, "{pattern:?} {path}");
        }
    }

    #[test]
    fn a_pattern_with_a_doubled_slash_means_it() {
        let doubled = PathPattern::Prefix("/a//b".into());
        for (path, expected) in [("/a//b/c", true), ("/a%2f/b", true), ("/a/b", false), ("/a///b", false)] {
            assert_eq!(fits(&doubled, path), expected, "{path}");
        }
    }

    #[test]
    fn a_pattern_with_an_escaped_slash_means_it_and_its_other_escapes_are_one_with_what_they_stand_for() {
        for (pattern, path, expected) in [
            ("/a%2fb", "/a%2Fb", true),
            ("/a%2fb", "/a/b", false),
            ("/a%2fb", "//%61%2fb", true),
            ("/my%20files!/*", "/my%20files%21/x", true),
            ("/%61/*", "/a/x", true),
            ("/a%2a", "/a*", true),
            ("/a%2a", "/ab", false),
            ("/a%2f*", "/a%2fb", true),
        ] {
            assert_eq!(fits(&PathPattern::Escaped(pattern.into()), path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_prefix_is_taken_off_however_it_is_spelled_and_the_rest_stays_as_it_is() {
        for (path, prefix, rest) in [
            ("/api/x", "/api", Some("/x")),
            ("/%61PI/x%20y//z", "/api", Some("/x%20y//z")),
            ("/api", "/api", Some("/")),
            ("//api//x", "/api", Some("/x")),
            ("/api/v1//x", "/api/v1/", Some("/x")),
            ("/api//v1/x", "/api/v1", Some("/x")),
            ("/api%2fx", "/api", Some("/%2fx")),
            ("/a%2fb/x", "/a%2Fb", Some("/x")),
            ("/a/b/x", "/a%2fb", None),
            ("/apix", "/api", Some("/x")),
            ("/ap", "/api", None),
        ] {
            let taken = read(path).unwrap().without_prefix(prefix);
            let taken = taken.map(|taken| String::from_utf8(taken.unwrap().sent().to_vec()).unwrap());
            assert_eq!(taken.as_deref(), rest, "{path} {prefix}");
        }
    }

    #[test]
    fn an_end_is_taken_off_however_it_is_spelled_and_the_rest_stays_as_it_is() {
        for (path, suffix, rest) in [
            ("/a%20b.html", ".html", Some("/a%20b")),
            ("/a.HT%4dl", ".html", Some("/a")),
            ("/a/", "/", Some("/a")),
            ("/a%2f", "/", Some("/a")),
            ("/a%2f", "%2F", Some("/a")),
            ("/a/", "%2f", None),
            ("/", "/", Some("/")),
            ("/a.htm", ".html", None),
            ("/a", "/long/a", None),
        ] {
            let taken = read(path).unwrap().without_suffix(suffix);
            let taken = taken.map(|taken| String::from_utf8(taken.unwrap().sent().to_vec()).unwrap());
            assert_eq!(taken.as_deref(), rest, "{path} {suffix}");
        }
        assert_eq!(read("/a/b%2f.x").unwrap().without_suffix("b%2f.x").unwrap().unwrap().sent(), b"/a/");
    }

    #[test]
    fn what_is_replaced_is_read_anew() {
        for (path, find, by, most, expected) in [
            ("/a/b/a", "/a", "/c", usize::MAX, Ok("/c/b/c")),
            ("/a/b/a", "/a", "/c", 1, Ok("/c/b/a")),
            ("//docs//x", "/docs/", "/v1/", usize::MAX, Ok("/v1/x")),
            ("/a//b", "//", "-", usize::MAX, Ok("/a-b")),
            ("/a/b", "/a/", "", usize::MAX, Ok("/b")),
            ("/a/x/b", "x", "..", usize::MAX, Ok("/b")),
            ("/a/x", "x", "%2e%2e", usize::MAX, Err(Ambiguous)),
        ] {
            let replaced = read(path).unwrap().replaced(find.as_bytes(), by.as_bytes(), most);
            let replaced = replaced.map(|path| String::from_utf8(path.sent().to_vec()).unwrap());
            assert_eq!(replaced, expected.map(str::to_owned), "{path} {find} {by}");
        }
    }

    #[test]
    fn what_a_prefix_leaves_is_read_anew() {
        let dots = read("/api../admin/x").unwrap().without_prefix("/api").unwrap();
        assert_eq!(dots.unwrap().sent(), b"/admin/x");
        assert_eq!(read("/api%2e%2e/admin").unwrap().without_prefix("/api"), Some(Err(Ambiguous)));
    }

    proptest! {
        #[test]
        fn a_path_that_was_read_reads_as_itself(path in "(/([a.;]|%2[eEfF]|%5c|%61|\\.\\.|\\\\){0,4}){1,5}") {
            if let Ok(read) = read(&path) {
                let again = RequestPath::read(Cow::Borrowed(read.sent())).unwrap();
                prop_assert_eq!(&again, &read);
                for segment in read.merged().split(|byte| *byte == b'/') {
                    prop_assert!(!matches!(segment, b"." | b".."), "{}", path);
                }
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(path in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(read) = RequestPath::read(Cow::Borrowed(&path)) {
                let _ = read.without_prefix("/a/b%2f");
            }
        }
    }
}
