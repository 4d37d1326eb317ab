//! The zones of `rate_limit`.
//!
//! A zone's label is its name, which comes from the configuration; a key, which comes from a request, never becomes one.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::families::Kind::{Counter, Gauge};
use crate::families::{Families, Series, count};

/// A rate limiter.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RateLimitStats {
    /// Its name.
    pub zone: String,
    /// Requests that it admitted.
    pub admitted: u64,
    /// Requests that it rejected.
    pub rejected: u64,
    /// Keys that it remembers.
    pub keys: u64,
    /// Keys that it evicted before their bucket was full again.
    pub evicted: u64,
}

const SERIES: [Series<RateLimitStats>; 4] = [
    Series {
        name: "let_in_total",
        kind: Counter,
        help: "Requests that a zone let in.",
        value: |zone| count(zone.admitted),
    },
    Series {
        name: "refused_total",
        kind: Counter,
        help: "Requests that a zone refused.",
        value: |zone| count(zone.rejected),
    },
    Series { name: "keys", kind: Gauge, help: "Keys that a zone remembers.", value: |zone| count(zone.keys) },
    Series {
        name: "displaced_total",
        kind: Counter,
        help: "Keys that a zone forgot before it could let in a whole burst of theirs, because it had no room.",
        value: |zone| count(zone.evicted),
    },
];

pub(crate) fn write(zones: &[RateLimitStats], out: &mut Families) {
    if zones.is_empty() {
        return;
    }
    let mut sums: BTreeMap<&str, RateLimitStats> = BTreeMap::new();
    for zone in zones {
        let sum = sums.entry(&zone.zone).or_default();
        sum.admitted += zone.admitted;
        sum.rejected += zone.rejected;
        sum.keys += zone.keys;
        sum.evicted += zone.evicted;
    }
    out.table("onehop_rate_limit_", "zone", sums.iter().map(|(zone, sum)| (*zone, sum)), &SERIES);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::{self, TextFormat};

    #[test]
    fn zones_with_one_name_are_one_series() {
        let zone = |admitted, rejected| RateLimitStats {
            zone: "api".to_owned(),
            admitted,
            rejected,
            keys: 1,
            evicted: 0,
        };
        let mut out = Families::default();
        write(&[], &mut out);
        write(&[zone(2, 1), zone(1, 0)], &mut out);
        insta::assert_snapshot!(exposition::text(&out, TextFormat::Prometheus));
    }
}
