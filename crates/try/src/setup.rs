//! What was found, in a form that can be run both ways. `detect` makes it, `stacks` runs it.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::{Found, Route, Skipped};

/// An application or a site, as it runs today and with onehop.
///
/// In the texts of configurations `{port}` stands for the port on which the front listens, `{app_port}` for that of
/// the application, and `{scratch}` for a folder that goes away afterwards (pid files, logs).
#[derive(Debug, Clone)]
pub struct Setup {
    /// What it is.
    pub found: Found,
    /// The folder that relative paths start in.
    pub folder: PathBuf,
    /// The program behind the front, or alone; `None` where there are only files.
    pub application: Option<Application>,
    /// How it runs today; the first one is the control, others are shown beside it.
    pub today: Vec<Front>,
    /// The Onehopfile that does the same.
    pub onehopfile: String,
    /// The addresses that the site has today. The Onehopfile that a person gets has them in place of `:{port}`; a side-by-side run
    /// takes any host. Empty where nothing names them.
    pub addresses: Vec<String>,
    /// How many workers the application gets, where today's start asks for several: `{workers}` in the Onehopfile, which
    /// is one in a side-by-side run, as on today's side.
    pub workers: Option<String>,
    /// Paths that are asked, at least one.
    pub routes: Vec<Route>,
    /// Paths that source code or a configuration suggests, the shallowest first; parameters stay as they are written.
    pub guessed: Vec<String>,
    /// Paths that are known and not asked, and why.
    pub skipped: Vec<Skipped>,
    /// Whether links of the pages are among the routes already, as of a folder of files.
    pub has_links: bool,
    /// What could not be carried over or found out, for people.
    pub notes: Vec<String>,
}

/// A program that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// How it is started.
    pub words: Vec<String>,
    /// Variables beside those of this process.
    pub environment: Vec<(String, String)>,
    /// Names of environment variables that its sources read; the Onehopfile passes them on.
    pub passed: Vec<String>,
    /// The folder in which it runs.
    pub directory: PathBuf,
    /// Where it listens.
    pub port: AppPort,
    /// Whether the Onehopfile runs it itself, or reaches it at `{app_port}`.
    pub is_run_by_onehop: bool,
}

/// Where an application listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppPort {
    /// Where `PORT` tells it to; should it listen elsewhere, it is found by looking.
    Assigned,
    /// Here, since a configuration names it; `PORT` says so too.
    Fixed(u16),
    /// It runs already and is only asked.
    Running(SocketAddr),
}

/// What stands before the application, or serves the files, today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Front {
    /// Nothing: clients reach the application.
    None,
    /// nginx with this configuration, complete and made runnable by any user.
    Nginx {
        /// The whole configuration.
        conf: String,
    },
    /// Caddy with this Caddyfile.
    Caddy {
        /// The whole file.
        file: String,
    },
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Of nothing.
    pub(crate) fn setup() -> Setup {
        Setup {
            found: Found { path: PathBuf::from("/shop"), description: "nothing".to_owned() },
            folder: PathBuf::from("/shop"),
            application: None,
            today: vec![Front::None],
            onehopfile: String::new(),
            addresses: Vec::new(),
            workers: None,
            routes: Vec::new(),
            guessed: Vec::new(),
            skipped: Vec::new(),
            has_links: false,
            notes: Vec::new(),
        }
    }
}
