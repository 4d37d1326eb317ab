//! Every bound of HTTP/2 connections, with its unit and its reason.

/// Streams that a client may have open on a connection at a time; nginx's default. RFC 9113 section 6.5.2 recommends no
/// fewer than 100.
pub const STREAMS_MAX: u32 = 128;

/// Bytes of a request's body that a client may send on a stream before the handler has read any. That much arrives in each
/// round trip: 5 MB/s at 50 ms.
pub const STREAM_WINDOW_BYTES: u32 = 256 * 1024;

/// The same for all streams of a connection together. Each body for which there is room has a window of its own besides.
pub const CONNECTION_WINDOW_BYTES: u32 = 512 * 1024;

/// Bytes of the list of a request's header fields, as SETTINGS_MAX_HEADER_LIST_SIZE counts them (RFC 9113 section 6.5.2):
/// 32 for each field more than the head that HTTP/1 accepts.
pub const HEADER_LIST_BYTES_MAX: u32 = 40 * 1024;

/// Bytes of a table of a client's repeated header fields; the protocol's default.
pub const HEADER_TABLE_BYTES: u32 = 4 * 1024;

/// Streams that a client may have reset before the server has looked at them. A browser that leaves a page resets all of
/// that page's.
pub const UNSEEN_RESETS_MAX: usize = 128;

/// Streams that the server resets because of what the client sent on them, in the lifetime of a connection (CVE-2025-8671).
/// A well-behaved client causes none.
pub const PROVOKED_RESETS_MAX: usize = 256;

/// Bytes of a response that wait in h2 until the connection is driven: what is gathered for one write.
pub const SEND_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Bytes of responses that wait in a connection for its client. With more, further ones wait in their handlers, so that a
/// more urgent response finds little before it.
pub const OUTGOING_BYTES_MAX: usize = 128 * 1024;

/// Bytes of a response that its stream hands over at a time: the smallest largest frame (RFC 9113 section 4.2).
pub const PIECE_BYTES_MAX: usize = 16 * 1024;

/// Bytes of a response after which it no longer goes before other responses of its urgency: a page and its styles are
/// shorter, a download is longer.
pub const SHORT_RESPONSE_BYTES: u64 = 64 * 1024;

/// Bytes of frames that are gathered before they are written; h2 alone writes each of 256 bytes by itself.
pub const GATHERED_BYTES_MAX: usize = 64 * 1024;

/// A gathered write as large as this is written from where it lies: copying it costs more than a system call.
pub const COPIED_BYTES_MAX: usize = 32 * 1024;

/// RST_STREAM frames that a client may send at once: several times as many as it can have streams (CVE-2023-44487).
pub const RESETS_BURST: u32 = 1_000;

/// RST_STREAM frames in a second after that: a client that cancels every search as its user types sends ten.
pub const RESETS_PER_SECOND: u32 = 200;

/// SETTINGS frames that a client may send at once. Each has to be acknowledged and may change a table's size; clients send one
/// or two in a lifetime.
pub const SETTINGS_BURST: u32 = 100;

/// SETTINGS frames in a second after that.
pub const SETTINGS_PER_SECOND: u32 = 10;

/// PING frames that a client may send at once. Each is answered, which takes a microsecond; clients of gRPC send one for each
/// round trip in which data came.
pub const PINGS_BURST: u32 = 1_000;

/// PING frames in a second after that.
pub const PINGS_PER_SECOND: u32 = 100;

/// Frames without a request or its body that a client may send at once: WINDOW_UPDATE, PRIORITY, PRIORITY_UPDATE, empty DATA,
/// CONTINUATION and unknown ones. A client may open a window for each frame of many responses at once.
pub const OVERHEAD_BURST: u32 = 10_000;

/// The same in a second after that: some milliseconds of processor time.
pub const OVERHEAD_PER_SECOND: u32 = 1_000;

/// Such frames after which other connections of the core have their turn: a fraction of a millisecond of processor time.
pub const OVERHEAD_PER_TURN: u64 = 256;

/// Such frames, and PING frames, that a request earns: its client may open two windows for each of a few frames of the response.
pub const OVERHEAD_PER_REQUEST: u32 = 8;

/// Bytes of responses that earn one such frame, and one PING frame: a client that opens both windows for each KiB it reads is within it.
pub const BYTES_PER_OVERHEAD: u32 = 256;

/// Bytes of a response that a server may send on a stream before the client has taken any: as much as the kernel holds of a
/// connection of HTTP/1.
pub const RESPONSE_WINDOW_BYTES: u32 = 256 * 1024;

/// Streams that a connection to a server has at a time, however many that allows. With as many windows that clients leave
/// unread, a connection still has room for the next response.
pub const UPSTREAM_STREAMS_MAX: usize = 128;

/// The window of all streams of a connection to a server: that of each, so that slow clients hold no others up.
pub const UPSTREAM_CONNECTION_WINDOW_BYTES: u32 = UPSTREAM_STREAMS_MAX as u32 * RESPONSE_WINDOW_BYTES;

/// Bytes by which unread frames of data of a connection to a server may fall short of 256 each, in all. Frames that clients do
/// not read take memory beside their bytes; h2's own bound, half of the window, is reached by six clients that leave frames of 20
/// bytes unread, and ends the requests of all others.
pub const UPSTREAM_SHORT_FRAMES_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Bytes of the list of a response's header fields, as SETTINGS_MAX_HEADER_LIST_SIZE counts them: 32 for each field more than
/// the head that HTTP/1 accepts.
pub const RESPONSE_HEADER_LIST_BYTES_MAX: u32 = 72 * 1024;

/// Streams that were reset here of which h2 remembers that frames may still come.
pub const UPSTREAM_RESETS_KEPT_MAX: usize = 128;

/// Informational responses before a final one, as with HTTP/1. A server that sends more is not making progress.
pub const INFORMATIONAL_MAX: u8 = 16;
