//! What a collection holds that is not done, for people; bounded.

use super::limits::NOTES_MAX;
use super::problem::printable;

/// Notes, each once.
#[derive(Debug, Default)]
pub(super) struct Notes {
    notes: Vec<String>,
    left_out: usize,
}

impl Notes {
    pub(super) fn push(&mut self, note: &str) {
        let note = printable(note);
        if self.notes.contains(&note) {
            return;
        }
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn into_lines(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.notes.push(format!("{} further notes of this kind", self.left_out));
        }
        self.notes
    }
}
