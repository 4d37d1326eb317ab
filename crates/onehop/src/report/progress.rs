//! A progress bar for preparations that take longer than a moment.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use onehop_server::Event;

use crate::units::bytes;

/// Shorter preparations show no bar: it would only flicker.
const PATIENCE: Duration = Duration::from_secs(1);

/// The bar, once there is one.
pub(crate) struct Progress {
    /// When the work that is going on began; `None` while there is none, or nobody looks.
    since: Option<Instant>,
    wanted: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A bar is drawn only where a person looks at standard error.
    pub(crate) fn new(for_a_person: bool) -> Self {
        Self { since: None, wanted: for_a_person && std::io::stderr().is_terminal(), bar: None }
    }

    /// Moves, shows or removes the bar.
    pub(crate) fn note(&mut self, event: &Event) {
        if !self.wanted {
            return;
        }
        match event {
            Event::Reading { files, bytes: size, .. } => {
                if let Some(bar) = self.shown(None) {
                    bar.set_message(format!("reading: {files} files, {}", bytes(*size)));
                }
            }
            Event::Compressing { done, total, .. } => {
                if let Some(bar) = self.shown(Some(*total as u64)) {
                    bar.set_message("compressing");
                    bar.set_position(*done as u64);
                }
            }
            Event::Stored { .. } | Event::Compressed { .. } | Event::Stopping { .. } => self.remove(),
            _ => {}
        }
    }

    /// Writes something else without tearing the bar.
    pub(crate) fn beside(&self, write: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// The bar, if the work has taken long enough.
    fn shown(&mut self, total: Option<u64>) -> Option<&ProgressBar> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if self.bar.is_none() && since.elapsed() >= PATIENCE {
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
            let template = if total.is_some() { "  {bar:30} {pos}/{len} {msg}" } else { "  {spinner} {msg}" };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            self.bar = Some(bar);
        }
        self.bar.as_ref()
    }

    fn remove(&mut self) {
        self.since = None;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
