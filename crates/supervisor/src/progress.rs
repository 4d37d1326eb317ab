//! What each kind of worker reports to its lifecycle: that it is ready, how it is, why it ends.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use onehop_workers::Transport;

/// A worker that may be handed requests.
pub(crate) struct Ready {
    /// `node 20.20.2`, or the program.
    pub(crate) runtime: String,
    pub(crate) transport: Transport,
    /// Requests that it is handed at a time.
    pub(crate) concurrency: usize,
    /// One for each core; none where it speaks HTTP.
    pub(crate) sockets: Vec<UnixStream>,
}

/// What happens to a worker that serves.
pub(crate) enum Signal {
    /// It reports that it has loaded files.
    Loaded,
    /// It asks for no more requests.
    Drain,
    /// How it is. `requests` are those that it was ever handed.
    Health { resident_bytes: u64, lag: Duration, requests: u64 },
    /// It is time to ask how it is.
    Due,
}

/// Why a worker ends.
pub(crate) enum Cause {
    /// By itself; its status tells how.
    Exited,
    /// It was not ready in time.
    TooSlow,
    /// It says so.
    Failed(String),
    /// It does not keep to the protocol; for a person.
    Broken(String),
    /// A core has lost its connection; for a person.
    ConnectionLost(String),
    /// Its event loop did not turn for so long.
    Stuck(Duration),
    /// It has finished its requests, as it was asked to.
    Retired,
    /// It was to end, and did not in time.
    Overdue,
    /// It was not wanted any more before it was ready.
    Dismissed,
    /// It was not wanted any more, and is not waited for.
    Killed,
}

impl Cause {
    pub(crate) fn lost(reason: String, is_broken: bool) -> Self {
        if is_broken { Cause::Broken(reason) } else { Cause::ConnectionLost(reason) }
    }
}
