//! `rate_limit`: rejects clients that ask too often.
//!
//! [`ClientRateLimiter`] derives the key of a request ([`keys`]) and checks it with a [`RateLimiter`], which counts. Never
//! waits and never answers: a rejection is an error, which becomes 429.

mod keys;

use std::sync::Arc;
use std::time::Instant;

use onehop_config::checked::limit::RateLimit;
use onehop_config::checked::{Checked, Step};
use onehop_limits::rate::{Counts, Quota, RateCheck, RateLimiter};
use onehop_message::error::HttpError;
use onehop_message::response::Response;

use crate::request::context::RequestContext;
use keys::Keys;

/// One `rate_limit` at work; all cores share it.
#[derive(Debug)]
pub struct ClientRateLimiter {
    keys: Keys,
    limiter: RateLimiter,
}

/// The rate-limit checks of one request: which limiters have counted it, and what they tell its client.
///
/// A trip that is repeated because it needs the disk takes the same way to where it stopped: it is counted once.
#[derive(Default)]
pub(crate) struct RateChecks<'a> {
    /// Limiters on this trip.
    met: u32,
    /// Of these the first ones, which have counted the request on the trip before.
    counted: u32,
    /// The error with which the last one of them rejected it.
    rejected: Option<HttpError>,
    announced: Vec<(&'a RateLimiter, Quota)>,
}

/// The rate limiters of a configuration. Those of before that are named and set the same keep their counts.
pub fn limiters(checked: &Checked, before: &[Arc<ClientRateLimiter>]) -> Vec<Arc<ClientRateLimiter>> {
    let mut limiters: Vec<Arc<ClientRateLimiter>> = Vec::new();
    checked.each_step(|step| {
        if let Step::RateLimit(settings) = step
            && !limiters.iter().any(|limiter| limiter.settings() == settings)
        {
            let kept = before.iter().find(|limiter| limiter.settings() == settings);
            limiters.push(
                kept.map_or_else(|| Arc::new(ClientRateLimiter::new(Arc::clone(settings))), Arc::clone),
            );
        }
    });
    limiters
}

impl ClientRateLimiter {
    /// Makes a limiter that has counted nothing.
    pub fn new(settings: Arc<RateLimit>) -> Self {
        Self { keys: Keys::new(&settings.key), limiter: RateLimiter::new(settings) }
    }

    /// The settings.
    pub fn settings(&self) -> &Arc<RateLimit> {
        self.limiter.settings()
    }

    /// What it has counted.
    pub fn counts(&self) -> Counts {
        self.limiter.counts()
    }

    /// Counts a request, or rejects it.
    pub(crate) fn check<'a>(&'a self, context: &mut RequestContext<'a>) -> Result<(), HttpError> {
        self.check_at(context.request.received, context)
    }

    fn check_at<'a>(&'a self, now: Instant, context: &mut RequestContext<'a>) -> Result<(), HttpError> {
        let key = self.keys.of(self.settings(), context);
        let checks = &mut context.rate_checks;
        checks.met += 1;
        if checks.met == checks.counted
            && let Some(error @ HttpError::RateLimited { retry_after }) = checks.rejected
        {
            let quota = Quota { requests: 0, seconds: u64::from(retry_after) };
            checks.announced = vec![(&self.limiter, quota)];
            return Err(error);
        }
        let result = if checks.met <= checks.counted {
            RateCheck::Admitted(self.limiter.quota(key, now))
        } else {
            self.limiter.check(key, now)
        };
        match result {
            RateCheck::Admitted(quota) => {
                if self.settings().announce {
                    checks.announced.push((&self.limiter, quota));
                }
                Ok(())
            }
            RateCheck::Rejected(quota) => {
                // Alone: nothing that is announced may end after Retry-After (section 6 of the draft).
                checks.announced.clear();
                checks.announced.push((&self.limiter, quota));
                let retry_after = u32::try_from(quota.seconds).unwrap_or(u32::MAX);
                Err(HttpError::RateLimited { retry_after })
            }
        }
    }
}

impl RateChecks<'_> {
    /// For a trip that is repeated after one that was counted by so many limiters, and failed with this.
    pub(crate) fn repeated(counted: u32, failed: Option<HttpError>) -> Self {
        let rejected = failed.filter(|error| matches!(error, HttpError::RateLimited { .. }));
        Self { counted, rejected, ..Self::default() }
    }

    /// Limiters that have counted this request until now.
    pub(crate) fn counted(&self) -> u32 {
        self.met.max(self.counted)
    }

    /// Writes what the client is told into its response.
    pub(crate) fn announce(&self, answer: &mut Response) {
        // A client might wait before it follows a redirection (section 6 of the draft).
        if matches!(answer.status, 300..=303 | 305..=399) {
            return;
        }
        for (limiter, quota) in &self.announced {
            limiter.write(*quota, &mut answer.fields);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
