//! Concurrency limiters.
//!
//! A limiter's label comes from the configuration, so there are as many series as it has labels; limiters with one label
//! are one series.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::families::Kind::{Counter, Gauge};
use crate::families::{Families, Series, count};

/// A concurrency limiter.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LimiterStats {
    /// What it is called.
    pub limit: String,
    /// Requests that may be in flight, as it is now; none where only lateness is bounded.
    pub bound: Option<u32>,
    /// Whether the bound is found out.
    pub is_adaptive: bool,
    /// Requests that are in flight.
    pub in_flight: u32,
    /// Requests that wait.
    pub queued: usize,
    /// Requests that were let in since the start.
    pub let_in: u64,
    /// Requests that were rejected, by cause; only causes that occurred.
    pub shed: BTreeMap<&'static str, u64>,
}

/// Limiters with one label.
#[derive(Default)]
struct Sum {
    bound: Option<u64>,
    in_flight: u64,
    queued: u64,
    let_in: u64,
}

const SERIES: [Series<Sum>; 4] = [
    Series {
        name: "in_flight",
        kind: Gauge,
        help: "Requests that are in flight behind a limit.",
        value: |sum| count(sum.in_flight),
    },
    Series {
        name: "bound",
        kind: Gauge,
        help: "Requests that may be in flight behind a limit, as it is now.",
        value: |sum| sum.bound.and_then(count),
    },
    Series {
        name: "queued",
        kind: Gauge,
        help: "Requests that wait to be let in.",
        value: |sum| count(sum.queued),
    },
    Series {
        name: "let_in_total",
        kind: Counter,
        help: "Requests that were let in.",
        value: |sum| count(sum.let_in),
    },
];

pub(crate) fn write(limiters: &[LimiterStats], out: &mut Families) {
    if limiters.is_empty() {
        return;
    }
    let (mut sums, mut shed) = (BTreeMap::<&str, Sum>::new(), BTreeMap::new());
    for limiter in limiters {
        let sum = sums.entry(&limiter.limit).or_default();
        sum.in_flight += u64::from(limiter.in_flight);
        sum.queued += limiter.queued as u64;
        sum.let_in += limiter.let_in;
        if let Some(bound) = limiter.bound {
            *sum.bound.get_or_insert(0) += u64::from(bound);
        }
        for (cause, count) in &limiter.shed {
            *shed.entry((limiter.limit.as_str(), *cause)).or_insert(0) += count;
        }
    }
    out.table("onehop_limit_", "limit", sums.iter().map(|(limit, sum)| (*limit, sum)), &SERIES);
    let family = out.family("onehop_limit_shed_total", Counter, "Requests that were not let in, by cause.");
    for ((limit, cause), count) in shed {
        family.sample(&[("limit", limit), ("cause", cause)], count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::{self, TextFormat};

    fn limiter(name: &str, bound: Option<u32>, shed: &[(&'static str, u64)]) -> LimiterStats {
        LimiterStats {
            limit: name.to_owned(),
            bound,
            is_adaptive: false,
            in_flight: 2,
            queued: 3,
            let_in: 4,
            shed: shed.iter().copied().collect(),
        }
    }

    #[test]
    fn limiters_with_one_label_are_one_series() {
        let limiters = [
            limiter("server", None, &[]),
            limiter("a.test /api/\"x\"", Some(8), &[("lag", 1), ("queue_full", 5)]),
            limiter("a.test /api/\"x\"", Some(8), &[("queue_full", 7)]),
        ];
        let mut out = Families::default();
        write(&limiters, &mut out);
        insta::assert_snapshot!(exposition::text(&out, TextFormat::Prometheus));
    }

    #[test]
    fn without_limiters_there_is_no_family() {
        let mut out = Families::default();
        write(&[], &mut out);
        assert_eq!(exposition::text(&out, TextFormat::Prometheus), "");
    }
}
