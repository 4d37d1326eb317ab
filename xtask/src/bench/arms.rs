//! Who is measured, how each is installed and how each is started.
//!
//! Every arm serves the same folder on a port of the loopback address and writes no access log, which
//! is how people benchmark them; `onehop-log` shows what ours would cost.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use onehop_load::measure::Server;
use onehop_load::plan::Expect;

use crate::steps::{command, quiet};
use crate::{Outcome, ground, install};

use super::servers::{self, Cores, free_port};

/// All arms, in the order in which they are printed.
pub(crate) const ALL: &[&str] =
    &["floor", "onehop", "onehop-log", "nginx", "caddy", "static-web-server", "axum-servedir", "axum-embed"];

/// The arms that are measured unless others are named.
pub(crate) const USUAL: &[&str] =
    &["floor", "onehop", "nginx", "caddy", "static-web-server", "axum-servedir", "axum-embed"];

/// A server that can be measured.
pub(crate) struct Arm {
    /// Its name in tables and files.
    pub(crate) name: &'static str,
    /// What it says about its version.
    pub(crate) version: String,
    /// Whether it can send the brotli that lies ready beside a file.
    pub(crate) sends_brotli: bool,
    program: PathBuf,
}

/// An arm that runs.
pub(crate) struct Running {
    /// Its processes.
    pub(crate) server: Server,
    /// Where it answers.
    pub(crate) address: SocketAddr,
    /// How it was started, for the record.
    pub(crate) line: Vec<String>,
    /// onehop's control socket; other arms have none.
    pub(crate) control: PathBuf,
}

/// The folder that is served, made anew, and the path of its script.
pub(crate) fn make_site() -> Outcome<(PathBuf, String)> {
    let folder = ground::root().join("benchmarks/site");
    let script = ground::root().join("benchmarks/make-site.mjs");
    let words = [script.display().to_string(), folder.display().to_string()];
    let path =
        ground::output_of("node", &[&words[0], &words[1]]).ok_or("node cannot make benchmarks/site")?;
    Ok((folder, path))
}

impl Arm {
    /// Installs what an arm needs. The site must have been made: one arm compiles it in.
    pub(crate) fn prepare(name: &str) -> Outcome<Arm> {
        let name = ALL.iter().find(|&&known| known == name).ok_or("no such arm")?;
        let program = match *name {
            "onehop" | "onehop-log" => ground::program(),
            "nginx" => {
                install::debian(&["nginx-light", "libnginx-mod-http-brotli-static"])?;
                PathBuf::from("/usr/sbin/nginx")
            }
            "caddy" => install::caddy()?,
            "static-web-server" => install::static_web_server()?,
            rival => rival_crate(rival)?,
        };
        if !program.exists() {
            return Err(format!("{name}: {} is not there", program.display()).into());
        }
        let option = match *name {
            "nginx" => "-v",
            "caddy" => "version",
            _ => "--version",
        };
        let version = match *name {
            "onehop" | "onehop-log" | "nginx" | "caddy" | "static-web-server" => {
                ground::output_of(&program, &[option])
            }
            _ => locked_versions(),
        };
        let sends_brotli = *name != "axum-embed";
        Ok(Arm { name, version: version.unwrap_or_else(|| "unknown".to_owned()), sends_brotli, program })
    }

    /// Starts it and waits until it answers. `answer` is what the floor sends.
    pub(crate) fn start(&self, site: &Path, answer: &Path) -> Outcome<Running> {
        let mut running = self.launch(site, answer)?;
        // The floor sends one answer, which may be a 304.
        running.wait_until_ready("/", Expect::Exactly(vec![200, 304]))?;
        Ok(running)
    }

