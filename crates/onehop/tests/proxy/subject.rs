//! The proxy under test: onehop, or Caddy where it is asked for.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use onehop_testkit::{Client, Folder, Onehop, Program, Response, wait_for};

/// A proxy that runs, and a place from which onehop's settings can be changed.
pub(crate) struct Subject {
    /// `127.0.0.1:43121`
    pub(crate) address: String,
    server: Server,
    folder: Folder,
}

enum Server {
    Onehop(Box<Onehop>),
    Caddy(Child),
}

/// More time than anything that is not waited for on purpose takes on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(5);

impl Subject {
    /// A site with these directives; onehop, unless the surroundings say otherwise.
    pub(crate) fn start(directives: &str) -> Subject {
        Self::with_globals("", directives)
    }

    /// The same with lines of the global block.
    pub(crate) fn with_globals(globals: &str, directives: &str) -> Subject {
        match std::env::var("ONEHOP_PROXY_BY").as_deref() {
            Ok("caddy") => Self::caddy(globals, directives).expect("ONEHOP_CADDY names Caddy"),
            _ => Self::onehop(globals, directives),
        }
    }

    /// onehop, whatever the surroundings say.
    pub(crate) fn onehop(globals: &str, directives: &str) -> Subject {
        let folder = Folder::new();
        folder.write("Onehopfile", onehopfile(globals, directives));
        let path = folder.path().to_path_buf();
        let onehop = Program::new(["run", "--log", "json"]).inside(&path).control_in(&path).serve();
        Subject { address: onehop.address.clone(), server: Server::Onehop(Box::new(onehop)), folder }
    }

    /// Caddy; `None` where it is not on this machine.
    pub(crate) fn caddy(globals: &str, directives: &str) -> Option<Subject> {
        let program = caddy_program()?;
        let folder = Folder::new();
        let port = free_port();
        // Numbers of threads are onehop's own.
        let globals: Vec<&str> = globals.lines().filter(|line| !line.contains("threads")).collect();
        let globals = globals.join("\n");
        let text = format!(
            "{{\n\tadmin off\n\tauto_https off\n{globals}\n}}\nhttp://:{port} {{\n\tbind 127.0.0.1\n{directives}\n}}\n"
        );
        let path = folder.write("Caddyfile", text);
        let child = Command::new(program)
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(path)
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("log")).expect("a log"))
            .spawn()
            .expect("Caddy starts");
        let subject = Subject { address: format!("127.0.0.1:{port}"), server: Server::Caddy(child), folder };
        wait_for("Caddy", || {
            let log = std::fs::read_to_string(subject.folder.join("log")).unwrap_or_default();
            assert!(!log.contains("Error:"), "{log}");
            Client::try_connect(&subject.address).ok()
        });
        Some(subject)
    }

    /// Whether what onehop alone has can be asked for.
    pub(crate) fn is_onehop(&self) -> bool {
        matches!(self.server, Server::Onehop(_))
    }

    /// A new connection to it.
    pub(crate) fn connect(&self) -> Client {
        Client::connect(&self.address)
    }

    /// GET over a connection of its own, and how long the answer took.
    pub(crate) fn get(&self, path: &str) -> (Response, Duration) {
        self.ask("GET", path, "")
    }

    /// Any request without a body over a connection of its own, and how long the answer took.
    pub(crate) fn ask(&self, method: &str, path: &str, fields: &str) -> (Response, Duration) {
        let begun = Instant::now();
        let response = self.connect().ask(method, path, fields);
        (response, begun.elapsed())
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        match &self.server {
            Server::Onehop(onehop) => onehop.process.pid(),
            Server::Caddy(child) => child.id(),
        }
    }

    /// `/metrics` of onehop; empty for others.
    pub(crate) fn metrics(&self) -> String {
        match &self.server {
            Server::Onehop(onehop) => onehop.metrics(),
            Server::Caddy(_) => String::new(),
        }
    }

    /// How many requests were refused for a cause, as the metrics say.
    pub(crate) fn refused(&self, cause: &str) -> u64 {
        let wanted = format!("onehop_refused_total{{cause=\"{cause}\"");
        let metrics = self.metrics();
        let lines = metrics.lines().filter(|line| line.starts_with(&wanted));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// Waits until the metrics tell so many refusals for this cause, with this status.
    pub(crate) fn expect_refused(&self, cause: &str, status: u16, count: u64) {
        if !self.is_onehop() {
            return;
        }
        let line = format!("onehop_refused_total{{cause=\"{cause}\",status=\"{status}\"}} {count}");
        let begun = Instant::now();
        while !self.metrics().lines().any(|other| other == line) {
            let refused: Vec<String> = self
                .metrics()
                .lines()
                .filter(|line| line.contains("_refused_total{"))
                .map(str::to_owned)
                .collect();
            assert!(begun.elapsed() < SOON, "{line} is not among {refused:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the server's log names this upstream, or these, with this cause.
    pub(crate) fn expect_reported(&self, cause: &str, upstream: &str) {
        let Server::Onehop(onehop) = &self.server else { return };
        wait_for(cause, || {
            let events = onehop.process.events();
            let is_it = |event: &serde_json::Value| event["cause"] == cause && event["upstream"] == upstream;
            events.iter().any(is_it).then_some(())
        });
    }

    /// Checks that the metrics tell no refusal that is the upstream's fault.
    pub(crate) fn expect_no_fault(&self) {
        let metrics = self.metrics();
        let found: Vec<&str> = metrics.lines().filter(|line| line.contains("cause=\"upstream_")).collect();
        assert!(found.is_empty(), "{found:?}");
    }

    /// Gives onehop other settings and waits until they hold. The address stays, because it is written as port 0.
    pub(crate) fn reload(&self, globals: &str, directives: &str) {
        self.folder.write("Onehopfile", onehopfile(globals, directives));
        let path = self.folder.path();
        let finished = Program::new(["reload"]).inside(path).control_in(path).finish();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    }

    /// Resident memory in bytes, as the kernel counts it.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("a process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        let kib: u64 = line.split_whitespace().nth(1).and_then(|count| count.parse().ok()).expect("a number");
        kib * 1024
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if let Server::Caddy(child) = &mut self.server {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Caddy of `ONEHOP_CADDY`, else the one that `cargo xtask` has built.
pub(crate) fn caddy_program() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("ONEHOP_CADDY") {
        return Some(path.into());
    }
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin/caddy");
    built.exists().then_some(built)
}

/// A number from the surroundings, for tests that can be made longer.
pub(crate) fn scaled(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Raises the bound on open descriptors as far as it goes: a thousand clients and their upstreams are in this process.
pub(crate) fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn onehopfile(globals: &str, directives: &str) -> String {
    format!("{{\n\tadmin 127.0.0.1:0\n{globals}\n}}\nhttp://:0 {{\n\tbind 127.0.0.1\n{directives}\n}}\n")
}

fn free_port() -> u16 {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    free.local_addr().expect("an address").port()
}
