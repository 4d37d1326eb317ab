//! Whether an application whose event loop is late takes one more.

use std::time::Duration;

/// Whether a request is refused; `chance` is between 0 and 1.
pub(crate) fn refuses(lag: Duration, max: Duration, chance: f64) -> bool {
    let over = lag.saturating_sub(max);
    over.as_secs_f64() > chance * max.as_secs_f64()
}
