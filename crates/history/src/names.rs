//! Names of sites and applications in a segment: each is written once, where it is first met, and is a number from then on.

use std::collections::HashMap;
use std::sync::Arc;

/// The names of one segment, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Names {
    list: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, usize>,
}

impl Names {
    /// How many there are; the next one gets this number.
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// The name with this number.
    pub(crate) fn get(&self, number: usize) -> Option<&Arc<str>> {
        self.list.get(number)
    }

    /// The number of a name.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// Gives a name the next number.
    pub(crate) fn add(&mut self, name: Arc<str>) {
        self.numbers.insert(Arc::clone(&name), self.list.len());
        self.list.push(name);
    }
}
