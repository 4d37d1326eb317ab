//! What is held of a collection at most. All of it protects this process: a file is not trusted.

use std::time::Duration;

/// Bytes of a collection's file. Recordings of long sessions with all answers are about that large.
pub(super) const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Requests of a collection. Each has a histogram of its own, of 30 KiB where answers take microseconds, and of up to
/// 250 KiB where they take seconds.
pub(super) const REQUESTS_MAX: usize = 10_000;

/// Folders within folders. The JSON parser allows some 60.
pub(super) const FOLDERS_MAX: usize = 50;

/// Bytes of all requests together, files in their bodies included: they stay in memory for the whole run.
pub(super) const REQUEST_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Times that a text is gone through for variables whose values name further variables; Newman goes 19 times.
pub(super) const VARIABLE_PASSES_MAX: usize = 19;

/// Bytes that are written while variables are filled in, over the whole collection. Values that name others may
/// double with each pass.
pub(super) const FILLED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Kinds of complaints of one request. Statuses are 500 at most and failures few; more would not be read.
pub(super) const COMPLAINTS_MAX: usize = 16;

/// Notes that are kept of one collection; what is beyond is counted.
pub(super) const NOTES_MAX: usize = 32;

/// Failures in a row after which a run is broken off: nobody is there.
pub(super) const HOPELESS_FAILURES: u64 = 50;

/// The same by time, after a few of them: each may take as long as timeout lasts.
pub(super) const HOPELESS_TIME: Duration = Duration::from_secs(60);

/// Letters of a folder's or a request's name that are kept. Each request has the names of all its folders.
pub(super) const NAME_LETTERS_MAX: usize = 120;

/// Servers with a kept connection. A collection is about one or a few; each takes a descriptor.
pub(super) const SERVERS_MAX: usize = 64;

/// Letters of a file's text that are shown in one sentence.
pub(super) const SHOWN_LETTERS_MAX: usize = 400;

/// Bytes of a script in which a status is looked for. A library that was pasted into one is larger, and has none.
pub(super) const SCRIPT_BYTES_MAX: usize = 128 * 1024;
