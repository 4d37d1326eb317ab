//! Every bound of the server, with its unit and its reason.
//!
//! A bound that is not here does not exist: `cargo xtask tidy` looks for stray ones.

mod upstreams;

use std::time::Duration;

pub use onehop_connection::limits::Timeouts;
pub use upstreams::*;

/// Bytes read and thrown away while lingering; more than that is not a mistake but a flood. Of a stream of HTTP/2 as many as
/// its window.
pub const LINGER_BYTES_MAX: usize = 256 * 1024;

/// How long an HTTP/2 connection that has ended lingers while its client goes on reading, as nginx's `lingering_time`.
pub const LINGER_TIME_MAX: Duration = Duration::from_secs(30);

/// How long a TLS handshake may take, from the connection to its last message: three round trips and a slow phone.
pub const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// How long a handshake waits for a certificate that is obtained for it: permission, an order, and its validation. Clients wait
/// as long as that.
pub const ON_DEMAND_DEADLINE: Duration = Duration::from_secs(60);

/// TLS handshakes on their way at a time on one core; others are reset. A full one takes a core some 200 us, so that this
/// many keep it busy for a quarter of a second.
pub const HANDSHAKES_MAX: u32 = 1_024;

/// How long one order of a certificate may take, with every challenge that is tried. Issuers answer within seconds, and
/// validate within a minute.
pub const ACME_ORDER_DEADLINE: Duration = Duration::from_secs(300);

/// How long a program that sets a DNS record may take.
pub const DNS_HOOK_DEADLINE: Duration = Duration::from_secs(120);

/// How long the servers of a zone get to learn of a new record before the issuer looks: certmagic's default is to look
/// itself; a fixed time needs no resolver of ours.
pub const DNS_PROPAGATION_DELAY: Duration = Duration::from_secs(10);

/// How long resolvers are asked for a new record, where some are named: Caddy's default.
pub const DNS_PROPAGATION_TIMEOUT: Duration = Duration::from_secs(120);

/// Bytes of a request's line and header fields together; beyond it 431. nginx allows 8 + 4 × 8 KiB.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Bytes of a request target; beyond it 414. RFC 9112 section 3 asks for at least 8000 octets.
pub const TARGET_BYTES_MAX: usize = 8 * 1024;

/// Header fields in one head; beyond it 431. Browsers send about 20, proxies add a handful.
pub const HEADER_FIELDS_MAX: usize = 100;

/// Bytes of one line of chunk framing, its extensions among them; beyond it 400. Real ones have eight
/// hexadecimal digits; a bound closes the way of CVE-2024-22019.
pub const CHUNK_LINE_BYTES_MAX: usize = 256;

/// Bytes of the trailers of one request; beyond it 431. They carry checksums and timings.
pub const TRAILER_BYTES_MAX: usize = 8 * 1024;

/// Events that wait for the history's thread, which writes one in some 100 us; beyond it they are missing there.
pub const HISTORY_EVENTS_WAITING_MAX: usize = 1_024;

/// Rejected requests of a site within a sample of the history from which on it counts as overloaded: a single burst that
/// a queue does not hold is none.
pub const OVERLOAD_REJECTED_MIN: u64 = 10;

/// Samples in a row without a rejected request after which an overload is over, so that one that comes and goes is one.
pub const OVERLOAD_QUIET_SAMPLES: u32 = 3;

/// How often `/live` sends what happened since: as often as a person can compare figures.
pub const LIVE_INTERVAL: Duration = Duration::from_secs(2);

/// Listeners to `/live`; each has a snapshot of all counters taken for it. More get 503.
pub const LIVE_LISTENERS_MAX: usize = 8;

/// Bytes of the secret that a page has to send with a change: nobody guesses 128 bits.
pub const CONTROL_TOKEN_BYTES: usize = 16;

/// The bounds above as the HTTP/1 codec takes them for clients.
pub const CODEC_LIMITS: onehop_http1::Limits = onehop_http1::Limits {
    head_bytes: HEAD_BYTES_MAX,
    target_bytes: TARGET_BYTES_MAX,
    fields: HEADER_FIELDS_MAX,
    chunk_line_bytes: CHUNK_LINE_BYTES_MAX,
    trailer_bytes: TRAILER_BYTES_MAX,
};

