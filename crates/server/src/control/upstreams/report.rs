//! What is told of upstreams: `onehop status`, metrics.

use std::sync::Arc;
use std::time::Instant;

use onehop_config::checked::proxy::BalancePolicy;

use crate::control::stats;
use crate::control::status::{ProxyStatus, UpstreamStatus};
use crate::request::handle::proxy::Proxy;
use onehop_upstream::member::Member;

/// Every `reverse_proxy`, as it is now.
pub(super) fn status(proxies: &[Arc<Proxy>]) -> Vec<ProxyStatus> {
    let now = Instant::now();
    let each = proxies.iter().map(|proxy| ProxyStatus {
        proxy: proxy.settings.name.clone(),
        policy: policy(&proxy.settings.balance.policy),
        upstreams: proxy.members.iter().map(|member| upstream(proxy, member, now)).collect(),
    });
    each.collect()
}

fn upstream(proxy: &Proxy, member: &Arc<Member>, now: Instant) -> UpstreamStatus {
    match proxy.filled_of(member.number) {
        None => one(proxy, member, now),
        // Those that requests have named: they come and go, and are told of together.
        Some((filled, gone)) => {
            let mut all = UpstreamStatus {
                failures: gone.failures,
                retries: gone.retries,
                connections: stats::connections(gone.connections),
                ..one(proxy, member, now)
            };
            for member in &filled {
                all.add(&one(proxy, member, now));
            }
            all.addresses = filled.len();
            all
        }
    }
}

fn one(proxy: &Proxy, member: &Member, now: Instant) -> UpstreamStatus {
    let passive = &proxy.settings.passive_health;
    let standing = &member.health.standing;
    let down = member.health.active.as_ref().and_then(|active| active.down());
    let failing = member.is_failing(passive, || now);
    let (state, reason, since) = match down {
        Some(down) => ("down", Some(down.reason), Some(now.saturating_duration_since(down.since))),
        None if failing => {
            let failures = standing.remembered_failures(now);
            ("failing", Some(format!("{failures} failures are remembered")), None)
        }
        None if member.is_full(passive) => ("full", None, None),
        None => ("up", None, None),
    };
    UpstreamStatus {
        upstream: member.name.to_string(),
        peer: member.peer.id,
        state,
        reason,
        down_seconds: since.map(|since| since.as_secs()),
        addresses: 1,
        in_flight: member.in_flight() as u64,
        failures: standing.failures(),
        retries: standing.retries(),
        latency_ms: standing.latency.average().map(|average| average.as_secs_f64() * 1_000.0),
        connections: stats::connections(member.peer.counts()),
    }
}

/// As it is written in the file.
fn policy(policy: &BalancePolicy) -> &'static str {
    match policy {
        BalancePolicy::Random => "random",
        BalancePolicy::RandomChoose(_) => "random_choose",
        BalancePolicy::First => "first",
        BalancePolicy::RoundRobin => "round_robin",
        BalancePolicy::WeightedRoundRobin(_) => "weighted_round_robin",
        BalancePolicy::LeastConn => "least_conn",
        BalancePolicy::PeakEwma => "peak_ewma",
        BalancePolicy::IpHash => "ip_hash",
        BalancePolicy::ClientIpHash => "client_ip_hash",
        BalancePolicy::UriHash => "uri_hash",
        BalancePolicy::Query(..) => "query",
        BalancePolicy::Header(..) => "header",
        BalancePolicy::Cookie { .. } => "cookie",
    }
}
