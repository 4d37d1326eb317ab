//! `onehop try`: finds an application, runs it as it runs today and with onehop, and compares both.
//!
//! In order: [`detect`] reads what a folder or file says (package.json, nginx.conf, a Caddyfile) and makes a [`Setup`]
//! of two stacks; `stacks/` starts them; `same/` compares their responses, `links.rs` and `looking.rs` find paths to
//! request; `measuring.rs` compares the two with `onehop-bench`; [`run`] is all of it.
//!
//! Refuses what it cannot carry over, never changes a file of the user's, and never claims a saving where the
//! responses differ. `examples/detect.rs` uses it alone.
#![forbid(unsafe_code)]

mod budget;
mod chosen;
pub mod detect;
pub mod error;
mod given;
mod links;
mod looking;
mod measuring;
mod own_figures;
mod passed;
mod route;
mod run;
mod same;
mod settings;
pub mod setup;
mod stacks;
mod starting;

use std::path::PathBuf;

use onehop_bench::compare::Comparison;

pub use detect::{Environment, built_site, detect};
pub use error::SideBySideError;
pub use given::Given;
pub use route::{Origin, PATHS_MAX, Route, SkipReason, Skipped};
pub use run::run;
pub use same::MISSING;
pub use settings::Settings;
pub use setup::{AppPort, Application, Front, Setup};

/// What was found at the path that was given.
#[derive(Debug, Clone)]
pub struct Found {
    /// The file or folder that says how it runs.
    pub path: PathBuf,
    /// What it is, in words: `an Express application (express 5.1.0 in package.json, start: node server.js)`.
    pub description: String,
}

/// One request that both were asked.
#[derive(Debug, Clone)]
pub struct Compared {
    /// Method and path.
    pub request: String,
    /// What differs; empty where both answer the same.
    pub differences: Vec<String>,
}

/// What a side-by-side run found.
#[derive(Debug, Clone)]
pub struct SideBySide {
    /// What was there.
    pub found: Found,
    /// How it runs today, one line for each program with its version.
    pub today: Vec<String>,
    /// How it runs with onehop.
    pub onehop: Vec<String>,
    /// The Onehopfile that does it.
    pub onehopfile: String,
    /// The paths that both were asked for.
    pub routes: Vec<Route>,
    /// Paths that are known and were not asked, and why.
    pub skipped: Vec<Skipped>,
    /// The requests that both were asked.
    pub compared: Vec<Compared>,
    /// The paths that were measured, in turn; none where nothing was.
    pub measured: Vec<String>,
    /// The figures; the control is today's stack. `None` where they were not taken.
    pub comparison: Option<Comparison>,
    /// Why they were not taken, and what to do.
    pub unmeasured: Option<String>,
    /// Today's stack and onehop at one and the same rate: where the latencies in `comparison` are from. `None` where
    /// they are those at full load, with the reason in `caveats`.
    pub at_same_load: Option<Comparison>,
    /// What the server's own figures say, and whether they contradict ours.
    pub own_figures: Vec<String>,
    /// What a sceptic must know.
    pub caveats: Vec<String>,
}
