//! Ends a keeper's threads while they wait or work.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::limits::POLL_PERIOD;

/// A flag for threads that work, and a descriptor for threads that wait.
#[derive(Debug)]
pub(super) struct Stop {
    flag: AtomicBool,
    /// `None` where the system has no descriptor left: then a wait ends by itself now and then.
    wake: Option<OwnedFd>,
}

impl Stop {
    pub(super) fn new() -> Self {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok();
        Self { flag: AtomicBool::new(false), wake }
    }

    /// For threads that work.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Ends them all.
    pub(super) fn stop(&self) {
        self.flag.store(true, Ordering::Release);
        if let Some(wake) = &self.wake {
            let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
        }
    }

    /// Whether they shall end.
    pub(super) fn stopped(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    /// Waits for `other` to be readable, for the stop, or until then.
    pub(super) fn wait(&self, other: Option<BorrowedFd<'_>>, until: Option<Instant>) {
        let mut descriptors: Vec<PollFd<'_>> = [self.wake.as_ref().map(AsFd::as_fd), other]
            .into_iter()
            .flatten()
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        let mut timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        if self.wake.is_none() {
            timeout = Some(timeout.unwrap_or(POLL_PERIOD).min(POLL_PERIOD));
        }
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        // Whatever ends the wait, its caller looks at what there is.
        let _ = poll(&mut descriptors, timeout.as_ref());
    }
}
