//! Every bound of a pack, with its unit and its reason.

use std::time::Duration;

/// Bytes of an index: 1,000,000 files at 250 bytes each.
pub const INDEX_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Files, folders and links of one pack together: more is a mistake in what was packed.
pub const ENTRIES_MAX: usize = 1_000_000;

/// Pieces of one pack: each file with its three compressed forms.
pub const BLOBS_MAX: usize = 4 * ENTRIES_MAX;

/// Bytes of a path within a pack, as `PATH_MAX` of Linux.
pub const PATH_BYTES_MAX: usize = 4096;

/// Absolute paths that are written into a runtime's files: its loader's, and that of its libraries.
pub const ABSOLUTE_PATHS_MAX: usize = 8;

/// Bytes of the program in front: onehop with debug information has 300 MiB.
pub const PROGRAM_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Bytes of a file that is compressed or read as a whole. Larger ones are copied in pieces and stored as they are.
pub const WHOLE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Bytes that are copied at a time.
pub const PIECE_BYTES: usize = 256 * 1024;

/// The window of zstd's frames, as a power of two: 8 MiB, what a client has to accept (RFC 9659 section 3), and
/// what unpacking takes.
pub const ZSTD_WINDOW_LOG: u32 = 23;

/// What is longer is compressed in pieces of this many bytes, side by side: an interpreter of 94 MiB makes twelve, and
/// each thread holds a few of them.
pub const COMPRESS_JOB_BYTES: u32 = 8 * 1024 * 1024;

/// Threads that compress at most.
pub const COMPRESS_WORKERS_MAX: usize = 8;

/// Blobs begin at multiples of this, in bytes: pages of the page cache.
pub const PROGRAM_ALIGNMENT: u64 = 4096;

/// Links of a path that are followed, as in the kernel (`path_resolution(7)`).
pub const LINKS_MAX: usize = 40;

/// Entries of a place for private folders that are looked at when folders of servers that were killed are
/// removed; what is left is removed by a later start. Looking at one takes some microseconds.
pub const SWEPT_ENTRIES_MAX: usize = 10_000;

/// Files of a pack that one thread unpacks: starting others for fewer would take longer.
pub const UNPACK_ALONE_FILES_MAX: usize = 64;

/// Threads that unpack a pack. More only queue at the disk.
pub const UNPACK_THREADS_MAX: usize = 4;

/// How long a server waits for another that unpacks the same pack into the same place: large packs on slow disks take a
/// minute.
pub const UNPACK_TURN_WAIT_MAX: Duration = Duration::from_secs(300);

/// Between two looks at whether another server has unpacked the same pack: short against unpacking it.
pub const UNPACK_TURN_PAUSE: Duration = Duration::from_millis(20);

/// Names that are tried for a folder in which a pack is unpacked; they hold chance, so that the first is free.
pub const UNPACK_NAMES_TRIED_MAX: usize = 16;

/// Paths in the folder of a pack that one message names. It counts the others: a reader looks at the first ones.
pub const UNPACKED_NAMED_MAX: usize = 5;

/// Files that an application added in the folder of its pack and that are counted. Counting a million takes a second.
pub const UNPACKED_ADDED_COUNTED_MAX: usize = 1_000_000;

/// Changed versions of one file of a pack that are kept beside it, one for each start that found it changed.
pub const ASIDE_NAMES_TRIED_MAX: usize = 1000;

/// How long the unpacked library of another version of onehop is kept: going back to it is quick.
pub const LIBRARY_KEPT_FOR: Duration = Duration::from_secs(7 * 86_400);
