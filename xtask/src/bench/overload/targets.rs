//! Who is put under load: the same Express application behind limiters of onehop, of nginx and of its own.
//!
//! Owns how targets are started. All have the same application, the same static file in front of it and a limit that lets
//! about as many wait, so that what differs is who is let in.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use onehop_load::measure::Server;
use onehop_load::plan::Expect;

use crate::{Outcome, install, workspace};

use super::super::probe;
use super::super::servers::{self, Cores, free_port};
use super::cores::Home;
use super::offer::FILE_PATH;
use super::steps::{Application, BURN_UNITS};

/// All targets, in the order in which they are printed and drawn.
pub(super) const ALL: &[&str] = &[
    "onehop",
    "onehop-fixed",
    "onehop-lag",
    "onehop-off",
    "nginx-toobusy",
    "nginx-limit-conn",
    "nginx-limit-req",
];

/// The targets of a smoke run.
pub(super) const SMOKE: &[&str] = &["onehop", "nginx-limit-conn"];

/// Bytes of the static file: those of the page of `bench files`.
const FILE_BYTES: usize = 788;

/// What `onehop-fixed` lets in and lets wait. Eight keep both applications busy; forty are answered in a sixth of a
/// second.
const FIXED: &str = "limit in_flight 8 queue 32 wait 250ms";

/// The same number in nginx, which has no queue: whoever is beyond it is refused.
const LIMIT_CONN: u32 = 40;

/// Those that nginx lets wait until the rate allows them: as many as the queue of `onehop-fixed`.
const LIMIT_REQ_BURST: u32 = 32;

/// A way to limit.
pub(super) struct Target {
    /// Its name in tables, files and pictures.
    pub(super) name: &'static str,
    /// What its parts say about their versions.
    pub(super) version: String,
}

/// What is the same for all targets of a run.
pub(super) struct Environment {
    /// Where the application runs.
    pub(super) home: Home,
    node: String,
    /// What starts the program that runs the application, in its place.
    runtime: PathBuf,
    /// Where logs and filled-in settings go.
    work: PathBuf,
    /// The application beside its packages.
    application: PathBuf,
    /// The folder with the static file.
    site: PathBuf,
    burn_rounds: u64,
}

/// A target that runs. What clients speak to ends first.
pub(super) struct Running {
    servers: Vec<Server>,
    /// Where it answers.
    pub(super) address: SocketAddr,
    /// How its servers were started.
    pub(super) lines: Vec<String>,
}

impl Environment {
    /// Installs the application, measures the machine and writes the file.
    pub(super) fn prepare(node: &str, home: Home) -> Outcome<Environment> {
        let work = workspace::target_folder("bench/overload")?;
        let site = work.join("site");
        let file = site.join(FILE_PATH.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().unwrap_or(&site))?;
        std::fs::write(&file, "o".repeat(FILE_BYTES))?;
        Ok(Environment {
            runtime: home.write_script(&work, node)?,
            home,
            node: node.to_owned(),
            work,
            application: application()?,
            site,
            burn_rounds: burn_unit(node)? * BURN_UNITS,
        })
    }

    /// For the record.
    pub(super) fn versions(&self) -> Outcome<String> {
        let express = install::version_in(&self.application, "express")?;
        let toobusy = install::version_in(&self.application, "toobusy-js")?;
        Ok(format!("{express}, {toobusy}, node {}", said(&self.node, "--version")))
    }

    /// The application with nothing before it, to learn what it can do.
    pub(super) fn start_alone(&self, application: Application) -> Outcome<Running> {
        let port = free_port()?;
        let (server, line) = self.start_application(port, false)?;
        running(vec![server], port, vec![line], application)
    }

