//! From the start of a pack to its first page, where nothing is but the pack.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use onehop_load::measure::Start;
use onehop_load::measure::{self, Server};
use onehop_load::plan::{Expect, Timeouts};
use serde_json::{Value, json};

use crate::steps::{command, quiet};
use crate::{Outcome, workspace};

use super::Packer;
use crate::bench::interrupt;
use crate::bench::servers::{self, Cores, free_port};

/// The bound that the first page has to keep, in milliseconds.
const FIRST_PAGE_MS_MAX: f64 = 30.0;
/// Node needs a moment on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// An application that is packed: its folder among the examples, its page, and what its handlers answer.
struct Packed {
    name: &'static str,
    installs: bool,
    api: Option<&'static str>,
}

const APPLICATIONS: &[Packed] = &[
    Packed { name: "quickstart", installs: false, api: None },
    Packed { name: "express", installs: true, api: Some("/api/notes") },
    Packed { name: "api", installs: false, api: Some("/api/notes") },
];

/// Starts each application again and again, first with nothing unpacked, then as it was left.
pub(super) fn run(packer: &Packer, starts: u64, smoke: bool) -> Outcome<Value> {
    println!(
        "{:<12} {:>8} {:>22} {:>22} {:>16}",
        "", "MiB", "first page ms, median", "worst", "first API ms"
    );
    let mut rows = serde_json::Map::new();
    // Each has to compress a runtime first.
    let chosen = APPLICATIONS.iter().filter(|application| !smoke || application.name == "api");
    for application in chosen {
        let root = packer.folder(&format!("root-{}", application.name))?;
        packer.pack(&project(packer, application)?, &root.join("app"), &["--runtime", "node"])?;
        for is_unpacked in [false, true] {
            let mut pages = Vec::new();
            let mut answers = Vec::new();
            for _ in 0..starts {
                interrupt::check()?;
                if !is_unpacked {
                    keep_only_the_pack(&root)?;
                }
                let (page, answer) = first_answers(&root, application)?;
                pages.push(page);
                answers.extend(answer);
            }
            let (page, worst) =
                (onehop_statistics::median(&pages), pages.iter().copied().fold(0.0, f64::max));
            let answer = (!answers.is_empty()).then(|| onehop_statistics::median(&answers));
            let bytes = root.join("app").metadata()?.len();
            let state = if is_unpacked { "again" } else { "new" };
            let verdict = if worst < FIRST_PAGE_MS_MAX { "met" } else { "MISSED" };
            println!(
                "{:<12} {:>8.1} {page:>22.1} {worst:>22.1} {:>16.0} {state:>6}  {verdict}",
                application.name,
                bytes as f64 / f64::from(1 << 20),
                answer.unwrap_or(f64::NAN),
            );
            rows.insert(
                format!("{} {state}", application.name),
                json!({ "bytes": bytes, "first_page_ms": pages, "first_api_ms": answers }),
            );
        }
    }
    Ok(rows.into())
}

/// A copy of an example, with its dependencies and a page built by Vite where it has some to install.
fn project(packer: &Packer, application: &Packed) -> Outcome<PathBuf> {
    let from = workspace::root().join("examples").join(application.name);
    let to = packer.folder(application.name)?;
    quiet(&mut command("cp", &["-a", &format!("{}/.", from.display()), &to.display().to_string()]))?;
    if application.installs {
        let built = workspace::root().join("examples/quickstart/dist/.");
        let words =
            ["-a", &built.display().to_string(), &to.join("dist").display().to_string()].map(str::to_owned);
        quiet(command("cp", &[]).args(words))?;
        quiet(command("npm", &["ci", "--omit=dev", "--no-audit", "--no-fund"]).current_dir(&to))?;
    }
    Ok(to)
}

/// What an earlier start unpacked goes away.
fn keep_only_the_pack(root: &Path) -> Outcome {
    for entry in std::fs::read_dir(root)? {
        let path = entry?.path();
        if path.is_dir() {
            // Unpacked folders are closed to writing.
            quiet(&mut command("chmod", &["-R", "u+w", &path.display().to_string()]))?;
            std::fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

/// Milliseconds from the start to the first page, and to the first answer of a handler.
fn first_answers(root: &Path, application: &Packed) -> Outcome<(f64, Option<f64>)> {
    let port = free_port()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listen = address.to_string();
    let root = root.display().to_string();
    let words = ["chroot", &root, "/app", "--listen", &listen].map(str::to_owned);
    let start = Start {
        words: words.to_vec(),
        environment: Vec::new(),
        directory: None,
        port: Some(port),
        behind: Vec::new(),
        ready_within: READY_WITHIN,
    };
    // Both cores: the page must not wait for what is unpacked beside it.
    let mut server = Server::start(&start, &Cores::All.of_server())?;
    let mut until = |path: &str| -> Outcome<f64> {
        let ask = onehop_load::plan::Request { expect: Expect::Success, ..servers::ask(address, path)? };
        measure::wait_until_ready(&mut server, &ask, Timeouts::default(), READY_WITHIN)?;
        Ok(server.started_at().elapsed().as_secs_f64() * 1e3)
    };
    let page = until("/")?;
    let answer = application.api.map(&mut until).transpose()?;
    server.stop();
    Ok((page, answer))
}
