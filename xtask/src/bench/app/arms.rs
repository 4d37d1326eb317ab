//! Who answers: an application of benchmarks/servers under onehop, on its own, and behind a proxy.
//!
//! All listen on a port of the loopback address and write no access log. A proxy's arm is two servers. This
//! file knows how arms are started; which of them a measurement has is said by `ALL` here for the application
//! and by `frameworks.rs` for the frameworks.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use onehop_load::measure::{Memory, Server, Tree, memory_of};
use onehop_load::plan::Expect;

use crate::{Outcome, ground, install};

use super::super::servers::{self, Cores, free_port};
use super::questions::Asked;

/// All arms, in the order in which they are printed.
pub(super) const ALL: &[&str] = &[
    "onehop",
    "onehop-platform",
    "fastify",
    "node-http",
    "bun-serve",
    "nginx-fastify",
    "nginx-fastify-default",
    "caddy-fastify",
];

/// The arms of a smoke run.
pub(super) const SMOKE: &[&str] = &["onehop", "nginx-fastify"];

/// What stands before the application's process.
#[derive(Debug, Clone)]
pub(super) enum Front {
    /// Nothing: it listens itself.
    Nothing,
    /// nginx with this template of its settings.
    Nginx(&'static str),
    /// Caddy, this program.
    Caddy(PathBuf),
}

/// What runs the application.
#[derive(Debug, Clone)]
pub(super) enum Runner {
    /// onehop with a file of settings and the script that they name.
    Onehop { settings: PathBuf, script: PathBuf },
    /// Node with this script.
    Node(PathBuf),
    /// Bun, this program.
    Bun(PathBuf),
}

/// A way to serve the application.
pub(super) struct AppArm {
    /// Its name in tables and files.
    pub(super) name: &'static str,
    /// What its parts say about their versions.
    pub(super) version: String,
    front: Front,
    runner: Runner,
}

/// What is the same for all arms of a run.
pub(super) struct Surroundings {
    /// The program that runs JavaScript under onehop and on its own.
    pub(super) node: String,
    /// Where logs and filled-in settings go.
    pub(super) work: PathBuf,
    /// Steps that a burning request does.
    pub(super) burn_rounds: u64,
}

/// An arm that runs. What clients speak to is first; the rest ends after it.
pub(super) struct Running {
    servers: Vec<Server>,
    has_workers: bool,
    /// Where it answers.
    pub(super) address: SocketAddr,
    /// How its servers were started.
    pub(super) lines: Vec<String>,
}

impl AppArm {
    /// Installs what an arm needs.
    pub(super) fn prepare(name: &str, node: &str) -> Outcome<AppArm> {
        let name = ALL.iter().find(|&&known| known == name).ok_or("no such arm")?;
        let front = match *name {
            "nginx-fastify" => Front::Nginx("nginx.conf"),
            "nginx-fastify-default" => Front::Nginx("nginx-default.conf"),
            "caddy-fastify" => Front::Caddy(install::caddy()?),
            _ => Front::Nothing,
        };
        let onehop =
            |settings| Runner::Onehop { settings: server_file(settings), script: server_file("handler.mjs") };
        let runner = match *name {
            "onehop" => onehop("Onehopfile"),
            "onehop-platform" => onehop("platform.Onehopfile"),
            "node-http" => Runner::Node(server_file("node-http.mjs")),
            "bun-serve" => Runner::Bun(install::bun()?),
            _ => Runner::Node(server_file("fastify.mjs")),
        };
        let framework = match &runner {
            Runner::Node(script) if script.ends_with("fastify.mjs") => {
                Some(install::version_in(&fastify_folder()?, "fastify")?)
            }
            _ => None,
        };
        AppArm::made(name, node, framework, front, runner)
    }

    /// An arm of these parts; `framework` is what its version is called, where it has one.
    pub(super) fn made(
        name: &'static str,
        node: &str,
        framework: Option<String>,
        front: Front,
        runner: Runner,
    ) -> Outcome<AppArm> {
        if matches!(runner, Runner::Onehop { .. }) && !ground::program().exists() {
            return Err(format!("{} is not there", ground::program().display()).into());
        }
        if matches!(front, Front::Nginx(_)) {
            install::debian(&["nginx-light"])?;
        }
        let mut version = Vec::new();
        match &front {
            Front::Nothing => {}
            Front::Nginx(_) => version.push(said("/usr/sbin/nginx", "-v")),
            Front::Caddy(program) => version.push(said(program, "version")),
        }
        if matches!(runner, Runner::Onehop { .. }) {
            version.push(said(ground::program(), "--version"));
        }
        version.extend(framework);
        match &runner {
            Runner::Bun(program) => version.push(format!("bun {}", said(program, "--version"))),
            Runner::Onehop { .. } | Runner::Node(_) => version.push(said(node, "--version")),
        }
        Ok(AppArm { name, version: version.join(", "), front, runner })
    }

    /// Bun has no cluster, so that two workers would be another application.
    pub(super) fn can_run(&self, asked: Asked) -> bool {
        asked != Asked::Burn || !matches!(self.runner, Runner::Bun(_))
    }