    fn start_application(&self, port: u16, is_toobusy: bool) -> Outcome<(Server, String)> {
        let words = vec![self.runtime.display().to_string(), self.script()];
        let mut environment = self.environment();
        environment.push(("PORT".to_owned(), port.to_string()));
        if is_toobusy {
            environment.push(("BENCH_TOOBUSY".to_owned(), "1".to_owned()));
        }
        let mut server = servers::start(&words, &environment, port, Cores::Apart)?;
        servers::wait_until_ready(&mut server, "/", Expect::Any)?;
        Ok((server, words.join(" ")))
    }

    fn environment(&self) -> Vec<(String, String)> {
        vec![
            ("BENCH_BURN_ROUNDS".to_owned(), self.burn_rounds.to_string()),
            ("NODE_ENV".to_owned(), "production".to_owned()),
        ]
    }

    fn script(&self) -> String {
        self.application.join("express.mjs").display().to_string()
    }

    /// Settings of benchmarks/servers/overload with these names filled in.
    fn filled(&self, template: &str, names: &[(&str, &str)]) -> Outcome<String> {
        let mut text = std::fs::read_to_string(source().join(template))?;
        for (name, value) in names {
            text = text.replace(&format!("@{name}@"), value);
        }
        let written = self.work.join(template);
        std::fs::write(&written, text)?;
        Ok(written.display().to_string())
    }
}

impl Target {
    /// Installs what a target needs.
    pub(super) fn prepare(name: &str) -> Outcome<Target> {
        let name = ALL.iter().find(|&&known| known == name).ok_or("no such target")?;
        let version = if is_onehop(name) {
            if !workspace::program().exists() {
                return Err(format!("{} is not there", workspace::program().display()).into());
            }
            said(workspace::program(), "--version")
        } else {
            install::debian(&["nginx-light"])?;
            said("/usr/sbin/nginx", "-v")
        };
        Ok(Target { name, version })
    }

    /// How it limits, in the words of its settings.
    pub(super) fn limit(&self, capacity: f64) -> String {
        match self.name {
            "onehop-fixed" => FIXED.to_owned(),
            "onehop-lag" => "limit lag 70ms".to_owned(),
            "onehop-off" => "limit off".to_owned(),
            "nginx-limit-conn" => format!("limit_conn all {LIMIT_CONN};"),
            "nginx-limit-req" => {
                format!("limit_req zone=all burst={LIMIT_REQ_BURST}; # {} r/s", capacity.floor())
            }
            "nginx-toobusy" => "# toobusy-js, in the application".to_owned(),
            // What stands for nothing said at all.
            _ => "# nothing: the default of an app".to_owned(),
        }
    }

    /// Starts it and waits until the application and the file are answered.
    pub(super) fn start(
        &self,
        around: &Environment,
        application: Application,
        capacity: f64,
    ) -> Outcome<Running> {
        let port = free_port()?;
        if is_onehop(self.name) {
            let words = self.onehop(around, port, capacity)?;
            let mut environment = around.environment();
            let control = around.work.join(format!("control-{port}")).display().to_string();
            environment.push(("ONEHOP_CONTROL".to_owned(), control));
            let server = servers::start(&words, &environment, port, Cores::Apart)?;
            let running = running(vec![server], port, vec![words.join(" ")], application)?;
            return running.with_file();
        }
        let upstream = free_port()?;
        let (behind, line) = around.start_application(upstream, self.name == "nginx-toobusy")?;
        let words = self.nginx(around, port, upstream, capacity)?;
        let front = servers::start(&words, &[], port, Cores::Apart)?;
        running(vec![front, behind], port, vec![words.join(" "), line], application)?.with_file()
    }

    fn onehop(&self, around: &Environment, port: u16, capacity: f64) -> Outcome<Vec<String>> {
        let settings = around.filled(
            "Onehopfile",
            &[
                ("PORT", &port.to_string()),
                ("ADMIN_PORT", &free_port()?.to_string()),
                ("SITE", &around.site.display().to_string()),
                ("SCRIPT", &around.script()),
                ("NODE", &around.runtime.display().to_string()),
                ("LIMIT", &self.limit(capacity)),
            ],
        )?;
        let program = workspace::program().display().to_string();
        Ok(vec![program, "run".to_owned(), "--config".to_owned(), settings])
    }

