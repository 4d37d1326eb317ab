//! Every bound of clients' connections, with its unit and its reason.

use std::time::Duration;

/// How long a client may take from the first byte of a head to its last. Slow-header attacks cost
/// their own connection after this; a phone on a bad network sends a head within a second.
pub const HEAD_DEADLINE: Duration = Duration::from_secs(10);

/// How long a kept connection may be silent between requests. Browsers keep theirs for one to two
/// minutes; a closed one costs them a handshake, an open one costs us a few kilobytes.
pub const IDLE_DEADLINE: Duration = Duration::from_secs(60);

/// Longest pause within a request body that a handler reads, and the longest time in which a body is read
/// that no handler wants. Also how long one side of a tunnel may be silent once the other has ended its direction.
pub const BODY_PROGRESS_DEADLINE: Duration = Duration::from_secs(20);

/// What a byte of a request's body adds to the time for which its client is waited for, up to
/// [`BODY_PROGRESS_DEADLINE`]: with fewer than 240 in a second that runs out. A telephone line of 1990 has four times
/// that; it is what Kestrel asks of bodies by default (`MinRequestBodyDataRate`). Only waiting counts, not the time that
/// a handler takes.
pub const BODY_BYTE_TIME: Duration = Duration::from_nanos(1_000_000_000 / 240);

/// Longest time in which a client takes nothing of a response that is ready: nginx's `send_timeout`. Receivers open their
/// window in large steps, so a client that reads slowly and steadily takes nothing for half a minute at a time. The kernel
/// reports progress when half of the unsent bytes that it holds (`TCP_NOTSENT_LOWAT`) are gone, so this is a lowest rate
/// too: some kilobyte in a second.
pub const WRITE_PROGRESS_DEADLINE: Duration = Duration::from_secs(60);

/// How long a connection that is being closed is still read, so that the client sees the response and
/// not a reset (RFC 9112 section 9.6).
pub const LINGER_DEADLINE: Duration = Duration::from_secs(2);

/// How often a core looks at its deadlines. A deadline may be late by this much.
pub const DEADLINE_TICK: Duration = Duration::from_millis(250);

/// The deadlines of connections as one piece of data, so that a test can shorten them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// See [`HEAD_DEADLINE`].
    pub head: Duration,
    /// See [`IDLE_DEADLINE`].
    pub idle: Duration,
    /// See [`BODY_PROGRESS_DEADLINE`].
    pub body_progress: Duration,
    /// See [`WRITE_PROGRESS_DEADLINE`].
    pub write_progress: Duration,
    /// See [`LINGER_DEADLINE`].
    pub linger: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head: HEAD_DEADLINE,
            idle: IDLE_DEADLINE,
            body_progress: BODY_PROGRESS_DEADLINE,
            write_progress: WRITE_PROGRESS_DEADLINE,
            linger: LINGER_DEADLINE,
        }
    }
}

/// Bytes of one read from a socket, and the size of a buffer at first. Holds any usual head, and a
/// pipeline of a hundred small ones.
pub const READ_BUFFER_BYTES: usize = 8 * 1024;

/// Bytes up to which an input buffer grows to hold a head, of a request or of a response: twice the longest that a codec
/// accepts, which is refused before this bound is reached.
pub const INPUT_BYTES_MAX: usize = 128 * 1024;

/// Bytes of buffers that a core keeps for the next connections: those of two thousand, as many as a core under the
/// heaviest usual load has busy. What was not needed for a tick goes back to the allocator by halves.
pub const POOLED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Buffers that stay however quiet it is.
pub const POOLED_BUFFERS_KEPT: usize = 16;

/// A buffer that grew beyond this is not kept for the next connection. Above one read of a long response from an
/// upstream (64 KiB) and the head beside it.
pub const POOLED_BUFFER_BYTES_MAX: usize = 96 * 1024;

/// Bytes of responses gathered before they are written. A pipeline of small responses goes out in one
/// system call; more would only hold memory.
pub const WRITE_GATHER_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a response that an encrypted connection encrypts before the kernel takes them: two of the longest records.
/// A client that takes nothing holds no more.
pub const TLS_WRITE_BYTES_MAX: usize = 32 * 1024;

/// Bytes of the records that a response begins with: with its header a record fits into one TCP segment of an Ethernet
/// (1,460 bytes, less 22 of the record and 12 of TCP's timestamps, and a margin for tunnels).
pub const TLS_FIRST_RECORD_BYTES: usize = 1_360;

