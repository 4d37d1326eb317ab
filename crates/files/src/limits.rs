//! Every bound of this crate, with its unit and its reason.

use std::time::Duration;

/// Ranges of one request that are answered as multipart/byteranges; beyond it the whole file
/// (RFC 9110 section 14.2 lets a server ignore excessive ranges). Bounds nginx CVE-2017-7529's kind.
pub const RANGES_MAX: usize = 16;

/// Bytes of a normalised path. The file system's own bound is 4096.
pub const PATH_BYTES_MAX: usize = 4096;

/// Files below one root. 50,000 files of an unpruned build still fit; a home directory does not.
pub const STORE_FILES_MAX: usize = 200_000;

/// Depth of folders below one root.
pub const STORE_DEPTH_MAX: usize = 64;

/// Bytes of one form of a packed file that is loaded into memory when it is first asked for: who asks waits while it is
/// read, some milliseconds. A larger one is streamed from the pack.
pub const PACKED_FORM_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bytes of one file that is held in memory; a larger one is streamed from disk.
pub const STORED_FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Symbolic links on the way to one place, as in the kernel (path_resolution(7)).
pub const LINKS_MAX: usize = 40;

/// Entries that were left out of a store and are named in warnings; the rest is counted.
pub const SKIPPED_LISTED_MAX: usize = 20;

/// How often a file that changes while it is read is read again before it is left on disk.
pub const FILE_READS_MAX: usize = 4;

/// How often a tree that changes while it is read is looked at again before it is taken as it is.
pub const TREE_READS_MAX: usize = 8;

/// A file that was changed this shortly before it was read may change again without a new time
/// stamp (the kernel's clock ticks every 1 to 10 ms): its stamp is not trusted next time.
pub const STAMP_TICK: Duration = Duration::from_millis(50);

/// The same where time stamps have no fraction (FAT counts two seconds).
pub const STAMP_TICK_COARSE: Duration = Duration::from_secs(2);

/// Threads that read a large tree. More only queue at the disk.
pub const READ_THREADS_MAX: usize = 4;

/// A tree with fewer bytes to read is read by one thread: starting others would take longer.
pub const READ_ALONE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Likewise with fewer files.
pub const READ_ALONE_FILES_MAX: usize = 1_000;

/// Smaller bodies gain nothing from compression: the header fields outweigh it.
pub const COMPRESS_BYTES_MIN: usize = 256;

/// Files above this are compressed at middle levels: the best ones take a second per mebibyte.
pub const COMPRESS_BEST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A compressed form is kept only if it saves this many bytes: its header fields cost about as many.
pub const COMPRESS_SAVING_BYTES_MIN: usize = 64;

/// And this share of the file, in percent: less is not worth the client's work and our memory.
pub const COMPRESS_SAVING_PERCENT_MIN: usize = 5;

/// Files above this are compressed one at a time: their workspaces take tens of mebibytes each.
pub const COMPRESS_ALONE_BYTES_MIN: usize = 512 * 1024;

/// Bytes of a tree that are held in memory while it is packed: what a site has, and less than a machine that builds
/// one. The largest files beyond it are packed as they are.
pub const PREPARED_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Threads that compress. Each has workspaces of its own.
pub const COMPRESS_THREADS_MAX: usize = 4;

/// Processes that compress and end too early, for one state of a tree, before the rest of it is left as
/// it is. One file that no compressor survives should not cost the others; more is the system's refusal.
pub const COMPRESSOR_LOSSES_MAX: usize = 3;

/// How often a thread that waits for the process that compresses asks whether it should stop.
pub const COMPRESS_CANCEL_PERIOD: Duration = Duration::from_millis(20);

/// Bytes handed to a compressor before it is asked whether it should stop.
pub const COMPRESS_STEP_BYTES: usize = 64 * 1024;

/// How often compressed forms are published while more are being made.
pub const COMPRESS_BATCH_PERIOD: Duration = Duration::from_millis(250);

/// zstd window, as a power of two: 8 MiB is what browsers must accept (RFC 9659 section 3).
pub const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// How long a tree must be quiet before its changes are published.
pub const QUIET_PERIOD: Duration = Duration::from_millis(200);

/// How long a tree that is never quiet is waited for; then it is published if it stands still for
/// as long as reading it takes, and after the same time again as it is.
pub const CHURN_WAIT_MAX: Duration = Duration::from_secs(5);

/// How long a publication is held back because the index or an asset that it names is missing.
pub const HOLD_BACK_MAX: Duration = Duration::from_secs(10);

/// How often a tree is looked at where the file system reports no changes.
pub const POLL_PERIOD: Duration = Duration::from_secs(2);

/// Names of assets that are looked for in an index page.
pub const INDEX_ASSETS_MAX: usize = 1_000;

/// Bytes of an index page that are searched for them; its head is at the front.
pub const INDEX_SCAN_BYTES_MAX: usize = 1024 * 1024;

/// Entries on one directory page.
pub const BROWSE_ENTRIES_MAX: usize = 10_000;

/// Bytes in memory of hashed assets of earlier builds, for each tree: three builds of a large application. They count in
/// the bound of all stores, too, of which they never take more than half of what is free.
pub const RELEASES_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How long hashed assets of an earlier build are kept: a page that was left open over a week finds its chunks.
pub const RELEASE_KEPT_FOR: Duration = Duration::from_secs(7 * 86_400);
