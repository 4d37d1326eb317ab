//! Makes limiters of the configured limits, and keeps those with equal settings over a reload.
//!
//! Owns none of them: they are in snapshots, and in what is configured.

use std::sync::Arc;

use onehop_config::checked::Checked;
use onehop_config::checked::limit::Limit;
use onehop_limits::ConcurrencyLimiter;

use crate::limits::SITE_LIMITS_MAX;
use crate::request::admission::SiteLimiters;
use crate::request::route::configured_limits;

/// The limiters of a configuration, but for those of its applications, which their pools have.
pub(super) struct Made {
    /// Each once.
    pub(super) all: Vec<Arc<ConcurrencyLimiter>>,
    /// By number of the site.
    pub(super) sites: Vec<LimitersOfSite>,
}

/// The limiters of one site.
pub(super) struct LimitersOfSite {
    /// What its routes name, by number.
    pub(super) limits: Vec<Arc<Limit>>,
    pub(super) limiters: Arc<SiteLimiters>,
}

/// Makes the limiters of these settings; one of `before` that has the same stays what it is, with those that are in.
pub(super) fn make(checked: &Checked, before: &[Arc<ConcurrencyLimiter>]) -> Result<Made, String> {
    let mut made = Made { all: Vec::new(), sites: Vec::new() };
    for site in &checked.sites {
        let mut limits: Vec<_> = checked.global.limit.iter().cloned().collect();
        let has_server = !limits.is_empty();
        configured_limits(&site.routes, &mut limits);
        site.errors.iter().for_each(|errors| configured_limits(&errors.routes, &mut limits));
        if limits.len() > SITE_LIMITS_MAX {
            return Err(format!(
                "{} has {} different limits, of which one site may have {SITE_LIMITS_MAX}: let several of its routes \
                 share one by putting them into one `handle` or behind one matcher",
                site.label,
                limits.len(),
            ));
        }
        let limiters = limits.iter().map(|limit| made.limiter(limit, before)).collect();
        made.sites
            .push(LimitersOfSite { limits, limiters: Arc::new(SiteLimiters::new(limiters, has_server)) });
    }
    Ok(made)
}

impl Made {
    fn limiter(&mut self, limit: &Arc<Limit>, before: &[Arc<ConcurrencyLimiter>]) -> Arc<ConcurrencyLimiter> {
        let is_same = |limiter: &&Arc<ConcurrencyLimiter>| limiter.limit() == limit;
        if let Some(known) = self.all.iter().find(is_same) {
            return Arc::clone(known);
        }
        let kept = before.iter().find(is_same).cloned();
        let limiter = kept.unwrap_or_else(|| ConcurrencyLimiter::new(Arc::clone(limit)));
        self.all.push(Arc::clone(&limiter));
        limiter
    }
}
