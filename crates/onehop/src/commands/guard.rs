//! `onehop guard-workers`: the process that ends what workers started when the server was killed.
//!
//! It is no command for a person: neither help nor completions know it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use onehop_server::control::guard_workers;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::own_program;

/// This very program, and its argument.
pub(crate) fn guard() -> (PathBuf, Vec<OsString>) {
    (own_program::path(), vec![NAME.into()])
}

/// Whether this is that process.
pub(crate) fn is_asked_for() -> bool {
    std::env::args_os().skip(1).eq([NAME])
}

/// Returns when the server is gone.
pub(crate) fn guard_until_the_end() {
    // Whoever stops all processes of a service asks this one too, which has to be the last. Flags that nobody reads.
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
    guard_workers(std::io::stdin().lock());
}

const NAME: &str = "guard-workers";
