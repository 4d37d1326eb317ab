//! Replacements by regular expressions, within a bound: each place that fits can take as many bytes as the replacement
//! has, and both may come from the client.

use regex_lite::Regex;

use crate::limits::REPLACED_BYTES_MAX;

/// The text would grow beyond [`REPLACED_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// The text with everything replaced that fits; `None` where nothing does. `$1` inserts a group.
pub(crate) fn replace_all(find: &Regex, text: &str, by: &str) -> Result<Option<String>, TooLong> {
    let (mut replaced, mut end) = (String::new(), 0);
    let mut fits = false;
    for found in find.captures_iter(text) {
        let Some(whole) = found.get(0) else { continue };
        replaced.push_str(text.get(end..whole.start()).unwrap_or_default());
        found.expand(by, &mut replaced);
        if replaced.len() > REPLACED_BYTES_MAX {
            return Err(TooLong);
        }
        (fits, end) = (true, whole.end());
    }
    replaced.push_str(text.get(end..).unwrap_or_default());
    match replaced.len() {
        0..=REPLACED_BYTES_MAX => Ok(fits.then_some(replaced)),
        _ => Err(TooLong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_fits_is_replaced_as_the_library_does_it() {
        for (find, text, by) in [
            ("a", "banana", "o"),
            ("(a)(n)?", "banana", "$2$1$$"),
            ("()", "añb", "-"),
            ("(?<x>.)n", "banana", "${x}_"),
            ("$", "banana", "!"),
            ("^b|a$", "banana", ""),
        ] {
            let find = Regex::new(find).unwrap();
            let expected = find.replace_all(text, by).into_owned();
            assert_eq!(replace_all(&find, text, by), Ok(Some(expected)), "{find}");
        }
        assert_eq!(replace_all(&Regex::new("x").unwrap(), "banana", "o"), Ok(None));
    }

    #[test]
    fn a_text_does_not_grow_beyond_the_bound() {
        let (find, by) = (Regex::new("").unwrap(), "b".repeat(1_000));
        assert_eq!(replace_all(&find, &"a".repeat(8_000), &by), Err(TooLong));
        assert!(replace_all(&find, &"a".repeat(60), &by).is_ok());
    }
}
