//! Tests only: a run of made-up figures.

use std::time::{Duration, SystemTime};

use onehop_load::outcome::{End, Generator, Run, Tally};
use onehop_load::tls::Handshakes;

/// A run of one second that ended with its time. All good responses came within it.
pub(crate) fn run_of_a_second(total: Tally) -> Run {
    Run {
        begun: SystemTime::UNIX_EPOCH,
        elapsed: Duration::from_secs(1),
        completed: total.good,
        total,
        by_request: Vec::new(),
        slices: Vec::new(),
        slice_length: Duration::from_millis(100),
        stalls: Vec::new(),
        omitted: None,
        handshakes: Handshakes::default(),
        http2: None,
        generator: Generator::default(),
        end: End::Time,
    }
}
