//! Today's stack and onehop's, as commands that can be started for a round and ended after it.
//!
//! Owns the files that such a command needs (configurations, a starter), all in a folder of its own that goes away
//! with it. Never writes into the user's folders, and starts nothing itself.

mod onehop;
pub(super) mod ports;
mod starter;
mod today;

pub(super) use today::stub_status_path;

use std::fs::{OpenOptions, Permissions};
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use onehop_bench::compare::Source;
use onehop_load::measure::Start;
use onehop_load::plan::{Expect, Protocol, Request};
use onehop_load::url::{Address, Endpoint, Url};
use tempfile::TempDir;

use super::Environment;
use super::SideBySideError;
use super::setup::{AppPort, Application, Front, Setup};

/// How long a stack may take until its first answer: frameworks compile at their first start.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// The `Host` that all stacks are asked with. Without a port, so that an application that writes its own address into
/// its answers writes the same one behind each.
pub(super) const HOST: &str = "localhost";

/// One way of serving it.
#[derive(Debug)]
pub(super) struct Stack {
    /// What it is called in tables: `nginx + node`.
    pub(super) name: String,
    /// What it is, with versions.
    pub(super) words: String,
    /// How it is started.
    pub(super) source: Source,
    /// How it is started where it also tells of itself, which it does not do while it is measured unless that is how
    /// it runs.
    pub(super) telling: Source,
    /// What it tells of itself.
    pub(super) tells: Tells,
    /// Where it is asked.
    pub(super) address: SocketAddr,
    /// The port of the application that it starts behind a front.
    pub(super) app_port: Option<u16>,
    /// Its files.
    _scratch: Option<TempDir>,
}

/// Where a server's own figures are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tells {
    /// onehop's metrics, with the address of its admin endpoint.
    Metrics(SocketAddr),
    /// nginx's stub_status.
    StubStatus(SocketAddr),
    /// Nothing, and why.
    Nothing(&'static str),
}

/// What stacks are made of.
#[derive(Debug)]
pub(super) struct StackBuilder<'a> {
    /// What was found.
    pub(super) setup: &'a Setup,
    /// The program onehop.
    pub(super) onehop: &'a Path,
    /// What is installed.
    pub(super) environment: Environment,
    /// Whether the application runs apart and is only asked: no stack starts it.
    application: Runs,
    taken: Vec<u16>,
}

/// Who starts the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// Each stack its own.
    WithEach,
    /// It runs here already.
    Apart(SocketAddr),
}

impl<'a> StackBuilder<'a> {
    pub(super) fn new(setup: &'a Setup, onehop: &'a Path) -> Self {
        StackBuilder {
            setup,
            onehop,
            environment: Environment::look(),
            application: Runs::of(setup),
            taken: Vec::new(),
        }
    }

    /// How the application is started by itself: to see where it listens, or to run behind several fronts at a time.
    /// `None` where there is none to start.
    pub(super) fn application_alone(&mut self) -> Result<Option<Start>, SideBySideError> {
        let Some(application) = &self.setup.application else { return Ok(None) };
        if self.application != Runs::WithEach {
            return Ok(None);
        }
        let port = match application.port {
            AppPort::Fixed(port) => port,
            _ => self.port()?,
        };
        Ok(Some(Start {
            words: application.words.clone(),
            environment: application.environment.clone(),
            directory: Some(application.directory.clone()),
            port: Some(port),
            behind: Vec::new(),
            ready_within: READY_WITHIN,
        }))
    }

    /// How the application is started by itself, where both stacks would have to start it at the same port: then one
    /// of it serves both while they run side by side.
    pub(super) fn application_that_cannot_run_twice(&mut self) -> Result<Option<Start>, SideBySideError> {
        let is_fixed = |application: &Application| matches!(application.port, AppPort::Fixed(_));
        if self.is_run_by_onehop() || !self.setup.application.as_ref().is_some_and(is_fixed) {
            return Ok(None);
        }
        self.application_alone()
    }

    /// Today's front with nobody behind it: what it answers then, it answers by itself. `None` where there is no front,
    /// or no application.
    pub(super) fn front_alone(&mut self, front: &Front) -> Result<Option<Stack>, SideBySideError> {
        let Some(application) = &self.setup.application else { return Ok(None) };
        let nobody = self.port()?;
        let deserted = |text: &str| match application.port {
            AppPort::Fixed(port) => with_other_port(text, port, nobody),
            AppPort::Running(address) => with_other_port(text, address.port(), nobody),
            AppPort::Assigned => text.to_owned(),
        };
        let front = match front {
            Front::None => return Ok(None),
            Front::Nginx { conf } => Front::Nginx { conf: deserted(conf) },
            Front::Caddy { file } => Front::Caddy { file: deserted(file) },
        };
        let before = std::mem::replace(&mut self.application, Runs::Apart(loopback(nobody)));
        let stack = self.today(&front);
        self.application = before;
        stack.map(Some)
    }

    /// From now on the application runs at this port, whoever started it.
    pub(super) fn application_runs_at(&mut self, port: u16) {
        self.application = Runs::Apart(loopback(port));
    }

    /// From now on it is started, or not, as the setup says.
    pub(super) fn application_runs_as_set_up(&mut self) {
        self.application = Runs::of(self.setup);
    }

