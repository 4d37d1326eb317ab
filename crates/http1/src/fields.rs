//! The fields of one head: its bytes as they came, and where in them everything stands.
//!
//! Owns the bytes and the index of known names. Never changes, joins or reorders a field: a proxy passes on
//! what it got.

use crate::{Known, grammar};

/// A half-open range of a head's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// One header field: where its name and its value stand, and which known field it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The name, in the sender's case.
    pub name: Span,
    /// The value, without white space at its ends.
    pub value: Span,
    /// The field, if it is one that is looked up by name.
    pub known: Option<Known>,
}

/// A head's bytes and the fields in them.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    bytes: Vec<u8>,
    list: Vec<Field>,
    /// One more than the index of the first field of each known name; 0 where there is none.
    first: [u16; Known::COUNT],
    /// Where the field lines stand, without the empty line after them.
    lines: Span,
}

impl Span {
    /// A span that is known to lie in a head, and so fits 32 bits: heads are far smaller than 4 GiB. One
    /// that does not is empty rather than wrong.
    pub(crate) fn new(start: usize, end: usize) -> Span {
        match (u32::try_from(start), u32::try_from(end)) {
            (Ok(start), Ok(end)) => Span { start, end },
            _ => Span::default(),
        }
    }

    /// Whether it covers nothing.
    pub(crate) fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

impl Fields {
    pub(crate) const fn new() -> Fields {
        Fields {
            bytes: Vec::new(),
            list: Vec::new(),
            first: [0; Known::COUNT],
            lines: Span { start: 0, end: 0 },
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.list.clear();
        self.first = [0; Known::COUNT];
        self.lines = Span::default();
    }

    pub(crate) fn bytes_held(&self) -> usize {
        self.bytes.capacity() + self.list.capacity() * size_of::<Field>()
    }

    /// Takes a copy of a whole head, whose `count` field lines are `lines`.
    pub(crate) fn fill(&mut self, head: &[u8], lines: Span, count: usize) {
        self.clear();
        self.list.reserve(count);
        self.bytes.extend_from_slice(head);
        self.lines = lines;
    }

    /// Notes where a field stands. Fields must come in the order of the head.
    pub(crate) fn push(&mut self, name: Span, value: Span) {
        let known = Known::from_name(self.slice(name));
        self.list.push(Field { name, value, known });
        if let Some(known) = known
            && let Some(first) = self.first.get_mut(known as usize)
            && *first == 0
        {
            *first = u16::try_from(self.list.len()).unwrap_or(0);
        }
    }

    pub(crate) fn slice(&self, span: Span) -> &[u8] {
        self.bytes.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    pub(crate) fn get(&self, known: Known) -> Option<&[u8]> {
        Some(self.slice(self.list.get(self.first_index(known)?)?.value))
    }

    pub(crate) fn get_all(&self, known: Known) -> impl Iterator<Item = &[u8]> {
        let from = self.first_index(known).unwrap_or(self.list.len());
        self.list
            .get(from..)
            .unwrap_or_default()
            .iter()
            .filter(move |field| field.known == Some(known))
            .map(|field| self.slice(field.value))
    }

    pub(crate) fn find_all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.list.iter().map(|field| (self.slice(field.name), self.slice(field.value)))
    }

    pub(crate) fn list(&self) -> &[Field] {
        &self.list
    }

    pub(crate) fn lines(&self) -> &[u8] {
        self.slice(self.lines)
    }

    /// The bytes before the field lines: the request line or the status line.
    pub(crate) fn before_lines(&self) -> &[u8] {
        self.slice(Span { start: 0, end: self.lines.start })
    }

    /// Whether a list-valued field holds `member`, in any case and in any of its lines.
    pub(crate) fn lists(&self, known: Known, member: &[u8]) -> bool {
        self.get_all(known).flat_map(grammar::list_members).any(|own| own.eq_ignore_ascii_case(member))
    }

    fn first_index(&self, known: Known) -> Option<usize> {
        usize::from(*self.first.get(known as usize)?).checked_sub(1)
    }
}
