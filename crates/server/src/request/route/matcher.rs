//! Conditions on a request, evaluated on the URI as it is now.

use onehop_config::checked::{Condition, FileMatch, HeaderTest, Matcher, PathPattern};

use super::hosts::{host_matches, without_port};
use super::uri::{clean, decode_path};
use crate::request::handle::try_files;
use crate::request::rescue::Fault;
use crate::request::trip::{Halt, Trip};

/// Whether a request fits. A `try_files` condition notes the file that it found.
pub(crate) fn matches(matcher: &Matcher, trip: &mut Trip<'_>) -> Result<bool, Halt> {
    for condition in &matcher.all {
        if !holds(condition, trip)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn holds(condition: &Condition, trip: &mut Trip<'_>) -> Result<bool, Halt> {
    Ok(match condition {
        Condition::Path(patterns) => path_matches_any(patterns, &trip.path),
        Condition::Method(methods) => {
            methods.iter().any(|method| method.as_bytes() == trip.head.method_bytes())
        }
        Condition::Host(hosts) => {
            let host = trip.head.host().map(without_port).unwrap_or_default();
            hosts.iter().any(|pattern| host_matches(pattern, host))
        }
        Condition::Header { name, value } => header_holds(trip, name, value),
        Condition::File(wanted) => file_holds(wanted, trip)?,
        Condition::Not(matchers) => {
            for matcher in matchers {
                if matches(matcher, trip)? {
                    return Ok(false);
                }
            }
            true
        }
    })
}

/// Whether an escaped path fits one of the patterns, by Caddy's rules: decoded, cleaned, and without
/// regard to case.
pub(crate) fn path_matches_any(patterns: &[PathPattern], path: &[u8]) -> bool {
    if matches!(patterns, [PathPattern::Any]) {
        return true;
    }
    let decoded = decode_path(path);
    let lower = decoded.to_ascii_lowercase();
    patterns.iter().any(|pattern| path_matches(pattern, &lower, path))
}

fn path_matches(pattern: &PathPattern, decoded: &[u8], escaped: &[u8]) -> bool {
    // A pattern with a double slash means it; for all others `//` is no way around a matcher.
    let cleaned = |text: &str| if text.contains("//") { decoded.into() } else { clean(decoded) };
    match pattern {
        PathPattern::Any => true,
        PathPattern::Exact(text) => *cleaned(text) == *text.as_bytes(),
        PathPattern::Prefix(text) => cleaned(text).starts_with(text.as_bytes()),
        PathPattern::Suffix(text) => cleaned(text).ends_with(text.as_bytes()),
        PathPattern::Contains(text) => contains(&cleaned(text), text.as_bytes()),
        PathPattern::Glob(text) => glob(text.as_bytes(), &cleaned(text)),
        PathPattern::Escaped(text) => glob(text.as_bytes(), &clean(escaped).to_ascii_lowercase()),
    }
}

fn contains(text: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || text.windows(needle.len()).any(|window| window == needle)
}

/// A shell pattern: `*` stands for anything but a slash, `?` for one byte but a slash.
/// Remembers only the last star, so its time is at most the product of both lengths.
pub(crate) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'?') if text[t] != b'/' => {
                (p, t) = (p + 1, t + 1);
                continue;
            }
            Some(byte) if *byte == text[t] => {
                (p, t) = (p + 1, t + 1);
                continue;
            }
            _ => {}
        }
        match star {
            Some((after, taken)) if text[taken] != b'/' => {
                star = Some((after, taken + 1));
                (p, t) = (after, taken + 1);
            }
            _ => return false,
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

fn header_holds(trip: &Trip<'_>, name: &str, test: &HeaderTest) -> bool {
    let mut values = trip.head.find_all(name);
    match test {
        // net/http keeps Host out of the header map; Caddy puts it back for this matcher.
        HeaderTest::Present => values.next().is_some(),
        HeaderTest::Absent => values.next().is_none(),
        HeaderTest::Like(patterns) => {
            values.any(|value| patterns.iter().any(|pattern| value_is_like(pattern.as_bytes(), value)))
        }
    }
}

fn value_is_like(pattern: &[u8], value: &[u8]) -> bool {
    match (pattern.strip_prefix(b"*"), pattern.strip_suffix(b"*")) {
        (Some([]), _) => true,
        (Some(rest), Some(_)) => contains(value, rest.strip_suffix(b"*").unwrap_or(rest)),
        (Some(suffix), None) => value.ends_with(suffix),
        (None, Some(prefix)) => value.starts_with(prefix),
        (None, None) => value == pattern,
    }
}

fn file_holds(wanted: &FileMatch, trip: &mut Trip<'_>) -> Result<bool, Halt> {
    match try_files::find(wanted, trip)? {
        Some(found) => {
            trip.file_match = Some(found);
            Ok(true)
        }
        None => match wanted.otherwise_status {
            Some(status) => Err(Halt::Fault(Fault::Configured(status))),
            None => Ok(false),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_pattern_ignores_case_escapes_and_doubled_slashes() {
        let prefix = [PathPattern::Prefix("/admin".into())];
        for path in ["/admin", "/Admin/x", "/%61dmin", "//admin", "/x/../admin", "/./admin/"] {
            assert!(path_matches_any(&prefix, path.as_bytes()), "{path}");
        }
        assert!(!path_matches_any(&prefix, b"/xadmin"));
    }

    #[test]
    fn a_star_in_the_middle_does_not_cross_a_slash() {
        let cases = [
            ("/a/*/c", "/a/b/c", true),
            ("/a/*/c", "/a/b/b/c", false),
            ("/*.js", "/app.js", true),
            ("/*.js", "/x/app.js", false),
            ("/a?c", "/abc", true),
            ("/a?c", "/a/c", false),
            ("/*a*b", "/xaxb", true),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(glob(pattern.as_bytes(), path.as_bytes()), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_header_value_may_begin_or_end_with_anything() {
        let cases = [
            ("*", "x", true),
            ("ab*", "abc", true),
            ("*bc", "abc", true),
            ("*b*", "abc", true),
            ("ab", "abc", false),
        ];
        for (pattern, value, expected) in cases {
            assert_eq!(value_is_like(pattern.as_bytes(), value.as_bytes()), expected, "{pattern} {value}");
        }
    }
}
