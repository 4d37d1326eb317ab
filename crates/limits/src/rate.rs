//! Requests per key and time.
//!
//! A [`RateLimiter`] decides by the Generic Cell Rate Algorithm ([`gcra`]) on one time per key, in a bounded table that all
//! threads share ([`table`]). [`fields`] writes what a client is told. It never waits, and knows nothing of what a key
//! stands for.

mod fields;
mod gcra;
mod table;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use onehop_config::checked::limit::RateLimit;
use onehop_message::response::Fields;

pub use table::Counts;

use fields::RateFields;
use gcra::{Rate, Verdict};
use table::Table;

/// A `rate_limit` at work.
pub struct RateLimiter {
    settings: Arc<RateLimit>,
    rate: Rate,
    table: Table,
    fields: RateFields,
    /// The origin of the table's times.
    began: Instant,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateCheck {
    /// The request is admitted and counted.
    Admitted(Quota),
    /// The key has no requests left; the request does not count.
    Rejected(Quota),
}

/// What is left to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Requests that would be admitted now.
    pub requests: u64,
    /// Whole seconds within which a client that sends no more than these keeps to the rate; where there are none, until there
    /// is one.
    pub seconds: u64,
}

impl RateLimiter {
    /// Makes a limiter that has counted nothing.
    #[must_use]
    pub fn new(settings: Arc<RateLimit>) -> Self {
        Self {
            rate: Rate::new(settings.events, settings.window, settings.burst),
            table: Table::new(settings.keys_max),
            fields: RateFields::new(&settings),
            began: Instant::now(),
            settings,
        }
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Arc<RateLimit> {
        &self.settings
    }

    /// What it has counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.table.counts()
    }

    /// Counts a request under this key, or rejects it.
    pub fn check(&self, key: u64, now: Instant) -> RateCheck {
        let now = self.nanoseconds(now);
        match self.table.check(key, now, self.rate) {
            Verdict::Admitted { full_at } => RateCheck::Admitted(self.left(full_at, now)),
            Verdict::Rejected { wait } => {
                RateCheck::Rejected(Quota { requests: 0, seconds: whole_seconds(wait) })
            }
        }
    }

    /// Writes the fields that tell a client about its quota.
    pub fn write(&self, quota: Quota, fields: &mut Fields) {
        self.fields.write(quota.requests, quota.seconds, fields);
    }

    fn left(&self, full_at: u64, now: u64) -> Quota {
        let left = self.rate.left(full_at, now);
        Quota { requests: left.requests, seconds: whole_seconds(left.within) }
    }

    fn nanoseconds(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RateLimiter").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Rounds up as `Retry-After` needs it (RFC 9110 section 10.2.3): a client that waits so long does not come too early.
fn whole_seconds(nanoseconds: u64) -> u64 {
    nanoseconds.div_ceil(1_000_000_000).max(1)
}
