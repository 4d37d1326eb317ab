//! `tracing`.

use std::sync::Arc;

use super::{OtlpExport, Template};

/// `tracing`: the request is a span of its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracing {
    /// The span's name; `None` is the request's method, as OpenTelemetry names a server's span without a route.
    pub span: Option<Template>,
    /// `span_attributes`: what the span says besides the usual, when its response is there.
    pub attributes: Vec<(String, Template)>,
    /// Which traces that begin here are exported.
    pub sampler: Sampler,
    /// Where spans go.
    pub export: Arc<OtlpExport>,
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
