//! Every bound of the history, with its unit and its reason.

/// Seconds of the finest interval: a spike of a minute is seen, and an idle server is woken six times a minute.
pub const SAMPLE_SECONDS: u64 = 10;

/// Seconds of an interval at each level. A view of any range then reads at most some thousand records.
pub const LEVEL_SECONDS: [u64; 4] = [SAMPLE_SECONDS, 300, 3_600, 86_400];

/// Seconds for which the finest level is kept: yesterday's incident at this hour.
pub const FINEST_KEEP_SECONDS: u64 = 86_400;

/// Seconds that a file holds, by level. Files are dropped as a whole, so that each level has some 15 to 100 of them.
pub const SEGMENT_SECONDS: [u64; 4] = [3_600, 86_400, 7 * 86_400, 90 * 86_400];

/// Seconds that a file of events holds.
pub const EVENT_SEGMENT_SECONDS: u64 = 10 * 86_400;

/// Bytes of one file of events; beyond it events are dropped until the next file. A worker that dies every second for ten days
/// must not displace the curves.
pub const EVENT_SEGMENT_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// Bytes of an event's text; the rest is cut off. The log has all of it.
pub const EVENT_TEXT_BYTES_MAX: usize = 512;

/// Bytes of records in memory, where no folder is used or as long as it cannot be written: a day of a few sites.
pub const MEMORY_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Seconds until a folder that could not be used is tried again.
pub const RETRY_SECONDS: u64 = 60;

/// Damaged files that are kept beside the others, for a person to look at; then the oldest is removed.
pub const DAMAGED_FILES_MAX: usize = 4;

/// Bytes of a record: an interval of a thousand busy sites has less than a megabyte.
pub const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Buckets of a histogram; a record that names another one is damaged.
pub const BUCKETS_MAX: u64 = 1_000;

/// Durations in one bucket; a record that counts more is damaged, and sums of these do not overflow.
pub const COUNT_MAX: u64 = 1 << 48;

/// Points of a curve: a screen shows no more.
pub const POINTS_MAX: u64 = 500;

/// Records that a curve reads: of 50 busy sites some 20 MiB, which takes some tens of milliseconds.
pub const SCANNED_MAX: u64 = 1_500;

/// Points of the small curve beside a site's name.
pub const SPARKLINE_POINTS_MAX: u64 = 60;

/// Events in one response; those that are older are found by an earlier range.
pub const EVENTS_SHOWN_MAX: usize = 500;