/// Records of that length that a response begins with: its head and the beginning of a page are there with the first
/// segments. More would cost a client and us an encryption each.
pub const TLS_FIRST_RECORDS: usize = 4;

/// Bytes of one read of a file that is streamed from disk.
pub const DISK_READ_BYTES: usize = 64 * 1024;

/// Bytes that a busy connection takes in the sum of `memory`: its task, what it reads into, what it gathers to write, and
/// its head and response. One that waits for a request has no buffers and takes a tenth of it, one whose head or response
/// is long takes more: 2,000 that had each sent half a head took 15 KiB each, and with a thousand ranges in it 23.
pub const CONNECTION_BYTES: u64 = 32 * 1024;

/// Bytes of a response from a program in HTTP or an upstream with `max` that may wait for a slow client after the program or
/// the upstream is done with it. Most pages and API responses are shorter; nginx holds 32 KiB in memory
/// (`proxy_buffers`), and the rest on disk.
pub const RESPONSE_BUFFER_BYTES_MAX: usize = 256 * 1024;

/// Bytes of all request bodies that are held before their requests take a slot, and of all responses that wait for slow
/// clients after their upstream is done with them.
pub const CLIENT_BUFFERS_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// They are also no more than this part of what connections count as in the sum of `memory`: a connection that sends or reads
/// slowly takes half of its [`CONNECTION_BYTES`], so that they are within it.
pub const CLIENT_BUFFERS_PART: u64 = 4;

/// Of what slow clients may hold together one client address may hold this part: 2 is a half.
pub const SLOW_ADDRESS_PART: u64 = 2;

/// Of the slots of an application, a limit or an upstream, requests whose bodies come while they have one may hold this
/// part, and so may slow readers that cannot yield theirs: the rest is for requests that wait for no client.
pub const SLOW_SLOTS_PART: u64 = 2;

/// How long a client takes nothing of a response that is ready before it is slow. Several round trips around the world:
/// a fast client that is far away empties its buffers within one.
pub const SLOW_CLIENT_AFTER: Duration = Duration::from_millis(500);

/// Responses of the whole process that may wait for slow clients without a slot at the application that still makes them:
/// as many requests as one worker with a server of its own is handed.
pub const SLOW_READERS_MAX: u64 = 4_096;

/// Bytes of a request body that are passed on in one piece.
pub const UPLOAD_PIECE_BYTES_MAX: usize = 64 * 1024;

/// Less room than this for a body is waited for: a chunk's framing has to fit besides.
pub const UPLOAD_PIECE_BYTES_MIN: usize = 1024;

/// How often a client is checked that has sent more than is kept while its request waits: whether it is still
/// connected. Within the 100 ms in which a handler should learn that its client has left.
pub const GONE_LOOK_PERIOD: Duration = Duration::from_millis(50);

/// Bytes that the compressors of bodies on their way may hold together, of all cores. A body for which there is no room is
/// sent as it is: 64 MiB are 18 bodies of unknown length in zstd, or 200 in gzip.
pub const COMPRESSORS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes of a gzip compressor of a body on its way (level 5).
pub const GZIP_COMPRESSOR_BYTES: u64 = 320 * 1024;

/// Bytes of a brotli compressor of a body on its way (quality 4, a window of 256 KiB).
pub const BROTLI_COMPRESSOR_BYTES: u64 = 2 * 1024 * 1024;

/// Bytes of a zstd compressor of a body on its way (level 3), besides its window.
pub const ZSTD_COMPRESSOR_BYTES: u64 = 3 * 1024 * 1024 / 2;

/// The window of level 3 of zstd, in bytes: that of its own table for bodies of unknown length.
pub const ZSTD_COMPRESSOR_WINDOW_BYTES: u64 = 2 * 1024 * 1024;

/// A body up to this many bytes is copied behind its head and sent with it in one piece; a larger
/// one is sent from where it lies. Copying 16 KiB costs less than a second system call.
pub const COPIED_BODY_BYTES_MAX: usize = 16 * 1024;

/// Bodies that are made for one request are compressed on the core that made them, up to so many
/// bytes: a quick level takes about 10 ns a byte, and other connections wait for it.
pub const COMPRESSED_ON_THE_SPOT_BYTES_MAX: usize = 256 * 1024;
