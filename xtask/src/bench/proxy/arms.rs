//! Who stands between the load and the floor, how each is installed and how each is started.
//!
//! The floor is a server of its own in every arm, and none of its time counts as the proxy's.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use onehop_load::measure::Server;
use onehop_load::plan::Expect;

use crate::{Outcome, ground, install};

use super::super::arms::rival_crate;
use super::super::servers::{self, Cores, free_port};

/// All arms, in the order in which they are printed.
pub(super) const ALL: &[&str] = &["direct", "onehop", "nginx", "haproxy", "caddy"];

/// The arms of a smoke run.
pub(super) const SMOKE: &[&str] = &["onehop", "nginx"];

/// A proxy that can be measured; `direct` is none, and shows what the floor itself costs.
pub(super) struct ProxyArm {
    /// Its name in tables and files.
    pub(super) name: &'static str,
    /// What it says about its version.
    pub(super) version: String,
    program: PathBuf,
}

/// The server behind every arm, built once.
pub(super) struct Floor {
    program: PathBuf,
}

/// An arm that runs. The proxy ends first.
pub(super) struct Running {
    proxy: Option<Server>,
    floor: Server,
    /// Where the load asks.
    pub(super) address: SocketAddr,
    /// How both were started.
    pub(super) line: Vec<String>,
}

impl Floor {
    /// Builds it.
    pub(super) fn prepare() -> Outcome<Floor> {
        Ok(Floor { program: rival_crate("floor")? })
    }

    fn start(&self, answer: &Path) -> Outcome<(Server, Vec<String>)> {
        let port = free_port()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port)).to_string();
        let words = vec![self.program.display().to_string(), address, answer.display().to_string()];
        let mut server = servers::start(&words, &[], port, Cores::Apart)?;
        servers::wait_until_ready(&mut server, "/", Expect::Success)?;
        Ok((server, words))
    }
}

impl ProxyArm {
    /// Installs what an arm needs.
    pub(super) fn prepare(name: &str) -> Outcome<ProxyArm> {
        let name = ALL.iter().find(|&&known| known == name).ok_or("no such arm")?;
        let (program, option) = match *name {
            "onehop" => (ground::program(), "--version"),
            "nginx" => {
                install::debian(&["nginx-light"])?;
                (PathBuf::from("/usr/sbin/nginx"), "-v")
            }
            "haproxy" => {
                install::debian(&["haproxy"])?;
                (PathBuf::from("/usr/sbin/haproxy"), "-v")
            }
            "caddy" => (install::caddy()?, "version"),
            _ => {
                return Ok(ProxyArm { name, version: "the floor alone".to_owned(), program: PathBuf::new() });
            }
        };
        if !program.exists() {
            return Err(format!("{name}: {} is not there", program.display()).into());
        }
        let said = ground::output_of(&program, &[option]).unwrap_or_default();
        let version = said.lines().next().unwrap_or("unknown").to_owned();
        Ok(ProxyArm { name, version, program })
    }

    /// Starts the floor with this answer, then the proxy, and waits until the answer comes through.
    pub(super) fn start(&self, floor: &Floor, answer: &Path, work: &Path) -> Outcome<Running> {
        let (behind, mut line) = floor.start(answer)?;
        let upstream = behind.port();
        if self.name == "direct" {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, upstream));
            return Ok(Running { proxy: None, floor: behind, address, line });
        }
        let port = free_port()?;
        let words = self.words(work, port, upstream)?;
        let environment = [
            ("BENCH_PORT".to_owned(), port.to_string()),
            ("BENCH_UPSTREAM".to_owned(), upstream.to_string()),
            ("BENCH_ADMIN_PORT".to_owned(), free_port()?.to_string()),
            ("ONEHOP_CONTROL".to_owned(), work.join(format!("control-{port}")).display().to_string()),
        ];
        let mut proxy = servers::start(&words, &environment, port, Cores::Apart)?;
        servers::wait_until_ready(&mut proxy, "/", Expect::Success)?;
        line.push(";".to_owned());
        line.extend(words);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(Running { proxy: Some(proxy), floor: behind, address, line })
    }

    fn words(&self, work: &Path, port: u16, upstream: u16) -> Outcome<Vec<String>> {
        let program = self.program.display().to_string();
        let place = work.display().to_string();
        let filled = |name: &str| -> Outcome<String> {
            let text = std::fs::read_to_string(settings(name))?
                .replace("@NAMES@", "Names")
                .replace("@WORK@", &place)
                .replace("@UPSTREAM@", &upstream.to_string())
                .replace("@PORT@", &port.to_string());
            let written = work.join(name);
            std::fs::write(&written, text)?;
            Ok(written.display().to_string())
        };
        let own = |name: &str| settings(name).display().to_string();
        let words = match self.name {
            "onehop" => vec![program, "run".to_owned(), "--config".to_owned(), own("Onehopfile")],
            "nginx" => vec![program, "-p".to_owned(), place.clone(), "-c".to_owned(), filled("nginx.conf")?],
            "haproxy" => vec![program, "-db".to_owned(), "-f".to_owned(), filled("haproxy.cfg")?],
            _ => {
                let file = own("Caddyfile");
                let words = [&program, "run", "--adapter", "caddyfile", "--config", &file];
                words.map(str::to_owned).to_vec()
            }
        };
        Ok(words)
    }
}

impl Running {
    /// What is weighed: the proxy's processes, or the floor where there is none.
    pub(super) fn weighed(&self) -> &Server {
        self.proxy.as_ref().unwrap_or(&self.floor)
    }
}

fn settings(name: &str) -> PathBuf {
    ground::root().join("benchmarks/proxy/load").join(name)
}
