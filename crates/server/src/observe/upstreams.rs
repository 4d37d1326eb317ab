//! Upstreams of `reverse_proxy` as Prometheus text.
//!
//! What a connection is counted in is counted once for each upstream, however many directives name it; whether it is
//! well is each directive's own judgement. Two with the same label are one series; one that is written in two ways has
//! two that tell the same. Bounded in number.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::prometheus::{escape, family};
use crate::control::{ConnectionsStatus, ProxyStatus, UpstreamStatus};
use crate::limits::PROXY_UPSTREAMS_COUNTED_MAX;
use crate::observe::OTHER;

/// One series: its name, its kind, what it is, and how it is read.
type Series = (&'static str, &'static str, &'static str, fn(&Sums) -> String);

/// What upstreams with one label have together.
#[derive(Default)]
struct Sums {
    in_flight: u64,
    failures: u64,
    retries: u64,
    latency_ms: Option<f64>,
    connections: ConnectionsStatus,
}

const SERIES: [Series; 16] = [
    ("in_flight", "gauge", "Requests that an upstream has.", |sums| sums.in_flight.to_string()),
    ("failures_total", "counter", "Failures that requests met at an upstream's address.", |sums| {
        sums.failures.to_string()
    }),
    (
        "retries_total",
        "counter",
        "Requests that were tried again after they had failed at an upstream.",
        |sums| sums.retries.to_string(),
    ),
    (
        "latency_seconds",
        "gauge",
        "How long an upstream's answers take: a moving average in which peaks count at once, a failure as a second.",
        |sums| format!("{:.6}", sums.latency_ms.unwrap_or_default() / 1_000.0),
    ),
    ("connections_open", "gauge", "Connections that are open or being made.", |sums| {
        sums.connections.open.to_string()
    }),
    ("connections_idle", "gauge", "Connections without a request.", |sums| sums.connections.idle.to_string()),
    ("waiting", "gauge", "Requests that wait for a connection.", |sums| sums.connections.waiting.to_string()),
    ("dials_total", "counter", "Connections that were begun.", |sums| sums.connections.dials.to_string()),
    ("dial_failures_total", "counter", "Connections that came to nothing.", |sums| {
        sums.connections.dial_failures.to_string()
    }),
    ("handshakes_total", "counter", "TLS handshakes.", |sums| sums.connections.handshakes.to_string()),
    ("resumptions_total", "counter", "TLS handshakes that resumed a session.", |sums| {
        sums.connections.resumptions.to_string()
    }),
    ("reused_total", "counter", "Requests that took an open connection.", |sums| {
        sums.connections.reused.to_string()
    }),
    ("borrowed_total", "counter", "Requests that took an open connection of another core.", |sums| {
        sums.connections.borrowed.to_string()
    }),
    ("waited_total", "counter", "Requests that had to wait for a connection.", |sums| {
        sums.connections.waited.to_string()
    }),
    (
        "closed_idle_total",
        "counter",
        "Connections that the upstream closed while they had no request.",
        |sums| sums.connections.closed_idle.to_string(),
    ),
    (
        "retired_total",
        "counter",
        "Connections that were closed because they had no request for long.",
        |sums| sums.connections.retired.to_string(),
    ),
];

/// Upstreams, as they are now.
pub fn render_upstreams(proxies: &[ProxyStatus]) -> String {
    let mut out = String::new();
    if proxies.is_empty() {
        return out;
    }
    let name = "onehop_upstream_healthy";
    family(&mut out, name, "gauge", "Whether an upstream gets requests of a proxy.");
    for ((proxy, upstream), is_healthy) in healthy(proxies) {
        let (proxy, upstream, value) = (escape(proxy), escape(upstream), u8::from(is_healthy));
        let _ = writeln!(out, "{name}{{proxy=\"{proxy}\",upstream=\"{upstream}\"}} {value}");
    }
    let sums = sums(proxies);
    for (name, kind, help, value) in SERIES {
        let name = format!("onehop_upstream_{name}");
        family(&mut out, &name, kind, help);
        for (upstream, sums) in &sums {
            let _ = writeln!(out, "{name}{{upstream=\"{}\"}} {}", escape(upstream), value(sums));
        }
    }
    out
}

/// By labels of the proxy and the upstream; of several with the same labels all have to be well.
fn healthy(proxies: &[ProxyStatus]) -> BTreeMap<(&str, &str), bool> {
    let mut healthy = BTreeMap::new();
    for proxy in proxies {
        for upstream in &proxy.upstreams {
            let is_healthy = matches!(upstream.state, "up" | "full");
            let labels = (proxy.proxy.as_str(), upstream.upstream.as_str());
            let is_new = !healthy.contains_key(&labels) && healthy.len() >= PROXY_UPSTREAMS_COUNTED_MAX;
            *healthy.entry(if is_new { (OTHER, OTHER) } else { labels }).or_insert(true) &= is_healthy;
        }
    }
    healthy
}

/// By label of the upstream.
fn sums(proxies: &[ProxyStatus]) -> BTreeMap<&str, Sums> {
    let (mut sums, mut counted) = (BTreeMap::new(), BTreeSet::new());
    for upstream in proxies.iter().flat_map(|proxy| &proxy.upstreams) {
        let label = upstream.upstream.as_str();
        let is_new = !sums.contains_key(label) && sums.len() >= PROXY_UPSTREAMS_COUNTED_MAX;
        let sum: &mut Sums = sums.entry(if is_new { OTHER } else { label }).or_default();
        sum.count(upstream, counted.insert((label, upstream.peer)), is_new);
    }
    sums
}

impl Sums {
    /// Counts an upstream in. What its address met is known by its label, whoever asked there.
    fn count(&mut self, upstream: &UpstreamStatus, is_first: bool, is_other: bool) {
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
    use crate::request::upstream::peer::PeerId;

    fn upstream(peer: u64, label: &str) -> UpstreamStatus {
        UpstreamStatus {
            upstream: label.to_owned(),
            peer: PeerId(peer),
            state: "up",
            reason: None,
            down_seconds: None,
            addresses: 1,
            in_flight: 2,
            failures: 3,
            retries: 1,
            latency_ms: None,
            connections: ConnectionsStatus { open: 3, idle: 1, dials: 7, reused: 40, ..Default::default() },
        }
    }

    #[test]
    fn an_upstream_of_two_proxies_is_counted_once_and_judged_twice() {
        let down = UpstreamStatus { state: "down", latency_ms: Some(12.5), ..upstream(2, "10.0.0.2:80") };
        let proxies = [
            ProxyStatus {
                proxy: "10.0.0.1:80 10.0.0.2:80".to_owned(),
                policy: "random",
                upstreams: vec![upstream(1, "10.0.0.1:80"), down],
            },
            ProxyStatus {
                proxy: "10.0.0.1:80".to_owned(),
                policy: "random",
                upstreams: vec![UpstreamStatus { state: "full", ..upstream(1, "10.0.0.1:80") }],
            },
            // Over other connections.
            ProxyStatus {
                proxy: "10.0.0.1:80".to_owned(),
                policy: "random",
                upstreams: vec![UpstreamStatus { state: "failing", ..upstream(3, "10.0.0.1:80") }],
            },
        ];
        insta::assert_snapshot!(render_upstreams(&proxies));
        assert_eq!(render_upstreams(&[]), "");
    }

    #[test]
    fn upstreams_beyond_the_bound_share_one_series() {
        let count = PROXY_UPSTREAMS_COUNTED_MAX as u64 + 2;
        let upstreams = (0..count).map(|number| upstream(number, &format!("u{number}:80"))).collect();
        let text = render_upstreams(&[ProxyStatus { proxy: "p".to_owned(), policy: "first", upstreams }]);
        assert!(text.contains("onehop_upstream_in_flight{upstream=\"_other\"} 4\n"), "{text}");
        assert!(text.contains("onehop_upstream_failures_total{upstream=\"_other\"} 6\n"));
        assert_eq!(text.matches("onehop_upstream_healthy{").count(), PROXY_UPSTREAMS_COUNTED_MAX + 1);
    }
}
