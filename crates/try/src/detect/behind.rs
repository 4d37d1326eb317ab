//! The application behind a front: it runs already, or something beside the configuration can be started.
//!
//! A configuration names a port; who answers there is looked for, and never guessed to be on another machine.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use onehop_adapt::Upstream;

use super::environment::Environment;
use super::launch::Launch;
use super::{SERVER_FILES, package, routes, script};
use crate::{AppPort, Application, SideBySideError};

/// Folders beside a configuration in which its application may be.
const APPLICATION_FOLDERS: [&str; 7] = [".", "..", "api", "app", "backend", "server", "web"];

/// How long `app` waits for an answer where nothing is said.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Who answers at a port.
#[derive(Debug, Clone)]
enum Responses {
    /// It runs already.
    Running(SocketAddr),
    /// It is started at the port, for both sides.
    Beside,
    /// It is started for today; onehop runs it itself, as one application wherever requests are passed to it.
    Run { launch: Box<Launch>, timeout: Option<Duration> },
}

/// The applications behind a front.
#[derive(Debug, Clone, Default)]
pub(super) struct Behind {
    /// Which one is started or weighed.
    pub(super) application: Option<Application>,
    /// Routes that its sources suggest.
    pub(super) guessed: Vec<String>,
    ports: Vec<(u16, Responses)>,
}

impl Behind {
    /// Finds out who answers at each of the addresses.
    pub(super) fn find(
        upstreams: &[Upstream],
        folder: &Path,
        environment: &Environment,
        notes: &mut Vec<String>,
    ) -> Result<Behind, SideBySideError> {
        let mut behind = Behind::default();
        for upstream in upstreams {
            if behind.ports.iter().any(|(port, _)| *port == upstream.port) {
                continue;
            }
            if !is_here(&upstream.host) {
                return Err(SideBySideError::found(
                    format!("{}:{}", upstream.host, upstream.port),
                    format!("{} passes requests to another machine", upstream.place),
                    "a trial loads this machine alone: start the application here, and name 127.0.0.1 and its \
                     port in a copy of the file",
                ));
            }
            let same: Vec<&Upstream> = upstreams.iter().filter(|other| other.port == upstream.port).collect();
            let responses = match environment.listener(upstream.port) {
                Some(address) => Responses::Running(address),
                None => behind.start(upstream, &same, folder, environment, notes)?,
            };
            behind.ports.push((upstream.port, responses));
        }
        let running = |(_, responses): &(u16, Responses)| match responses {
            Responses::Running(address) => Some(*address),
            Responses::Beside | Responses::Run { .. } => None,
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
                passed: Vec::new(),
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

    /// Where what answers at a port is reached.
    pub(super) fn address(&self, port: u16) -> String {
        match self.ports.iter().find(|(known, _)| *known == port) {
            Some((_, Responses::Running(address))) => address.to_string(),
            _ => format!("127.0.0.1:{port}"),
        }
    }

    /// The `app` for what answers at a port, where onehop runs it.
    pub(super) fn app(
        &self,
        port: u16,
        matcher: Option<&str>,
        folder: &Path,
        environment: &Environment,
    ) -> Option<String> {
        match self.ports.iter().find(|(known, _)| *known == port)? {
            (_, Responses::Run { launch, timeout }) => {
                Some(launch.app(matcher, folder, &timeout_lines(*timeout), environment))
            }
            _ => None,
        }
    }

    fn start(
        &mut self,
        upstream: &Upstream,
        same: &[&Upstream],
        folder: &Path,
        environment: &Environment,
        notes: &mut Vec<String>,
    ) -> Result<Responses, SideBySideError> {
        let nobody = || {
            SideBySideError::found(
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
            package::launch(&start, environment, notes)?.0
        } else {
            let runtime = script::runtime_for(&start, environment)?;
            let directory = start.parent().unwrap_or(folder).to_owned();
            let mut launch = Launch::script(runtime, start.clone(), directory);
            script::around(&mut launch, environment, notes)?;
            launch
        };
        let reported = routes::tell(&launch.directory, launch.file());
        launch.pass(&reported.variables, environment);
        self.guessed = reported.routes;
        let mut application = launch.application(AppPort::Fixed(upstream.port), environment);
        application.is_run_by_onehop = !same.iter().any(|one| one.is_apart);
        let how = match (application.is_run_by_onehop, launch.is_script()) {
            (false, _) => "both sides",
            (true, true) => "today's side. onehop runs it itself, without a port and a second connection",
            (true, false) => "today's side. onehop runs it itself, without a port of its own",
        };
        notes.push(format!(
            "Nobody listens on {}:{}, so `{}` is started there for {how}.",
            upstream.host,
            upstream.port,
            launch.words().join(" "),
        ));
        if application.environment.iter().any(|(name, value)| name == "NODE_ENV" && value == "production") {
            notes.push("Both sides run with NODE_ENV=production.".to_owned());
        }
        let is_run_by_onehop = application.is_run_by_onehop;
        self.application = Some(application);
        if !is_run_by_onehop {
            return Ok(Responses::Beside);
        }
        Ok(Responses::Run { launch: Box::new(launch), timeout: common_timeout(same, notes) })
    }
}

/// How long an answer of one application may take, to which several places pass requests.
fn common_timeout(same: &[&Upstream], notes: &mut Vec<String>) -> Option<Duration> {
    let (first, rest) = same.split_first()?;
    if rest.iter().all(|other| other.timeout == first.timeout) {
        return first.timeout;
    }
    let longest = same.iter().map(|one| one.timeout.unwrap_or(TIMEOUT)).max()?;
    notes.push(format!(
        "What passes requests to {}:{} waits for different times; for onehop it is one application, and the longest \
         one, {}, holds everywhere.",
        first.host,
        first.port,
        written(longest)
    ));
    Some(longest)
}

fn timeout_lines(timeout: Option<Duration>) -> Vec<String> {
    timeout
        .filter(|timeout| *timeout != TIMEOUT)
        .map(|timeout| format!("timeout {}", written(timeout)))
        .into_iter()
        .collect()
}

/// A time as Onehopfiles write it.
pub(super) fn written(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}

/// Whether a host is this machine.
fn is_here(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

/// A package.json of an application, or the file of a server.
fn beside(folder: &Path) -> Result<Option<PathBuf>, SideBySideError> {
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
