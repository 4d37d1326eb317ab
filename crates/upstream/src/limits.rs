//! Every bound of connections to upstreams, with its unit and its reason.

use std::time::Duration;

/// Bytes of a response's head; beyond it 502. Twice a request's: there are fewer upstreams than clients, and their
/// cookies and policies are long.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 64 * 1024;

/// Header fields in a response's head; beyond it 502. Policies and hints come in many lines.
pub const RESPONSE_HEADER_FIELDS_MAX: usize = 256;

/// Bytes of one line of chunk framing, its extensions included. Real ones have eight hexadecimal digits.
pub const CHUNK_LINE_BYTES_MAX: usize = 256;

/// Bytes of the trailers of one response. They carry checksums and timings.
pub const TRAILER_BYTES_MAX: usize = 8 * 1024;

/// The bounds above as the HTTP/1 codec takes them.
pub const RESPONSE_CODEC_LIMITS: onehop_http1::Limits = onehop_http1::Limits {
    head_bytes: RESPONSE_HEAD_BYTES_MAX,
    // Responses have no target.
    target_bytes: 0,
    fields: RESPONSE_HEADER_FIELDS_MAX,
    chunk_line_bytes: CHUNK_LINE_BYTES_MAX,
    trailer_bytes: TRAILER_BYTES_MAX,
};

/// How long a connection is idle before it counts towards the bound on idle ones. A connection that the next request
/// takes is idle for some milliseconds; after 1 s it was not needed for as long as a burst takes to come again.
pub const IDLE_COUNTED_AFTER: Duration = Duration::from_secs(1);

/// How much earlier than the upstream an idle connection is closed (`Keep-Alive: timeout=` counts whole seconds): a
/// request must not cross the upstream's close.
pub const IDLE_MARGIN: Duration = Duration::from_secs(1);

/// A request that may be sent once only takes no connection that was idle for longer: programs that close idle ones
/// without having said so do it after two seconds or more, and a new connection to this machine costs 50 us.
pub const IDLE_ONCE_ONLY: Duration = Duration::from_secs(1);

/// How often a Unix socket whose backlog is full is tried again.
pub const BACKLOG_PAUSE: Duration = Duration::from_millis(5);

/// Addresses of one name that are tried for one connection. Names have a handful; each costs a descriptor while it is
/// tried.
pub const DIAL_ADDRESSES_MAX: usize = 16;

/// The shortest and the longest interval of TCP keepalive probes: the kernel counts whole seconds, and no more than these
/// (tcp(7), MAX_TCP_KEEPINTVL).
pub const PROBE_INTERVAL_MIN: Duration = Duration::from_secs(1);
/// See [`PROBE_INTERVAL_MIN`].
pub const PROBE_INTERVAL_MAX: Duration = Duration::from_secs(32_767);

/// How long before a connection has to be closed another one is opened in its place: a few round trips around the
/// world, and two ticks.
pub const REPLACEMENT_LEAD_MAX: Duration = Duration::from_secs(2);

/// How long a learned idle timeout counts. An upstream's settings change rarely, and learning them anew costs one
/// connection that it closes.
pub const LEARNED_TIMEOUT_KEPT: Duration = Duration::from_secs(10 * 60);

/// Messages that wait for one core. A core with more is busy: the core that asks dials instead.
pub const STEAL_REQUESTS_MAX: usize = 256;

/// How long a core waits for another one's idle connection before it dials. A core that is not busy responds within
/// 50 us; a dial and a handshake to another machine cost more than this.
pub const STEAL_TIMEOUT: Duration = Duration::from_millis(3);

/// Where a new connection takes less than this, it costs less than moving one between busy cores.
pub const STEAL_WORTH_DIAL_TIME: Duration = Duration::from_millis(1);

/// An upstream whose new connections take so long is far: what its large responses cost is round trips, of which a
/// connection that was used lately needs fewer, because its sender's window has grown.
pub const FAR_DIAL_TIME: Duration = Duration::from_millis(10);