    /// Starts it and waits for nothing.
    pub(crate) fn launch(&self, site: &Path, answer: &Path) -> Outcome<Running> {
        let work = ground::target_folder("bench")?;
        let (port, admin_port) = (free_port()?, free_port()?);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let program = self.program.display().to_string();
        let settings = ground::root().join("benchmarks/servers");
        let file = |name: &str| settings.join(name).display().to_string();
        let folder = site.display().to_string();
        let words: Vec<String> = match self.name {
            "onehop" => vec![program, "run".into(), "--config".into(), file("Onehopfile")],
            "onehop-log" => vec![program, "run".into(), "--config".into(), file("log.Onehopfile")],
            "nginx" => {
                let written = work.join("nginx.conf");
                std::fs::write(&written, nginx_settings(&work, site, port)?)?;
                vec![
                    program,
                    "-p".into(),
                    work.display().to_string(),
                    "-c".into(),
                    written.display().to_string(),
                ]
            }
            "caddy" => {
                vec![
                    program,
                    "run".into(),
                    "--adapter".into(),
                    "caddyfile".into(),
                    "--config".into(),
                    file("Caddyfile"),
                ]
            }
            "static-web-server" => vec![
                program,
                "-w".into(),
                file("static-web-server.toml"),
                "--host".into(),
                "127.0.0.1".into(),
                "--port".into(),
                port.to_string(),
                "--root".into(),
                folder.clone(),
            ],
            "floor" => vec![program, address.to_string(), answer.display().to_string()],
            _ => vec![program, address.to_string(), folder.clone()],
        };
        let control = work.join(format!("control-{port}"));
        let environment = [
            ("ONEHOP_CONTROL".to_owned(), control.display().to_string()),
            ("BENCH_PORT".to_owned(), port.to_string()),
            ("BENCH_ADMIN_PORT".to_owned(), admin_port.to_string()),
            ("BENCH_SITE".to_owned(), folder),
            ("BENCH_LOG".to_owned(), work.join("access.log").display().to_string()),
        ];
        let server = servers::start(&words, &environment, port, Cores::Apart)?;
        Ok(Running { server, address, line: words, control })
    }
}

impl Running {
    /// Waits for the first whole answer of a kind; gives the time from the start to it.
    pub(crate) fn wait_until_ready(&mut self, path: &str, expect: Expect) -> Outcome<Duration> {
        servers::wait_until_ready(&mut self.server, path, expect)
    }
}

/// Builds the small servers of benchmarks/rivals and names one of them.
pub(crate) fn rival_crate(name: &str) -> Outcome<PathBuf> {
    let manifest = ground::root().join("benchmarks/rivals/Cargo.toml").display().to_string();
    let build = ground::target_folder("rivals")?;
    let package = format!("rival-{name}");
    let words = ["build", "--release", "--locked", "--manifest-path", &manifest, "--package", &package];
    quiet(command("cargo", &words).env("CARGO_TARGET_DIR", &build))?;
    Ok(build.join("release").join(package))
}

/// What the rivals are built from, as their lockfile says.
fn locked_versions() -> Option<String> {
    let text = std::fs::read_to_string(ground::root().join("benchmarks/rivals/Cargo.lock")).ok()?;
    let mut words = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("name = ") else { continue };
        let name = name.trim_matches('"');
        if ["axum", "tower-http", "rust-embed", "hyper", "tokio", "rustix"].contains(&name) {
            let version = lines.next().and_then(|line| line.strip_prefix("version = "));
            words.push(format!("{name} {}", version.unwrap_or_default().trim_matches('"')));
        }
    }
    Some(words.join(", "))
}

fn nginx_settings(work: &Path, site: &Path, port: u16) -> Outcome<String> {
    let module = Path::new("/usr/lib/nginx/modules/ngx_http_brotli_static_module.so");
    let (load, switch) = match module.exists() {
        true => (format!("load_module {};", module.display()), "brotli_static on;"),
        false => (String::new(), ""),
    };
    let template = std::fs::read_to_string(ground::root().join("benchmarks/servers/nginx.conf"))?;
    Ok(template
        .replace("@NAMES@", "Names")
        .replace("@BROTLI_MODULE@", &load)
        .replace("@BROTLI_STATIC@", switch)
        .replace("@WORK@", &work.display().to_string())
        .replace("@SITE@", &site.display().to_string())
        .replace("@PORT@", &port.to_string()))
}
