//! Conditional requests: whether what the client holds is still good (RFC 9110 section 13).
//!
//! Pure. Decides; the statuses and fields that follow are written by `serve.rs`. Only for GET and HEAD
//! of a representation that exists, and never where the answer would not be a success anyway
//! (RFC 9110 section 13.2.1).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onehop_http1::{Known, RequestHead};

/// What tells one version of a representation from another.
#[derive(Debug, Clone, Copy)]
pub struct Validators<'a> {
    /// Strong entity tag with its quotes.
    pub etag: &'a [u8],
    /// Whole seconds since 1970; `None` where the file has no usable time.
    pub modified: Option<u64>,
}

/// What the preconditions of a request come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Answer as if there were none.
    Proceed,
    /// 304
    NotModified,
    /// 412
    Failed,
}

/// Evaluates the preconditions of a GET or HEAD in the order of RFC 9110 section 13.2.2.
pub fn evaluate(head: &RequestHead, validators: Validators<'_>) -> Outcome {
    if head.get(Known::IfMatch).is_some() {
        if !any_matches(head.get_all(Known::IfMatch), validators.etag, Comparison::Strong) {
            return Outcome::Failed;
        }
    } else if let Some(since) = only_date(head, Known::IfUnmodifiedSince)
        && validators.modified.is_some_and(|modified| modified > since)
    {
        return Outcome::Failed;
    }
    if let Some(first) = head.get(Known::IfNoneMatch) {
        // A client that comes back sends exactly one tag, the one it was given.
        if first == validators.etag
            || any_matches(head.get_all(Known::IfNoneMatch), validators.etag, Comparison::Weak)
        {
            return Outcome::NotModified;
        }
    } else if let Some(since) = only_date(head, Known::IfModifiedSince)
        && validators.modified.is_some_and(|modified| modified <= since)
    {
        return Outcome::NotModified;
    }
    Outcome::Proceed
}

/// Whether a Range field counts: there is no If-Range, or its validator is that of the representation
/// (RFC 9110 section 13.1.5). A date is only good where one representation has it: files that are sent
/// in several codings share theirs, so `date_is_strong` is false for them. It is not good either in the second that it
/// names, in which the file may change once more (section 8.8.2.2). More than one validator is none.
pub fn range_applies(
    head: &RequestHead,
    validators: Validators<'_>,
    date_is_strong: bool,
    now: SystemTime,
) -> bool {
    let mut values = head.get_all(Known::IfRange);
    let Some(value) = values.next() else { return true };
    if values.next().is_some() {
        return false;
    }
    if value.starts_with(b"\"") {
        return value == validators.etag;
    }
    if value.starts_with(b"W/") {
        return false;
    }
    let is_over = |since: u64| seconds(now).is_some_and(|now| since < now);
    date_is_strong && date(value).is_some_and(|since| validators.modified == Some(since) && is_over(since))
}

/// Whether the client has a copy that it knows by this very tag, and not by its weak form.
pub fn names_as_strong(head: &RequestHead, etag: &[u8]) -> bool {
    let tags = head.get_all(Known::IfNoneMatch).filter(|value| *value != b"*");
    any_matches(tags, etag, Comparison::Strong)
}

/// Whole seconds since 1970 of a file's time; `None` for the epoch itself, which means that nobody set
/// it (reproducible archives, container layers), and for what lies before.
pub fn seconds(modified: SystemTime) -> Option<u64> {
    modified.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs()).filter(|seconds| *seconds > 0)
}

/// The date of a Last-Modified field; `None` where a date of HTTP cannot say it.
pub fn http_date(seconds: u64) -> Option<String> {
    /// The last second of the year 9999.
    const LAST: u64 = 253_402_300_799;
    (seconds <= LAST).then(|| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds)))
}

/// The date of a field that may be given once. With several lines it is ignored, as a list is (RFC 9110 sections 13.1.3
/// and 13.1.4).
fn only_date(head: &RequestHead, field: Known) -> Option<u64> {
    // Most requests have none.
    let value = head.get(field)?;
    if head.get_all(field).nth(1).is_some() { None } else { date(value) }
}

/// The three forms of RFC 9110 section 5.6.7; what is none of them is ignored.
fn date(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    let time = httpdate::parse_http_date(text).ok()?;
    Some(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Strong,
    Weak,
}

/// Whether a list of entity tags, or `*`, holds this strong one (RFC 9110 section 8.8.3.2).
fn any_matches<'a>(values: impl Iterator<Item = &'a [u8]>, etag: &[u8], comparison: Comparison) -> bool {
    for value in values {
        let mut rest = value.trim_ascii();
        if rest == b"*" {
            return true;
        }
        while let Some((tag, weak, after)) = next_tag(rest) {
            if tag == etag && (comparison == Comparison::Weak || !weak) {
                return true;
            }
            rest = after;
        }
    }
    false
}

