//! A request as handlers see it.

use std::borrow::Cow;
use std::ops::Deref;
use std::time::Instant;

use onehop_http1::RequestHead;

use crate::origin::Origin;
use crate::path::RequestPath;
use crate::trace_context::SpanContext;

/// A request: its head, path and query as the routes have made them.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Its head; `request_header` changes its fields.
    pub head: CurrentHead<'a>,
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

/// A request's head as the routes have made it. Only fields change: method, target, host and version are the client's.
#[derive(Debug, Clone)]
pub struct CurrentHead<'a> {
    received: &'a RequestHead,
    /// The head with other fields. In a box, since few requests have one.
    changed: Option<Box<RequestHead>>,
}

impl<'a> CurrentHead<'a> {
    /// The head as it came.
    pub fn new(received: &'a RequestHead) -> Self {
        Self { received, changed: None }
    }

    /// The head as it came, whatever has been changed since.
    pub fn received(&self) -> &'a RequestHead {
        self.received
    }

    /// Replaces the head by one with other fields.
    pub fn change(&mut self, changed: RequestHead) {
        self.changed = Some(Box::new(changed));
    }
}

impl Deref for CurrentHead<'_> {
    type Target = RequestHead;

    fn deref(&self) -> &RequestHead {
        self.changed.as_deref().unwrap_or(self.received)
    }
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
