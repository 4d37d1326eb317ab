//! What the rate limiters that have counted a request tell its client.

use onehop_limits::rate::{Quota, RateLimiter};
use onehop_message::response::Response;

/// The quotas that a response announces.
#[derive(Default)]
pub(crate) struct RateChecks<'a> {
    announced: Vec<(&'a RateLimiter, Quota)>,
}

impl<'a> RateChecks<'a> {
    /// Announces what a limiter leaves the client.
    pub(super) fn admitted(&mut self, limiter: &'a RateLimiter, quota: Quota) {
        self.announced.push((limiter, quota));
    }

    /// Announces the limiter that rejected the request, alone: nothing that is announced may end after Retry-After
    /// (section 6 of the draft).
    pub(super) fn rejected(&mut self, limiter: &'a RateLimiter, quota: Quota) {
        self.announced.clear();
        self.announced.push((limiter, quota));
    }

    /// Writes the quotas into the response.
    pub(crate) fn announce(&self, response: &mut Response) {
        // A client might wait before it follows a redirection (section 6 of the draft).
        if matches!(response.status, 300..=303 | 305..=399) {
            return;
        }
        for (limiter, quota) in &self.announced {
            limiter.write(*quota, &mut response.fields);
        }
    }
}
