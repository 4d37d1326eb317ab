//! `{$NAME}` and `{$NAME:default}`: replaced in the text before it is cut into tokens, so that a
//! variable may hold several tokens. Keeps the way back from the new text to the written one.

use std::ops::Range;

use crate::source::Source;

/// Text with its variables replaced.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    /// Names that are not set and have no default, with their places in the written text.
    pub(crate) unset: Vec<(String, Range<usize>)>,
    replaced: Vec<Replaced>,
}

#[derive(Debug)]
struct Replaced {
    /// In the new text.
    now: Range<usize>,
    /// In the written text.
    written: Range<usize>,
}

/// A variable that a text asks for.
struct Reference<'t> {
    name: &'t str,
    default: Option<&'t str>,
    /// In the text, with its braces.
    place: Range<usize>,
}

/// The next one, from here on. One without a name is none, and stands for its own text.
fn next_reference(text: &str, mut from: usize) -> Option<Reference<'_>> {
    loop {
        let open = from + text.get(from..)?.find("{$")?;
        let close = open + text.get(open..)?.find('}')?;
        let inside = text.get(open + 2..close).unwrap_or_default();
        if !inside.is_empty() {
            let (name, default) = match inside.split_once(':') {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            return Some(Reference { name, default, place: open..close + 1 });
        }
        from = close + 1;
    }
}

/// The variables that a text asks for and has no default for: `{$NAME}`.
pub fn variables_to_set(text: &str) -> impl Iterator<Item = &str> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let asked = next_reference(text, done)?;
        done = asked.place.end;
        Some(asked)
    })
    .filter(|asked| asked.default.is_none())
    .map(|asked| asked.name)
}

/// Replaces every variable of the text. A value is not looked at again.
pub(crate) fn expand(written: &str, source: &dyn Source) -> Expanded {
    let mut expanded =
        Expanded { text: String::with_capacity(written.len()), unset: Vec::new(), replaced: Vec::new() };
    let mut done = 0;
    while let Some(Reference { name, default, place }) = next_reference(written, done) {
        expanded.text.push_str(written.get(done..place.start).unwrap_or_default());
        done = place.end;
        let value = source.env(name);
        if value.is_none() && default.is_none() {
            expanded.unset.push((name.to_owned(), place.clone()));
        }
        let start = expanded.text.len();
        expanded.text.push_str(value.as_deref().or(default).unwrap_or_default());
        expanded.replaced.push(Replaced { now: start..expanded.text.len(), written: place });
    }
    expanded.text.push_str(written.get(done..).unwrap_or_default());
    expanded
}

/// The text with what stands in its variables made letters, so that each is one word; as long as it was.
pub(crate) fn masked(written: &str) -> Expanded {
    let mut text = String::with_capacity(written.len());
    let mut done = 0;
    while let Some(Reference { place, .. }) = next_reference(written, done) {
        text.push_str(written.get(done..place.start).unwrap_or_default());
        text.extend(std::iter::repeat_n('_', place.len()));
        done = place.end;
    }
    text.push_str(written.get(done..).unwrap_or_default());
    Expanded { text, unset: Vec::new(), replaced: Vec::new() }
}

impl Expanded {
    /// The written place of a stretch of the new text. What came from a variable is the variable.
    pub(crate) fn written(&self, span: Range<usize>) -> Range<usize> {
        let start = self.written_offset(span.start, false);
        start..self.written_offset(span.end, true).max(start)
    }

    fn written_offset(&self, now: usize, is_end: bool) -> usize {
        let before = self
            .replaced
            .partition_point(|replaced| replaced.now.start < now || (!is_end && replaced.now.start == now));
        let Some(last) = before.checked_sub(1).and_then(|at| self.replaced.get(at)) else { return now };
        if now < last.now.end || (is_end && now == last.now.end) {
            return if is_end { last.written.end } else { last.written.start };
        }
        last.written.end + (now - last.now.end)
    }
}
