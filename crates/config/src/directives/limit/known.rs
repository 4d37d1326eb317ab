//! The bounds of a configuration so far: what they are called, and what is still to be said about them.
//!
//! A name is what stands around a bound, as written, and a number where another one has it already. Knows nothing of what
//! the settings mean.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::matcher_of;
use crate::checked::limit::RateLimit;
use crate::limits::LIMITS_PER_SITE_MAX;
use crate::problem::Location;
use crate::syntax::Directive;

/// The bounds of a configuration so far.
#[derive(Debug, Default)]
pub(crate) struct KnownLimits {
    /// The site that is read now, and the matchers of the blocks around the line; empty where a block has none.
    around: Vec<String>,
    /// Bounds of this site.
    in_site: usize,
    /// The names of all bounds.
    labels: HashSet<String>,
    /// How many bounds and zones stand in one place, so that a thousand of them need not be counted for each.
    bounds_in: HashMap<String, u32>,
    zones_in: HashMap<String, u32>,
    /// Zones of every `rate_limit`, by name.
    pub(in crate::directives) zones: HashMap<String, Arc<RateLimit>>,
    /// Where this site asks for `lag`.
    pub(crate) lags: Vec<Location>,
    /// Where the global block does.
    pub(crate) lag_of_server: Option<Location>,
    /// No `app` has a bound by itself.
    pub(super) leaves_apps_alone: bool,
}

impl KnownLimits {
    /// What follows belongs to this site.
    pub(crate) fn begin_site(&mut self, label: &str) {
        self.around = vec![label.to_owned()];
        self.lags.clear();
        self.in_site = 0;
    }

    /// What follows stands in the block of this line.
    pub(in crate::directives) fn enter(&mut self, line: &Directive) {
        let matcher = matcher_of(line).filter(|matcher| *matcher != "*");
        self.around.push(matcher.unwrap_or_default().to_owned());
    }

    /// Its block has ended.
    pub(in crate::directives) fn leave(&mut self) {
        self.around.pop();
    }

    /// Whether this site has as many bounds as it may have.
    pub(super) fn is_full(&self) -> bool {
        self.in_site >= LIMITS_PER_SITE_MAX
    }

    /// A name that no other bound has.
    pub(super) fn label(&mut self, matcher: Option<&str>) -> String {
        self.in_site += 1;
        let place = self.place(matcher);
        let label = numbered(place, &mut self.bounds_in, |label| self.labels.contains(label));
        self.labels.insert(label.clone());
        label
    }

    /// A name that no other zone has.
    pub(in crate::directives) fn zone(&mut self, matcher: Option<&str>) -> String {
        let place = self.place(matcher);
        numbered(place, &mut self.zones_in, |name| self.zones.contains_key(name))
    }

    /// The site, and the matchers that lead to a line with this one.
    fn place(&self, matcher: Option<&str>) -> String {
        let around = self.around.iter().map(String::as_str);
        let words = around.chain(matcher).filter(|word| !word.is_empty() && *word != "*");
        words.collect::<Vec<_>>().join(" ")
    }
}

/// The place itself, or with the first number that nobody has.
fn numbered(place: String, known: &mut HashMap<String, u32>, is_taken: impl Fn(&str) -> bool) -> String {
    let count = known.entry(place.clone()).or_insert(0);
    loop {
        *count = count.saturating_add(1);
        let name = if *count == 1 { place.clone() } else { format!("{place} #{count}") };
        if !is_taken(&name) || *count == u32::MAX {
            return name;
        }
    }
}
