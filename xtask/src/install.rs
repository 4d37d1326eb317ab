//! Installs what tests and benchmarks need, and nothing that is there already.
//!
//! Sources are the ordinary ones only: Debian's packages, crates.io, npm, the Go module proxy. What
//! is built lands in `target/tools`; nothing is changed outside the checkout but Debian's packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{Skip, command, quiet, whole_output};
use crate::{Outcome, workspace};

/// Version of Caddy that answers are compared with.
pub(crate) const CADDY_VERSION: &str = "v2.11.9";

/// Debian's is older than what orders with profiles and renewal information need.
const PEBBLE_VERSION: &str = "v2.10.0";

/// The last release of h2spec.
const H2SPEC_VERSION: &str = "v2.2.1+incompatible";

const CARGO_DENY_VERSION: &str = "0.20.2";

const STATIC_WEB_SERVER_VERSION: &str = "2.44.1";

/// Debian packages with which images are run.
pub(crate) const CONTAINERS: &[&str] = &["podman", "runc", "nftables"];

/// Debian packages; those that are there are not touched.
pub(crate) fn debian(packages: &[&str]) -> Outcome {
    let missing: Vec<&str> = packages.iter().copied().filter(|package| !debian_has(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("    installing from Debian: {}", missing.join(" "));
    let is_root = workspace::output_of("id", &["-u"]).as_deref() == Some("0");
    let apt = |arguments: &[&str]| {
        let mut line: Vec<&str> = if is_root { vec![] } else { vec!["sudo", "-n"] };
        line.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]);
        line.extend(arguments);
        quiet(&mut command(line[0], &line[1..]))
    };
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(&missing);
    apt(&["update"]).and_then(|()| apt(&install)).map_err(|error| {
        format!("cannot install {} (root, or sudo without a password, is needed): {error}", missing.join(" "))
            .into()
    })
}

fn debian_has(package: &str) -> bool {
    workspace::output_of("dpkg-query", &["-W", "-f", "${db:Status-Status}", package]).as_deref()
        == Some("installed")
}

/// Where tools that we build are put.
pub(crate) fn tools() -> Outcome<PathBuf> {
    workspace::target_folder("tools/bin")
}

/// cargo-deny, built without optimisation: that takes half a minute instead of four.
pub(crate) fn cargo_deny() -> Outcome<PathBuf> {
    cargo_tool("cargo-deny", CARGO_DENY_VERSION, &["--debug", "--config", "profile.dev.debug=false"], &[])
}

/// static-web-server, optimised: it is measured.
pub(crate) fn static_web_server() -> Outcome<PathBuf> {
    cargo_tool("static-web-server", STATIC_WEB_SERVER_VERSION, &[], &[])
}

fn cargo_tool(name: &str, version: &str, options: &[&str], environment: &[(&str, &str)]) -> Outcome<PathBuf> {
    let path = tools()?.join(name);
    if path.exists() {
        return Ok(path);
    }
    println!("    building {name} {version}");
    let place = workspace::target().join("tools");
    let build = workspace::target().join("tools-build");
    let mut install = command("cargo", &["install", &format!("{name}@{version}"), "--locked"]);
    install.args(options).arg("--root").arg(&place).env("CARGO_TARGET_DIR", &build);
    install.envs(environment.iter().copied());
    quiet(&mut install)?;
    Ok(path)
}

/// Caddy, built from its module. `ONEHOP_CADDY` names one that is there.
pub(crate) fn caddy() -> Outcome<PathBuf> {
    if let Some(path) = std::env::var_os("ONEHOP_CADDY") {
        return Ok(PathBuf::from(path));
    }
    let path = tools()?.join("caddy");
    if path.exists() {
        return Ok(path);
    }
    let Some(go) = go() else {
        return Err(Skip(
            "Caddy is built with Go 1.25 or later, which is neither here nor in Debian 12".to_owned(),
        )
        .into());
    };
    println!("    building Caddy {CADDY_VERSION}");
    let module = format!("github.com/caddyserver/caddy/v2/cmd/caddy@{CADDY_VERSION}");
    quiet(command(go, &["install", "-trimpath", "-ldflags=-s -w", &module]).env("GOBIN", tools()?))?;
    Ok(path)
}

/// The source of Caddy, as its module has it.
pub(crate) fn caddy_source() -> Outcome<PathBuf> {
    let Some(go) = go() else {
        return Err(
            Skip("Caddy's module is fetched with Go 1.25 or later, which is not here".to_owned()).into()
        );
    };
    let module = format!("github.com/caddyserver/caddy/v2@{CADDY_VERSION}");
    let fetched: serde_json::Value =
        serde_json::from_str(&whole_output(&mut command(go, &["mod", "download", "-json", &module]))?)?;
    let folder = fetched["Dir"].as_str().ok_or_else(|| format!("Go does not say where {module} is"))?;
    Ok(PathBuf::from(folder))
}