    /// The application, where a stack has to start it.
    fn application_to_start(&self) -> Option<&'a Application> {
        let application = self.setup.application.as_ref();
        application.filter(|_| self.application == Runs::WithEach)
    }

    /// The port on which a stack's application will listen.
    fn app_port(&mut self) -> Result<Option<u16>, SideBySideError> {
        match (self.application, self.setup.application.as_ref().map(|application| application.port)) {
            (_, None) => Ok(None),
            (Runs::Apart(address), _) => Ok(Some(address.port())),
            (Runs::WithEach, Some(AppPort::Fixed(port))) => Ok(Some(port)),
            (Runs::WithEach, Some(_)) => self.port().map(Some),
        }
    }

    /// Whom else to weigh.
    fn behind(&self) -> Vec<Address> {
        match self.application {
            Runs::Apart(address) => vec![Address::Tcp(address)],
            Runs::WithEach => Vec::new(),
        }
    }

    fn port(&mut self) -> Result<u16, SideBySideError> {
        let port = ports::free(&self.taken).ok_or_else(|| {
            SideBySideError::Measurement(
                "no port from 20000 to 31999 is free: end some servers (`ss -ltn` shows who listens)"
                    .to_owned(),
            )
        })?;
        self.taken.push(port);
        Ok(port)
    }
}

impl Runs {
    fn of(setup: &Setup) -> Runs {
        match setup.application.as_ref().map(|application| application.port) {
            Some(AppPort::Running(address)) => Runs::Apart(address),
            _ => Runs::WithEach,
        }
    }
}

impl Stack {
    /// Gives it a name of its own among these: the same server may stand there with another configuration.
    pub(super) fn tell_from(&mut self, front: &Front, others: &[Stack]) {
        if !others.iter().any(|other| other.name == self.name) {
            return;
        }
        let keeps = matches!(front, Front::Nginx { conf } if conf.contains("keepalive "));
        let how = if keeps { "kept connections" } else { "its other configuration" };
        self.name = format!("{} ({how})", self.name);
        self.words = format!("{} ({how})", self.words);
    }

    /// A request for it.
    pub(super) fn request(&self, path: &str) -> Request {
        Request {
            name: path.to_owned(),
            url: Url {
                scheme: onehop_load::url::Scheme::Http,
                endpoint: Endpoint::Tcp { host: self.address.ip().to_string(), port: self.address.port() },
                authority: HOST.to_owned(),
                path: path.to_owned(),
            },
            address: Address::Tcp(self.address),
            tls: None,
            protocol: Protocol::Http1,
            method: "GET".to_owned(),
            fields: vec![("User-Agent".to_owned(), "onehop-try".to_owned()), accept(path)],
            body: None,
            weight: 1,
            expect: Expect::Exactly(vec![200]),
        }
    }
}

/// What browsers say that they accept: a page for what looks like one, anything for the rest. Servers of single-page
/// applications tell the two apart by it.
pub(super) fn accept(path: &str) -> (String, String) {
    let last = path.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let is_page = !last.contains('.') || last.ends_with(".html");
    let value = if is_page { "text/html,application/xhtml+xml,*/*;q=0.8" } else { "*/*" };
    ("Accept".to_owned(), value.to_owned())
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// A folder for a stack's files. Started by root, nginx works as somebody else, who has to pass through it to its
/// temporary files; nobody else may list it or read what is in it.
fn scratch() -> Result<TempDir, SideBySideError> {
    let mode = if is_root() { 0o711 } else { 0o700 };
    let mut builder = tempfile::Builder::new();
    let made = builder.prefix("onehop-try-").permissions(Permissions::from_mode(mode)).tempdir();
    made.map_err(|error| unwritable(&std::env::temp_dir(), &error))
}

/// Writes a file that its owner alone may read: configurations hold secrets.
fn write(path: PathBuf, text: &str) -> Result<PathBuf, SideBySideError> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    match opened.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(path),
        Err(error) => Err(unwritable(&path, &error)),
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn unwritable(path: &Path, error: &std::io::Error) -> SideBySideError {
    let path = path.display();
    SideBySideError::Measurement(format!(
        "{path} cannot be written ({error}): is TMPDIR writable, and the disk not full?"
    ))
}

/// Puts the ports and the folder into a configuration.
fn fill(text: &str, port: u16, app_port: Option<u16>, scratch: &Path) -> String {
    let text = text.replace("{port}", &port.to_string()).replace("{scratch}", &scratch.to_string_lossy());
    match app_port {
        Some(app_port) => text.replace("{app_port}", &app_port.to_string()),
        None => text,
    }
}

/// The text with `:PORT` replaced wherever the number ends there.
fn with_other_port(text: &str, port: u16, other: u16) -> String {
    let named = format!(":{port}");
    let mut parts = text.split(named.as_str());
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if part.starts_with(|next: char| next.is_ascii_digit()) {
            replaced.push_str(&named);
        } else {
            replaced.push_str(&format!(":{other}"));
        }
        replaced.push_str(part);
    }
    replaced
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Something that listens there.
    pub(crate) fn stack_at(name: &str, address: SocketAddr) -> Stack {
        Stack {
            name: name.to_owned(),
            words: name.to_owned(),
            source: Source::Running,
            telling: Source::Running,
            tells: Tells::Nothing("it is a test"),
            address,
            app_port: None,
            _scratch: None,
        }
    }

    #[test]
    fn a_port_is_replaced_where_it_ends_there() {
        let text = "proxy_pass http://localhost:3000/;\nserver [::1]:3000;\nserver a:30001;\nreturn 3000;\n";
        let expected = "proxy_pass http://localhost:9/;\nserver [::1]:9;\nserver a:30001;\nreturn 3000;\n";
        assert_eq!(with_other_port(text, 3000, 9), expected);
    }
}