    fn nginx(&self, around: &Environment, port: u16, upstream: u16, capacity: f64) -> Outcome<Vec<String>> {
        let zone = match self.name {
            "nginx-limit-conn" => {
                "limit_conn_zone $server_name zone=all:1m; limit_conn_status 503;".to_owned()
            }
            "nginx-limit-req" => {
                let rate = capacity.floor().max(1.0);
                format!("limit_req_zone $server_name zone=all:1m rate={rate}r/s; limit_req_status 503;")
            }
            _ => String::new(),
        };
        let work = around.work.display().to_string();
        let settings = around.filled(
            "nginx.conf",
            &[
                ("PORT", &port.to_string()),
                ("UPSTREAM", &upstream.to_string()),
                ("SITE", &around.site.display().to_string()),
                ("WORK", &work),
                ("ZONE", &zone),
                ("LIMIT", &self.limit(capacity)),
            ],
        )?;
        Ok(["/usr/sbin/nginx", "-p", &work, "-c", &settings].map(str::to_owned).to_vec())
    }
}

/// Waits until the application answers on both routes.
fn running(
    mut servers: Vec<Server>,
    port: u16,
    lines: Vec<String>,
    application: Application,
) -> Outcome<Running> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    if let Some(front) = servers.first_mut() {
        servers::wait_until_ready(front, application.path(), Expect::Success)?;
        servers::wait_until_ready(front, application.high_path(), Expect::Success)?;
    }
    Ok(Running { servers, address, lines })
}

/// Whether onehop is the limiter.
pub(super) fn is_onehop(name: &str) -> bool {
    name.starts_with("onehop")
}

/// How long a limiter of ours lets wait, where it was told to or does so by default.
pub(super) fn wait_of(name: &str) -> Option<Duration> {
    match name {
        "onehop" => Some(Duration::from_secs(3)),
        "onehop-fixed" => Some(Duration::from_millis(250)),
        _ => None,
    }
}

impl Running {
    /// The same, once the static file is answered too.
    fn with_file(self) -> Outcome<Running> {
        let answer = probe::get(self.address, FILE_PATH, &[])?;
        if (answer.status, answer.body.len()) != (200, FILE_BYTES) {
            return Err(format!("{FILE_PATH} is answered {}", answer.status).into());
        }
        Ok(self)
    }

    /// What a server wrote last, where something has to be explained.
    pub(super) fn last_words(&self) -> String {
        self.servers.iter().map(Server::log_tail).collect::<Vec<_>>().join("\n")
    }
}

/// The application beside its packages.
fn application() -> Outcome<PathBuf> {
    let place = install::javascript_rival("overload")?;
    let servers = workspace::root().join("benchmarks/servers");
    let copies = ["overload/express.mjs", "overload/pool.mjs", "frameworks/place.mjs", "app/work.mjs"];
    for copy in copies {
        let name = Path::new(copy).file_name().ok_or("a file without a name")?;
        std::fs::copy(servers.join(copy), place.join(name))?;
    }
    Ok(place)
}

/// Steps of work that take 100 us here.
fn burn_unit(node: &str) -> Outcome<u64> {
    let script = workspace::root().join("benchmarks/servers/app/calibrate.mjs").display().to_string();
    let text = workspace::output_of(node, &[&script]).ok_or_else(|| format!("{node} cannot run {script}"))?;
    let value: serde_json::Value = serde_json::from_str(&text)?;
    Ok(value["rounds"].as_u64().ok_or("no number of steps")?)
}

fn source() -> PathBuf {
    workspace::root().join("benchmarks/servers/overload")
}

fn said(program: impl AsRef<std::ffi::OsStr>, option: &str) -> String {
    let said = workspace::output_of(program, &[option]).unwrap_or_default();
    said.lines().next().unwrap_or("unknown").to_owned()
}
