//! From the path of a request to the name of a file below a root.
//!
//! Owns the decision whether a path can name a file at all. Pure. Must never let through a name that
//! a file system, or another decoder behind us, could read differently: what is ambiguous is refused,
//! not repaired. Paths of requests have no dot segments any more (`onehop_message::path`); those of candidates and names are
//! resolved here, so nothing behind this module sees them.

use std::borrow::Cow;

use onehop_message::uri::percent_decode;

use crate::limits::PATH_BYTES_MAX;

/// A path that names something below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePath<'a> {
    /// Decoded, segments joined by single slashes, no slash at either end; empty for the root.
    /// Not necessarily UTF-8.
    pub bytes: Cow<'a, [u8]>,
    /// The path ended in a slash (or in a dot segment, which means the same): it asks for a folder.
    pub folder: bool,
    /// A segment begins with a dot. `.well-known` at the root does not count (RFC 8615).
    pub dotfile: bool,
}

/// Why a path names no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadPath {
    /// A percent sign without two hexadecimal digits (RFC 3986 section 2.1).
    Escape,
    /// `%2f`: one segment for us, two for others.
    EscapedSlash,
    /// A backslash, plain or escaped: browsers and some file systems take it for a slash.
    Backslash,
    /// A NUL ends a name in system calls.
    Nul,
    /// `..` would climb above the root.
    AboveRoot,
    /// Longer than [`PATH_BYTES_MAX`] once decoded.
    TooLong,
}

/// Reads the path of a request, percent-encoded, as far as the query. Allocates only where the path
/// has escapes, dot segments or empty segments.
pub fn parse(path: &[u8]) -> Result<FilePath<'_>, BadPath> {
    match scan(path) {
        Scan::Usual { dotfile } => {
            let bytes = path.strip_prefix(b"/").unwrap_or(path);
            let (bytes, folder) = match bytes.strip_suffix(b"/") {
                Some(bytes) => (bytes, true),
                None => (bytes, bytes.is_empty() && !path.is_empty()),
            };
            if bytes.len() > PATH_BYTES_MAX {
                return Err(BadPath::TooLong);
            }
            Ok(FilePath { bytes: Cow::Borrowed(bytes), folder, dotfile })
        }
        Scan::Unusual => resolve(&decode(path)?, Climb::Refused),
    }
}

/// Reads a path that is decoded already (a candidate of `try_files`): dots that climb above the root
/// stay at the root, as they do where a file name is joined to its root.
pub fn parse_decoded(path: &[u8]) -> Result<FilePath<'static>, BadPath> {
    if path.contains(&b'\\') {
        return Err(BadPath::Backslash);
    }
    if path.contains(&0) {
        return Err(BadPath::Nul);
    }
    resolve(path, Climb::Clamped)
}

/// Adds `text` with everything escaped that is not plain in a path segment (RFC 3986 section 3.3);
/// slashes stay.
pub fn percent_encode(text: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => out.push(*byte),
            b'-' | b'.' | b'_' | b'~' | b'/' | b'$' | b'&' | b'+' | b',' | b':' | b'=' | b'@' | b'!' => {
                out.push(*byte);
            }
            _ => {
                let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
                out.extend_from_slice(&[b'%', high, low]);
            }
        }
    }
}

/// Whether a path that [`parse`] takes names this file: otherwise nothing should lead there.
pub fn can_be_asked_for(name: &[u8]) -> bool {
    let mut path = b"/".to_vec();
    percent_encode(name, &mut path);
    parse(&path).is_ok_and(|parsed| *parsed.bytes == *name)
}

/// What a first look at a path shows.
enum Scan {
    /// Nothing to decode or resolve: the name is the path without its outer slashes.
    Usual { dotfile: bool },
    /// Escapes, dot segments, empty segments or bytes that may not be there.
    Unusual,
}

/// One pass, byte by byte: paths are short.
fn scan(path: &[u8]) -> Scan {
    let mut dots = false;
    let mut after_slash = true;
    for (at, byte) in path.iter().enumerate() {
        match byte {
            b'%' | b'\\' | 0 => return Scan::Unusual,
            b'/' if after_slash && at > 0 => return Scan::Unusual,
            b'.' if after_slash => dots = true,
            _ => {}
        }
        after_slash = *byte == b'/';
    }
    if !dots {
        return Scan::Usual { dotfile: false };
    }
    let segments = || path.split(|b| *b == b'/');
    if segments().any(|segment| segment == b"." || segment == b"..") {
        return Scan::Unusual;
    }
    let name = path.strip_prefix(b"/").unwrap_or(path);
    Scan::Usual { dotfile: has_dotfile(name) }
}

