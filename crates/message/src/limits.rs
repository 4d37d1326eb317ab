//! The bounds of this crate.

/// Seconds that a `Retry-After` names at most. The time that a longer queue needs cannot be predicted.
pub const RETRY_AFTER_SECONDS_MAX: u32 = 30;

/// Bytes of a header of the PROXY protocol, version 1, with its end of line: the longest that the specification knows.
pub const PROXY_LINE_BYTES_MAX: usize = 107;

/// Bytes of addresses and additions in a header of version 2. The specification has receivers take 536; load balancers send less
/// than 200.
pub const PROXY_PAYLOAD_BYTES_MAX: usize = 536;
