//! Builds the fuzz targets and runs each for a while.
//!
//! `cargo fuzz` does the same, and serves whoever looks into a finding; to install it takes a minute of two cores, and
//! all that is needed of it are the compiler's flags.

use std::path::PathBuf;

use crate::steps::{command, quiet};
use crate::{Outcome, workspace};

/// Memory in which a target has to do.
const MEMORY_MIB: u32 = 2048;

/// Where most targets spend their time, beside what the tests optimise. To optimise the others takes longer than a short run lasts.
const PARSERS: [&str; 3] = ["onehop-archive", "onehop-config", "onehop-wire"];

/// Targets that run at a time.
const SIDE_BY_SIDE: usize = 2;

/// Builds all, with the crates of others as the tests have built them.
fn build() -> Outcome {
    let mut cargo = command("cargo", &["build", "--quiet", "--locked", "--package", "onehop-fuzz", "--bins"]);
    for package in PARSERS {
        cargo.args(["--config", &format!("profile.dev.package.{package}.opt-level=1")]);
    }
    quiet(cargo.env("RUSTC_WORKSPACE_WRAPPER", folder().join("rustc")))
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
        quiet(&mut command(workspace::target().join("debug").join(name), &options))
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

fn folder() -> PathBuf {
    workspace::root().join("fuzz")
}
