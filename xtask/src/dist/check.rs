//! `cargo xtask dist --check`: each package is installed as a person would, into a folder, and its program is run.
//!
//! Nothing of the machine is changed: dpkg gets a root of its own, npm a project, pip an environment. What cannot be
//! tried here (no npm, no Python) is said and is no failure.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::steps::{Skip, Steps, quiet};
use crate::{Outcome, workspace};

use super::architecture::Architecture;
use super::release::Release;
use super::{Depth, Part, deb, npm, wheel};

/// What is tried, and where.
struct Check<'a> {
    /// With the packages.
    folder: &'a Path,
    /// For installing into.
    place: PathBuf,
    release: &'a Release,
    architecture: Architecture,
}

/// Tries the packages of this machine's architecture.
pub(super) fn run(folder: &Path, release: &Release, parts: &[Part], depth: Depth) -> Outcome {
    let architecture = Architecture::of_this_machine()
        .filter(|host| parts.iter().any(|part| part.architecture == *host))
        .ok_or("--check runs the program: package one of this machine's architecture, too")?;
    let temporary = tempfile::Builder::new().prefix("dist-check-").tempdir_in(workspace::target())?;
    let check = Check { folder, place: temporary.path().to_owned(), release, architecture };
    let mut steps = Steps::new("cargo xtask dist --check");
    steps.step("sums", || {
        quiet(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(folder))
    });
    steps.step("deb", || check.deb());
    if depth == Depth::Whole {
        steps.step("lintian", || check.lintian());
    }
    steps.step("unit", || check.unit());
    steps.step("npm", || check.npm());
    steps.step("wheel", || check.wheel());
    steps.finish()
}

impl Check<'_> {
    fn package(&self, name: &str) -> Outcome<PathBuf> {
        Ok(std::path::absolute(self.folder.join(name))?)
    }

    fn subfolder(&self, name: &str) -> Outcome<PathBuf> {
        let folder = self.place.join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// The program says that it is this release.
    fn version(&self, program: &Path) -> Outcome {
        let version = workspace::output_of(program, &["--version"]);
        match version == Some(format!("onehop {}", self.release.version)) {
            true => Ok(()),
            false => Err(format!("{} --version: {version:?}", program.display()).into()),
        }
    }

    fn deb(&self) -> Outcome {
        let package = self.package(&deb::file_name(self.release, self.architecture))?;
        available("dpkg", "--version")?;
        let root = self.subfolder("root")?;
        for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
            std::fs::create_dir_all(root.join(folder))?;
        }
        std::fs::write(root.join("var/lib/dpkg/status"), "")?;
        let dpkg = |word: &str, subject: &Path| {
            let mut dpkg = Command::new("dpkg");
            dpkg.arg(format!("--root={}", root.display())).arg(format!("--log={}/log", root.display()));
            dpkg.args(["--force-not-root", "--force-script-chrootless", "--force-depends", word])
                .arg(subject);
            quiet(&mut dpkg)
        };
        dpkg("--install", &package)?;
        let program = root.join("usr/bin/onehop");
        self.version(&program)?;
        let settings = root.join("etc/onehop/Onehopfile");
        quiet(Command::new(&program).arg("validate").arg(&settings))?;
        dpkg("--verify", Path::new("onehop"))?;

        std::fs::write(&settings, "http://:8080 {\n\trespond mine\n}\n")?;
        dpkg("--install", &package)?;
        if !std::fs::read_to_string(&settings)?.contains("mine") {
            return Err("installing again replaced a configuration that was changed".into());
        }
        dpkg("--remove", Path::new("onehop"))?;
        if program.exists() || !settings.exists() {
            return Err("after --remove the program is to be gone and the configuration to be there".into());
        }
        dpkg("--purge", Path::new("onehop"))?;
        match settings.exists() {
            true => Err("after --purge the configuration is still there".into()),
            false => Ok(()),
        }
    }

    fn lintian(&self) -> Outcome {
        available("lintian", "--version")?;
        let package = self.package(&deb::file_name(self.release, self.architecture))?;
        let mut lintian = Command::new("lintian");
        lintian.args(["--allow-root", "--no-cfg", "--fail-on", "error", "--tag-display-limit", "0"]);
        quiet(lintian.arg(package))
    }

    /// systemd's own check of the unit, as it lies in the package.
    fn unit(&self) -> Outcome {
        available("systemd-analyze", "--version")?;
        let root = self.subfolder("unit")?;
        let package = self.package(&deb::file_name(self.release, self.architecture))?;
        quiet(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&root))?;
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no", "--recursive-errors=no", "--root"]).arg(&root);
        quiet(verify.arg("onehop.service"))
    }

    fn npm(&self) -> Outcome {
        available("npm", "--version")?;
        let project = self.subfolder("project")?;
        std::fs::write(project.join("package.json"), "{ \"private\": true }\n")?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts"])
            .current_dir(&project);
        npm.arg(self.package(&npm::platform_file_name(self.release, self.architecture))?);
        quiet(npm.arg(self.package(&npm::main_file_name(self.release))?))?;
        let launcher = project.join("node_modules/.bin/onehop");
        self.version(&launcher)?;
        serves_and_stops(&launcher, &project)
    }

    fn wheel(&self) -> Outcome {
        available("python3", "--version")?;
        let place = self.place.join("environment");
        quiet(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
        let mut pip = Command::new(place.join("bin/pip"));
        pip.args(["install", "--quiet", "--no-index", "--disable-pip-version-check"]);
        quiet(pip.arg(self.package(&wheel::file_name(self.release, self.architecture))?))?;
        self.version(&place.join("bin/onehop"))?;
        let mut pip = Command::new(place.join("bin/pip"));
        quiet(pip.args(["--disable-pip-version-check", "uninstall", "--quiet", "--yes", "onehop"]))?;
        match place.join("bin/onehop").exists() {
            true => Err("pip left the program behind".into()),
            false => Ok(()),
        }
    }
}

/// Started by the launcher it serves, and a SIGTERM that only the launcher gets ends both in order.
fn serves_and_stops(launcher: &Path, folder: &Path) -> Outcome {
    let mut serve = Command::new(launcher);
    serve.args(["serve", ".", "--listen", "127.0.0.1:0", "--admin", "off", "--control", "off"]);
    let mut child = serve.current_dir(folder).stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stderr.take().ok_or("no pipe")?).lines();
    let mut said = Vec::new();
    let mut was_asked = false;
    // The lines end when nobody holds the pipe any more: neither the launcher nor the server.
    for line in lines.by_ref() {
        let line = line?;
        if !was_asked && line.contains("127.0.0.1:") {
            let launcher = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(launcher, rustix::process::Signal::TERM)?;
            was_asked = true;
        }
        said.push(line);
    }
    let status = child.wait()?;
    match was_asked && status.success() {
        true => Ok(()),
        false => Err(format!("served by the launcher, it ended with {status}:\n{}", said.join("\n")).into()),
    }
}

fn available(program: &str, option: &str) -> Outcome {
    match workspace::output_of(program, &[option]) {
        Some(_) => Ok(()),
        None => Err(Skip(format!("{program} is not installed")).into()),
    }
}
