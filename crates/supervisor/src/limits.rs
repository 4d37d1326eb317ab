//! Every bound of the supervisor, with its unit and its reason.

use std::time::Duration;

/// Requests that a worker begins in one turn of its event loop; the rest of a read waits for the next one.
pub const WORKER_BEGINS_PER_TURN: u32 = 128;

/// How often a worker is asked how it is. Its answer is some microseconds of its event loop.
pub const WORKER_PING_PERIOD: Duration = Duration::from_secs(1);

/// The same while requests come, or its event loop is late: an overload is known after three answers, and its end
/// after two, which the rule about lag owes to those who are refused meanwhile. At ten times of what an event loop can do
/// a quarter of a second lets in two seconds of work, and the loop then stands idle for a fifth of its time.
pub const WORKER_BUSY_PING_PERIOD: Duration = Duration::from_millis(50);

/// An event loop that is late by less is not late: its own timer is not more exact.
pub const WORKER_LAG_SETTLED: Duration = Duration::from_millis(10);

/// How often a worker that finishes what it has is looked at.
pub const WORKER_DRAIN_LOOK_PERIOD: Duration = Duration::from_millis(10);

/// How long a process that was sent SIGTERM may take until SIGKILL.
pub const WORKER_TERMINATE_DEADLINE: Duration = Duration::from_secs(5);

/// How long the exit status of a worker whose lane is at its end is waited for: it explains more.
pub const WORKER_EXIT_EXPLAINED_DEADLINE: Duration = Duration::from_millis(100);

/// How long the outputs of a process that has ended are read: a process of its own may hold them open.
pub const WORKER_OUTPUT_END_DEADLINE: Duration = Duration::from_millis(200);

/// How long finding out where a stuck worker stands may take; it is killed afterwards in any case.
pub const WORKER_STACK_DEADLINE: Duration = Duration::from_secs(2);

/// Frames of a stuck worker's stack that are told.
pub const WORKER_STACK_FRAMES_MAX: usize = 20;

/// Bytes of a line that a worker writes; what is longer becomes several lines.
pub const WORKER_LINE_BYTES_MAX: usize = 8 * 1024;

/// Lines of one output of a worker that are handed on in a second; the rest is counted. Several for each request of a
/// busy application: only one that writes in a loop gets there.
pub const WORKER_LINES_PER_SECOND_MAX: u32 = 10_000;

/// How often it is said how many lines were not handed on: the second of the bound above.
pub const WORKER_LINES_PERIOD: Duration = Duration::from_secs(1);

/// Files that all processes of one application are remembered to have loaded, 200 bytes each. A large application with
/// its packages has a few thousand; with more than this its processes are replaced by every reload.
pub const LOADED_FILES_MAX: usize = 20_000;

/// Sources in a folder whose changes are looked for. A project's own are a few hundred; a folder with more holds other
/// things.
pub const SOURCE_FILES_MAX: usize = 5_000;

/// Entries of folders that are looked at for them: half a second, where none is in the kernel's cache.
pub const SOURCE_ENTRIES_MAX: usize = 50_000;

/// Folders within folders that are looked into; bounds what links in a circle cost.
pub const SOURCE_FOLDERS_DEPTH_MAX: usize = 16;

/// Bytes of the file that names a server's processes: a number in hexadecimal digits, and one of a session.
pub const INVOCATION_FILE_BYTES_MAX: u64 = 64;

/// Ports that are asked of the system for a program: so many in a row that other programs have mean that there is none.
pub const PORTS_TRIED_MAX: usize = 64;

/// Further lines of an error's message that are put into its first line: Node's longest messages have five.
pub const REASON_SENTENCE_LINES_MAX: usize = 8;

/// How long a runtime whose worker did not start may take to tell its version.
pub const RUNTIME_VERSION_DEADLINE: Duration = Duration::from_secs(2);

/// Last lines of standard error that are told when a worker fails.
pub const WORKER_LAST_LINES_MAX: usize = 20;

/// The first pause before a worker that failed again is started again; it doubles from there.
pub const RESTART_PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause: a database that is back after a minute should not be waited for another one.
pub const RESTART_PAUSE_MAX: Duration = Duration::from_secs(10);

/// A worker that served so long was healthy: the next pause is none.
pub const WORKER_HEALTHY_AFTER: Duration = Duration::from_secs(10);

/// A worker that ends sooner than this after it was ready counts as one that never was.
pub const CRASH_LOOP_LIFE: Duration = Duration::from_secs(1);

/// So many such starts in a row are a crash loop: requests are refused instead of kept waiting.
pub const CRASH_LOOP_STARTS: u32 = 3;

/// How often it is tried to connect to a program that starts.
pub const PROGRAM_PROBE_PERIOD: Duration = Duration::from_millis(10);

/// How often it is tried to connect to a program that somebody else starts.
pub const ELSEWHERE_PROBE_PERIOD: Duration = Duration::from_secs(2);

/// How long one such try may take; it is on this machine.
pub const PROBE_DEADLINE: Duration = Duration::from_secs(1);

/// Bytes of a file with environment variables.
pub const ENVIRONMENT_FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Messages that wait for the owner of an application's state.
pub const APP_MESSAGES_MAX: usize = 64;
