//! `tracing`: the request is a span of its trace. What is exported of it is made where its response is recorded.

use std::sync::Arc;

use onehop_config::checked::{OtlpExport, Tracing};
use onehop_http1::RequestHead;
use onehop_message::trace_context::{self, SpanContext, TRACEPARENT};

/// What is exported of a request, besides its place in the trace.
#[derive(Debug)]
pub struct Traced {
    /// The span's name.
    pub(crate) name: Vec<u8>,
    /// `span_attributes`, with their values.
    pub(crate) attributes: Vec<(String, Vec<u8>)>,
    /// Where it goes.
    pub(crate) export: Arc<OtlpExport>,
}

/// A `tracing` that applies to a request.
#[derive(Debug)]
pub(crate) struct OpenSpan<'a> {
    pub(crate) name: Vec<u8>,
    pub(crate) settings: &'a Tracing,
}

/// The span of a request that begins. A `traceparent` that came twice names two callers, and is malformed.
pub(crate) fn begin(tracing: &Tracing, head: &RequestHead) -> SpanContext {
    let mut fields = head.find_all(TRACEPARENT);
    let parent = fields.next().filter(|_| fields.next().is_none()).and_then(trace_context::read);
    let sampler = tracing.sampler;
    let is_sampled = |of_caller: Option<bool>, part: u64| match of_caller {
        Some(decided) if sampler.follows_parent => decided,
        _ => part < sampler.of_2_to_56,
    };
    SpanContext::begin(parent, (fastrand::u128(..), fastrand::u64(..)), is_sampled)
}
