//! Bounds of connections to upstreams and of `reverse_proxy`.

use std::time::Duration;

use onehop_workers::limits::HANDLER_CONCURRENCY;

/// Connections to one program that are kept without a request, over all cores. As many as requests that a program
/// is handed at a time: what is beyond that at rest was a burst.
pub const UPSTREAM_IDLE_MAX: usize = HANDLER_CONCURRENCY;

/// How long a connection to a program is kept without a request, where the program does not say less.
pub const UPSTREAM_IDLE_DEADLINE: Duration = Duration::from_secs(30);

/// How long a program's kernel may take to accept a connection. Beyond it its backlog is full.
pub const UPSTREAM_DIAL_DEADLINE: Duration = Duration::from_secs(5);

/// The shortest time for which the answer to a name counts, whatever it says itself: no more than one question in
/// this time, also where connections fail by the thousand.
pub const NAME_TTL_MIN: Duration = Duration::from_secs(1);

/// The longest: an answer may say a week, and be mended sooner.
pub const NAME_TTL_MAX: Duration = Duration::from_secs(5 * 60);

/// How often a name is looked up again that stands in the hosts file: reading that costs microseconds.
pub const NAME_HOSTS_PERIOD: Duration = Duration::from_secs(5);

/// The longest pause after a name that was not resolved; it doubles from [`NAME_TTL_MIN`].
pub const NAME_RETRY_MAX: Duration = Duration::from_secs(30);

/// How long one server may take to answer: one lost packet must not use up a request's patience.
pub const NAME_QUESTION_DEADLINE: Duration = Duration::from_secs(2);

/// How long a first resolution waits for the second family once one is there (RFC 8305 section 3).
pub const NAME_SECOND_FAMILY_WAIT: Duration = Duration::from_millis(50);

/// Requests that wait for a connection to one upstream that has as many as it may: as many as wait for an application.
pub const PROXY_QUEUE_MAX: usize = 1024;

/// How long a request waits for such a connection: as for a place at an application.
pub const PROXY_QUEUE_WAIT: Duration = Duration::from_secs(30);

/// Failures of one upstream that are told apart, and so the highest `max_fails` that has an effect: 8 KiB for each
/// upstream that is configured so. Whoever has failed so often is not well.
pub const PROXY_FAILURES_REMEMBERED_MAX: u32 = 1024;

/// What a failure counts as for a policy that looks at latency: a refused connection takes microseconds, and nobody
/// waits gladly for longer than this.
pub const PROXY_FAILURE_COUNTS_AS: Duration = Duration::from_secs(1);

/// Upstreams that requests have made of one with placeholders; the one that was used longest ago makes room. A few
/// hundred bytes each, and connections; an address that is new copies the table, so it must stay small.
pub const PROXY_OF_REQUEST_MAX: usize = 256;

/// How long one of those is kept that nobody asks and to which nothing is open: its name is resolved again and again.
pub const PROXY_OF_REQUEST_UNUSED: Duration = Duration::from_secs(5 * 60);

/// Bytes of a file with certificates or a key for upstreams. All that a system trusts are 250 KiB.
pub const PROXY_TLS_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Upstreams that are asked how they are at one moment, so that thousands of them need no thousands of descriptors.
pub const PROXY_QUESTIONS_AT_ONCE_MAX: usize = 64;

/// The time over which the first questions are spread: whoever is dead at the start is found out soon, and not all
/// upstreams are asked in the same moment.
pub const PROXY_QUESTIONS_FIRST_WITHIN: Duration = Duration::from_secs(1);

/// The shortest distance of two questions to one upstream: more is a load and not a question.
pub const PROXY_QUESTION_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// The longest distance: clocks cannot add for ever.
pub const PROXY_QUESTION_INTERVAL_MAX: Duration = Duration::from_secs(365 * 86_400);

/// Bytes of an answer's body in which `health_body` is looked for. Pages about health are a few lines.
pub const PROXY_QUESTION_BODY_BYTES_MAX: usize = 256 * 1024;

/// The shortest pause before a request is tried again for which only a time is configured and no number: what fails
/// at once would else be tried some 100,000 times a second.
pub const PROXY_TRY_PAUSE_MIN: Duration = Duration::from_millis(10);

/// How long a client that waits to be asked for its body waits for an upstream to do so, without
/// `expect_continue_timeout`. As long as curl, and Go's transport where nobody sets it, wait themselves.
pub const PROXY_CONTINUE_WAIT: Duration = Duration::from_secs(1);

/// How often a tunnel with `stream_close_delay` looks whether its route is still there. Delays are minutes.
pub const PROXY_ROUTE_LOOK_PERIOD: Duration = Duration::from_secs(1);
