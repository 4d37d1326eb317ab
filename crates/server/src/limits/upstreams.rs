//! Bounds of connections to upstreams and of `reverse_proxy`.

use std::time::Duration;

/// Requests that wait for a connection to one upstream that has as many as it may: as many as wait for an application.
pub const PROXY_QUEUE_MAX: usize = 1024;

/// How long a request waits for such a connection: as for a place at an application.
pub const PROXY_QUEUE_WAIT: Duration = Duration::from_secs(30);

/// Upstreams that requests have made of one with placeholders; the one that was used longest ago makes room. A few
/// hundred bytes each, and connections; an address that is new copies the table, so it must stay small.
pub const PROXY_OF_REQUEST_MAX: usize = 256;

/// How long one of those is kept that nobody asks and to which nothing is open: its name is resolved again and again.
pub const PROXY_OF_REQUEST_UNUSED: Duration = Duration::from_secs(5 * 60);

/// The shortest pause before a request is tried again for which only a time is configured and no number: what fails
/// at once would else be tried some 100,000 times a second.
pub const PROXY_TRY_PAUSE_MIN: Duration = Duration::from_millis(10);

/// How long a client that waits to be asked for its body waits for an upstream to do so, without
/// `expect_continue_timeout`. As long as curl, and Go's transport where nobody sets it, wait themselves.
pub const PROXY_CONTINUE_WAIT: Duration = Duration::from_secs(1);

/// How often a tunnel with `stream_close_delay` looks whether its route is still there. Delays are minutes.
pub const PROXY_ROUTE_LOOK_PERIOD: Duration = Duration::from_secs(1);
