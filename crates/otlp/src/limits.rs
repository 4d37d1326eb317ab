//! Every bound of exports, with its unit and its reason. The first two are the defaults of OpenTelemetry's
//! specification for its batch processor.

use std::time::Duration;

/// Spans that wait to be exported; beyond it they are dropped and counted: a receiver that is down costs no memory.
pub const SPANS_WAITING_MAX: usize = 2_048;

/// Spans of one export.
pub const SPANS_OF_EXPORT_MAX: usize = 512;

/// Bytes of a span's text: a path, an agent. The rest is cut off, so that all that wait take a few MiB.
pub const TEXT_BYTES_MAX: usize = 256;

/// Bytes of a receiver's response that are read.
pub const RESPONSE_BYTES_MAX: usize = 64 * 1024;

/// How long a stop waits for the last exports.
pub const STOP_WITHIN: Duration = Duration::from_secs(2);
