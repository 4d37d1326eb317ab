//! What is measured beside onehop and no package has: small servers that are built here, and the site that all serve.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use onehop_bench::compare::Source;
use onehop_bench::scenario::{Choice, Scenario};
use onehop_load::measure::{Server, Stage, Staged};
use onehop_load::plan::{Expect, Timeouts};
use onehop_testkit::tls::Authority;

use crate::steps::{command, quiet};
use crate::{Outcome, install, workspace};

use super::servers::{self, Cores};

/// Builds a server of benchmarks/rivals and says where it is.
pub(crate) fn build(name: &str) -> Outcome<PathBuf> {
    build_in("benchmarks/rivals", &format!("rival-{name}"))
}

/// Builds a package of a workspace of its own, optimised, with the versions of its lockfile.
pub(crate) fn build_in(folder: &str, package: &str) -> Outcome<PathBuf> {
    let manifest = workspace::root().join(folder).join("Cargo.toml").display().to_string();
    let build = workspace::target_folder("rivals")?;
    let words = ["build", "--release", "--locked", "--manifest-path", &manifest, "--package", package];
    quiet(command("cargo", &words).env("CARGO_TARGET_DIR", &build))?;
    Ok(build.join("release").join(package))
}

/// An onehop that needs no libraries, for images. `ONEHOP_STATIC` names one that is there.
pub(crate) fn static_onehop() -> Outcome<PathBuf> {
    if let Some(path) = std::env::var_os("ONEHOP_STATIC") {
        return Ok(PathBuf::from(path));
    }
    let build = workspace::target_folder("static")?;
    let words = ["rustc", "--release", "--locked", "--package", "onehop", "--bin", "onehop"];
    let mut cargo = command("cargo", &words);
    quiet(cargo.args(["--", "-C", "target-feature=+crt-static"]).env("CARGO_TARGET_DIR", &build))?;
    Ok(build.join("release/onehop"))
}

/// The folder that is served, made anew: the same bytes on every machine.
pub(crate) fn make_site() -> Outcome<PathBuf> {
    let folder = workspace::root().join("benchmarks/site");
    let script = workspace::root().join("benchmarks/files/make-site.mjs");
    let words = [script.display().to_string(), folder.display().to_string()];
    workspace::output_of("node", &[&words[0], &words[1]]).ok_or("node cannot make benchmarks/site")?;
    Ok(folder)
}

/// The certificate that servers of scenarios with HTTPS show, and the root that issued it: made once for a checkout.
pub(crate) fn make_certificate() -> Outcome {
    let folder = workspace::target_folder("bench/https")?;
    if folder.join("site.key").exists() {
        return Ok(());
    }
    let authority = Authority::new("Benchmarks");
    let site = authority.issue(&["localhost"]);
    std::fs::write(folder.join("root.pem"), &authority.root_pem)?;
    std::fs::write(folder.join("site.pem"), site.chain_pem)?;
    Ok(std::fs::write(folder.join("site.key"), site.key_pem)?)
}

/// A server of the scenario of files, started; what it needs around it ends after it.
pub(super) struct Running {
    /// Its processes.
    pub(super) server: Server,
    _staged: Staged,
}

/// A server of the scenario of files, as the scenario starts it.
pub(super) fn stage(name: &str, environment: &[(&str, &str)]) -> Outcome<Stage> {
    let scenario = Scenario::read(&workspace::root().join("benchmarks/files"))?;
    let case = scenario.file.cases.first().ok_or("the scenario of files has no case")?;
    let target = scenario.targets(case, &Choice::default())?.into_iter().find(|target| target.name == name);
    let Some(Source::Staged(mut stage)) = target.map(|target| target.source) else {
        return Err(format!("the scenario of files has no server {name}").into());
    };
    let program = match name {
        "onehop" => workspace::program(),
        "caddy" => install::caddy()?,
        "nginx" => {
            install::debian(&["nginx-light", "libnginx-mod-http-brotli-static"])?;
            PathBuf::from("/usr/sbin/nginx")
        }
        _ => return Err(format!("{name} is not known here").into()),
    };
    if let Some(word) = stage.start.words.first_mut() {
        *word = std::path::absolute(program)?.display().to_string();
    }
    let own = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    stage.start.environment.extend(own);
    Ok(stage)
}

/// Starts one, on the servers' core.
pub(super) fn start(name: &str, environment: &[(&str, &str)]) -> Outcome<Running> {
    let cores = Cores::Apart.of_server();
    let staged =
        stage(name, environment)?.set(&cores, Timeouts::default(), &|| false)?.ok_or("broken off")?;
    Ok(Running { server: Server::start(&staged.start, &cores)?, _staged: staged })
}

impl Running {
    /// Where it answers.
    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.server.port()))
    }

    /// Waits for the first whole answer of a kind; gives the time from the start to it.
    pub(super) fn wait_until_ready(&mut self, path: &str) -> Outcome<Duration> {
        servers::wait_until_ready(&mut self.server, path, Expect::Success)
    }
}
