//! Whether an upstream is well: by what requests meet (passive), and by what it answers when asked (active).
//!
//! Counts for the whole process. Asks nobody: that is `control/upstreams/health.rs`, which calls [`Member::found`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use onehop_config::checked::proxy::PassiveHealth;

use super::Member;

/// What is known of an upstream's health.
#[derive(Default)]
pub(crate) struct Health {
    /// By active questions.
    is_down: AtomicBool,
}

impl Member {
    /// Whether requests may be sent to it.
    pub(crate) fn is_available(&self, passive: &PassiveHealth) -> bool {
        let has_room =
            passive.unhealthy_request_count.is_none_or(|most| self.peer.in_flight() < most as usize);
        has_room && !self.health.is_down.load(Ordering::Relaxed)
    }

    /// No connection, or it broke before an answer's head.
    pub(crate) fn failed(&self, passive: &PassiveHealth) {
        let _ = passive;
    }

    /// An answer's head came so long after the request.
    pub(crate) fn answered(&self, status: u16, after: Duration, passive: &PassiveHealth) {
        let _ = (status, after, passive);
    }

    /// It was asked, and is well or not.
    pub(crate) fn found(&self, is_well: bool) {
        self.health.is_down.store(!is_well, Ordering::Relaxed);
    }
}
