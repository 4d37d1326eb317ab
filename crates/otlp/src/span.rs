//! What is kept of a request.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use onehop_message::trace_context::SpanContext;

use crate::limits::TEXT_BYTES_MAX;

/// One request, as a span of the kind SERVER.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its place in the trace.
    pub context: SpanContext,
    /// Its name.
    pub name: String,
    /// When the request's head was complete.
    pub start: SystemTime,
    /// Until its response was written or ready to be.
    pub took: Duration,
    /// What is known of it, by the names of OpenTelemetry's semantic conventions, and what `span_attributes` adds.
    pub attributes: Vec<(Cow<'static, str>, Value)>,
    /// The server failed.
    pub has_failed: bool,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Number(u64),
    /// Milliseconds.
    Time(f64),
}

impl Value {
    /// A text of bytes, cut off at [`TEXT_BYTES_MAX`].
    pub fn text(bytes: &[u8]) -> Self {
        Self::Text(String::from_utf8_lossy(bytes.get(..TEXT_BYTES_MAX).unwrap_or(bytes)).into_owned())
    }

    /// A duration.
    pub fn milliseconds(time: Duration) -> Self {
        Self::Time(time.as_secs_f64() * 1_000.0)
    }
}
