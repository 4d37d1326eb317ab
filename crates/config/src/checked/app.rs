//! The checked settings of `app`: what runs, how often, in which surroundings and within which bounds.

use std::fmt;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Network;
use super::limit::Limit;

/// `app`: an application that runs in processes of its own, which onehop starts and watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// What it is called in logs, metrics and `onehop workers`: no two different applications of one
    /// configuration have the same.
    pub name: String,
    /// What is run.
    pub run: AppRun,
    /// How many processes.
    pub workers: WorkerCount,
    /// Working directory, absolute.
    pub directory: PathBuf,
    /// What its processes see of the environment.
    pub environment: AppEnvironment,
    /// Who runs it: user and group name; `None` is onehop's own user.
    pub user: Option<(String, Option<String>)>,
    /// Limits of each process; `None` leaves what onehop itself has.
    pub resources: AppResources,
    /// When a process is replaced although nothing is wrong with it.
    pub recycle: Recycle,
    /// Requests that one process is handed at a time, at least one; `None` leaves it to what the process is.
    pub concurrency: Option<u32>,
    /// Requests that wait while every process has that many.
    pub queue: u32,
    /// How long a request waits there.
    pub queue_wait: Duration,
    /// Bytes of a request's body that may arrive before the request takes a place; 0: it is streamed at once, `None`: as
    /// the server has it.
    pub request_buffers: Option<u64>,
    /// How many requests may be with it or in that queue; `None` with `limit off`.
    pub limit: Option<Arc<Limit>>,
    /// How long a process may take from the whole request's head to the answer's head.
    pub timeout: Duration,
    /// How long a process may take until it is ready.
    pub start_timeout: Duration,
    /// How long a process that is to end may take to finish what is in flight.
    pub stop_timeout: Duration,
    /// After so long without turning, an event loop counts as stuck.
    pub stuck_after: Duration,
    /// A GET or HEAD without body is given to another process where the first one died over it.
    pub retry: bool,
    /// Folder below which the application may name files that onehop sends, absolute.
    pub files: Option<PathBuf>,
    /// Handlers get the platform's own `Response` class instead of the faster one.
    pub platform_response: bool,
    /// How its processes are spoken to.
    pub protocol: AppProtocol,
    /// Of several servers that a file opens, the one with this port is the application's.
    pub port: Option<NonZeroU16>,
    /// Which requests go to the same process; `None`: any may go to any.
    pub sticky: Option<Sticky>,
    /// Trusted proxies, which name the client in `X-Forwarded-For`; may be empty.
    pub trusted_proxies: Vec<Network>,
    /// `data`: its own folder in the server's data directory; `None` where it has none.
    pub data: Option<AppData>,
}

/// An application's own folder for what must survive a restart and an upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppData {
    /// The folder's name, which no other application has.
    pub name: String,
    /// `data_dir` of the global block, absolute; `None`: the default of the system.
    pub directory: Option<PathBuf>,
}

/// How an application's processes are spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AppProtocol {
    /// A handler in frames, where its runtime allows; a program in HTTP/1.1.
    #[default]
    Frames,
    /// A handler in HTTP/1.1 on a Unix socket, whatever its runtime allows.
    Http,
    /// A program in HTTP/2, in clear text with prior knowledge.
    Http2,
}

/// What makes requests go to the same process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sticky {
    /// A cookie of this name, which the server gives out.
    Cookie(String),
    /// A value of this name in the query, which the application gives out, or the client.
    Query(String),
    /// The client's address.
    ClientAddress,
}

/// What an `app` runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppRun {
    /// A file with a handler, called over the worker protocol.
    Handler {
        /// The file, absolute.
        file: PathBuf,
        /// What runs it: a program's name or path; `None` looks for `node`.
        runtime: Option<String>,
        /// Arguments of the runtime itself, before the file.
        runtime_arguments: Vec<String>,
        /// Arguments of the application.
        arguments: Vec<String>,
    },
    /// Any program that speaks HTTP: on the Unix socket `$ONEHOP_SOCKET`, or on `$PORT` of loopback.
    Command {
        /// The program and its arguments.
        line: Vec<String>,
    },
    /// `supervise off`: a program that somebody else starts and that speaks HTTP here.
    Elsewhere {
        /// Where.
        address: AppAddress,
    },
}

/// Where a program speaks HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppAddress {
    /// TCP, an address of this machine.
    Tcp(std::net::SocketAddr),
    /// A Unix socket, absolute.
    Unix(PathBuf),
}

/// How many processes an `app` has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerCount {
    /// One for each core that the machine allows.
    Auto,
    /// So many.
    Exactly(NonZeroU16),
}

/// What an application's processes see of the environment. Of onehop's own, only PATH, HOME, LANG, LC_*,
/// TZ, TMPDIR, USER, LOGNAME and SHELL are passed on by themselves.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct AppEnvironment {
    /// Files of `NAME=value` lines, absolute; later ones win, and `set` wins over all.
    pub files: Vec<PathBuf>,
    /// Name and value.
    pub set: Vec<(String, String)>,
    /// Names of onehop's own environment that are passed on besides; `*` at the end matches the rest.
    pub pass: Vec<String>,
}

/// Values are often secrets: what is written for debugging holds their names alone.
impl fmt::Debug for AppEnvironment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.set.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("AppEnvironment")
            .field("files", &self.files)
            .field("set", &names)
            .field("pass", &self.pass)
            .finish()
    }
}

/// Limits of each process of an application (setrlimit(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AppResources {
    /// Bytes of address space.
    pub memory_bytes: Option<u64>,
    /// Open files.
    pub open_files: Option<u64>,
    /// Processes and threads of the user.
    pub processes: Option<u64>,
    /// Seconds of CPU time.
    pub cpu_seconds: Option<u64>,
}

/// When a process is replaced: the replacement is ready first, then it finishes what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recycle {
    /// Resident bytes.
    pub resident_bytes: Option<u64>,
    /// Requests since its start.
    pub requests: Option<u64>,
    /// Time since its start.
    pub age: Option<Duration>,
}