/// The folder with Pebble, the test server of Let's Encrypt, and the DNS server that it asks, built from their module.
/// `ONEHOP_PEBBLE` names one that is there.
pub(crate) fn pebble() -> Outcome<PathBuf> {
    if let Some(path) = std::env::var_os("ONEHOP_PEBBLE") {
        return Ok(PathBuf::from(path));
    }
    let folder = workspace::target_folder("tools/pebble")?;
    for name in ["pebble", "pebble-challtestsrv"].into_iter().filter(|name| !folder.join(name).exists()) {
        let Some(go) = go() else {
            return Err(Skip("Pebble is built with Go 1.25 or later, which is not here".to_owned()).into());
        };
        println!("    building {name} {PEBBLE_VERSION}");
        let module = format!("github.com/letsencrypt/pebble/v2/cmd/{name}@{PEBBLE_VERSION}");
        quiet(command(go, &["install", "-trimpath", "-ldflags=-s -w", &module]).env("GOBIN", &folder))?;
    }
    Ok(folder)
}

/// h2spec, which asks a server for what RFC 9113 and RFC 7541 demand, built from its module.
pub(crate) fn h2spec() -> Outcome<PathBuf> {
    let path = tools()?.join("h2spec");
    if path.exists() {
        return Ok(path);
    }
    let Some(go) = go() else {
        return Err(Skip("h2spec is built with Go 1.25 or later, which is not here".to_owned()).into());
    };
    println!("    building h2spec {H2SPEC_VERSION}");
    let module = format!("github.com/summerwind/h2spec/cmd/h2spec@{H2SPEC_VERSION}");
    quiet(command(go, &["install", "-trimpath", "-ldflags=-s -w", &module]).env("GOBIN", tools()?))?;
    Ok(path)
}

/// Bun, as npm carries it.
pub(crate) fn bun() -> Outcome<PathBuf> {
    Ok(javascript_rival("bun")?.join("node_modules/@oven/bun-linux-x64/bin/bun"))
}

fn go() -> Option<&'static str> {
    ["go", "/usr/local/go/bin/go"].into_iter().find(|go| {
        let minor = workspace::output_of(go, &["env", "GOVERSION"])
            .and_then(|version| version.split('.').nth(1)?.parse::<u32>().ok());
        minor.is_some_and(|minor| minor >= 25)
    })
}

/// The packages of a folder's lockfile; done again only when the lockfile is newer than they are.
pub(crate) fn npm(folder: &str) -> Outcome {
    let folder = workspace::root().join(folder);
    let stamp = folder.join("node_modules/.package-lock.json");
    if modified(&stamp) >= modified(&folder.join("package-lock.json")) && stamp.exists() {
        return Ok(());
    }
    println!("    npm ci in {}", folder.display());
    quiet(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder))
}

/// The packages that an experiment's applications use: of npm, and of PyPI where it has `requirements.txt`.
pub(crate) fn packages_of(experiment: &str) -> Outcome {
    npm(experiment)?;
    let folder = workspace::root().join(experiment);
    let place = folder.join("venv");
    let wanted = match std::fs::read_to_string(folder.join("requirements.txt")) {
        Ok(wanted) if std::fs::read_to_string(place.join("installed.txt")).unwrap_or_default() != wanted => {
            wanted
        }
        _ => return Ok(()),
    };
    println!("    installing requirements.txt of {experiment} from PyPI");
    quiet(command("python3", &["-m", "venv", "--clear"]).arg(&place))?;
    let mut pip = command(place.join("bin/pip"), &["install", "--quiet", "--disable-pip-version-check"]);
    quiet(pip.arg("--requirement").arg(folder.join("requirements.txt")))?;
    // Written last: what is there without it was interrupted.
    Ok(std::fs::write(place.join("installed.txt"), wanted)?)
}

/// The packages of a folder below benchmarks/rivals, installed below the target folder; says where.
pub(crate) fn javascript_rival(name: &str) -> Outcome<PathBuf> {
    let from = workspace::root().join("benchmarks/rivals").join(name);
    let place = workspace::target_folder(&format!("rivals/javascript/{name}"))?;
    let is_current = std::fs::read(from.join("package-lock.json"))?
        == std::fs::read(place.join("installed-lock.json")).unwrap_or_default();
    if is_current {
        return Ok(place);
    }
    println!("    installing {name} from npm");
    for file in ["package.json", "package-lock.json", ".npmrc"] {
        std::fs::copy(from.join(file), place.join(file))?;
    }
    quiet(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&place))?;
    // Written last: what is there without it was interrupted.
    std::fs::copy(from.join("package-lock.json"), place.join("installed-lock.json"))?;
    Ok(place)
}

fn modified(path: &Path) -> Option<std::time::SystemTime> {
    path.metadata().and_then(|facts| facts.modified()).ok()
}

/// As many descriptors as this user may have, for us and for what we start.
pub(crate) fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