/// The first tag of a list, with its quotes, whether it is weak, and what follows. What is malformed
/// ends the list.
fn next_tag(list: &[u8]) -> Option<(&[u8], bool, &[u8])> {
    let mut rest = list.trim_ascii_start();
    while let Some(after) = rest.strip_prefix(b",") {
        rest = after.trim_ascii_start();
    }
    let (rest, weak) = match rest.strip_prefix(b"W/") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let opaque = rest.strip_prefix(b"\"")?;
    let length = opaque.iter().position(|b| *b == b'"')?;
    let (tag, after) = rest.split_at_checked(length + 2)?;
    // etagc has no space and no control character (RFC 9110 section 8.8.3).
    tag.iter().all(|b| *b > 0x20 && *b != 0x7f).then_some((tag, weak, after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tags_are_found_in_lists() {
        for (value, strong, weak) in [
            ("\"a\"", true, true),
            ("W/\"a\"", false, true),
            ("w/\"a\"", false, false),
            ("*", true, true),
            (" * ", true, true),
            ("\"b\", \"a\"", true, true),
            ("\"b\" , W/\"a\"", false, true),
            (",, \"a\"", true, true),
            ("\"b\",\"c\"", false, false),
            ("\"b,\"a\"", false, false),
            ("\"x,\"\"a\"", true, true),
            ("a", false, false),
            ("\"a", false, false),
            ("\"A\"", false, false),
            ("*, \"a\"", false, false),
            ("\"b c\", \"a\"", false, false),
            ("", false, false),
        ] {
            let matches = |comparison| any_matches([value.as_bytes()].into_iter(), b"\"a\"", comparison);
            assert_eq!(matches(Comparison::Strong), strong, "strong {value:?}");
            assert_eq!(matches(Comparison::Weak), weak, "weak {value:?}");
        }
    }

    #[test]
    fn the_three_forms_of_a_date_are_read() {
        for value in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(date(value.as_bytes()), Some(784_111_777), "{value}");
        }
        for value in ["", "yesterday", "784111777", "Sun, 06 Nov 1994 08:49:37", "\u{ff}"] {
            assert_eq!(date(value.as_bytes()), None, "{value}");
        }
    }

    #[test]
    fn a_date_is_a_strong_validator_once_its_second_is_over() {
        const AT: u64 = 784_111_777;
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\nIf-Range: {}\r\n\r\n", http_date(AT).unwrap());
        let mut head = RequestHead::new();
        onehop_http1::ServerCodec::new(onehop_http1::Limits::default())
            .read_head(text.as_bytes(), &mut head)
            .unwrap();
        for (modified, now_millis, applies) in [
            (AT, (AT + 1) * 1000, true),
            (AT, (AT + 60) * 1000, true),
            (AT, AT * 1000 + 999, false),
            (AT, AT * 1000, false),
            (AT, (AT - 1) * 1000, false),
            (AT + 1, (AT + 60) * 1000, false),
            (AT - 1, (AT + 60) * 1000, false),
        ] {
            let validators = Validators { etag: b"\"a\"", modified: Some(modified) };
            let now = UNIX_EPOCH + Duration::from_millis(now_millis);
            assert_eq!(range_applies(&head, validators, true, now), applies, "{modified} at {now_millis}");
            assert!(!range_applies(&head, validators, false, now), "several codings have the date");
        }
    }

    #[test]
    fn a_time_that_http_cannot_say_is_left_out() {
        assert_eq!(seconds(UNIX_EPOCH), None);
        assert_eq!(seconds(UNIX_EPOCH - Duration::from_secs(5)), None);
        assert_eq!(seconds(UNIX_EPOCH + Duration::from_millis(1_500)), Some(1));
        assert_eq!(http_date(784_111_777).as_deref(), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
        assert_eq!(http_date(253_402_300_799).as_deref(), Some("Fri, 31 Dec 9999 23:59:59 GMT"));
        assert_eq!(http_date(253_402_300_800), None);
    }

    proptest! {
        #[test]
        fn any_list_is_read_without_a_panic(value in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = any_matches([value.as_slice()].into_iter(), b"\"a\"", Comparison::Weak);
            let _ = date(&value);
        }
    }
}
