//! Waits for a tree to change: by watching where that is possible, by looking where it is not.
//!
//! Owns the choice between the two, which is made once and said once.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use super::StoreSpec;
use super::events::{Events, KeeperEvent};
use super::inotify::{Seen, Watch, deaf};
use super::resolve::resolve;
use super::scan::{Tree, scan};
use super::stop::Stop;
use crate::limits::POLL_PERIOD;

/// How changes are noticed.
pub(super) struct TreeWatcher {
    stop: Arc<Stop>,
    mode: Mode,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// The keeper ends.
    Stopped,
    /// Something may have changed.
    Changed {
        /// Events were lost.
        overflow: bool,
    },
    /// Nothing happened until then.
    Late,
}

enum Mode {
    Watching(Watch),
    /// The listing that was last acted upon; 0: there was none.
    Polling {
        known: u128,
    },
}

impl TreeWatcher {
    /// Looks at the root's file system and chooses.
    pub(super) fn open(spec: &StoreSpec, stop: Arc<Stop>, events: &Events) -> Self {
        if let Some(name) = deaf(&spec.root) {
            return Self::blind(&format!("{name} does not report changes"), stop, events);
        }
        match Watch::new() {
            Ok(watch) => Self { stop, mode: Mode::Watching(watch) },
            Err(error) => Self::blind(&reason(&error), stop, events),
        }
    }

    /// Looks from time to time.
    pub(super) fn blind(reason: &str, stop: Arc<Stop>, events: &Events) -> Self {
        let mut watcher = Self { stop, mode: Mode::Polling { known: 0 } };
        watcher.poll(reason, events);
        watcher
    }

    /// Waits for a change, but not longer than until then.
    pub(super) fn wait(&mut self, spec: &StoreSpec, until: Option<Instant>) -> Woken {
        loop {
            let slice = match &self.mode {
                Mode::Watching(watch) => {
                    self.stop.wait(Some(watch.as_fd()), until);
                    until
                }
                Mode::Polling { .. } => {
                    let slice = Instant::now() + POLL_PERIOD;
                    let slice = until.map_or(slice, |until| until.min(slice));
                    self.stop.wait(None, Some(slice));
                    Some(slice)
                }
            };
            if self.stop.stopped() {
                return Woken::Stopped;
            }
            let early = slice.is_some_and(|slice| Instant::now() < slice);
            let seen = match &mut self.mode {
                Mode::Watching(watch) => watch.look(spec).unwrap_or(LOST),
                Mode::Polling { .. } if early => continue,
                Mode::Polling { known } => {
                    let now = scan(spec).map_or(0, |tree| tree.signature());
                    Seen { change: std::mem::replace(known, now) != now, overflow: false }
                }
            };
            if seen.change {
                return Woken::Changed { overflow: seen.overflow };
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Woken::Late;
            }
        }
    }

    /// Whether something changed since the last look, without waiting. A poller says no: reading a tree
    /// looks twice itself.
    pub(super) fn look(&mut self, spec: &StoreSpec) -> bool {
        match &mut self.mode {
            Mode::Watching(watch) => watch.look(spec).unwrap_or(LOST).change,
            Mode::Polling { .. } => false,
        }
    }

    /// Looks at what a listing shows from now on.
    pub(super) fn follow(&mut self, tree: &Tree, events: &Events) {
        let failed = match &mut self.mode {
            Mode::Watching(watch) => match deaf(&tree.root) {
                Some(name) => Some(format!("{name} does not report changes")),
                None => watch.follow(tree).err().map(|error| reason(&error)),
            },
            Mode::Polling { .. } => None,
        };
        if let Some(reason) = failed {
            self.poll(&reason, events);
        }
        if let Mode::Polling { known } = &mut self.mode {
            *known = tree.signature();
        }
    }

    /// Looks for a missing root from now on; returns whether it is there already.
    pub(super) fn expect(&mut self, spec: &StoreSpec, events: &Events) -> bool {
        let Err(lost) = resolve(&spec.root) else { return true };
        let failed = match &mut self.mode {
            Mode::Watching(watch) => watch.expect(&lost.nearest, &lost.missing, &lost.links).err(),
            Mode::Polling { known } => {
                *known = 0;
                None
            }
        };
        if let Some(error) = failed {
            self.poll(&reason(&error), events);
        }
        match resolve(&spec.root) {
            Ok(_) => true,
            // What exists of the way has grown or shrunk: watch from there.
            Err(now) => now.nearest != lost.nearest || now.missing != lost.missing,
        }
    }

    fn poll(&mut self, reason: &str, events: &Events) {
        self.mode = Mode::Polling { known: 0 };
        events(KeeperEvent::Polling { reason: reason.to_owned() });
    }
}

/// What unreadable events mean.
const LOST: Seen = Seen { change: true, overflow: true };

fn reason(error: &io::Error) -> String {
    match rustix::io::Errno::from_io_error(error) {
        Some(rustix::io::Errno::NOSPC) => {
            "the system allows no more watches (fs.inotify.max_user_watches)".to_owned()
        }
        Some(rustix::io::Errno::MFILE) => {
            "the system allows no more watchers (fs.inotify.max_user_instances)".to_owned()
        }
        _ => error.to_string(),
    }
}
