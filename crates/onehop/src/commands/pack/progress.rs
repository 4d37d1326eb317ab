//! A bar for packing that takes longer than a moment, where a person looks.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use onehop_files::tree as store;

use crate::units::bytes;

/// Shorter work shows no bar, which would only flicker.
const BAR_DELAY: Duration = Duration::from_secs(1);

/// How far packing is.
pub(super) struct Progress {
    begun: Instant,
    is_wanted: bool,
    is_shown: AtomicBool,
    bar: ProgressBar,
}

impl Progress {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::hidden();
        if let Ok(style) = ProgressStyle::with_template("  {bar:30} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        let is_wanted = std::io::stderr().is_terminal();
        Self { begun: Instant::now(), is_wanted, is_shown: AtomicBool::new(false), bar }
    }

    /// So many of so many.
    pub(super) fn show(&self, done: usize, of: usize, what: impl FnOnce() -> String) {
        if !self.is_wanted || self.begun.elapsed() < BAR_DELAY {
            return;
        }
        if !self.is_shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_length(of as u64);
        self.bar.set_message(what());
        self.bar.set_position(done as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Of one tree.
pub(super) struct OfTree<'a> {
    progress: &'a Progress,
    found: std::sync::atomic::AtomicUsize,
}

impl<'a> OfTree<'a> {
    pub(super) fn new(progress: &'a Progress) -> Self {
        Self { progress, found: std::sync::atomic::AtomicUsize::new(0) }
    }
}

impl store::Progress for OfTree<'_> {
    fn found(&self, files: usize, _: u64) {
        self.found.store(files, Ordering::Relaxed);
    }

    fn files(&self, done: usize, size: u64) {
        let of = self.found.load(Ordering::Relaxed);
        self.progress.show(done, of, || format!("files read, {}", bytes(size)));
    }

    fn forms(&self, done: usize, of: usize) {
        self.progress.show(done, of, || "files compressed".to_owned());
    }
}