/// Whether a segment of a resolved path begins with a dot, the well-known folder aside.
fn has_dotfile(path: &[u8]) -> bool {
    path.split(|b| *b == b'/')
        .enumerate()
        .any(|(at, segment)| segment.first() == Some(&b'.') && !(at == 0 && segment == b".well-known"))
}

fn decode(path: &[u8]) -> Result<Cow<'_, [u8]>, BadPath> {
    let decoded = percent_decode(path).ok_or(BadPath::Escape)?;
    // An escape is the only way by which a slash can appear that was not there before.
    let slashes = |bytes: &[u8]| bytes.iter().filter(|b| **b == b'/').count();
    if slashes(&decoded) != slashes(path) {
        return Err(BadPath::EscapedSlash);
    }
    if decoded.contains(&b'\\') {
        return Err(BadPath::Backslash);
    }
    if decoded.contains(&0) {
        return Err(BadPath::Nul);
    }
    Ok(decoded)
}

/// What `..` at the root means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Climb {
    Refused,
    Clamped,
}

fn resolve(path: &[u8], climb: Climb) -> Result<FilePath<'static>, BadPath> {
    let mut bytes: Vec<u8> = Vec::with_capacity(path.len());
    let mut folder = false;
    for segment in path.split(|b| *b == b'/') {
        folder = matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => match bytes.iter().rposition(|b| *b == b'/') {
                Some(slash) => bytes.truncate(slash),
                None if bytes.is_empty() && climb == Climb::Refused => return Err(BadPath::AboveRoot),
                None => bytes.clear(),
            },
            name => {
                if !bytes.is_empty() {
                    bytes.push(b'/');
                }
                bytes.extend_from_slice(name);
            }
        }
    }
    if bytes.len() > PATH_BYTES_MAX {
        return Err(BadPath::TooLong);
    }
    let dotfile = has_dotfile(&bytes);
    Ok(FilePath { bytes: Cow::Owned(bytes), folder: folder && !path.is_empty(), dotfile })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(path: &str, expected: Result<(&str, bool, bool), BadPath>) {
        let expected = expected.map(|(name, folder, dotfile)| (name.as_bytes().to_vec(), folder, dotfile));
        let parsed = parse(path.as_bytes()).map(|path| (path.bytes.into_owned(), path.folder, path.dotfile));
        assert_eq!(parsed, expected, "{path:?}");
    }

    #[test]
    fn a_path_becomes_the_name_of_a_file() {
        check("/", Ok(("", true, false)));
        check("", Ok(("", false, false)));
        check("/index.html", Ok(("index.html", false, false)));
        check("/a/b/c.js", Ok(("a/b/c.js", false, false)));
        check("/a/b/", Ok(("a/b", true, false)));
        check("/a%20b/%C3%A9.txt", Ok(("a b/é.txt", false, false)));
        check("/%61%2e%6as", Ok(("a.js", false, false)));
        check("/a+b", Ok(("a+b", false, false)));
        check("/a;b=c", Ok(("a;b=c", false, false)));
        check("/%3Fa%23b", Ok(("?a#b", false, false)));
        check("/...", Ok(("...", false, true)));
        check("/a..b/..c", Ok(("a..b/..c", false, true)));
    }

    #[test]
    fn dots_and_doubled_slashes_are_resolved() {
        check("//", Ok(("", true, false)));
        check("/a//b", Ok(("a/b", false, false)));
        check("//a", Ok(("a", false, false)));
        check("/a//", Ok(("a", true, false)));
        check("/./a", Ok(("a", false, false)));
        check("/a/.", Ok(("a", true, false)));
        check("/a/..", Ok(("", true, false)));
        check("/a/../b", Ok(("b", false, false)));
        check("/a/b/../../c/", Ok(("c", true, false)));
        check("/a/%2e%2E/b", Ok(("b", false, false)));
        check("/a/%2e/b", Ok(("a/b", false, false)));
    }

    #[test]
    fn a_path_that_could_mean_something_else_is_refused() {
        for (path, why) in [
            ("/..", BadPath::AboveRoot),
            ("/../etc/passwd", BadPath::AboveRoot),
            ("/a/../../b", BadPath::AboveRoot),
            ("/%2e%2e/etc/passwd", BadPath::AboveRoot),
            ("/.%2e/etc/passwd", BadPath::AboveRoot),
            ("//../a", BadPath::AboveRoot),
            ("/a%2fb", BadPath::EscapedSlash),
            ("/a%2Fb", BadPath::EscapedSlash),
            ("/..%2fetc", BadPath::EscapedSlash),
            ("/a\\b", BadPath::Backslash),
            ("/a%5cb", BadPath::Backslash),
            ("/..%5C..%5Cetc", BadPath::Backslash),
            ("/a%00.png", BadPath::Nul),
            ("/a\0", BadPath::Nul),
            ("/a%", BadPath::Escape),
            ("/a%2", BadPath::Escape),
            ("/a%zz", BadPath::Escape),
            ("/a%+1", BadPath::Escape),
            ("/%u0041", BadPath::Escape),
        ] {
            check(path, Err(why));
        }
    }

    #[test]
    fn an_escape_is_decoded_once_only() {
        check("/a%252fb", Ok(("a%2fb", false, false)));
        check("/%252e%252e/a", Ok(("%2e%2e/a", false, false)));
    }

    #[test]
    fn hidden_names_are_flagged_and_the_well_known_folder_is_not() {
        check("/.env", Ok((".env", false, true)));
        check("/a/.git/config", Ok(("a/.git/config", false, true)));
        check("/%2eenv", Ok((".env", false, true)));
        check("/.well-known/security.txt", Ok((".well-known/security.txt", false, false)));
        check("/.well-known/.env", Ok((".well-known/.env", false, true)));
        check("/a/.well-known/x", Ok(("a/.well-known/x", false, true)));
        check("/.well-known-not", Ok((".well-known-not", false, true)));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_kept() {
        assert_eq!(parse(b"/%ff\xfe").unwrap().bytes.as_ref(), b"\xff\xfe");
    }

    #[test]
    fn a_usual_path_is_not_copied() {
        for path in ["/", "/index.html", "/assets/index-B3xKq9aZ.js", "/docs/", "/.well-known/x"] {
            assert!(matches!(parse(path.as_bytes()).unwrap().bytes, Cow::Borrowed(_)), "{path}");
        }
    }

    #[test]
    fn a_path_is_bounded() {
        let long = [b"/".as_slice(), &vec![b'a'; PATH_BYTES_MAX + 1]].concat();
        assert_eq!(parse(&long), Err(BadPath::TooLong));
        assert!(parse(&long[..=PATH_BYTES_MAX]).is_ok());
        let escaped = [b"/%61".as_slice(), &vec![b'a'; PATH_BYTES_MAX]].concat();
        assert_eq!(parse(&escaped), Err(BadPath::TooLong));
    }

    #[test]
    fn what_is_refused_by_its_name_cannot_be_asked_for() {
        for (name, can_be) in [
            ("a b/100%.txt", true),
            ("\u{e9}?#", true),
            ("a..b", true),
            ("%2e%2e", true),
            ("a\\b.txt", false),
            ("c\\d/file.txt", false),
        ] {
            assert_eq!(can_be_asked_for(name.as_bytes()), can_be, "{name}");
        }
        assert!(!can_be_asked_for(&vec![b'a'; PATH_BYTES_MAX + 1]));
    }

    #[test]
    fn a_candidate_cannot_climb_above_its_root() {
        let parsed = parse_decoded(b"/../../a/%2e").unwrap();
        assert_eq!(parsed.bytes.as_ref(), b"a/%2e");
        assert!(parse_decoded(b"a\\b").is_err());
        assert!(parse_decoded(b"a/b/").unwrap().folder);
        assert!(parse_decoded(b"/").unwrap().folder);
    }

    proptest! {
        #[test]
        fn a_parsed_path_is_plain_and_parses_to_itself(path in "(/([a.%/\\\\]|%2[eEfF]|[a-z]{1,3}|\\.\\.|%5c|%00|é){0,8}){1,4}") {
            if let Ok(parsed) = parse(path.as_bytes()) {
                let bytes = parsed.bytes.as_ref();
                prop_assert!(!bytes.starts_with(b"/") && !bytes.ends_with(b"/"));
                prop_assert!(!bytes.contains(&0) && !bytes.contains(&b'\\'));
                if !bytes.is_empty() {
                    for segment in bytes.split(|b| *b == b'/') {
                        prop_assert!(!matches!(segment, b"" | b"." | b".."));
                    }
                }
                let mut encoded = b"/".to_vec();
                percent_encode(bytes, &mut encoded);
                let again = parse(&encoded).unwrap();
                prop_assert_eq!(again.bytes.as_ref(), bytes);
            }
        }

        #[test]
        fn any_bytes_are_parsed_without_a_panic(path in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&path);
            let _ = parse_decoded(&path);
        }
    }
}
