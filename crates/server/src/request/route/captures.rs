//! What the expressions of matchers have captured, for `{re.…}`.
//!
//! Owns the texts. As in Caddy, an expression captures when it fits, whatever the rest of its matcher says, and what it
//! has captured holds until it is asked again.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use onehop_config::checked::{CaptureGroup, Expression};
use onehop_message::path::{ENCODED_SLASH, RequestPath};

/// All that was captured, in the order in which it was. Each expression is in it once.
#[derive(Debug, Default)]
pub(crate) struct Captures(Vec<Captured>);

/// What one expression has captured.
#[derive(Debug)]
struct Captured {
    expression: Arc<Expression>,
    of: Of,
    text: Box<[u8]>,
    /// Where in the text each group stands; `None` for one that takes no part.
    groups: Vec<Option<Range<usize>>>,
}

/// Where a captured text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// A value of a field.
    Field,
    /// The path, decoded.
    Path {
        /// It has slashes that the client has encoded, which name no folder.
        has_encoded_slash: bool,
    },
}

impl Captures {
    /// Whether the path fits.
    pub(super) fn fits_path(&mut self, expression: &Arc<Expression>, path: &RequestPath<'_>) -> bool {
        let of = Of::Path { has_encoded_slash: path.decoded().contains(&ENCODED_SLASH) };
        self.fits(expression, of, path.merged())
    }

    /// Whether one of a field's values fits.
    pub(super) fn fits_field<'v>(
        &mut self,
        expression: &Arc<Expression>,
        mut values: impl Iterator<Item = &'v [u8]>,
    ) -> bool {
        values.any(|value| self.fits(expression, Of::Field, value))
    }

    fn fits(&mut self, expression: &Arc<Expression>, of: Of, text: &[u8]) -> bool {
        let readable = String::from_utf8_lossy(text);
        if !expression.is_read {
            return expression.regex.is_match(&readable);
        }
        let Some(found) = expression.regex.captures(&readable) else { return false };
        let is_as_sent = matches!(readable, Cow::Borrowed(_));
        let sent = |at| if is_as_sent { at } else { sent_offset(text, at) };
        let groups = (0..found.len())
            .map(|number| found.get(number).map(|group| sent(group.start())..sent(group.end())))
            .collect();
        self.0.retain(|captured| !Arc::ptr_eq(&captured.expression, expression));
        self.0.push(Captured { expression: Arc::clone(expression), of, text: text.into(), groups });
        true
    }

    /// What the last expression with this name and group has captured.
    pub(super) fn get(&self, name: Option<&str>, group: &CaptureGroup) -> Option<(Of, &[u8])> {
        self.0.iter().rev().find_map(|captured| {
            let is_named = name.is_none() || captured.expression.name.as_deref() == name;
            let number = captured.expression.number_of(group).filter(|_| is_named)?;
            let range = captured.groups.get(number)?.clone().unwrap_or_default();
            Some((captured.of, captured.text.get(range).unwrap_or_default()))
        })
    }
}

/// Where in the sent bytes a place of their readable text stands, in which each broken sequence is one character.
fn sent_offset(sent: &[u8], readable: usize) -> usize {
    let (mut at, mut shown) = (0, 0);
    for chunk in sent.utf8_chunks() {
        let valid = chunk.valid().len();
        if readable <= shown + valid {
            return at + readable - shown;
        }
        at += valid + chunk.invalid().len();
        shown += valid + char::REPLACEMENT_CHARACTER.len_utf8();
    }
    at
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use onehop_config::checked::compile_expression;

    use super::*;

    fn expression(text: &str, name: &str) -> Arc<Expression> {
        let name = (!name.is_empty()).then(|| name.to_owned());
        Arc::new(Expression { regex: compile_expression(text).unwrap(), name, is_read: true })
    }

    fn get<'c>(captures: &'c Captures, name: &str, number: usize) -> Option<&'c [u8]> {
        let name = (!name.is_empty()).then_some(name);
        captures.get(name, &CaptureGroup::Number(number)).map(|(_, text)| text)
    }

    #[test]
    fn the_last_expression_that_has_the_group_counts() {
        let mut captures = Captures::default();
        let (two, one) = (expression("^(a)(b)?", "two"), expression("(.)$", "one"));
        assert!(captures.fits_field(&two, [&b"x"[..], b"abc", b"ab"].into_iter()));
        assert!(captures.fits_field(&one, std::iter::once(&b"xyz"[..])));
        assert_eq!(get(&captures, "", 1), Some(&b"z"[..]));
        assert_eq!(get(&captures, "", 2), Some(&b"b"[..]));
        assert_eq!(get(&captures, "two", 1), Some(&b"a"[..]));
        assert_eq!(get(&captures, "two", 3), None);
        assert_eq!(get(&captures, "three", 1), None);
        // Asked again, it has captured anew.
        assert!(captures.fits_field(&two, std::iter::once(&b"a"[..])));
        assert_eq!((get(&captures, "", 0), get(&captures, "", 2)), (Some(&b"a"[..]), Some(&b""[..])));
        assert!(!captures.fits_field(&two, std::iter::once(&b"c"[..])));
        assert_eq!(get(&captures, "two", 1), Some(&b"a"[..]), "what does not fit captures nothing");
    }

    #[test]
    fn bytes_that_are_no_text_are_captured_as_they_came() {
        let path = RequestPath::read(Cow::Borrowed(b"/a%ffb%f0%9fc/%c3%a4/e")).unwrap();
        for (text, captured) in [
            ("a(.)b", &b"\xff"[..]),
            ("b(.+)/", b"\xf0\x9fc/\xc3\xa4"),
            ("c/(.)", b"\xc3\xa4"),
            ("(.)$", b"e"),
            ("^(.*)$", b"/a\xffb\xf0\x9fc/\xc3\xa4/e"),
            ("()$", b""),
        ] {
            let mut captures = Captures::default();
            assert!(captures.fits_path(&expression(text, ""), &path), "{text}");
            assert_eq!(get(&captures, "", 1), Some(captured), "{text}");
        }
    }
}
