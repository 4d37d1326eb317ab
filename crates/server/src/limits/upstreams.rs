//! Bounds of connections to upstreams and of `reverse_proxy`.

use std::time::Duration;

use onehop_workers::limits::HANDLER_CONCURRENCY;

/// Connections to one program that are kept without a request, over all cores. As many as requests that a program
/// is handed at a time: what is beyond that at rest was a burst.
pub const UPSTREAM_IDLE_MAX: usize = HANDLER_CONCURRENCY;

/// How long a connection to an upstream is idle before it counts towards the bound on idle ones. A connection that the
/// next request takes rests for some milliseconds; at 1 s it was not needed for as long as a burst takes to come again.
pub const UPSTREAM_IDLE_COUNTED_AFTER: Duration = Duration::from_secs(1);

/// How long a connection to a program is kept without a request, where the program does not say less.
pub const UPSTREAM_IDLE_DEADLINE: Duration = Duration::from_secs(30);

/// So much earlier than the program says that it closes an idle connection, we do (`Keep-Alive: timeout=`,
/// in whole seconds): a request must not meet its closing on the way.
pub const UPSTREAM_IDLE_MARGIN: Duration = Duration::from_secs(1);

/// A request that may be sent once only takes no connection that was idle for longer: programs that close
/// idle ones without having said so do it after two seconds or more, and a new connection to this machine
/// costs 50 us.
pub const UPSTREAM_IDLE_ONCE_ONLY: Duration = Duration::from_secs(1);

/// How long a program's kernel may take to accept a connection. Beyond it its backlog is full.
pub const UPSTREAM_DIAL_DEADLINE: Duration = Duration::from_secs(5);

/// How often a Unix socket whose backlog is full is tried again.
pub const UPSTREAM_BACKLOG_PAUSE: Duration = Duration::from_millis(5);

/// Addresses of one name that are tried for one connection. Names have a handful; each costs a descriptor while it is
/// tried.
pub const DIAL_ADDRESSES_MAX: usize = 16;

/// The shortest and the longest distance of TCP's own probes: the kernel counts whole seconds, and no more than these
/// (tcp(7), MAX_TCP_KEEPINTVL).
pub const UPSTREAM_PROBE_MIN: Duration = Duration::from_secs(1);
/// See [`UPSTREAM_PROBE_MIN`].
pub const UPSTREAM_PROBE_MAX: Duration = Duration::from_secs(32_767);

/// So long before a connection has to be closed another one is opened in its place: a few round trips around the
/// world, and two ticks.
pub const UPSTREAM_LEAD_MAX: Duration = Duration::from_secs(2);

/// How long it counts that an upstream was seen to close connections of a certain rest. Its settings change rarely,
/// and learning them anew costs one connection that it closes.
pub const UPSTREAM_HABIT_FORGOTTEN_AFTER: Duration = Duration::from_secs(10 * 60);

/// Questions for idle connections that wait for one core. One that is asked more is busy: whoever asks dials.
pub const UPSTREAM_ASKS_MAX: usize = 256;

/// How long a core waits for another one's idle connection before it dials. One that is not busy answers within 50 us;
/// a dial and a handshake to another machine cost more than this.
pub const UPSTREAM_BORROW_WAIT: Duration = Duration::from_millis(3);

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

/// Where a new connection takes less than this, it costs less than moving one between busy cores.
pub const UPSTREAM_BORROW_WORTH: Duration = Duration::from_millis(1);

/// An upstream whose new connections take so long is far: what its large answers cost is round trips, of which a
/// connection that was used lately needs fewer, because its sender's window has grown.
pub const UPSTREAM_FAR: Duration = Duration::from_millis(10);

/// A connection that has rested for less still has its sender's whole window: retransmission timers, by which windows
/// are taken back (RFC 5681 section 4.1), are no shorter on Linux.
pub const UPSTREAM_WINDOW_KEPT: Duration = Duration::from_millis(200);

/// Connections of one peer that one core opens at a time without a request: a restarted upstream should not be met by
/// all at once.
pub const FLOOR_DIALS_MAX: usize = 8;

/// The first pause after a connection without a request was refused; it doubles from there.
pub const FLOOR_PAUSE_MIN: Duration = Duration::from_millis(250);

/// The longest such pause: one look in two seconds costs an upstream that is down nothing, and one that is back has
/// its connections soon.
pub const FLOOR_PAUSE_MAX: Duration = Duration::from_secs(2);

/// An upstream that closes new connections sooner than this is not there yet: something in front of it is.
pub const FLOOR_SOUND_AFTER: Duration = Duration::from_secs(1);

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

/// The distance of two looks for such ones.
pub const PROXY_OF_REQUEST_LOOK: Duration = Duration::from_secs(10);

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
