//! Upstreams of `reverse_proxy`.
//!
//! What a connection is counted in is counted once for each upstream, however many directives name it; health is
//! each directive's own judgement. Two with the same label are one series; one that is written in two ways has
//! two series with the same values. Bounded in number.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::counters::OTHER;
use crate::families::Kind::{Counter, Gauge};
use crate::families::{Families, Series, Value, count};
use crate::limits::UPSTREAMS_COUNTED_MAX;

/// An upstream of a proxy.
#[derive(Debug, Default)]
pub struct UpstreamStats {
    /// The proxy, by its upstreams as written.
    pub proxy: String,
    /// As written, without its scheme.
    pub upstream: String,
    /// What identifies its connections: several proxies may share an upstream.
    pub id: u64,
    /// Whether it gets requests of this proxy.
    pub is_healthy: bool,
    /// Requests in flight.
    pub in_flight: u64,
    /// Failures that requests met at its address since the start.
    pub failures: u64,
    /// Requests that were tried again after they had failed there.
    pub retries: u64,
    /// Moving average of its response times.
    pub latency_ms: Option<f64>,
    /// Its connections.
    pub connections: ConnectionStats,
}

/// Connections of an upstream: those that are open, and what happened since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionStats {
    /// Open, or being made.
    pub open: u64,
    /// Without a request.
    pub idle: u64,
    /// Requests that wait for one.
    pub waiting: u64,
    /// Dialled.
    pub dials: u64,
    /// Dialled in vain.
    pub dial_failures: u64,
    /// TLS handshakes.
    pub handshakes: u64,
    /// Those of them that resumed a session.
    pub resumptions: u64,
    /// Requests that took an open one.
    pub reused: u64,
    /// Those of them that took it from another core.
    pub borrowed: u64,
    /// Requests that had to wait for one.
    pub waited: u64,
    /// Closed by the upstream while they had no request.
    pub closed_idle: u64,
    /// Closed here, because they were idle for long.
    pub retired: u64,
}

impl ConnectionStats {
    /// Adds those of another upstream.
    pub fn add(&mut self, other: &Self) {
        self.open += other.open;
        self.idle += other.idle;
        self.waiting += other.waiting;
        self.dials += other.dials;
        self.dial_failures += other.dial_failures;
        self.handshakes += other.handshakes;
        self.resumptions += other.resumptions;
        self.reused += other.reused;
        self.borrowed += other.borrowed;
        self.waited += other.waited;
        self.closed_idle += other.closed_idle;
        self.retired += other.retired;
    }
}

/// Upstreams with one label.
#[derive(Default)]
struct Sum {
    in_flight: u64,
    failures: u64,
    retries: u64,
    latency_ms: Option<f64>,
    connections: ConnectionStats,
}

const SERIES: [Series<Sum>; 16] = [
    Series {
        name: "in_flight",
        kind: Gauge,
        help: "Requests that an upstream has.",
        value: |sum| count(sum.in_flight),
    },
    Series {
        name: "failures_total",
        kind: Counter,
        help: "Failures that requests met at an upstream's address.",
        value: |sum| count(sum.failures),
    },
    Series {
        name: "retries_total",
        kind: Counter,
        help: "Requests that were tried again after they had failed at an upstream.",
        value: |sum| count(sum.retries),
    },
    Series {
        name: "latency_seconds",
        kind: Gauge,
        help: "How long an upstream's answers take: a moving average in which peaks count at once, a failure as a second.",
        value: |sum| Some(Value::Milliseconds(sum.latency_ms.unwrap_or_default())),
    },
    Series {
        name: "connections_open",
        kind: Gauge,
        help: "Connections that are open or being made.",
        value: |sum| count(sum.connections.open),
    },
    Series {
        name: "connections_idle",
        kind: Gauge,
        help: "Connections without a request.",
        value: |sum| count(sum.connections.idle),
    },
    Series {
        name: "waiting",
        kind: Gauge,
        help: "Requests that wait for a connection.",
        value: |sum| count(sum.connections.waiting),
    },
    Series {
        name: "dials_total",
        kind: Counter,
        help: "Connections that were begun.",
        value: |sum| count(sum.connections.dials),
    },
    Series {
        name: "dial_failures_total",
        kind: Counter,
        help: "Connections that came to nothing.",
        value: |sum| count(sum.connections.dial_failures),
    },
    Series {
        name: "handshakes_total",
        kind: Counter,
        help: "TLS handshakes.",
        value: |sum| count(sum.connections.handshakes),
    },
    Series {
        name: "resumptions_total",
        kind: Counter,
        help: "TLS handshakes that resumed a session.",
        value: |sum| count(sum.connections.resumptions),
    },
    Series {
        name: "reused_total",
        kind: Counter,
        help: "Requests that took an open connection.",
        value: |sum| count(sum.connections.reused),
    },
    Series {
        name: "borrowed_total",
        kind: Counter,
        help: "Requests that took an open connection of another core.",
        value: |sum| count(sum.connections.borrowed),
    },
    Series {
        name: "waited_total",
        kind: Counter,
        help: "Requests that had to wait for a connection.",
        value: |sum| count(sum.connections.waited),
    },
    Series {
        name: "closed_idle_total",
        kind: Counter,
        help: "Connections that the upstream closed while they had no request.",
        value: |sum| count(sum.connections.closed_idle),
    },
    Series {
        name: "retired_total",
        kind: Counter,
        help: "Connections that were closed because they had no request for long.",
        value: |sum| count(sum.connections.retired),
    },
];