/// What a request's head may be once `request_header` has changed it: twice what a client may send, so that whatever a
/// client sends has room for what the configuration adds.
pub const CHANGED_HEAD_LIMITS: onehop_http1::Limits =
    onehop_http1::Limits { head_bytes: 2 * HEAD_BYTES_MAX, fields: 2 * HEADER_FIELDS_MAX, ..CODEC_LIMITS };

/// Bytes of a field's value, of a parameter or of a URI after a replacement: eight times a target, as much as all fields
/// together may have.
pub const REPLACED_BYTES_MAX: usize = 2 * HEAD_BYTES_MAX;

/// Requests accepted on an HTTP/2 connection before other connections get their turn.
pub const STREAMS_BATCH_MAX: usize = 32;

/// Pipelined requests answered before other connections get their turn.
pub const PIPELINE_BATCH_MAX: usize = 32;

/// Bytes of a request body that a handler did not want and that are read so that the connection can
/// be kept. Beyond it the connection is closed.
pub const DRAINED_BODY_BYTES_MAX: u64 = 64 * 1024;

/// Open connections of the whole process. Each costs a descriptor and at most 8 KiB while idle; the
/// real bound is lower where the descriptor limit is lower.
pub const CONNECTIONS_MAX: usize = 65_536;

/// With room for fewer connections `memory` is an error: a browser opens six, and so ten people could come.
pub const CONNECTIONS_WORTHWHILE: usize = 64;

/// Bytes of a request in a queue, besides its connection's: its place, its call, and what the routes made of it.
pub const QUEUED_REQUEST_BYTES: u64 = 4 * 1024;

/// Bytes of the process without files and connections: 4 to 8 MiB resident with one small site.
pub const PROCESS_BYTES: u64 = 8 * 1024 * 1024;

/// Parts of the table of connections by address, each with a lock of its own: more than cores usually are.
pub const ADDRESS_PARTS: usize = 16;

/// With descriptors for fewer connections the server does not start: a browser opens six, and those that have just been
/// closed count for a moment.
pub const CONNECTIONS_MIN: usize = 8;

/// Connections accepted before requests get their turn again.
pub const ACCEPT_BATCH_MAX: usize = 64;

/// Connections that the kernel may hold for us to accept. The kernel caps it at net.core.somaxconn.
pub const ACCEPT_BACKLOG: i32 = 4096;

/// Bytes that the kernel holds for one client beyond what is on its way (TCP_NOTSENT_LOWAT, tcp(7)). Without this bound
/// it is up to 4 MiB, and for a client with a window of some hundred bytes in as small pieces: 2,000 such clients of a
/// large file cost 6.8 s of processor time, and 1.2 with it. Half of it is enough for a round trip of the event loop at 50 Gbit/s.
pub const UNSENT_BYTES_MAX: u32 = 128 * 1024;

/// How long a client may be silent before the kernel asks whether it is still there. Tunnels and streams of
/// events have no deadline of their own, and addresses translated on the way are forgotten within a minute.
pub const CLIENT_KEEP_ALIVE_IDLE: Duration = Duration::from_secs(15);

/// How long the kernel waits before it asks once more.
pub const CLIENT_KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Questions without an answer after which a client is gone, a minute after the first one. Fewer would cut off
/// a phone that is in a tunnel of the other kind.
pub const CLIENT_KEEP_ALIVE_PROBES: u32 = 4;

/// How long a stop waits for requests in flight, where the file says nothing.
pub const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// The longest grace period that is kept to: a day. A longer one is a mistake in its unit.
pub const GRACE_PERIOD_MAX: Duration = Duration::from_secs(86_400);

/// How long after the beginning of a stop a worker may take to close its tunnels (a WebSocket: close frames
/// both ways). One round trip to the far side of the earth takes 0.3 s; a client that is silent ends with it.
pub const TUNNEL_GRACE_MAX: Duration = Duration::from_secs(2);

/// So much before the end of the grace period tunnels are over in any case: what their handlers still do
/// then has to end within it.
pub const TUNNEL_GRACE_MARGIN: Duration = Duration::from_secs(1);

