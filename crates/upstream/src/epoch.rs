//! The moment from which times are counted that are stored in one atomic number.

use std::sync::OnceLock;
use std::time::Instant;

/// The first moment at which this was called.
pub fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}
