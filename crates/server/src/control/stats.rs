//! What limiters, upstreams and applications count, as the plain data of `onehop_metrics`.

use std::sync::Arc;

use onehop_config::checked::limit::Bound;
use onehop_limits::ConcurrencyLimiter;
use onehop_metrics::stats::apps::{AppStats, WorkerStats};
use onehop_metrics::stats::limiters::LimiterStats;
use onehop_metrics::stats::rate_limits::RateLimitStats;
use onehop_metrics::stats::upstreams::{ConnectionStats, UpstreamStats};
use onehop_supervisor::{AppStatus, WorkerStatus};

use super::status::ProxyStatus;
use crate::request::admission::rate::ClientRateLimiter;
use onehop_upstream::peer::PeerCounts;

pub(super) fn limiter(limiter: &ConcurrencyLimiter) -> LimiterStats {
    let shed = limiter.rejected().filter(|(_, count)| *count > 0);
    LimiterStats {
        limit: limiter.limit().label.clone(),
        bound: (limiter.limit().bound != Bound::Unbounded).then(|| limiter.bound()),
        is_adaptive: limiter.is_adaptive(),
        in_flight: limiter.in_flight(),
        queued: limiter.queued(),
        let_in: limiter.admitted(),
        shed: shed.map(|(cause, count)| (cause.name(), count)).collect(),
    }
}

pub(super) fn connections(counts: PeerCounts) -> ConnectionStats {
    ConnectionStats {
        open: counts.open,
        idle: counts.idle,
        waiting: counts.waiting,
        dials: counts.dials,
        dial_failures: counts.dial_failures,
        handshakes: counts.handshakes,
        resumptions: counts.resumptions,
        reused: counts.taken_idle + counts.stolen,
        borrowed: counts.stolen,
        waited: counts.waited,
        closed_idle: counts.closed_idle,
        retired: counts.retired,
    }
}

pub(super) fn upstreams(proxies: Vec<ProxyStatus>) -> Vec<UpstreamStats> {
    let of_proxy = |proxy: ProxyStatus| {
        proxy.upstreams.into_iter().map(move |upstream| UpstreamStats {
            proxy: proxy.proxy.clone(),
            upstream: upstream.upstream,
            id: upstream.peer.0,
            is_healthy: matches!(upstream.state, "up" | "full"),
            in_flight: upstream.in_flight,
            failures: upstream.failures,
            retries: upstream.retries,
            latency_ms: upstream.latency_ms,
            connections: upstream.connections,
        })
    };
    proxies.into_iter().flat_map(of_proxy).collect()
}

pub(super) fn app(app: AppStatus) -> AppStats {
    let worker = |worker: &WorkerStatus| WorkerStats {
        state: worker.state,
        in_flight: worker.in_flight as u64,
        lag_ms: worker.lag_ms,
        resident_bytes: worker.resident_bytes,
    };
    AppStats {
        app: app.app,
        failures: app.failures,
        queued: app.queued as u64,
        workers: app.workers.iter().map(worker).collect(),
    }
}

pub(super) fn rate_limit(limiter: &Arc<ClientRateLimiter>) -> RateLimitStats {
    let counts = limiter.counts();
    RateLimitStats {
        zone: limiter.settings().zone.clone(),
        admitted: counts.admitted,
        rejected: counts.rejected,
        keys: counts.keys,
        evicted: counts.evicted,
    }
}