/// How long a stop spares a connection that has not sent its first request yet: the client connected
/// before it could know.
pub const FRESH_CONNECTION_GRACE: Duration = Duration::from_secs(1);

/// A connection whose last answer is no older than this at a stop is one whose client keeps asking.
pub const ACTIVE_WITHIN: Duration = Duration::from_secs(1);

/// How long a stop spares such a connection: its next request may be on the way, and is answered with the word that the
/// connection ends. Longer than a round trip around the world (0.3 s).
pub const ACTIVE_CONNECTION_GRACE: Duration = Duration::from_millis(500);

/// How long the end of a stop waits for each log to be written.
pub const LOG_FINISH_DEADLINE: Duration = Duration::from_secs(2);

/// How often the same kind of failure of one application or upstream is reported: with one a minute a log stays readable,
/// however many requests fail.
pub const INCIDENT_REPORT_PERIOD: Duration = Duration::from_secs(60);

/// Kinds of failures that are reported in one such period; the metrics count all.
pub const INCIDENTS_MAX: usize = 64;
/// Bytes of one request to the control socket or the admin endpoint.
pub const ADMIN_REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Connections to the admin endpoint at one time: a few scrapers and health checks.
pub const ADMIN_CONNECTIONS_MAX: usize = 32;

/// Connections to the control socket at one time, which only its user opens. Its own bound: clients of the admin
/// endpoint must not be able to lock out a stop.
pub const CONTROL_CONNECTIONS_MAX: usize = 32;

/// Connections to the control socket that follow the logs at one time: they stay, and must leave room for a stop.
pub const LOG_FOLLOWERS_MAX: usize = 8;

/// How long lines are gathered before a connection that follows the logs gets them: a core hands over the lines of its
/// requests at each tick, so that those of one moment come in their order, and a busy server wakes a follower a few times a
/// second.
pub const LOG_FOLLOW_PAUSE: Duration = Duration::from_millis(400);

/// Ports that are tried for the admin endpoint, from its default port on: as many instances run on one machine
/// without being told where.
pub const ADMIN_PORTS_TRIED_MAX: u16 = 100;

/// How long the admin endpoint waits before it accepts again after an error. Out of descriptors is the
/// usual one, and trying at once would only burn a core.
pub const ADMIN_ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes of one read from a client of the admin endpoint; its requests are a few hundred.
pub const ADMIN_READ_BYTES: usize = 2 * 1024;

/// How long another process that is just making its control socket in the same folder is waited for.
/// Making one takes a millisecond.
pub const CONTROL_LOCK_DEADLINE: Duration = Duration::from_secs(2);

/// How often a control socket's folder is tried to be locked.
pub const CONTROL_LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Control sockets of one folder that are looked at when the dead ones are removed. Each look is a
/// connection; what is left is removed by the next start.
pub const CONTROL_SOCKETS_SWEPT_MAX: usize = 256;

/// Lines of all workers that wait to be written; a slow log loses lines, it never stops a worker.
/// As many as an application says in a burst, before it ends for example.
pub const WORKER_LINES_WAITING_MAX: usize = 65_536;

/// Bytes of these lines: most are short, and a few long ones must not take the memory of all.
pub const WORKER_LINES_WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Events of all applications, besides their lines, that wait to be written. An application that crashes
/// again and again makes one in ten seconds; what is beyond takes the place of older ones of its kind.
pub const APP_EVENTS_WAITING_MAX: usize = 1_024;

/// `limit` directives that one site may have, the whole server's among them: a request notes those that it passes in
/// the bits of one word, and one bit is its application's.
pub const SITE_LIMITS_MAX: usize = 63;

/// How often an address is tried again after its probe, and the pause between: a process that has just begun runs its
/// program, and with it lets go of copied sockets, within microseconds, on a busy machine within milliseconds.
pub const PROBE_COPY_TRIES: u32 = 20;
/// See [`PROBE_COPY_TRIES`].
pub const PROBE_COPY_PAUSE: Duration = Duration::from_millis(5);

/// Pages of which one `early_hints` remembers what their responses named. A site has more, but those that are asked for often
/// are fewer, and of all others only the next response comes without hints.
pub const LEARNED_PATHS_MAX: usize = 1_024;

