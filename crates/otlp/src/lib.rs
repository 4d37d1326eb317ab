//! Spans and metrics on their way to a receiver of OpenTelemetry: OTLP over HTTP, in its JSON encoding
//! (<https://opentelemetry.io/docs/specs/otlp/#otlphttp>).
//!
//! | module | what it owns |
//! | --- | --- |
//! | [`span`] | what is kept of a request |
//! | [`traces`] | the queue of spans, the thread that empties it, and what became of exports |
//! | [`metrics`] | the thread that exports metrics from time to time |
//! | [`json`] | the bodies of exports |
//! | [`receiver`] | the connection to the receiver |
//!
//! Decides nothing about which requests are traced, and never makes a request wait.

#![forbid(unsafe_code)]

pub mod json;
pub mod limits;
pub mod metrics;
pub mod receiver;
pub mod span;
pub mod traces;

pub use metrics::MetricsExport;
pub use span::Span;
pub use traces::Traces;
