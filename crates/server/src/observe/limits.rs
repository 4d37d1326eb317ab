//! Limits as Prometheus text.
//!
//! A limit's label comes from the configuration, so its series are as many as that has; those that share a label are one.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::prometheus::{escape, family};
use crate::control::LimitStatus;

/// Limits, as they are now.
pub fn render_limits(limits: &[LimitStatus]) -> String {
    let mut out = String::new();
    if limits.is_empty() {
        return out;
    }
    let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&LimitStatus) -> Option<u64>| {
        family(&mut out, name, kind, help);
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for limit in limits {
            if let Some(value) = value(limit) {
                *sums.entry(&limit.limit).or_default() += value;
            }
        }
        for (limit, value) in sums {
            let _ = writeln!(out, "{name}{{limit=\"{}\"}} {value}", escape(limit));
        }
    };
    each("onehop_limit_in_flight", "gauge", "Requests that are in flight behind a limit.", &|limit| {
        Some(u64::from(limit.in_flight))
    });
    each(
        "onehop_limit_bound",
        "gauge",
        "Requests that may be in flight behind a limit, as it is now.",
        &|limit| limit.bound.map(u64::from),
    );
    each("onehop_limit_queued", "gauge", "Requests that wait to be let in.", &|limit| {
        Some(limit.queued as u64)
    });
    each("onehop_limit_let_in_total", "counter", "Requests that were let in.", &|limit| Some(limit.let_in));
    let name = "onehop_limit_shed_total";
    family(&mut out, name, "counter", "Requests that were not let in, by cause.");
    let mut sums: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for limit in limits {
        for (cause, count) in &limit.shed {
            *sums.entry((&limit.limit, cause)).or_default() += count;
        }
    }
    for ((limit, cause), count) in sums {
        let _ = writeln!(out, "{name}{{limit=\"{}\",cause=\"{cause}\"}} {count}", escape(limit));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(name: &str, bound: Option<u32>, shed: &[(&'static str, u64)]) -> LimitStatus {
        LimitStatus {
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
    fn a_limit_is_one_series_of_each_kind_however_often_it_stands_there() {
        let limits = [
            limit("server", None, &[]),
            limit("a.test /api/\"x\"", Some(8), &[("lag", 1), ("queue_full", 5)]),
            limit("a.test /api/\"x\"", Some(8), &[("queue_full", 7)]),
        ];
        insta::assert_snapshot!(render_limits(&limits));
    }

    #[test]
    fn without_limits_nothing_is_said() {
        assert_eq!(render_limits(&[]), "");
    }
}
