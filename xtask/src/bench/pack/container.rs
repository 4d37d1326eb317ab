//! The same pack as a process, in a container on the host's network, and in one with a published port.
//!
//! Owns the containers that it starts, by name, and what podman leaves in the kernel's tables, which is removed behind each
//! arm: it would slow the next one. The arms take turns within each round. What the kernel does for a published port is
//! done in the time of whoever sends, so the load's CPU time is told beside the server's. `beside NAT` is the process
//! again while such tables are there: all connections are tracked then, its own too; what a published port costs on top of
//! that is the way through the bridge and the translation of addresses.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use onehop_load::measure::{Server, Tree};
use serde_json::{Value, json};

use crate::steps::{command, quiet};
use crate::{Outcome, install, workspace};

use super::Packer;
use crate::bench::load::Load;
use crate::bench::servers::{self, Cores, free_port};
use crate::bench::{interrupt, probe, rivals};

const ARMS: [&str; 4] = ["native", "host network", "beside NAT", "published port"];
/// What podman needs where its usual runtime refuses the machine's control groups.
const RUN: [&str; 8] = [
    "run",
    "--detach",
    "--runtime",
    "runc",
    "--ulimit",
    "nofile=20000:20000",
    "--ulimit",
    "nproc=20000:20000",
];
const IMAGE: &str = "localhost/onehop-bench-pack:latest";
const CONNECTIONS: u64 = 64;
const WARM_UP: Duration = Duration::from_millis(500);

/// One measurement.
struct Figures {
    cpu_us: f64,
    load_cpu_us: f64,
    rate: f64,
    p50_us: f64,
    resident_kib: f64,
}

/// Runs the rounds and cleans up behind podman.
pub(super) fn run(packer: &Packer, rounds: u64, seconds: u64) -> Outcome<Value> {
    install::debian(&["podman", "runc", "nftables"])?;
    let image = image(packer)?;
    let found = rounds_of(&image, rounds, seconds);
    let _ = quiet(&mut command("podman", &["rmi", "--force", IMAGE]));
    found
}

fn rounds_of(pack: &Path, rounds: u64, seconds: u64) -> Outcome<Value> {
    let mut all: Vec<Vec<Figures>> = ARMS.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..ARMS.len() {
            interrupt::check()?;
            let arm = (turn + usize::try_from(round)?) % ARMS.len();
            let running = Running::start(pack, ARMS[arm])?;
            all[arm].push(running.measure(seconds)?);
        }
    }
    println!(
        "\n{:<16} {:>10} {:>14} {:>12} {:>10} {:>12}",
        "", "CPU us", "load CPU us", "a second", "p50 us", "KiB"
    );
    let mut rows = serde_json::Map::new();
    for (arm, figures) in ARMS.iter().zip(&all) {
        let each = |figure: fn(&Figures) -> f64| figures.iter().map(figure).collect::<Vec<_>>();
        let columns = json!({
            "cpu_us": each(|f| f.cpu_us), "load_cpu_us": each(|f| f.load_cpu_us), "rate": each(|f| f.rate),
            "p50_us": each(|f| f.p50_us), "resident_kib": each(|f| f.resident_kib),
        });
        println!(
            "{arm:<16} {:>10.2} {:>14.2} {:>12.0} {:>10.0} {:>12.0}",
            onehop_statistics::median(&each(|f| f.cpu_us)),
            onehop_statistics::median(&each(|f| f.load_cpu_us)),
            onehop_statistics::median(&each(|f| f.rate)),
            onehop_statistics::median(&each(|f| f.p50_us)),
            onehop_statistics::median(&each(|f| f.resident_kib)),
        );
        rows.insert((*arm).to_owned(), columns);
    }
    Ok(rows.into())
}

/// Packs the benchmarks' site, as an executable and as an image that podman knows.
fn image(packer: &Packer) -> Outcome<std::path::PathBuf> {
    let site = rivals::make_site()?;
    let folder = packer.folder("site")?;
    quiet(&mut command(
        "cp",
        &["-a", &site.display().to_string(), &folder.join("dist").display().to_string()],
    ))?;
    std::fs::write(folder.join("Onehopfile"), "http://:8080 {\n\tspa ./dist\n}\n")?;
    let (pack, tar) = (folder.join("site-pack"), folder.join("image.tar"));
    let tar = tar.display().to_string();
    packer.pack(&folder, &pack, &["--oci", &tar, "--tag", IMAGE])?;
    quiet(&mut command("podman", &["load", "--input", &tar]))?;
    Ok(pack)
}

