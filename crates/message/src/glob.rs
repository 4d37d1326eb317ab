//! Shell patterns: `*`, `?`, `[a-z]`, `[^a]` and `\` before a plain character. No star crosses a slash.
//!
//! Pure. At most the product of both lengths in steps; a malformed pattern matches nothing.

/// Whether all of `text` fits the pattern.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // Where the last star stood, and how much of the text it has been tried with.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            retry = Some((rest, text));
            pattern = rest;
            continue;
        }
        let stepped = match (pattern, text) {
            ([], []) => return true,
            ([], _) | (_, []) => None,
            (_, [byte, rest @ ..]) => one(pattern, *byte).map(|pattern| (pattern, rest)),
        };
        if let Some(next) = stepped {
            (pattern, text) = next;
            continue;
        }
        // The star takes one more byte; it cannot take a slash.
        match retry {
            Some((after_star, [byte, rest @ ..])) if *byte != b'/' => {
                retry = Some((after_star, rest));
                (pattern, text) = (after_star, rest);
            }
            _ => return false,
        }
    }
}

/// What is left of the pattern after its first element has matched this byte.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', rest @ ..] => (byte != b'/').then_some(rest),
        [b'\\', escaped, rest @ ..] => (*escaped == byte).then_some(rest),
        [b'\\'] => None,
        [b'[', rest @ ..] => class(rest, byte),
        [plain, rest @ ..] => (*plain == byte).then_some(rest),
        [] => None,
    }
}

/// The rest of a class behind its opening bracket; a slash is never in a class.
fn class(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (mut pattern, negated) = match pattern {
        [b'^', rest @ ..] => (rest, true),
        _ => (pattern, false),
    };
    let mut found = false;
    let mut first = true;
    loop {
        if let [b']', rest @ ..] = pattern
            && !first
        {
            return (found != negated && byte != b'/').then_some(rest);
        }
        first = false;
        let (low, rest) = class_byte(pattern)?;
        let (high, rest) = match rest {
            [b'-', rest @ ..] => class_byte(rest)?,
            _ => (low, rest),
        };
        found |= (low..=high).contains(&byte);
        pattern = rest;
    }
}

fn class_byte(pattern: &[u8]) -> Option<(u8, &[u8])> {
    match pattern {
        [] | [b'-' | b']' | b'\\'] => None,
        [b'-' | b']', ..] => None,
        [b'\\', escaped, rest @ ..] => Some((*escaped, rest)),
        [plain, rest @ ..] => Some((*plain, rest)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_as_a_shell_has_them() {
        for (pattern, text, expected) in [
            ("abc", "abc", true),
            ("*", "abc", true),
            ("*", "", true),
            ("*c", "abc", true),
            ("a*", "a", true),
            ("a*", "abc", true),
            ("a*", "ab/c", false),
            ("a*/b", "abc/b", true),
            ("a*/b", "a/c/b", false),
            ("a*b*c*d*e*/f", "axbxcxdxe/f", true),
            ("a*b*c*d*e*/f", "axbxcxdxexxx/f", true),
            ("a*b*c*d*e*/f", "axbxcxdxe/xxx/f", false),
            ("a*b?c*x", "abxbbxdbxebxczzx", true),
            ("a*b?c*x", "abxbbxdbxebxczzy", false),
            ("ab[c]", "abc", true),
            ("ab[b-d]", "abc", true),
            ("ab[e-g]", "abc", false),
            ("ab[^c]", "abc", false),
            ("ab[^e-g]", "abc", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "ab", false),
            ("a?b", "a☺b", false),
            ("a?b", "a/b", false),
            ("a[^x]b", "a/b", false),
            ("[\\]a]", "]", true),
            ("[x\\-]", "-", true),
            ("[]a]", "]", false),
            ("[-]", "-", false),
            ("[x-]", "x", false),
            ("[a-b-c]", "a", false),
            ("[", "a", false),
            ("a[", "a", false),
            ("a\\", "a", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern:?} {text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_pattern_ends_without_a_panic(pattern in "[a*?\\[\\]\\\\^/-]{0,12}", text in "[a/]{0,12}") {
            let _ = matches(pattern.as_bytes(), text.as_bytes());
        }
    }
}
