//! Every number that both sides of the worker protocol keep to, with its unit and its reason.
//!
//! Owns the numbers only. They stand in docs/worker-protocol.md too: changing one is a new version.

/// The version of the protocol that this crate speaks.
pub const VERSION: u16 = 1;

/// Bytes of a frame's payload. Room for the longest head block with the longest inline body, and 4 KiB for
/// the numbers around them or a file's path: what one frame can make the other side hold.
pub const PAYLOAD_BYTES_MAX: usize = 132 * 1024;

/// Bytes before each payload: length, kind, flags, slot, generation. Twelve keep the numbers of a payload on
/// multiples of four.
pub const FRAME_HEADER_BYTES: usize = 12;

/// Bytes of a head block. Twice what the HTTP/1 codec takes from a client by default, so that a long head is
/// refused by the side that can say 431.
pub const HEAD_BLOCK_BYTES_MAX: usize = 64 * 1024;

/// Fields of a head block, not counting the records before a request's fields. More than the HTTP/1 codec
/// takes, since an answer may carry many `Set-Cookie` fields.
pub const FIELDS_MAX: usize = 200;

/// Bytes of a body that may stand behind a head in the same frame: as much as one DATA frame holds.
pub const INLINE_BODY_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a body in one DATA frame. Long enough that the frame costs little, short enough that other
/// exchanges on the connection get their turn.
pub const DATA_BYTES_MAX: usize = 64 * 1024;

/// Informational answers in one exchange: a handler that sends them without end must not keep a client busy.
pub const INFORMATIONAL_MAX: usize = 16;

/// The slot that means the connection itself in CREDIT frames. No exchange has it.
pub const CONNECTION_SLOT: u16 = 0xFFFF;

/// In place of a number of bytes: not known (a body), or all that is left (a file).
pub const UNKNOWN_LENGTH: u64 = u64::MAX;

/// A body of at most so many bytes that comes whole with its REQUEST or RESPONSE is not counted against credit:
/// what is short goes through where long bodies have used the connection's window up. Slots times this is the bound of
/// what such bodies can take.
pub const FREE_BODY_BYTES: usize = 16 * 1024;
