//! The bounds of the load, each with its unit and its reason.

use std::time::Duration;

/// Bytes of one read: a usual answer comes in one, and the buffer stays in the core's own cache.
pub(super) const READ_BYTES: usize = 64 * 1024;

/// Events that are taken from the kernel at once.
pub(super) const EVENTS_MAX: usize = 256;

/// Reads of one connection before the others have their turn.
pub(super) const READS_PER_TURN_MAX: usize = 16;

/// Rounds in which streams that got their responses begin the next requests, before what they sent goes out.
pub(super) const ROUNDS_PER_TURN_MAX: usize = 4;

/// How often connections whose streams have something to do get their turn, before the clock is looked at again.
pub(super) const TURNS_MAX: usize = 16;

/// Connections that a request is sent on again after a server took it back with GOAWAY and NO_ERROR. Twice is bad luck,
/// more is a server that takes no requests.
pub(super) const RESENT_MAX: u8 = 3;

/// Streams of all connections together: half a kibibyte each.
pub(super) const STREAMS_TOGETHER_MAX: usize = 1_000_000;

/// Connections of one thread that are opened at the same time when a load begins. More would overflow what
/// servers let wait (a `listen` backlog of 128 is usual), and a lost SYN is repeated after a second only.
pub(super) const CONNECTING_AT_START_MAX: usize = 64;

/// Arrivals of one thread that may wait for a connection; more are counted as unsent at once. 24 MiB.
pub(super) const ARRIVALS_WAITING_MAX: usize = 1 << 20;

/// Waiting arrivals that are served before the clock is looked at again: refused connections take microseconds each.
pub(super) const SERVED_PER_TURN_MAX: usize = 256;

/// The longest rest after failures in a row, so that a server that is away is not asked in a hot loop and
/// is still found soon when it comes back.
pub(super) const BACK_OFF_MAX: Duration = Duration::from_millis(100);

/// The first rest after a failure.
pub(super) const BACK_OFF_MIN: Duration = Duration::from_millis(1);

/// A Unix socket whose backlog is full says so instead of waiting: it is asked again after this.
pub(super) const BACKLOG_RETRY: Duration = Duration::from_millis(1);

/// How exactly deadlines are kept. Connections are looked through for them no more often.
pub(super) const DEADLINE_TICK: Duration = Duration::from_millis(2);

/// How long arrivals that wait for a connection may still be sent after the end of the time.
pub(super) const DRAIN_MAX: Duration = Duration::from_secs(1);

/// A request that waited for so long when somebody broke the run off is counted as timed out: people break off
/// what hangs.
pub(super) const HANGING: Duration = Duration::from_secs(1);

/// The longest sleep of a thread: how late it may hear that the run is over.
pub(super) const SLEEP_MAX: Duration = Duration::from_millis(20);

/// The shortest piece of the series over time, and the distance between two reports to the observer.
pub(super) const PIECE: Duration = Duration::from_millis(100);

/// Slices of a series at most: as many as a plot can show.
pub(super) const SLICES_MAX: usize = 300;

/// Pieces of one thread that may wait for the observer's thread. When it does not come for that long (a minute),
/// the series loses pieces; the counts do not.
pub(super) const PIECES_WAITING_MAX: usize = 600;

/// A quiet time that is shorter is no stall, whatever else is seen: garbage collectors and schedulers do this.
pub(super) const STALL_MIN: Duration = Duration::from_millis(50);

/// A stall is longer than so many times the usual 99th percentile.
pub(super) const STALL_FACTOR: u32 = 20;

/// Quiet times that one thread notes: over an hour of them.
pub(super) const QUIETS_MAX: usize = 100_000;

/// Slices below which no interval is thought narrow: three seconds.
pub(super) const NARROW_SLICES_MIN: usize = 30;

/// Failures and nothing else for so long, and the run is given up.
pub(super) const HOPELESS_AFTER: Duration = Duration::from_secs(3);

/// Entries of the cycle in which requests with weights take turns; weights are rounded to fit.
pub(super) const CYCLE_MAX: u64 = 1 << 16;

/// Descriptors that this process may need beside connections: epoll, files of reports, pipes.
pub(super) const DESCRIPTORS_BESIDE: u64 = 16;
