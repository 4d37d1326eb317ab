//! The bounds of this crate.

/// Seconds that a `Retry-After` names at most. The time that a longer queue needs cannot be predicted.
pub const RETRY_AFTER_SECONDS_MAX: u32 = 30;
