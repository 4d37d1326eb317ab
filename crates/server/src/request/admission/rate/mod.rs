//! `rate_limit`: rejects clients that ask too often.
//!
//! [`ClientRateLimiter`] derives the key of a request ([`keys`]) and checks it with a [`RateLimiter`], which counts. Never
//! waits and never answers: a rejection is an error, which becomes 429.

mod checks;
mod keys;

use std::sync::Arc;
use std::time::Instant;

use onehop_config::checked::limit::RateLimit;
use onehop_config::checked::{Checked, Step};
use onehop_limits::rate::{Counts, RateCheck, RateLimiter};
use onehop_message::error::HttpError;

use crate::request::context::RequestContext;
pub(crate) use checks::RateChecks;
use keys::Keys;

/// One `rate_limit` at work; all cores share it.
#[derive(Debug)]
pub struct ClientRateLimiter {
    keys: Keys,
    limiter: RateLimiter,
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
        match self.limiter.check(key, now) {
            RateCheck::Admitted(quota) => {
                if self.settings().announce {
                    context.rate_checks.admitted(&self.limiter, quota);
                }
                Ok(())
            }
            RateCheck::Rejected(quota) => {
                context.rate_checks.rejected(&self.limiter, quota);
                let retry_after = u32::try_from(quota.seconds).unwrap_or(u32::MAX);
                Err(HttpError::RateLimited { retry_after })
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
