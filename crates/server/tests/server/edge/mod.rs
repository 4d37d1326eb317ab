//! The edge: how many connections there may be, and what those cost that are slow.

mod per_address;
mod slow;

use std::time::{Duration, Instant};

/// Waits until the check gives a value.
fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = check() {
            return value;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
