//! `tracing`, and where the spans go that it makes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Template;

/// `tracing`: the request is a span of its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracing {
    /// The span's name; `None` is the request's method, as OpenTelemetry names a server's span without a route.
    pub span: Option<Template>,
    /// Which traces that begin here are exported.
    pub sampler: Sampler,
    /// Where spans go.
    pub export: Arc<TraceExport>,
}

/// Where spans go, as the environment says; the variables are those of OpenTelemetry's specification.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceExport {
    /// `http://localhost:4318/v1/traces`; `None`: spans are made and passed on, and not exported.
    pub url: Option<String>,
    /// Header fields of each export; values as they stand, percent-encoded.
    pub headers: Vec<(String, String)>,
    /// How long an export may take.
    pub timeout: Duration,
    /// How long spans are gathered.
    pub delay: Duration,
    /// What all spans have in common: `service.name` and others; values percent-encoded.
    pub resource: Vec<(String, String)>,
}

/// Which requests are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// The decision of the caller counts, where it has made one.
    pub follows_parent: bool,
    /// Of 2^56 traces so many are exported, by the random part of their ids (W3C Trace Context level 2, section 3.2.2.4).
    pub of_2_to_56: u64,
}

/// All traces.
pub const EVERY_TRACE: u64 = 1 << 56;

impl Default for Sampler {
    fn default() -> Self {
        Self { follows_parent: true, of_2_to_56: EVERY_TRACE }
    }
}

/// Headers hold credentials.
impl fmt::Debug for TraceExport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let mut shown = formatter.debug_struct("TraceExport");
        shown.field("url", &self.url).field("headers", &names);
        shown.field("timeout", &self.timeout).field("resource", &self.resource).finish_non_exhaustive()
    }
}