pub(crate) fn write(upstreams: &[UpstreamStats], out: &mut Families) {
    if upstreams.is_empty() {
        return;
    }
    let family =
        out.family("onehop_upstream_healthy", Gauge, "Whether an upstream gets requests of a proxy.");
    for ((proxy, upstream), is_healthy) in healthy(upstreams) {
        family.sample(&[("proxy", proxy), ("upstream", upstream)], u64::from(is_healthy));
    }
    let sums = sums(upstreams);
    out.table("onehop_upstream_", "upstream", sums.iter().map(|(upstream, sum)| (*upstream, sum)), &SERIES);
}

/// By labels of the proxy and the upstream; of several with the same labels all have to be healthy.
fn healthy(upstreams: &[UpstreamStats]) -> BTreeMap<(&str, &str), bool> {
    let mut healthy = BTreeMap::new();
    for upstream in upstreams {
        let labels = (&*upstream.proxy, &*upstream.upstream);
        let is_beyond = !healthy.contains_key(&labels) && healthy.len() >= UPSTREAMS_COUNTED_MAX;
        *healthy.entry(if is_beyond { (OTHER, OTHER) } else { labels }).or_insert(true) &=
            upstream.is_healthy;
    }
    healthy
}

/// By label of the upstream.
fn sums(upstreams: &[UpstreamStats]) -> BTreeMap<&str, Sum> {
    let (mut sums, mut counted) = (BTreeMap::new(), BTreeSet::new());
    for upstream in upstreams {
        let label = &*upstream.upstream;
        let is_beyond = !sums.contains_key(label) && sums.len() >= UPSTREAMS_COUNTED_MAX;
        let sum: &mut Sum = sums.entry(if is_beyond { OTHER } else { label }).or_default();
        sum.count(upstream, counted.insert((label, upstream.id)), is_beyond);
    }
    sums
}

impl Sum {
    /// Counts an upstream in. What requests met at its address is the same for every proxy that names it.
    fn count(&mut self, upstream: &UpstreamStats, is_first: bool, is_other: bool) {
        if is_first {
            self.connections.add(&upstream.connections);
        }
        let total = |sum: u64, one: u64| if is_other && is_first { sum + one } else { sum.max(one) };
        self.in_flight = total(self.in_flight, upstream.in_flight);
        self.failures = total(self.failures, upstream.failures);
        self.retries = total(self.retries, upstream.retries);
        self.latency_ms = [self.latency_ms, upstream.latency_ms].into_iter().flatten().reduce(f64::max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::{self, TextFormat};

    fn upstream(proxy: &str, id: u64, label: &str) -> UpstreamStats {
        UpstreamStats {
            proxy: proxy.to_owned(),
            upstream: label.to_owned(),
            id,
            is_healthy: true,
            in_flight: 2,
            failures: 3,
            retries: 1,
            latency_ms: None,
            connections: ConnectionStats { open: 3, idle: 1, dials: 7, reused: 40, ..Default::default() },
        }
    }

    fn written(upstreams: &[UpstreamStats]) -> String {
        let mut out = Families::default();
        write(upstreams, &mut out);
        exposition::text(&out, TextFormat::Prometheus)
    }

    #[test]
    fn an_upstream_of_two_proxies_is_counted_once_and_judged_twice() {
        let both = "10.0.0.1:80 10.0.0.2:80";
        let down =
            UpstreamStats { is_healthy: false, latency_ms: Some(12.5), ..upstream(both, 2, "10.0.0.2:80") };
        let first = "10.0.0.1:80";
        // Over other connections.
        let failing = UpstreamStats { is_healthy: false, ..upstream(first, 3, first) };
        let text = written(&[upstream(both, 1, first), down, upstream(first, 1, first), failing]);
        insta::assert_snapshot!(text);
        assert_eq!(written(&[]), "");
    }

    #[test]
    fn upstreams_beyond_the_bound_share_one_series() {
        let labels: Vec<_> = (0..UPSTREAMS_COUNTED_MAX + 2).map(|number| format!("u{number}:80")).collect();
        let upstreams: Vec<_> =
            labels.iter().zip(0..).map(|(label, number)| upstream("p", number, label)).collect();
        let text = written(&upstreams);
        assert!(text.contains("onehop_upstream_in_flight{upstream=\"_other\"} 4\n"), "{text}");
        assert!(text.contains("onehop_upstream_failures_total{upstream=\"_other\"} 6\n"));
        assert_eq!(text.matches("onehop_upstream_healthy{").count(), UPSTREAMS_COUNTED_MAX + 1);
    }
}