/// A connection that was idle for less still has its sender's whole window: retransmission timers, by which windows are
/// taken back (RFC 5681 section 4.1), are no shorter on Linux.
pub const WINDOW_KEPT: Duration = Duration::from_millis(200);

/// Connections to one peer that one core opens at a time without a request: a restarted upstream should not be met by
/// all at once.
pub const REFILL_DIALS_MAX: usize = 8;

/// The first pause after a connection without a request was refused; it doubles from there.
pub const REFILL_PAUSE_MIN: Duration = Duration::from_millis(250);

/// The longest such pause: one attempt in two seconds costs an upstream that is down nothing, and one that is back has
/// its connections soon.
pub const REFILL_PAUSE_MAX: Duration = Duration::from_secs(2);

/// An upstream that closes new connections sooner than this is not there yet: something in front of it is.
pub const CONNECTION_SOUND_AFTER: Duration = Duration::from_secs(1);

/// The shortest time for which a resolution counts, whatever it says itself: no more than one query in this time, also
/// where connections fail by the thousand.
pub const NAME_TTL_MIN: Duration = Duration::from_secs(1);

/// The longest: a response may say a week, and be corrected sooner.
pub const NAME_TTL_MAX: Duration = Duration::from_secs(5 * 60);

/// How often a name is looked up again that stands in the hosts file: reading that costs microseconds.
pub const NAME_HOSTS_PERIOD: Duration = Duration::from_secs(5);

/// The longest pause after a name that was not resolved; it doubles from [`NAME_TTL_MIN`].
pub const NAME_RETRY_MAX: Duration = Duration::from_secs(30);

/// How long one name server may take to respond: one lost packet must not use up a request's timeout.
pub const NAME_QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a first resolution waits for the second family once one is there (RFC 8305 section 3).
pub const NAME_SECOND_FAMILY_WAIT: Duration = Duration::from_millis(50);

/// Failures of one upstream that are distinguished, and so the highest `max_fails` that has an effect: 8 KiB for each
/// upstream that is configured so. An upstream that has failed so often is not healthy.
pub const FAILURES_REMEMBERED_MAX: u32 = 1024;

/// The latency that a failure counts as: a refused connection takes microseconds and must not look fast, and no client
/// waits gladly for longer than this.
pub const FAILURE_LATENCY: Duration = Duration::from_secs(1);

/// Health checks that run at the same time, so that thousands of upstreams do not need thousands of descriptors.
pub const HEALTH_CHECKS_AT_ONCE_MAX: usize = 64;

/// The time over which the first health checks are spread: an upstream that is dead at the start is found soon, and not
/// all are checked in the same moment.
pub const HEALTH_CHECKS_FIRST_WITHIN: Duration = Duration::from_secs(1);

/// The shortest interval of health checks of one upstream: more is a load and not a check.
pub const HEALTH_CHECK_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// The longest interval: clocks cannot add for ever.
pub const HEALTH_CHECK_INTERVAL_MAX: Duration = Duration::from_secs(365 * 86_400);

/// Bytes of a response's body in which `health_body` is searched. Pages about health are a few lines.
pub const HEALTH_CHECK_BODY_BYTES_MAX: usize = 256 * 1024;

/// How often the driver of an idle connection of HTTP/2 has its turn, to read what has come, before a request takes another
/// connection. One turn reads all that is there, which TLS may have in several pieces.
pub const HTTP2_TURNS_MAX: usize = 4;

/// The shortest time between two PING frames on a connection of HTTP/2. Servers of gRPC end a connection on which they come more
/// often than once in five minutes while they send nothing (gRPC's keepalive guide).
pub const PING_PERIOD_MIN: Duration = Duration::from_secs(5 * 60 + 10);

/// Bytes of one read of a response that is too long for the usual buffer.
pub const READ_BYTES_MAX: usize = 64 * 1024;
