//! Paths that a message for a person names.

use crate::limits::UNPACKED_NAMED_MAX;

/// Some paths, of which the first are named and the rest is counted.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Named {
    /// The first ones, for a person.
    pub first: Vec<String>,
    /// How many there are.
    pub count: usize,
}

impl Named {
    pub(super) fn add(&mut self, path: impl Into<String>) {
        if self.first.len() < UNPACKED_NAMED_MAX {
            self.first.push(path.into());
        }
        self.count += 1;
    }

    /// `a, b and 3 more`
    pub fn text(&self) -> String {
        let rest = self.count.saturating_sub(self.first.len());
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        format!("{}{more}", self.first.join(", "))
    }
}
