//! Builds the fuzz targets and runs each for a while.
//!
//! `cargo fuzz` does the same, and serves whoever looks into a finding; to install it takes a minute of two cores, and
//! all that is needed of it are the compiler's flags.

use std::path::PathBuf;
use std::process::Command;

use crate::steps::{command, quiet};
use crate::{Outcome, workspace};

/// What libFuzzer needs to see the way that an input takes (cargo-fuzz, `src/project.rs`, without a sanitizer: the code
/// has no unsafe to find fault with, and the stable compiler can build it).
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Clink-dead-code \
                     -Cdebug-assertions";

/// Memory in which a target has to do.
const MEMORY_MIB: u32 = 2048;

/// Where most targets spend their time. To optimise the others takes longer than a short run lasts.
const PARSERS: [&str; 4] = ["onehop-archive", "onehop-config", "onehop-http1", "onehop-wire"];

/// Targets that run at a time.
const SIDE_BY_SIDE: usize = 2;

/// Builds all.
fn build() -> Outcome {
    let manifest = folder().join("Cargo.toml").display().to_string();
    let mut words = vec!["build", "--quiet", "--release", "--bins"];
    let triple = triple()?;
    // With a target, build scripts are not made with these flags.
    words.extend(["--manifest-path", &manifest, "--target", &triple]);
    let mut cargo: Command = command("cargo", &words);
    cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    for package in PARSERS {
        cargo.args(["--config", &format!("profile.release.package.{package}.opt-level=1")]);
    }
    quiet(cargo.env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", target()))
}

/// Every target for some seconds. What one finds stays in `fuzz/artifacts`.
pub(crate) fn run(seconds: u64) -> Outcome {
    build()?;
    for names in names()?.chunks(SIDE_BY_SIDE) {
        println!("    {}: {seconds} s", names.join(", "));
        let ends: Vec<Result<(), String>> = std::thread::scope(|scope| {
            let runs: Vec<_> = names.iter().map(|name| scope.spawn(|| run_one(name, seconds))).collect();
            runs.into_iter().map(|run| run.join().unwrap_or_else(|_| Err("a run broke".to_owned()))).collect()
        });
        ends.into_iter().collect::<Result<(), String>>()?;
    }
    Ok(())
}

fn run_one(name: &str, seconds: u64) -> Result<(), String> {
    let run = || -> Outcome {
        let [corpus, artifacts] = ["corpus", "artifacts"].map(|kind| folder().join(kind).join(name));
        std::fs::create_dir_all(&corpus)?;
        std::fs::create_dir_all(&artifacts)?;
        let options = [
            format!("-artifact_prefix={}/", artifacts.display()),
            format!("-max_total_time={seconds}"),
            format!("-rss_limit_mb={MEMORY_MIB}"),
            "-verbosity=0".to_owned(),
            corpus.display().to_string(),
        ];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        quiet(&mut command(target().join(triple()?).join("release").join(name), &options))
    };
    run().map_err(|error| format!("{name}: {error}"))
}

/// One file each.
fn names() -> Outcome<Vec<String>> {
    let entries = std::fs::read_dir(folder().join("fuzz_targets"))?;
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    if names.is_empty() { Err("there are no fuzz targets".into()) } else { Ok(names) }
}

fn triple() -> Outcome<String> {
    let said = workspace::output_of("rustc", &["-vV"]).ok_or("rustc does not say its version")?;
    let triple = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(triple.ok_or("rustc does not name its host")?.to_owned())
}

fn folder() -> PathBuf {
    workspace::root().join("fuzz")
}

fn target() -> PathBuf {
    workspace::target().join("fuzz")
}
