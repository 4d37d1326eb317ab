//! Every bound of the metrics and the access logs, with its unit and its reason.

use std::time::Duration;

/// Sites with counters of their own; beyond it they are counted together as `_other`. A reload that renames sites over
/// and over must not grow the table for ever.
pub const SITES_COUNTED_MAX: usize = 1_000;

/// Upstreams with metrics of their own; beyond it they are counted together as `_other`.
pub const UPSTREAMS_COUNTED_MAX: usize = 1_000;

/// Texts of one kind that a core counts for a site in an hour: paths, agents, addresses. Twice as many as anybody reads.
pub const FREQUENT_KEPT: usize = 48;

/// Bytes of such a text; the rest is cut off.
pub const FREQUENT_TEXT_BYTES_MAX: usize = 128;

/// Durations up to this one share the first bucket of a histogram: a response from memory takes microseconds.
pub const HISTOGRAM_SHORTEST: Duration = Duration::from_nanos(100);

/// Durations beyond this one count in the last bucket of a histogram: clients and timeouts give up long before.
pub const HISTOGRAM_LONGEST: Duration = Duration::from_secs(1_000);

/// How long a response without a known length may go on after its head before it counts as a stream: a page that is
/// rendered piece by piece is over by then.
pub const STREAM_AFTER: Duration = Duration::from_secs(10);

/// Traced requests that a core keeps as examples of durations, for each handler of a site: one for each power of two of
/// microseconds, up to an hour.
pub const EXEMPLARS_MAX: usize = 32;

/// Routes of a site that are counted apart; those beyond share one label.
pub const ROUTES_COUNTED_MAX: usize = 30;

/// Bytes of a route's name: some paths.
pub const ROUTE_NAME_BYTES_MAX: usize = 100;

/// Bytes of log lines that a core gathers before it hands them to the writer.
pub const LOG_BATCH_BYTES: usize = 32 * 1024;

/// Lines for which a batch has room before its table of lines grows: a line of JSON has some 500 bytes.
pub const LOG_BATCH_MARKS: usize = 64;

/// Bytes of lines of requests, applications and events that stay in memory for `onehop logs`: the last minutes of a quiet
/// server, and of a busy one what was just written.
pub const RECENT_BYTES_MAX: usize = 1024 * 1024;

/// Sites whose lines in memory have a name; those of further sites are named `_other`. See [`SITES_COUNTED_MAX`].
pub const RECENT_SITES_MAX: usize = 1_000;

/// Batches that wait for a log's writer; beyond it lines are dropped and counted, so that a slow log never slows a
/// request. 8 MiB are a second of 16,000 lines of 500 bytes, for which a disk may stand still, and 60 ms of the fastest
/// log, for which the writer may wait for a processor.
pub const LOG_BATCHES_MAX: usize = 256;

/// How long no log line may have been lost before the loss is reported as over: a disk that is nearly full takes
/// short lines and refuses long ones.
pub const LOG_LOSS_QUIET: Duration = Duration::from_secs(1);

/// How long a receiver of log lines may take none before its connection is given up: the thread of the log waits for it, and its
/// queue holds what a busy server logs in about that time.
pub const LOG_NET_WRITE_DEADLINE: Duration = Duration::from_secs(1);

/// How long a receiver that could not be reached is left alone: lines are lost meanwhile, and not each of them is to wait.
pub const LOG_NET_RETRY: Duration = Duration::from_secs(2);

/// How long a log that could not be rotated grows before that is tried again.
pub const LOG_ROLL_RETRY: Duration = Duration::from_secs(60);

/// Names that are tried for a rotated log, one for each millisecond: only rotations of the same moment take them.
pub const LOG_ROLL_NAMES_TRIED_MAX: u64 = 1_000;