/// Parts of that table, each replaced by itself: a change copies one of them, some 64 entries.
pub const LEARNED_PARTS: usize = 16;

/// Bytes of the host and the path of such a page. Longer paths are made for one client.
pub const LEARNED_KEY_BYTES_MAX: usize = 512;

/// Links that are learned of one page. Browsers load six to eight things at a time before a page needs more.
pub const LEARNED_LINKS_MAX: usize = 16;

/// Bytes of these links: they go out in front of the response and should take little of a first window of 14 KiB.
pub const LEARNED_LINKS_BYTES_MAX: usize = 2 * 1024;

/// Bytes of all that one `early_hints` learns at most, with its tables.
pub const LEARNED_BYTES: u64 =
    (LEARNED_PATHS_MAX * (LEARNED_KEY_BYTES_MAX + LEARNED_LINKS_BYTES_MAX + 256)) as u64;

/// Bytes of a request's body, with its framing, that may arrive before the request takes a place at an application, behind
/// a limit or at an upstream with `max`. What forms and calls of interfaces send is less; nginx holds 16 KiB in memory
/// (`client_body_buffer_size`), and the rest on disk.
pub const REQUEST_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// How often a request whose body does not fit looks whether it may be streamed.
pub const STREAM_LOOK_PERIOD: Duration = Duration::from_millis(50);

/// Requests that take less are not kept as slow ones, however few there are: nothing is to be explained about them.
pub const SLOW_FLOOR: Duration = Duration::from_millis(10);

/// Of each core, how many of the slowest requests of a minute are kept: enough to see what they have in common, and few enough
/// to read.
pub const SLOW_PER_MINUTE: usize = 10;

/// The time of which [`SLOW_PER_MINUTE`] are kept.
pub const SLOW_PERIOD: Duration = Duration::from_secs(60);

/// The time of which [`FAILED_PER_SECOND`] are kept.
pub const FAILED_PERIOD: Duration = Duration::from_secs(1);

/// Minutes for which they are kept: a person looks within minutes after a complaint, and the access log has the rest.
pub const SLOW_MINUTES: usize = 15;

/// Of each core, how many failed requests are kept: those of the last minutes, or of the last moments of an outage.
pub const FAILED_KEPT: usize = 100;

/// Of each core, how many failed requests of one second are kept. An outage fails thousands, which are all alike, and must
/// neither cost much nor displace what came before it.
pub const FAILED_PER_SECOND: u32 = 5;

/// Bytes of a path, and of each other text of a client, that are kept of such a request. At most 250 requests of some 700 bytes
/// are kept of each core.
pub const RETAINED_TEXT_BYTES_MAX: usize = 256;

/// How long after a request the stalls of its worker are looked up: they come on another connection than the response, within
/// milliseconds.
pub const STALLS_ARRIVE_WITHIN: Duration = Duration::from_millis(200);

/// Requests of a second that a core looks at for what is asked for most; with more, it looks at fewer of them. A look takes about a
/// microsecond.
pub const VISITS_PER_SECOND: u32 = 256;

/// The time for which [`VISITS_PER_SECOND`] holds.
pub const VISITS_ADAPTED_AFTER: Duration = Duration::from_secs(1);

/// Requests of which one is looked at, at most: more than a core answers in a second.
pub const VISITS_STRIDE_MAX: u32 = 1 << 20;

/// How long requests are counted before a new period begins; the one before is shown, too.
pub const VISITS_PERIOD: Duration = Duration::from_secs(3_600);

/// Sites of which a core counts what is asked for most: each may take 50 KiB.
pub const VISITS_SITES_MAX: usize = 50;

/// Rows that are shown of each kind.
pub const VISITS_SHOWN_MAX: usize = 20;

/// Passwords that wait to be checked against their hash; more are answered with 503: at a tenth of a second each, the last one
/// waits as long as a person does.
pub const PASSWORD_CHECKS_WAITING_MAX: usize = 128;

/// How long a request waits for the check of its password.
pub const PASSWORD_CHECK_DEADLINE: Duration = Duration::from_secs(15);

/// Passwords that were right and are remembered, 32 bytes each; then all are forgotten, and checked once more.
pub const PASSWORDS_REMEMBERED_MAX: usize = 4096;
