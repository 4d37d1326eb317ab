//! The counters as Prometheus text (exposition format 0.0.4).

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::counters::{
    BUCKETS_MICROS, CLASSES, CoreCounters, Counter, HandshakeFailure, HeaderRefusal, Http2Failure, Registry,
    SiteCounters,
};
use crate::exposition::Exposition;
use crate::exposition::Kind::{Counter as Counts, Gauge, Histogram};
use crate::handler::Handler;
use crate::stats::{Stats, apps, limiters, rate_limits, upstreams};

type Sites = [(Arc<str>, Vec<Arc<SiteCounters>>)];

/// All counters, added up over the cores, and what others count.
pub fn render(registry: &Registry, stats: &Stats) -> String {
    let mut out = Exposition::default();
    let sites = registry.sites();
    requests(&mut out, &sites);
    sent_bytes(&mut out, &sites);
    durations(&mut out, &sites);
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

fn sum<T>(cores: &[Arc<T>], which: impl Fn(&T) -> &Counter) -> u64 {
    cores.iter().map(|core| which(core).get()).sum()
}

fn requests(out: &mut Exposition, sites: &Sites) {
    let name = "onehop_requests_total";
    out.family(name, Counts, "Requests answered, by site, handler and status class.");
    for (site, cores) in sites {
        for handler in Handler::ALL {
            for class in 0..CLASSES {
                let count = sum(cores, |core| &core.requests[handler as usize][class]);
                if count > 0 {
                    let class = format!("{}xx", class + 1);
                    let labels = [("site", &**site), ("handler", handler.name()), ("class", &class)];
                    out.sample(name, &labels, count);
                }
            }
        }
    }
}

fn sent_bytes(out: &mut Exposition, sites: &Sites) {
    let name = "onehop_sent_bytes_total";
    out.family(name, Counts, "Bytes of answers' bodies.");
    for (site, cores) in sites {
        out.sample(name, &[("site", site)], sum(cores, |core| &core.sent_bytes));
    }
}

fn durations(out: &mut Exposition, sites: &Sites) {
    let name = "onehop_request_duration_seconds";
    out.family(name, Histogram, "From a complete head to an answer that is written or ready to be.");
    let bucket = format!("{name}_bucket");
    for (site, cores) in sites {
        let mut total = 0;
        let bounds = BUCKETS_MICROS.iter().map(|bound| seconds(bound * 1_000));
        for (number, bound) in bounds.chain(["+Inf".to_owned()]).enumerate() {
            total += sum(cores, |core| &core.buckets[number]);
            out.sample(&bucket, &[("site", site), ("le", &bound)], total);
        }
        let spent = seconds(sum(cores, |core| &core.duration_nanos));
        out.sample(&format!("{name}_sum"), &[("site", site)], spent);
        out.sample(&format!("{name}_count"), &[("site", site)], total);
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
