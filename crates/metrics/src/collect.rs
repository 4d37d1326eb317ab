//! Metric families of what this crate counts, and of what others count.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::counter::Counter;
use crate::counters::{CoreCounters, HandshakeFailure, HeaderRefusal, Http2Failure, Registry};
use crate::families::Kind::{Counter as Counts, Gauge, Histogram};
use crate::families::{Durations, Families};
use crate::histogram::Snapshot;
use crate::site::{HandlerTotals, METHODS, RouteTotals};
use crate::stats::{Stats, apps, limiters, rate_limits, upstreams};

/// Each site with the handlers and routes that have answered there.
type Sites = [(Arc<str>, Vec<RouteTotals>)];

/// A latency histogram by site, handler and route: its name, its help, what it shows of the totals.
type Latency = (&'static str, &'static str, fn(&HandlerTotals) -> &Snapshot);

/// What the durations of requests are called.
pub const DURATIONS: &str = "onehop_request_duration_seconds";

const LATENCIES: [Latency; 4] = [
    (DURATIONS, "From a complete head to a response that is written or ready to be.", |totals| {
        &totals.durations
    }),
    (
        "onehop_cold_start_duration_seconds",
        "The same for requests that came before the worker that answered them had answered any.",
        |totals| &totals.cold_starts,
    ),
    (
        "onehop_first_byte_seconds",
        "From a complete head to the head of a response that is sent piece by piece.",
        |totals| &totals.first_bytes,
    ),
    ("onehop_stream_first_byte_seconds", "From a complete head to the head of a stream.", |totals| {
        &totals.stream_first_bytes
    }),
];

/// All counters, added up over the cores, and what others count.
pub fn families(registry: &Registry, stats: &Stats) -> Families {
    let mut out = Families::default();
    let sites = registry.sites().into_iter().map(|(site, cores)| (site, RouteTotals::of(&cores)));
    let sites: Vec<_> = sites.collect();
    requests(&mut out, &sites);
    sent_bytes(&mut out, &sites);
    streams(&mut out, &sites);
    latencies(&mut out, &sites);
    process(&mut out, registry);
    handshakes(&mut out, &registry.cores);
    http2(&mut out, &registry.cores);
    header_refusals(&mut out, &registry.cores);
    refused_connections(&mut out, &registry.cores);
    refused(&mut out, registry);
    out.single("onehop_connections_max", Gauge, "Connections that may be open.", stats.connections_max);
    apps::write(&stats.apps, &mut out);
    upstreams::write(&stats.upstreams, &mut out);
    limiters::write(&stats.limiters, &mut out);
    rate_limits::write(&stats.rate_limits, &mut out);
    out
}

fn sum(cores: &[Arc<CoreCounters>], which: impl Fn(&CoreCounters) -> &Counter) -> u64 {
    cores.iter().map(|core| which(core).get()).sum()
}

fn requests(out: &mut Families, sites: &Sites) {
    let help = "Requests answered, by site, handler, route, method and status class.";
    let family = out.family("onehop_requests_total", Counts, help);
    for_each_handler(sites, |labels, totals| {
        for (method, classes) in METHODS.into_iter().zip(totals.responses) {
            for (class, count) in classes.into_iter().enumerate().filter(|(_, count)| *count > 0) {
                let class = format!("{}xx", class + 1);
                let [site, handler, route] = labels;
                let labels = [site, handler, route, ("method", method), ("class", &class)];
                family.sample(&labels, count);
            }
        }
    });
}

fn sent_bytes(out: &mut Families, sites: &Sites) {
    let family = out.family("onehop_sent_bytes_total", Counts, "Bytes of answers' bodies.");
    for (site, handlers) in sites {
        let sent: u64 = handlers.iter().map(|handler| handler.totals.sent_bytes).sum();
        family.sample(&[("site", site)], sent);
    }
}

fn streams(out: &mut Families, sites: &Sites) {
    let family = out.family(
        "onehop_streams_total",
        Counts,
        "Responses that may last for ever: events, tunnels, long ones of unknown length.",
    );
    for_each_handler(sites, |labels, totals| {
        if totals.streams() > 0 {
            family.sample(&labels, totals.streams());
        }
    });
    let family = out.family("onehop_streams_open", Gauge, "Streams of events and tunnels that are open.");
    for_each_handler(sites, |labels, totals| {
        if totals.streams() > 0 {
            family.sample(&labels, totals.streams_open);
        }
    });
}

fn latencies(out: &mut Families, sites: &Sites) {
    for (name, help, latency) in LATENCIES {
        let family = out.family(name, Histogram, help);
        for_each_handler(sites, |labels, totals| {
            let latency = latency(totals);
            // A traced request is an example of the durations that it is among.
            let exemplars = if name == DURATIONS { &*totals.exemplars } else { &[] };
            if latency.count() > 0 {
                family.sample(&labels, Durations::new(latency, exemplars));
            }
        });
    }
}