    /// Starts it and waits until each of its parts answers.
    pub(super) fn start(&self, around: &Surroundings, workers: u64, cores: Cores) -> Outcome<Running> {
        let (port, upstream) = (free_port()?, free_port()?);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let behind = match self.front {
            Front::Nothing => port,
            Front::Nginx(_) | Front::Caddy(_) => upstream,
        };
        let mut environment = vec![
            ("BENCH_PORT".to_owned(), behind.to_string()),
            ("BENCH_UPSTREAM".to_owned(), upstream.to_string()),
            ("BENCH_ADMIN_PORT".to_owned(), free_port()?.to_string()),
            ("BENCH_WORKERS".to_owned(), workers.to_string()),
            ("BENCH_BURN_ROUNDS".to_owned(), around.burn_rounds.to_string()),
            ("PORT".to_owned(), behind.to_string()),
            ("BENCH_NODE".to_owned(), around.node.clone()),
            ("ONEHOP_CONTROL".to_owned(), around.work.join(format!("control-{port}")).display().to_string()),
            ("NODE_ENV".to_owned(), "production".to_owned()),
        ];
        if matches!(&self.runner, Runner::Node(script) if *script == server_file("fastify.mjs")) {
            environment.push(("BENCH_FASTIFY".to_owned(), fastify_folder()?.display().to_string()));
        }
        let line = match &self.runner {
            Runner::Onehop { settings, script } => {
                environment.push(("BENCH_HANDLER".to_owned(), script.display().to_string()));
                let program = ground::program().display().to_string();
                vec![program, "run".to_owned(), "--config".to_owned(), settings.display().to_string()]
            }
            Runner::Node(script) => vec![around.node.clone(), script.display().to_string()],
            Runner::Bun(program) => {
                vec![program.display().to_string(), server_file("bun.mjs").display().to_string()]
            }
        };
        let mut lines = vec![line.join(" ")];
        let runner = launch(&line, &environment, behind, cores)?;
        let mut servers = vec![runner];
        if let Some(line) = self.front_line(around, port, upstream, workers)? {
            environment[0].1 = port.to_string();
            servers.insert(0, launch(&line, &environment, port, cores)?);
            lines.insert(0, line.join(" "));
        }
        Ok(Running { servers, has_workers: matches!(self.runner, Runner::Onehop { .. }), address, lines })
    }

    fn front_line(
        &self,
        around: &Surroundings,
        port: u16,
        upstream: u16,
        workers: u64,
    ) -> Outcome<Option<Vec<String>>> {
        let work = around.work.display().to_string();
        Ok(match &self.front {
            Front::Nothing => None,
            Front::Nginx(template) => {
                let settings = std::fs::read_to_string(server_file(template))?
                    .replace("@NAMES@", "Names")
                    .replace("@WORK@", &work)
                    .replace("@WORKERS@", &workers.to_string())
                    .replace("@UPSTREAM@", &upstream.to_string())
                    .replace("@PORT@", &port.to_string());
                let written = around.work.join(template);
                std::fs::write(&written, settings)?;
                let words = ["/usr/sbin/nginx", "-p", &work, "-c", &written.display().to_string()];
                Some(words.map(str::to_owned).to_vec())
            }
            Front::Caddy(program) => {
                let program = program.display().to_string();
                let file = server_file("Caddyfile").display().to_string();
                let words = [&program, "run", "--adapter", "caddyfile", "--config", &file];
                Some(words.map(str::to_owned).to_vec())
            }
        })
    }
}

impl Running {
    /// All its processes.
    pub(super) fn tree(&self) -> Tree {
        self.servers.iter().map(Server::tree).reduce(Tree::with).unwrap_or_else(|| Tree::of(0))
    }

    /// Resident memory of all its processes.
    pub(super) fn memory(&self) -> Memory {
        memory_of(&self.tree().processes())
    }

    /// Highest resident size of what clients speak to: of onehop without its workers, of a proxy without
    /// what stands behind it.
    pub(super) fn front_peak_bytes(&self) -> u64 {
        let Some(front) = self.servers.first() else { return 0 };
        let processes = if self.has_workers { vec![front.pid()] } else { front.tree().processes() };
        memory_of(&processes).peak_bytes
    }
}

fn launch(words: &[String], environment: &[(String, String)], port: u16, cores: Cores) -> Outcome<Server> {
    let mut server = servers::start(words, environment, port, cores)?;
    // Any answer: what stands behind a proxy, and what is asked of it, is looked at afterwards.
    servers::wait_until_ready(&mut server, "/", Expect::Any)?;
    Ok(server)
}

fn server_file(name: &str) -> PathBuf {
    ground::root().join("benchmarks/servers/app").join(name)
}

fn fastify_folder() -> Outcome<PathBuf> {
    install::javascript_rival("fastify")
}

fn said(program: impl AsRef<std::ffi::OsStr>, option: &str) -> String {
    ground::output_of(program, &[option]).unwrap_or_else(|| "unknown".to_owned())
}
