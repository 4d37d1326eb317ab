//! The Range field: which bytes of a representation are wanted (RFC 9110 section 14).
//!
//! Pure. A range that cannot be understood never costs more than the whole file would: their number is
//! bounded, and parts that together exceed the file are answered by the file.

use std::ops::Range;

use crate::limits::RANGES_MAX;

/// What a Range field asks of a representation of a given length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The field is ignored: another unit (RFC 9110 section 14.2), no parts, too many or overlapping
    /// ones, or an empty file.
    Whole,
    /// These bytes; never empty.
    Part(Range<u64>),
    /// These bytes, at least two parts, none overlapping, in the order of the request.
    Parts(Vec<Range<u64>>),
    /// No byte of it exists, or the field is malformed: 416.
    None,
}

/// Reads a Range field against a representation of `length` bytes.
pub fn parse(value: &[u8], length: u64) -> Wanted {
    // Unit names are compared without regard to case (RFC 9110 section 14.1).
    let Some(set) =
        value.split_at_checked(6).and_then(|(unit, set)| unit.eq_ignore_ascii_case(b"bytes=").then_some(set))
    else {
        return Wanted::Whole;
    };
    // Some clients put a range on every request; an empty file has nothing to refuse.
    if length == 0 {
        return Wanted::Whole;
    }
    let mut parts: Vec<Range<u64>> = Vec::new();
    let mut single: Option<Range<u64>> = None;
    let mut seen = 0_usize;
    for spec in set.split(|b| *b == b',') {
        let spec = spec.trim_ascii();
        if spec.is_empty() {
            continue; // Empty list elements are skipped (RFC 9110 section 5.6.1.2).
        }
        seen += 1;
        if seen > RANGES_MAX {
            return Wanted::Whole;
        }
        match parse_spec(spec, length) {
            Spec::Malformed => return Wanted::None,
            Spec::Nothing => {}
            Spec::Bytes(range) => match single.take() {
                None if parts.is_empty() => single = Some(range),
                None => parts.push(range),
                Some(first) => parts.extend([first, range]),
            },
        }
    }
    match single {
        Some(range) => Wanted::Part(range),
        None if seen == 0 => Wanted::Whole,
        None if parts.is_empty() => Wanted::None,
        None => gather(parts, length),
    }
}

/// The value of a Content-Range field (RFC 9110 section 14.4).
pub fn content_range(range: &Range<u64>, length: u64) -> String {
    format!("bytes {}-{}/{length}", range.start, range.end.saturating_sub(1))
}

enum Spec {
    Malformed,
    Nothing,
    Bytes(Range<u64>),
}

/// One `first-last`, `first-` or `-suffix`.
fn parse_spec(spec: &[u8], length: u64) -> Spec {
    let Some(dash) = spec.iter().position(|b| *b == b'-') else { return Spec::Malformed };
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    if first.is_empty() {
        return match number(last) {
            None => Spec::Malformed,
            Some(0) => Spec::Nothing,
            Some(suffix) => Spec::Bytes(length.saturating_sub(suffix)..length),
        };
    }
    let Some(first) = number(first) else { return Spec::Malformed };
    let end = if last.is_empty() {
        length
    } else {
        match number(last) {
            None => return Spec::Malformed,
            Some(last) if last < first => return Spec::Malformed,
            Some(last) => last.saturating_add(1).min(length),
        }
    };
    if first >= length { Spec::Nothing } else { Spec::Bytes(first..end) }
}

/// Digits only; a number beyond 64 bits is as good as the largest, for no file reaches it.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits
        .iter()
        .fold(0_u64, |value, digit| value.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Some(value)
}

