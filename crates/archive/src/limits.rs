//! Every bound of a pack, with its unit and its reason.

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
