//! Spans of requests, and their way to a receiver of OpenTelemetry: OTLP over HTTP, in its JSON encoding
//! (<https://opentelemetry.io/docs/specs/otlp/#otlphttp>).
//!
//! | module | what it owns |
//! | --- | --- |
//! | [`span`] | what is kept of a request |
//! | [`otlp`] | the body of an export |
//! | [`export`] | the queue, the thread that empties it, and what became of exports |
//!
//! Decides nothing about which requests are traced, and never makes a request wait.

#![forbid(unsafe_code)]

pub mod export;
pub mod limits;
pub mod otlp;
pub mod span;

pub use export::Traces;
pub use span::Span;