/// Joins parts that overlap or touch, and gives up on a set that is larger than the file.
fn gather(parts: Vec<Range<u64>>, length: u64) -> Wanted {
    let total = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.end - part.start));
    if total > length {
        return Wanted::Whole;
    }
    let mut sorted = parts.clone();
    sorted.sort_by_key(|part| part.start);
    if sorted.windows(2).all(|pair| pair[0].end < pair[1].start) {
        // The order of the request is kept where nothing is joined (RFC 9110 section 15.3.7.2).
        return Wanted::Parts(parts);
    }
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for part in sorted {
        match joined.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => joined.push(part),
        }
    }
    match joined.as_slice() {
        [one] => Wanted::Part(one.clone()),
        _ => Wanted::Parts(joined),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_mean_what_the_rfc_says() {
        let part = |start, end| Wanted::Part(start..end);
        for (value, length, expected) in [
            ("bytes=0-499", 10_000, part(0, 500)),
            ("bytes=500-999", 10_000, part(500, 1000)),
            ("bytes=-500", 10_000, part(9_500, 10_000)),
            ("bytes=9500-", 10_000, part(9_500, 10_000)),
            ("bytes=0-0", 10, part(0, 1)),
            ("bytes=-1", 10, part(9, 10)),
            ("BYTES=0-1", 10, part(0, 2)),
            ("bytes= 0-1 ", 10, part(0, 2)),
            ("bytes=,0-1,", 10, part(0, 2)),
            ("bytes=0-99999", 10, part(0, 10)),
            ("bytes=-99999", 10, part(0, 10)),
            ("bytes=0-99999999999999999999999999", 10, part(0, 10)),
            ("bytes=5-4", 10, Wanted::None),
            ("bytes=10-", 10, Wanted::None),
            ("bytes=99999999999999999999-", 10, Wanted::None),
            ("bytes=-0", 10, Wanted::None),
            ("bytes=", 10, Wanted::Whole),
            ("bytes=, ,", 10, Wanted::Whole),
            ("bytes=-", 10, Wanted::None),
            ("bytes=a-b", 10, Wanted::None),
            ("bytes=1", 10, Wanted::None),
            ("bytes=0x1-2", 10, Wanted::None),
            ("bytes=+1-2", 10, Wanted::None),
            ("bytes=1-2-3", 10, Wanted::None),
            ("bytes=0 - 1", 10, Wanted::None),
            ("bytes=0-1,x", 10, Wanted::None),
            ("bytes 0-1", 10, Wanted::Whole),
            ("items=0-1", 10, Wanted::Whole),
            ("byte", 10, Wanted::Whole),
            ("", 10, Wanted::Whole),
            ("bytes=0-", 0, Wanted::Whole),
            ("bytes=5-9", 0, Wanted::Whole),
        ] {
            assert_eq!(parse(value.as_bytes(), length), expected, "{value:?} of {length}");
        }
    }

    #[test]
    fn several_ranges_are_joined_kept_or_given_up() {
        let parts = |parts: &[Range<u64>]| Wanted::Parts(parts.to_vec());
        for (value, length, expected) in [
            ("bytes=0-1,4-5", 10, parts(&[0..2, 4..6])),
            ("bytes=4-5, 0-1", 10, parts(&[4..6, 0..2])),
            ("bytes=0-0,-1", 10, parts(&[0..1, 9..10])),
            ("bytes=0-1,1-2", 10, Wanted::Part(0..3)),
            ("bytes=0-1,2-3", 10, Wanted::Part(0..4)),
            ("bytes=6-7,0-1,1-2", 10, parts(&[0..3, 6..8])),
            ("bytes=0-1,20-30", 10, Wanted::Part(0..2)),
            ("bytes=20-30,40-50", 10, Wanted::None),
            ("bytes=0-,0-", 10, Wanted::Whole),
            ("bytes=0-8,1-9", 10, Wanted::Whole),
        ] {
            assert_eq!(parse(value.as_bytes(), length), expected, "{value:?} of {length}");
        }
    }

    #[test]
    fn too_many_ranges_are_the_whole_file() {
        let value = |count: u64| {
            let specs: Vec<_> = (0..count).map(|n| format!("{}-{}", n * 10, n * 10)).collect();
            format!("bytes={}", specs.join(","))
        };
        let most = u64::try_from(RANGES_MAX).unwrap();
        assert!(
            matches!(parse(value(most).as_bytes(), 100_000), Wanted::Parts(parts) if parts.len() == RANGES_MAX)
        );
        assert_eq!(parse(value(most + 1).as_bytes(), 100_000), Wanted::Whole);
    }

    #[test]
    fn a_content_range_names_the_last_byte() {
        assert_eq!(content_range(&(0..500), 1234), "bytes 0-499/1234");
    }

    proptest! {
        #[test]
        fn what_is_wanted_lies_in_the_file(value in "bytes=([0-9]{0,3}-?[0-9]{0,3},? ?){0,6}", length in 0_u64..500) {
            let parts = match parse(value.as_bytes(), length) {
                Wanted::Part(part) => vec![part],
                Wanted::Parts(parts) => { prop_assert!(parts.len() > 1); parts }
                Wanted::Whole | Wanted::None => vec![],
            };
            let mut total = 0;
            for part in &parts {
                prop_assert!(part.start < part.end && part.end <= length);
                total += part.end - part.start;
            }
            prop_assert!(total <= length);
        }

        #[test]
        fn any_bytes_are_parsed_without_a_panic(value in proptest::collection::vec(any::<u8>(), 0..100), length: u64) {
            let _ = parse(&value, length);
            let _ = parse(&[b"bytes=".as_slice(), &value].concat(), length);
        }
    }
}
