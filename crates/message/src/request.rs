//! A request as handlers see it.

use std::borrow::Cow;
use std::time::Instant;

use onehop_http1::RequestHead;

use crate::origin::Origin;
use crate::path::RequestPath;
use crate::trace_context::SpanContext;

/// A request: its head as it came, its path and query as the routes have made them.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// As it came.
    pub head: &'a RequestHead,
    /// Where it came in.
    pub origin: Origin,
    /// When its head was complete.
    pub received: Instant,
    /// The path; a rewrite makes another one.
    pub path: RequestPath<'a>,
    /// The query; a rewrite makes another one.
    pub query: Option<Cow<'a, [u8]>>,
    /// Its span, where `tracing` says so. In a box, since few requests have one.
    pub span: Option<Box<SpanContext>>,
}

impl Request<'_> {
    /// Whether a field of the client is replaced by one of the request's span.
    pub fn replaces(&self, name: &[u8]) -> bool {
        self.span.as_ref().is_some_and(|span| !span.passes(name))
    }

    /// The `traceparent` of the request's span.
    pub fn traceparent(&self) -> Option<String> {
        self.span.as_ref().map(|span| span.traceparent())
    }
}
