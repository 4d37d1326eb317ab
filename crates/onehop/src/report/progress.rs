//! A progress bar for preparations that take longer than a moment.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use onehop_server::Event;

use crate::units::bytes;

/// Shorter preparations show no bar, which would only flicker, and no events: a tree is read file by
/// file, and a log wants to know no more often than this how far it is.
const BAR_DELAY: Duration = Duration::from_secs(1);

/// How far the work at hand is, and the bar for it once there is one.
pub(crate) struct Progress {
    /// When the work that is going on began, and when a log last heard of it.
    since: Option<(Instant, Instant)>,
    /// Whether a person looks.
    wanted: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A bar is drawn only where a person looks at standard error.
    pub(crate) fn new(for_a_person: bool) -> Self {
        Self { since: None, wanted: for_a_person && std::io::stderr().is_terminal(), bar: None }
    }

    /// Moves, shows or removes the bar. Whether a log should hear of this event.
    pub(crate) fn note(&mut self, event: &Event) -> bool {
        match event {
            Event::Reading { files, of_files, bytes: size, .. } => {
                if let Some(bar) = self.shown(*of_files as u64) {
                    bar.set_message(format!("files read, {}", bytes(*size)));
                    bar.set_position(*files as u64);
                }
                self.is_due()
            }
            Event::Stored { .. } | Event::Compressed { .. } | Event::Stopping { .. } => {
                self.remove();
                true
            }
            _ => true,
        }
    }

    /// Writes something else without tearing the bar.
    pub(crate) fn beside(&self, write: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// The bar, if somebody looks and the work has taken long enough.
    fn shown(&mut self, total: u64) -> Option<&ProgressBar> {
        let now = Instant::now();
        let (begun, _) = *self.since.get_or_insert((now, now));
        if self.wanted && self.bar.is_none() && begun.elapsed() >= BAR_DELAY {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("  {bar:30} {pos}/{len} {msg}") {
                bar.set_style(style);
            }
            self.bar = Some(bar);
        }
        self.bar.as_ref()
    }

    fn is_due(&mut self) -> bool {
        let Some((_, reported)) = &mut self.since else { return false };
        let due = reported.elapsed() >= BAR_DELAY;
        if due {
            *reported = Instant::now();
        }
        due
    }

    fn remove(&mut self) {
        self.since = None;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_that_is_read_at_once_fills_no_log() {
        let mut progress = Progress::new(false);
        for files in 0..1000 {
            assert!(!progress.note(&Event::Reading { root: "/srv".into(), files, of_files: 1002, bytes: 0 }));
        }
        let long_ago = Instant::now().checked_sub(2 * BAR_DELAY).expect("the machine runs for two seconds");
        progress.since = Some((long_ago, long_ago));
        assert!(progress.note(&Event::Reading {
            root: "/srv".into(),
            files: 1000,
            of_files: 1002,
            bytes: 0
        }));
        assert!(!progress.note(&Event::Reading {
            root: "/srv".into(),
            files: 1001,
            of_files: 1002,
            bytes: 0
        }));
        assert!(progress.note(&Event::Reloaded { sites: 1 }));
    }
}
