//! The settings of an `app` while its block is read.

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use crate::checked::{
    AppAddress, AppEnvironment, AppProtocol, AppResources, Network, Recycle, Sticky, WorkerCount,
};
use crate::directives::limit::OfApp;
use crate::option_table::Seen;
use crate::syntax::Token;

/// The options of a block; what is not written stays empty.
#[derive(Default)]
pub(super) struct Draft {
    /// The names of all options.
    pub(super) seen: Seen,
    pub(super) command: Vec<String>,
    pub(super) address: Option<AppAddress>,
    pub(super) name: Option<String>,
    pub(super) runtime: Option<(String, Vec<String>)>,
    pub(super) workers: Option<WorkerCount>,
    pub(super) concurrency: Option<u32>,
    pub(super) queue: Option<(u32, Duration)>,
    pub(super) request_buffers: Option<u64>,
    pub(super) limit: OfApp,
    pub(super) timeout: Option<Duration>,
    pub(super) start_timeout: Option<Duration>,
    pub(super) stop_timeout: Option<Duration>,
    pub(super) stuck_after: Option<Duration>,
    pub(super) recycle: Recycle,
    pub(super) retry: bool,
    pub(super) directory: Option<PathBuf>,
    pub(super) user: Option<(String, Option<String>)>,
    pub(super) resources: AppResources,
    pub(super) environment: AppEnvironment,
    pub(super) data: Option<String>,
    pub(super) files: Option<PathBuf>,
    pub(super) platform_response: bool,
    pub(super) protocol: AppProtocol,
    pub(super) port: Option<NonZeroU16>,
    pub(super) sticky: Option<Sticky>,
    pub(super) trusted_proxies: Vec<Network>,
}

impl Draft {
    /// The first option of this name.
    pub(super) fn token(&self, name: &str) -> Option<&Token> {
        self.seen.token(name)
    }

    /// The option that is there in place of a file.
    pub(super) fn command_or_address(&self) -> Option<&Token> {
        self.token("command").or_else(|| self.token("supervise"))
    }
}