fn for_each_handler(sites: &Sites, mut each: impl FnMut([(&'static str, &str); 3], &HandlerTotals)) {
    for (site, handlers) in sites {
        for RouteTotals { route, handler, totals } in handlers {
            each([("site", site), ("handler", handler.name()), ("route", route)], totals);
        }
    }
}

fn process(out: &mut Families, registry: &Registry) {
    let (opened, closed) = registry.connections();
    let open = opened.saturating_sub(closed);
    out.single("onehop_connections_open", Gauge, "Connections that are open.", open);
    out.single("onehop_connections_total", Counts, "Connections opened since the start.", opened);
    let failures = sum(&registry.cores, |core| &core.accept_failures);
    out.single("onehop_accept_failures_total", Counts, "Connections that could not be accepted.", failures);
    out.single(
        "onehop_log_lines_dropped_total",
        Counts,
        "Lines of access logs that were lost: the log was slow, or its disk full.",
        registry.log_lines_dropped.load(Ordering::Relaxed),
    );
}

fn handshakes(out: &mut Families, cores: &[Arc<CoreCounters>]) {
    let family = out.family(
        "onehop_tls_handshakes_total",
        Counts,
        "TLS handshakes completed: with a new session, or a resumed one.",
    );
    for (number, kind) in ["full", "resumed"].into_iter().enumerate() {
        family.sample(&[("kind", kind)], sum(cores, |core| &core.handshakes[number]));
    }
    let family =
        out.family("onehop_tls_handshake_failures_total", Counts, "TLS handshakes that failed, by cause.");
    for (failure, cause) in HandshakeFailure::ALL {
        let failures = sum(cores, |core| &core.handshake_failures[failure as usize]);
        family.sample(&[("cause", cause)], failures);
    }
}

fn http2(out: &mut Families, cores: &[Arc<CoreCounters>]) {
    let family = out.family("onehop_http2_connections_total", Counts, "Connections that speak HTTP/2.");
    family.sample(&[], sum(cores, |core| &core.http2_connections));
    let family = out.family(
        "onehop_http2_failures_total",
        Counts,
        "HTTP/2 connections that were ended with an error, by cause.",
    );
    for (failure, cause) in Http2Failure::ALL {
        family.sample(&[("cause", cause)], sum(cores, |core| &core.http2_failures[failure as usize]));
    }
}

fn header_refusals(out: &mut Families, cores: &[Arc<CoreCounters>]) {
    let family = out.family(
        "onehop_proxy_protocol_refusals_total",
        Counts,
        "Connections closed over their header of the PROXY protocol, by cause.",
    );
    for (refusal, cause) in HeaderRefusal::ALL {
        let refusals = sum(cores, |core| &core.header_refusals[refusal as usize]);
        family.sample(&[("cause", cause)], refusals);
    }
}

fn refused_connections(out: &mut Families, cores: &[Arc<CoreCounters>]) {
    let family = out.family(
        "onehop_connections_refused_total",
        Counts,
        "Connections closed because there were too many, of all or of one address.",
    );
    family.sample(&[("cause", "in_all")], sum(cores, |core| &core.too_many));
    family.sample(&[("cause", "of_address")], sum(cores, |core| &core.too_many_of_address));
}

fn refused(out: &mut Families, registry: &Registry) {
    let family = out.family("onehop_refused_total", Counts, "Requests that no handler answered, by cause.");
    let mut causes: BTreeMap<&str, (u16, u64)> = BTreeMap::new();
    for core in &registry.cores {
        for (cause, (status, count)) in core.refused.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            causes.entry(cause).or_insert((*status, 0)).1 += count;
        }
    }
    for (cause, (status, count)) in causes {
        family.sample(&[("cause", cause), ("status", &status.to_string())], count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::apps::AppStats;
    use crate::stats::limiters::LimiterStats;
    use crate::stats::rate_limits::RateLimitStats;
    use crate::stats::upstreams::UpstreamStats;

    #[test]
    fn every_metric_is_documented() {
        const PAGE: &str = include_str!("../../../docs/control-api.md");
        let stats = Stats {
            apps: vec![AppStats::default()],
            upstreams: vec![UpstreamStats::default()],
            limiters: vec![LimiterStats::default()],
            rate_limits: vec![RateLimitStats::default()],
            ..Stats::default()
        };
        let families = families(&Registry::new(1), &stats);
        assert!(families.iter().count() > 30);
        for family in families.iter() {
            assert!(
                PAGE.contains(&format!("`{}`", family.name)),
                "docs/control-api.md lacks {}",
                family.name
            );
        }
    }
}
