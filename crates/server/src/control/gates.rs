//! Makes gates of the configured limits, and keeps those over a reload that it names with equal settings.
//!
//! Owns none of them: they are in snapshots, and in what is configured.

use std::sync::Arc;

use onehop_config::checked::Checked;
use onehop_config::checked::limit::Limit;

use crate::limits::SITE_LIMITS_MAX;
use crate::request::admit::Gates;
use crate::request::admit::gate::Gate;
use crate::request::route::limit_wishes;

/// The gates of a configuration, but for those of its applications, which their pools have.
pub(super) struct Made {
    /// Each once.
    pub(super) all: Vec<Arc<Gate>>,
    /// By number of the site.
    pub(super) sites: Vec<SiteGates>,
}

/// The gates of one site.
pub(super) struct SiteGates {
    /// What its routes name, by number.
    pub(super) limits: Vec<Arc<Limit>>,
    pub(super) gates: Arc<Gates>,
}

/// Makes the gates of these settings; one of `before` that has the same stays what it is, with those that are in.
pub(super) fn make(checked: &Checked, before: &[Arc<Gate>]) -> Result<Made, String> {
    let mut made = Made { all: Vec::new(), sites: Vec::new() };
    for site in &checked.sites {
        let mut limits: Vec<_> = checked.global.limit.iter().cloned().collect();
        let has_server = !limits.is_empty();
        limit_wishes(&site.routes, &mut limits);
        site.errors.iter().for_each(|errors| limit_wishes(&errors.routes, &mut limits));
        if limits.len() > SITE_LIMITS_MAX {
            return Err(format!(
                "{} has {} different limits, of which one site may have {SITE_LIMITS_MAX}: let several of its routes \
                 share one by putting them into one `handle` or behind one matcher",
                site.label,
                limits.len(),
            ));
        }
        let gates = limits.iter().map(|limit| made.gate(limit, before)).collect();
        made.sites.push(SiteGates { limits, gates: Arc::new(Gates::new(gates, has_server)) });
    }
    Ok(made)
}

impl Made {
    fn gate(&mut self, limit: &Arc<Limit>, before: &[Arc<Gate>]) -> Arc<Gate> {
        let is_same = |gate: &&Arc<Gate>| gate.limit == *limit;
        if let Some(known) = self.all.iter().find(is_same) {
            return Arc::clone(known);
        }
        let kept = before.iter().find(is_same).cloned();
        let gate = kept.unwrap_or_else(|| Gate::new(Arc::clone(limit)));
        self.all.push(Arc::clone(&gate));
        gate
    }
}
