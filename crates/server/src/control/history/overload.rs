//! When an overload of a site begins and ends: derived from its rejected requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use onehop_history::{Event, Sample};

use crate::limits::{OVERLOAD_QUIET_SAMPLES, OVERLOAD_REJECTED_MIN};

/// The sites that are overloaded, and for how many samples none of their requests was rejected.
#[derive(Default)]
pub(super) struct Overloads {
    quiet: BTreeMap<Arc<str>, u32>,
}

impl Overloads {
    /// What began or ended with this sample.
    pub(super) fn changes(&mut self, sample: &Sample, at: u64) -> Vec<Event> {
        let mut changes = Vec::new();
        let event = |name: &str, site: &Arc<str>, text: String| Event {
            at,
            event: name.to_owned(),
            text,
            subject: Some(site.to_string()),
        };
        for (site, figures) in &sample.sites {
            let rejected = figures.rejected;
            if rejected > 0
                && let Some(quiet) = self.quiet.get_mut(site)
            {
                *quiet = 0;
            } else if rejected >= OVERLOAD_REJECTED_MIN {
                self.quiet.insert(Arc::clone(site), 0);
                let text = format!(
                    "{site} is overloaded: {rejected} of {} requests were rejected",
                    figures.requests
                );
                changes.push(event("overload_began", site, text));
            }
        }
        self.quiet.retain(|site, quiet| {
            let rejected = sample.sites.get(site).map_or(0, |figures| figures.rejected);
            *quiet += u32::from(rejected == 0);
            let is_over = *quiet >= OVERLOAD_QUIET_SAMPLES;
            if is_over {
                let text = format!("{site} is not overloaded any more");
                changes.push(event("overload_ended", site, text));
            }
            !is_over
        });
        changes
    }
}

#[cfg(test)]
mod tests {
    use onehop_history::Figures;

    use super::*;

    #[test]
    fn an_overload_that_comes_and_goes_is_one() {
        let mut overloads = Overloads::default();
        let mut seen = Vec::new();
        for (at, rejected) in [0, 9, 10, 0, 0, 1, 500, 0, 0, 0, 0, 3, 12].into_iter().enumerate() {
            let figures = Figures { requests: 1_000, rejected, ..Figures::default() };
            let sample = Sample { sites: [(Arc::from("a"), figures)].into(), ..Sample::default() };
            let changes = overloads.changes(&sample, at as u64).into_iter();
            seen.extend(changes.map(|event| (event.at, event.event)));
        }
        let expected = [(2, "overload_began"), (9, "overload_ended"), (12, "overload_began")];
        assert_eq!(seen, expected.map(|(at, event)| (at, event.to_owned())));
    }
}
