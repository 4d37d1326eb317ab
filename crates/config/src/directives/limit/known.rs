//! The bounds of a configuration so far: what they are called, and what is still to be said about them.
//!
//! A name is what stands around a bound, as written, and a number where another one has it already. Knows nothing of what
//! the settings mean.

use std::collections::HashSet;
use std::sync::Arc;

use super::matcher_of;
use crate::checked::limit::RateLimit;
use crate::problem::Place;
use crate::syntax::Line;

/// The bounds of a configuration so far.
#[derive(Debug, Default)]
pub(crate) struct KnownLimits {
    /// The site that is read now, and the matchers of the blocks around the line; empty where a block has none.
    around: Vec<String>,
    labels: HashSet<String>,
    /// Zones of every `rate_limit`.
    pub(in crate::directives) zones: Vec<Arc<RateLimit>>,
    /// Where this site asks for `lag`.
    pub(crate) lags: Vec<Place>,
    /// Where the global block does.
    pub(crate) lag_of_server: Option<Place>,
    /// No `app` has a bound by itself.
    pub(super) leaves_apps_alone: bool,
}

impl KnownLimits {
    /// What follows belongs to this site.
    pub(crate) fn begin_site(&mut self, label: &str) {
        self.around = vec![label.to_owned()];
        self.lags.clear();
    }

    /// What follows stands in the block of this line.
    pub(in crate::directives) fn enter(&mut self, line: &Line) {
        let matcher = matcher_of(line).filter(|matcher| *matcher != "*");
        self.around.push(matcher.unwrap_or_default().to_owned());
    }

    /// Its block has ended.
    pub(in crate::directives) fn leave(&mut self) {
        self.around.pop();
    }

    /// A name that no other bound has.
    pub(super) fn label(&mut self, matcher: Option<&str>) -> String {
        let label = numbered(&self.place(matcher), |label| self.labels.contains(label));
        self.labels.insert(label.clone());
        label
    }

    /// A name that no other zone has.
    pub(in crate::directives) fn zone(&self, matcher: Option<&str>) -> String {
        numbered(&self.place(matcher), |name| self.zones.iter().any(|zone| zone.zone == name))
    }

    /// The site, and the matchers that lead to a line with this one.
    fn place(&self, matcher: Option<&str>) -> String {
        let around = self.around.iter().map(String::as_str);
        let words = around.chain(matcher).filter(|word| !word.is_empty() && *word != "*");
        words.collect::<Vec<_>>().join(" ")
    }
}

/// The name itself, or the first of it with a number that nobody has.
fn numbered(base: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let more = (2_u32..).map(|number| format!("{base} #{number}"));
    std::iter::once(base.to_owned()).chain(more).find(|name| !is_taken(name)).unwrap_or_default()
}
