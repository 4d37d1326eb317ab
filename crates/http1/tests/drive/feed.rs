//! Input that comes in pieces, as reads from a socket would bring it.

/// What is there of an input, and what of that was consumed.
pub(crate) struct Feed<'a> {
    input: &'a [u8],
    at: usize,
    end: usize,
    step: usize,
}

impl<'a> Feed<'a> {
    /// At first `cut` bytes are there, then `step` more at each call of [`Feed::more`], at least one.
    pub(crate) fn new(input: &'a [u8], cut: usize, step: usize) -> Feed<'a> {
        Feed { input, at: 0, end: cut.min(input.len()), step: step.max(1) }
    }

    /// What is there and not consumed.
    pub(crate) fn here(&self) -> &'a [u8] {
        &self.input[self.at..self.end]
    }

    /// Brings more; `false` where there is none.
    pub(crate) fn more(&mut self) -> bool {
        let more = self.end < self.input.len();
        self.end = self.end.saturating_add(self.step).min(self.input.len());
        more
    }

    /// Panics where more is consumed than is there.
    pub(crate) fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.here().len(), "more was consumed than was there");
        self.at += bytes;
    }

    /// Bytes of the whole input that were not consumed.
    pub(crate) fn left(&self) -> usize {
        self.input.len() - self.at
    }
}
