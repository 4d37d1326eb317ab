//! What other crates count, as plain data that the caller fills in when the metrics are read.

pub mod apps;
pub mod limiters;
pub mod rate_limits;
pub mod upstreams;

use apps::AppStats;
use limiters::LimiterStats;
use rate_limits::RateLimitStats;
use upstreams::UpstreamStats;

/// Everything that is not in the registry, as it is now.
#[derive(Debug, Default)]
pub struct Stats {
    /// Connections that may be open.
    pub connections_max: u64,
    /// Each application.
    pub apps: Vec<AppStats>,
    /// Each upstream of each proxy.
    pub upstreams: Vec<UpstreamStats>,
    /// Each concurrency limiter.
    pub limiters: Vec<LimiterStats>,
    /// Each rate limiter.
    pub rate_limits: Vec<RateLimitStats>,
}
