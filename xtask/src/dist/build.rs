//! The program as one static file, which runs on any Linux of its architecture.
//!
//! For this machine's architecture with Debian's `musl-gcc`; for another one with zig as C compiler and linker, which
//! brings musl's headers for all of them (cargo-zigbuild, from PyPI with zig). Nothing is installed but Debian's
//! package, the target of rustup, and a folder of Python's packages in `target/tools`.

use std::path::PathBuf;

use crate::steps::{command, quiet, shown};
use crate::{Outcome, install, workspace};

use super::architecture::Architecture;
use super::release::Release;

/// Packages of PyPI with which another architecture is built for.
const CROSS_TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.1"];

/// Builds it and says where it is.
pub(super) fn build(architecture: Architecture, release: &Release) -> Outcome<PathBuf> {
    let triple = architecture.triple();
    if workspace::output_of("rustc", &["--print", "target-libdir", "--target", &triple])
        .is_none_or(|folder| !std::path::Path::new(&folder).exists())
    {
        quiet(&mut command("rustup", &["target", "add", &triple]))?;
    }
    let is_native = Architecture::of_this_machine() == Some(architecture);
    let kind = if is_native { "build" } else { "zigbuild" };
    let profile = workspace::PUBLISHED_PROFILE;
    let words = [kind, "--profile", profile, "--locked", "--package", "onehop", "--target", &triple];
    let mut cargo = command("cargo", &words);
    if is_native {
        install::debian(&["musl-tools"])?;
        cargo.env(format!("CC_{}", triple.replace('-', "_")), "musl-gcc");
    } else {
        // Where `cargo zigbuild` and the Python that knows zig are found.
        let tools = cross_tools()?.display().to_string();
        cargo.env("PATH", format!("{tools}:{}", std::env::var("PATH").unwrap_or_default()));
    }
    // Paths of this machine, which panics would show, become the same everywhere.
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))?;
    let flags = [(workspace::root().display().to_string(), "/onehop"), (home, "/cargo")]
        .map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    cargo.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    cargo.envs(allocator_settings(architecture));
    cargo.env("CARGO_TARGET_DIR", workspace::target());
    shown(&mut cargo)?;
    Ok(workspace::target().join(&triple).join(profile).join("onehop"))
}

/// How jemalloc is built in. What is free for a second goes back to the system, at once and not in two steps: by default it
/// stays for ten. Pages of 64-bit ARM have up to 64 KiB, which has to be known when it is compiled.
fn allocator_settings(architecture: Architecture) -> Vec<(&'static str, &'static str)> {
    let mut settings = vec![("JEMALLOC_SYS_WITH_MALLOC_CONF", "dirty_decay_ms:1000,muzzy_decay_ms:0")];
    if architecture == Architecture::Aarch64 {
        settings.push(("JEMALLOC_SYS_WITH_LG_PAGE", "16"));
    }
    settings
}

/// The folder with zig's programs, made if it is missing or holds other versions.
fn cross_tools() -> Outcome<PathBuf> {
    let place = workspace::target_folder("tools")?.join("zig");
    let stamp = place.join("installed.txt");
    let wanted = CROSS_TOOLS.join("\n");
    if std::fs::read_to_string(&stamp).unwrap_or_default() != wanted {
        println!("    installing {} from PyPI", CROSS_TOOLS.join(" and "));
        quiet(command("python3", &["-m", "venv", "--clear"]).arg(&place))?;
        let mut pip = command(place.join("bin/pip"), &["install", "--quiet", "--disable-pip-version-check"]);
        quiet(pip.args(CROSS_TOOLS))?;
        // Written last: what is there without it was interrupted.
        std::fs::write(&stamp, wanted)?;
    }
    Ok(place.join("bin"))
}
