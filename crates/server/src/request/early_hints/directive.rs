//! One `early_hints`: what is written there, and what it has learned.

use onehop_config::checked;
use onehop_message::link::{Link, links};

use super::learned::Learned;

/// One `early_hints` at work; all cores share it.
#[derive(Debug)]
pub struct EarlyHints {
    /// Values of `Link` fields that are written there.
    pub(super) links: Vec<Vec<u8>>,
    /// What it has learned, if it learns.
    pub(super) learned: Option<Learned>,
}

impl EarlyHints {
    /// Makes one that has learned nothing.
    pub fn new(settings: &checked::EarlyHints) -> Self {
        Self {
            links: settings.links.iter().map(|link| link.clone().into_bytes()).collect(),
            learned: settings.learn.then(Learned::default),
        }
    }

    /// Whether a link to this URL is written there.
    pub(super) fn names(&self, link: Link<'_>) -> bool {
        self.links.iter().flat_map(|value| links(value)).any(|known| known.target == link.target)
    }
}