/// An arm that runs.
struct Running {
    address: SocketAddr,
    tree: Tree,
    /// What has to be ended: a process, containers by name.
    server: Option<Server>,
    containers: Vec<String>,
    /// Tables that were there before.
    tables: Vec<String>,
}

impl Running {
    fn start(pack: &Path, arm: &str) -> Outcome<Running> {
        let tables = tables();
        let port = free_port()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut running =
            Running { address, tree: Tree::default(), server: None, containers: Vec::new(), tables };
        let listen = address.to_string();
        match arm {
            "native" => running.native(pack)?,
            "host network" => running.container(port, &["--network", "host", IMAGE, "--listen", &listen])?,
            "beside NAT" => {
                let other = free_port()?;
                running.container(other, &["--publish", &format!("127.0.0.1:{other}:8080"), IMAGE])?;
                running.native(pack)?;
            }
            _ => running.container(port, &["--publish", &format!("127.0.0.1:{port}:8080"), IMAGE])?,
        }
        running.wait()?;
        Ok(running)
    }

    fn native(&mut self, pack: &Path) -> Outcome {
        let words = [pack.display().to_string(), "--listen".to_owned(), self.address.to_string()];
        let server = servers::start(&words, &[], self.address.port(), Cores::Apart)?;
        self.tree = server.tree();
        self.server = Some(server);
        Ok(())
    }

    fn container(&mut self, port: u16, more: &[&str]) -> Outcome {
        let name = format!("onehop-bench-{port}");
        let core = Cores::Apart.of_server().first().copied().unwrap_or(0).to_string();
        let mut words = RUN.to_vec();
        words.extend(["--name", &name, "--read-only", "--cpuset-cpus", &core]);
        words.extend(more);
        self.containers.push(name.clone());
        quiet(&mut command("podman", &words))?;
        let pid = workspace::output_of("podman", &["inspect", "--format", "{{.State.Pid}}", &name]);
        self.tree = Tree::of(pid.ok_or("podman does not tell the container's process")?.trim().parse()?);
        Ok(())
    }

    /// Until it answers.
    fn wait(&self) -> Outcome {
        /// A server that has not answered by then never will.
        const ATTEMPTS: u32 = 500;
        for _ in 0..ATTEMPTS {
            interrupt::check()?;
            if probe::get(self.address, "/", &[]).is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err("the server does not answer".into())
    }

    fn measure(&self, seconds: u64) -> Outcome<Figures> {
        let load = Load {
            method: "GET",
            path: "/".to_owned(),
            fields: Vec::new(),
            body: None,
            status: 200,
            connections: CONNECTIONS,
            threads: 1,
            time: Duration::from_secs(seconds),
            cores: Cores::Apart,
        };
        load.warm_up(self.address, WARM_UP)?;
        let (seen, usage) = load.weighed(self.address, self.tree.clone())?;
        if seen.errors > 0 || seen.requests == 0 {
            return Err(format!("errors under load: {}", seen.errors_in_words).into());
        }
        let requests = seen.requests as f64;
        Ok(Figures {
            cpu_us: usage.cpu.as_secs_f64() * 1e6 / requests,
            load_cpu_us: seen.load_cpu_us,
            rate: seen.rate,
            p50_us: seen.p50_us as f64,
            resident_kib: usage.memory_median as f64 / 1024.0,
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.stop();
        }
        for name in &self.containers {
            let _ = quiet(&mut command("podman", &["rm", "--force", "--time", "5", name]));
        }
        for table in tables().iter().filter(|table| !self.tables.contains(table)) {
            let words: Vec<&str> = ["delete"].into_iter().chain(table.split_whitespace()).collect();
            let _ = quiet(&mut command("nft", &words));
        }
    }
}

/// Tables of the packet filter: `table ip nat`.
fn tables() -> Vec<String> {
    let listed = workspace::output_of("nft", &["list", "tables"]).unwrap_or_default();
    listed.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}
