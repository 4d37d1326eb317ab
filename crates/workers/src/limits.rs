//! Every bound of worker connections and pools, with its unit and its reason.

use std::time::Duration;

/// Requests that a worker is handed at a time where nothing is configured and it runs a handler, which mostly waits
/// for others: so many cost it a few megabytes. Or it is a program of which nothing is known: so many connections fit
/// into every usual listen backlog.
pub const HANDLER_CONCURRENCY: usize = 256;

/// The same where it runs a server of the application's own, which without this one in front has no such bound:
/// each client that polls holds a slot for half a minute. As many as may be configured.
pub const SERVER_CONCURRENCY: usize = 4096;

/// Exchanges that one core may have at one worker. All of [`SERVER_CONCURRENCY`] may be this core's, and beside them
/// event streams and upgraded connections, which hold no slot. Each takes a few hundred bytes on both sides, once
/// there were so many at a time.
pub const CONNECTION_SLOTS_MAX: u16 = 16_384;

/// Bytes of bodies that may be on their way in one direction of one exchange. A round trip over a worker connection
/// takes about 50 us, so this is no bound on speed; it is what a slow client makes either side hold.
pub const STREAM_WINDOW_BYTES: u32 = 256 * 1024;

/// The same for a whole connection: what all slow clients of one core and worker together can make either side
/// hold. 256 of them may stand still before long bodies of others wait; short ones never do.
pub const CONNECTION_WINDOW_BYTES: u32 = 64 * 1024 * 1024;

/// A connection's window where `memory` is scarce. So much fits beside 64 connections into 16 MiB, for a worker on two cores.
pub const CONNECTION_WINDOW_BYTES_MIN: u32 = 1024 * 1024;

/// And an exchange's: what a slow client holds is then no more than its connection's own buffers.
pub const STREAM_WINDOW_BYTES_MIN: u32 = 16 * 1024;

/// What a connection's window of bytes makes the server hold, as a fraction: in each direction 7/4 of it. Half of a window is
/// credited while the first half is passed on, and buffers grow by doubling: 400 clients that read nothing of a
/// streamed response held 390 KiB each with windows of 256 KiB.
pub const CONNECTION_WINDOW_HELD: (u64, u64) = (7, 2);

/// Bytes of one read from a connection, and of a frame that is not whole yet.
pub const CONNECTION_BUFFER_BYTES: usize = 192 * 1024;

/// Reads from one connection before other tasks get their turn.
pub const CONNECTION_READS_PER_TURN: usize = 4;

/// Bytes that wait to be written to one connection before no more requests are handed to it: its worker does not read.
/// [`SERVER_CONCURRENCY`] times a long head with its cookies: a worker that stands still for a moment is no reason to
/// refuse what it has room for.
pub const CONNECTION_OUT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A buffer for the frames of an exchange that grew beyond this is not kept for the next one.
pub const CONNECTION_INBOX_KEPT_BYTES_MAX: usize = 16 * 1024;

/// Exchanges of a connection whose buffer is kept for the next one: as many as are busy at a time in a usual worker. What a
/// burst of others needed goes back.
pub const CONNECTION_INBOXES_KEPT_MAX: usize = 64;

/// Parts of files that a worker may ask for in one exchange before the first of them is sent: it needs one at
/// a time, and their frames cost no credit.
pub const FILE_PARTS_WAITING_MAX: usize = 4;

/// Values that `sticky query` remembers for one application: as many clients as hold connections, at some 150
/// bytes each.
pub const STICKY_VALUES_MAX: usize = 65_536;

/// How long such a value is remembered that no request comes with: clients that poll come every half minute.
pub const STICKY_VALUE_IDLE_MAX: Duration = Duration::from_secs(60 * 60);

/// Bytes of a response in which such a value is looked for: socket.io's handshake has it within the first 40.
pub const STICKY_ANSWER_BYTES_MAX: usize = 512;

/// Bytes of such a value: socket.io's have 20, signed tokens some hundreds.
pub const STICKY_VALUE_BYTES_MAX: usize = 256;

/// Processes of one application. Each has a connection, and so a descriptor, for every core.
pub const WORKERS_MAX: usize = 256;

/// Seconds after which a client should ask again that found an application's queue full. Queues of
/// seconds' length empty in about that time or not at all.
pub const APP_RETRY_AFTER_SECONDS: u32 = 1;

/// Workers that a request is handed to, one after the other, where the first ones did not start it.
pub const APP_ATTEMPTS_MAX: usize = 3;

/// Connections to one program that are kept without a request, over all cores. As many as requests that a program
/// is handed at a time: what is beyond that at rest was a burst.
pub const PROGRAM_IDLE_MAX: usize = HANDLER_CONCURRENCY;

/// How long a connection to a program is kept without a request, where the program does not say less.
pub const PROGRAM_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a program's kernel may take to accept a connection. Beyond it its backlog is full.
pub const PROGRAM_DIAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Stalls of its event loop that are remembered of each worker. They are looked up within half a second, in which there are at
/// most a hundred: shorter ones than 5 ms are not reported.
pub const STALLS_KEPT: usize = 256;
