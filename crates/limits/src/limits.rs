//! Every bound of the limiters, with its unit and its reason.

use std::time::Duration;

/// A queue drains as it should while its oldest request has waited for less than this part of the longest wait: all that
/// wait in it are served in time.
pub const LIMIT_QUEUE_LATE_PART: u32 = 2;

/// A queue stands once its oldest request was late during this part of the longest wait. A burst that can be served in
/// time is served in its order.
pub const LIMIT_QUEUE_STANDING_PART: u32 = 2;

/// In a standing queue no request waits for longer than this part of the longest wait. The 5 to 10 % of RFC 8289
/// section 4.4 are of a network's round trip; requests wait for answers.
pub const LIMIT_QUEUE_TARGET_PART: u32 = 8;

/// A queue stands also once it has grown for this part of the longest wait, with an oldest request above the target: more come
/// than are admitted. Requests that come within a second and are served in time make it grow for a shorter time.
pub const LIMIT_QUEUE_GROWTH_PART: u32 = 4;

/// In a standing queue no more requests wait than are admitted within this part of that, so that most rejections are
/// immediate: the newest request is next, and the others stay until they are too old.
pub const LIMIT_QUEUE_LENGTH_PART: u32 = 3;

/// The time over which answers are counted for `Retry-After`: long enough to see slow answers, short enough to be the
/// current rate.
pub const ANSWER_WINDOW: Duration = Duration::from_secs(5);

/// How often the number of answers is noted.
pub const ANSWER_MARK_PERIOD: Duration = Duration::from_millis(500);

/// Rejections that a core writes into access logs between two ticks; counters include all of them. A line for each would
/// make a rejection cost more than an answer.
pub const REJECTION_LINES_PER_TICK_MAX: u32 = 16;

/// Parts of a rate limiter's table, each with a lock of its own: more than the usual number of cores, so that they seldom
/// meet.
pub const RATE_PARTS_MAX: usize = 64;

/// Keys of one part at least, where a rate limiter has room for more: with fewer, chance would fill one part long before
/// the others.
pub const RATE_PART_KEYS_MIN: usize = 256;

/// Bytes of one key of a rate limiter, its slot in the index included, at most.
pub const RATE_KEY_BYTES: u64 = 26;
