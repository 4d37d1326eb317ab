//! The zones of `rate_limit` as Prometheus text.
//!
//! Each has its name as the label, which comes from the configuration; a key, which comes from a request, never
//! becomes one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use onehop_limits::rate::Counts;

use super::prometheus::{escape, family};
use crate::request::admission::rate::ClientRateLimiter;

type Value = fn(&Counts) -> u64;

/// What is told of each zone: name behind `onehop_rate_limit_`, type, help, value.
const SERIES: [(&str, &str, &str, Value); 4] = [
    ("let_in_total", "counter", "Requests that a zone let in.", |counts| counts.admitted),
    ("refused_total", "counter", "Requests that a zone refused.", |counts| counts.rejected),
    ("keys", "gauge", "Keys that a zone remembers.", |counts| counts.keys),
    (
        "displaced_total",
        "counter",
        "Keys that a zone forgot before it could let in a whole burst of theirs, because it had no room.",
        |counts| counts.evicted,
    ),
];

/// Zones, as they are now.
pub fn render_rate_limits(zones: &[Arc<ClientRateLimiter>]) -> String {
    let mut out = String::new();
    if zones.is_empty() {
        return out;
    }
    let mut sums: BTreeMap<&str, Counts> = BTreeMap::new();
    for zone in zones {
        sums.entry(&zone.settings().zone).or_default().add(zone.counts());
    }
    for (name, kind, help, value) in SERIES {
        let name = format!("onehop_rate_limit_{name}");
        family(&mut out, &name, kind, help);
        for (zone, counts) in &sums {
            let _ = writeln!(out, "{name}{{zone=\"{}\"}} {}", escape(zone), value(counts));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::request::admission::rate::tests::{Asking, limit};

    #[test]
    fn zones_tell_what_they_let_in_and_refused() {
        let zone = Arc::new(ClientRateLimiter::new(Arc::new(limit(1, Duration::from_secs(60), 2))));
        for address in ["192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2"] {
            let asking = Asking::from(address);
            let _ = zone.check(&mut asking.context());
        }
        insta::assert_snapshot!(render_rate_limits(&[zone]));
        assert_eq!(render_rate_limits(&[]), "");
    }
}
