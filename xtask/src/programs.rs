//! Runs what `cargo test` has built: programs that measure alone, the others side by side.
//!
//! `cargo test` runs one program after the other, and most of them wait for servers most of the time. It must never
//! leave one out: the list is cargo's own.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;

use crate::Outcome;
use crate::steps::{command, quiet, shown};

/// Programs that wait run this many at a time, each with its own threads.
const SIDE_BY_SIDE: usize = 2;

const WORDS: [&str; 3] = ["test", "--workspace", "--locked"];

/// A program of tests.
#[derive(Debug)]
struct Program {
    /// Its folder's name: `load`.
    package: String,
    name: String,
    /// Where cargo runs it: its package's.
    folder: PathBuf,
    path: PathBuf,
    bytes: u64,
}

/// Builds all.
pub(crate) fn build() -> Outcome {
    quiet(command("cargo", &WORDS).arg("--no-run"))
}

/// Runs all, and the examples of the documentation.
pub(crate) fn run() -> Outcome {
    let mut programs = programs()?;
    // The largest first: the last to end is then a short one.
    programs.sort_by_key(|program| std::cmp::Reverse(program.bytes));
    let (alone, others): (Vec<Program>, Vec<Program>) = programs.into_iter().partition(measures);
    let mut failed = in_lanes(1, alone);
    failed.extend(in_lanes(SIDE_BY_SIDE, others));
    if let Err(error) = shown(command("cargo", &WORDS).arg("--doc")) {
        failed.push(error.to_string());
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
}

/// Such tests hold the load's clock against the server's: nothing may run beside them.
fn measures(program: &Program) -> bool {
    program.package == "load" || program.name.starts_with("bench")
}

fn programs() -> Outcome<Vec<Program>> {
    let mut cargo = command("cargo", &WORDS);
    let output =
        cargo.args(["--no-run", "--quiet", "--message-format=json"]).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("cargo test --no-run ended with {}", output.status).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let programs: Vec<Program> = text.lines().filter_map(program).collect();
    if programs.is_empty() { Err("cargo names no programs of tests".into()) } else { Ok(programs) }
}

/// What a line of cargo's says about a program of tests (The Cargo Book, "External tools", "Artifact messages").
fn program(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let name = message["target"]["name"].as_str()?.to_owned();
    let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
    let package = folder.file_name()?.to_str()?.to_owned();
    Some(Program { package, name, folder, path, bytes })
}

/// Runs all in so many lanes; the words about those that failed.
fn in_lanes(lanes: usize, programs: Vec<Program>) -> Vec<String> {
    let waiting = Mutex::new(VecDeque::from(programs));
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(program) = next else { break };
                    if let Err(error) = run_one(&program) {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(error);
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one; what it says is shown as one piece when it has ended.
fn run_one(program: &Program) -> Result<(), String> {
    let title = format!("{} {}", program.package, program.name);
    let begun = Instant::now();
    let mut tests = Command::new(&program.path);
    tests.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder).stdin(Stdio::null());
    let output = tests.output().map_err(|error| format!("{title}: {error}"))?;
    let [said, complained] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    println!("    {title} ({:.1} s)\n{said}{complained}", begun.elapsed().as_secs_f64());
    if output.status.success() { Ok(()) } else { Err(format!("{title} ended with {}", output.status)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_tests_are_told_from_all_else_that_cargo_says() {
        let artifact = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/here/crates/load/Cargo.toml","target":{{"name":"engine"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let found = program(&artifact(true, "\"/here/target/engine\"")).expect("a program");
        assert_eq!((found.package.as_str(), found.name.as_str()), ("load", "engine"));
        assert_eq!(found.folder, Path::new("/here/crates/load"));
        assert!(measures(&found));
        for line in [&artifact(false, "\"/here/target/engine\""), &artifact(true, "null"), "{}", "no JSON"] {
            assert!(program(line).is_none(), "{line}");
        }
    }
}
