//! The counters as Prometheus text (exposition format 0.0.4).

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::counter::Counter;
use crate::counters::{CoreCounters, HandshakeFailure, HeaderRefusal, Http2Failure, Registry};
use crate::exposition::Exposition;
use crate::exposition::Kind::{Counter as Counts, Gauge, Histogram};
use crate::handler::Handler;
use crate::histogram::Snapshot;
use crate::site::HandlerTotals;
use crate::stats::{Stats, apps, limiters, rate_limits, upstreams};

/// Upper bounds of the buckets of latency histograms, in microseconds. From memory a response takes microseconds, from an
/// application milliseconds to seconds.
const BOUNDS_MICROS: [u64; 20] = [
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// Each site with the handlers that have answered there.
type Sites = [(Arc<str>, Vec<(Handler, HandlerTotals)>)];

/// A latency histogram by site and handler: its name, its help, what it shows of the totals.
type Latency = (&'static str, &'static str, fn(&HandlerTotals) -> &Snapshot);

const LATENCIES: [Latency; 4] = [
    (
        "onehop_request_duration_seconds",
        "From a complete head to a response that is written or ready to be.",
        |totals| &totals.durations,
    ),
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
pub fn render(registry: &Registry, stats: &Stats) -> String {
    let mut out = Exposition::default();
    let sites = registry.sites().into_iter().map(|(site, cores)| (site, HandlerTotals::of(&cores)));
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
    out.text
}

fn sum(cores: &[Arc<CoreCounters>], which: impl Fn(&CoreCounters) -> &Counter) -> u64 {
    cores.iter().map(|core| which(core).get()).sum()
}

fn requests(out: &mut Exposition, sites: &Sites) {
    let name = "onehop_requests_total";
    out.family(name, Counts, "Requests answered, by site, handler and status class.");
    for_each_handler(sites, |site, handler, totals| {
        for (class, count) in totals.responses.iter().enumerate().filter(|(_, count)| **count > 0) {
            let class = format!("{}xx", class + 1);
            out.sample(name, &[("site", site), ("handler", handler), ("class", &class)], count);
        }
    });
}

fn sent_bytes(out: &mut Exposition, sites: &Sites) {
    let name = "onehop_sent_bytes_total";
    out.family(name, Counts, "Bytes of answers' bodies.");
    for (site, handlers) in sites {
        let sent: u64 = handlers.iter().map(|(_, totals)| totals.sent_bytes).sum();
        out.sample(name, &[("site", site)], sent);
    }
}

fn streams(out: &mut Exposition, sites: &Sites) {
    let name = "onehop_streams_total";
    out.family(
        name,
        Counts,
        "Responses that may last for ever: events, tunnels, long ones of unknown length.",
    );
    for_each_handler(sites, |site, handler, totals| {
        if totals.streams() > 0 {
            out.sample(name, &[("site", site), ("handler", handler)], totals.streams());
        }
    });
    let name = "onehop_streams_open";
    out.family(name, Gauge, "Streams of events and tunnels that are open.");
    for_each_handler(sites, |site, handler, totals| {
        if totals.streams() > 0 {
            out.sample(name, &[("site", site), ("handler", handler)], totals.streams_open);
        }
    });
}

fn latencies(out: &mut Exposition, sites: &Sites) {
    for (name, help, latency) in LATENCIES {
        out.family(name, Histogram, help);
        for_each_handler(sites, |site, handler, totals| {
            let latency = latency(totals);
            if latency.count() > 0 {
                histogram(out, name, &[("site", site), ("handler", handler)], latency);
            }
        });
    }
}

fn histogram(out: &mut Exposition, name: &str, labels: &[(&str, &str); 2], latency: &Snapshot) {
    let (bucket, [site, handler]) = (format!("{name}_bucket"), *labels);
    for bound in BOUNDS_MICROS.map(|micros| micros * 1_000) {
        let count = latency.count_to(Duration::from_nanos(bound));
        out.sample(&bucket, &[site, handler, ("le", &seconds(bound))], count);
    }
    out.sample(&bucket, &[site, handler, ("le", "+Inf")], latency.count());
    out.sample(&format!("{name}_sum"), labels, seconds(latency.nanos()));
    out.sample(&format!("{name}_count"), labels, latency.count());
}

fn for_each_handler(sites: &Sites, mut each: impl FnMut(&str, &str, &HandlerTotals)) {
    for (site, handlers) in sites {
        for (handler, totals) in handlers {
            each(site, handler.name(), totals);
        }
    }
}

fn process(out: &mut Exposition, registry: &Registry) {
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

fn handshakes(out: &mut Exposition, cores: &[Arc<CoreCounters>]) {
    let name = "onehop_tls_handshakes_total";
    out.family(name, Counts, "TLS handshakes completed: with a new session, or a resumed one.");
    for (number, kind) in ["full", "resumed"].into_iter().enumerate() {
        out.sample(name, &[("kind", kind)], sum(cores, |core| &core.handshakes[number]));
    }
    let name = "onehop_tls_handshake_failures_total";
    out.family(name, Counts, "TLS handshakes that failed, by cause.");
    for (failure, cause) in HandshakeFailure::ALL {
        let failures = sum(cores, |core| &core.handshake_failures[failure as usize]);
        out.sample(name, &[("cause", cause)], failures);
    }
}

fn http2(out: &mut Exposition, cores: &[Arc<CoreCounters>]) {
    let name = "onehop_http2_connections_total";
    out.family(name, Counts, "Connections that speak HTTP/2.");
    out.sample(name, &[], sum(cores, |core| &core.http2_connections));
    let name = "onehop_http2_failures_total";
    out.family(name, Counts, "HTTP/2 connections that were ended with an error, by cause.");
    for (failure, cause) in Http2Failure::ALL {
        out.sample(name, &[("cause", cause)], sum(cores, |core| &core.http2_failures[failure as usize]));
    }
}

fn header_refusals(out: &mut Exposition, cores: &[Arc<CoreCounters>]) {
    let name = "onehop_proxy_protocol_refusals_total";
    out.family(name, Counts, "Connections closed over their header of the PROXY protocol, by cause.");
    for (refusal, cause) in HeaderRefusal::ALL {
        let refusals = sum(cores, |core| &core.header_refusals[refusal as usize]);
        out.sample(name, &[("cause", cause)], refusals);
    }
}

fn refused_connections(out: &mut Exposition, cores: &[Arc<CoreCounters>]) {
    let name = "onehop_connections_refused_total";
    out.family(name, Counts, "Connections closed because there were too many, of all or of one address.");
    out.sample(name, &[("cause", "in_all")], sum(cores, |core| &core.too_many));
    out.sample(name, &[("cause", "of_address")], sum(cores, |core| &core.too_many_of_address));
}

fn refused(out: &mut Exposition, registry: &Registry) {
    let name = "onehop_refused_total";
    out.family(name, Counts, "Requests that no handler answered, by cause.");
    let mut causes: BTreeMap<&str, (u16, u64)> = BTreeMap::new();
    for core in &registry.cores {
        for (cause, (status, count)) in core.refused.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            causes.entry(cause).or_insert((*status, 0)).1 += count;
        }
    }
    for (cause, (status, count)) in causes {
        out.sample(name, &[("cause", cause), ("status", &status.to_string())], count);
    }
}

fn seconds(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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
        let text = render(&Registry::new(1), &stats);
        let families: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        assert!(families.len() > 30, "{text}");
        for name in families.iter().filter_map(|family| family.split(' ').next()) {
            assert!(PAGE.contains(&format!("`{name}`")), "docs/control-api.md lacks {name}");
        }
    }
}
