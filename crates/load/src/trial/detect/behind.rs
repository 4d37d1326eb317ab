//! The application behind a front: it runs already, or something beside the configuration can be started.
//!
//! A configuration names a port; who answers there is looked for, and never guessed to be on another machine.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use super::launch::Launch;
use super::surroundings::Surroundings;
use super::write::directive;
use super::{SERVER_FILES, package, routes, script};
use crate::trial::{AppPort, Application, TrialError};

/// Folders beside a configuration in which its application may be.
const APPLICATION_FOLDERS: [&str; 7] = [".", "..", "api", "app", "backend", "server", "web"];

/// An address that requests are passed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Upstream {
    /// A name or an IP address.
    pub(super) host: String,
    /// The port.
    pub(super) port: u16,
    /// `line 4 of nginx.conf`.
    pub(super) place: String,
}

/// Who answers at a port.
#[derive(Debug, Clone)]
enum Answers {
    Running(SocketAddr),
    Started(Launch),
}

/// The applications behind a front.
#[derive(Debug, Clone, Default)]
pub(super) struct Behind {
    /// Which one is started or weighed.
    pub(super) application: Option<Application>,
    /// Paths of its sources.
    pub(super) paths: Vec<String>,
    ports: Vec<(u16, Answers)>,
}

impl Behind {
    /// Finds out who answers at each of the addresses.
    pub(super) fn find(
        upstreams: &[Upstream],
        folder: &Path,
        surroundings: &Surroundings,
        notes: &mut Vec<String>,
    ) -> Result<Behind, TrialError> {
        let mut behind = Behind::default();
        for upstream in upstreams {
            if behind.ports.iter().any(|(port, _)| *port == upstream.port) {
                continue;
            }
            if !is_here(&upstream.host) {
                return Err(TrialError::found(
                    format!("{}:{}", upstream.host, upstream.port),
                    format!("{} passes requests to another machine", upstream.place),
                    "a trial loads this machine alone: start the application here, and name 127.0.0.1 and its \
                     port in a copy of the file",
                ));
            }
            let answers = match surroundings.listener(upstream.port) {
                Some(address) => Answers::Running(address),
                None => behind.start(upstream, folder, surroundings, notes)?,
            };
            behind.ports.push((upstream.port, answers));
        }
        let running = |(_, answers): &(u16, Answers)| match answers {
            Answers::Running(address) => Some(*address),
            Answers::Started(_) => None,
        };
        let addresses: Vec<SocketAddr> = behind.ports.iter().filter_map(running).collect();
        for address in &addresses {
            notes.push(format!(
                "Somebody listens on {address} already, and is asked by both: its cost is the same program's."
            ));
        }
        if behind.application.is_none() {
            behind.application = addresses.first().map(|address| Application {
                words: Vec::new(),
                environment: Vec::new(),
                directory: folder.to_owned(),
                port: AppPort::Running(*address),
                is_run_by_onehop: false,
            });
        }
        if behind.ports.len() > 1 {
            notes.push(
                "Requests go to several applications; the processes of one alone are weighed with the server."
                    .to_owned(),
            );
        }
        Ok(behind)
    }

    /// The `app` for what answers at a port.
    pub(super) fn app(
        &self,
        port: u16,
        matcher: Option<&str>,
        folder: &Path,
        more: &[String],
        surroundings: &Surroundings,
    ) -> String {
        match self.ports.iter().find(|(known, _)| *known == port) {
            Some((_, Answers::Started(launch))) => launch.app(matcher, folder, more, surroundings),
            Some((_, Answers::Running(address))) => elsewhere(&address.to_string(), matcher, more),
            None => elsewhere(&format!("127.0.0.1:{port}"), matcher, more),
        }
    }

    fn start(
        &mut self,
        upstream: &Upstream,
        folder: &Path,
        surroundings: &Surroundings,
        notes: &mut Vec<String>,
    ) -> Result<Answers, TrialError> {
        let nobody = || {
            TrialError::found(
                format!("{}:{}", upstream.host, upstream.port),
                format!("nobody listens there, to which {} passes requests", upstream.place),
                "start it, or put its package.json beside the file, and try again",
            )
        };
        if self.application.is_some() {
            return Err(nobody());
        }
        let Some(start) = beside(folder)? else { return Err(nobody()) };
        let name = start.file_name().unwrap_or_default();
        let mut launch = if name == "package.json" {
            package::launch(&start, surroundings, notes)?.0
        } else {
            let runtime = script::runtime_for(&start, surroundings)?;
            let directory = start.parent().unwrap_or(folder).to_owned();
            let mut launch = Launch::script(runtime, start.clone(), directory);
            script::around(&mut launch, surroundings, notes)?;
            launch
        };
        let told = routes::tell(&launch.directory, launch.file());
        launch.pass(&told.variables, surroundings);
        self.paths = told.paths;
        let application = launch.application(AppPort::Fixed(upstream.port), surroundings);
        notes.push(format!(
            "Nobody listens on {}:{}, so `{}` is started there for today's side. onehop runs it itself, without a \
             port{}.",
            upstream.host,
            upstream.port,
            launch.words().join(" "),
            if launch.is_script() { " and a second connection" } else { " of its own" },
        ));
        if application.environment.iter().any(|(name, value)| name == "NODE_ENV" && value == "production") {
            notes.push("Both sides run with NODE_ENV=production.".to_owned());
        }
        self.application = Some(application);
        Ok(Answers::Started(launch))
    }
}

/// An `app` that somebody else started.
fn elsewhere(address: &str, matcher: Option<&str>, more: &[String]) -> String {
    let head = matcher.map_or_else(|| "app".to_owned(), |matcher| format!("app {matcher}"));
    let mut lines = vec![format!("supervise off {address}")];
    lines.extend_from_slice(more);
    directive(&head, &lines)
}

/// Whether a host is this machine.
fn is_here(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

/// A package.json of an application, or the file of a server.
fn beside(folder: &Path) -> Result<Option<PathBuf>, TrialError> {
    for name in APPLICATION_FOLDERS {
        let candidate = super::files::normal(&folder.join(name));
        let package = candidate.join("package.json");
        if package.is_file() && package::is_application(&package)? {
            return Ok(Some(package));
        }
        if name == ".." {
            // A file called index.js one above belongs to something else.
            continue;
        }
        if let Some(file) = SERVER_FILES.iter().map(|name| candidate.join(name)).find(|file| file.is_file()) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}
