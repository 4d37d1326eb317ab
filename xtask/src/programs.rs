//! Runs what `cargo test` has built: programs that measure alone, the others side by side.
//!
//! `cargo test` runs one program after the other, and most of them wait for servers most of the time. It must never
//! leave one out: the list is cargo's own. Nothing is run twice: a test that fails has failed.
//!
//! A test that cannot run here prints `skipped: ` and the reason, and returns; it is counted. One that needs a foreign
//! program is `#[ignore]`d and stands in `FOREIGN`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;

use crate::steps::{command, note_skipped, quiet};
use crate::{Outcome, install};

/// Programs that wait run this many at a time, each with its own threads.
const SIDE_BY_SIDE: usize = 2;

const WORDS: [&str; 3] = ["test", "--workspace", "--locked"];

/// Which tests are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tests {
    /// Those within the crates, and those beside them that start no program.
    Quick,
    /// All but the foreign ones.
    All,
    /// Those that need a program which is neither ours nor Node.
    Foreign,
    /// Those of certificates from an ACME server, with Pebble beside us; without it they say that they are skipped. See [`acme`].
    Acme,
}

/// Programs of tests that are quick to build and to run, beside those within the crates.
const QUICK: [&str; 10] = [
    "any_input",
    "client_answers",
    "config",
    "differential",
    "file_allocations",
    "frames",
    "names",
    "refused_requests",
    "round_trips",
    "server_answers",
];

/// Package, program and what it is to run of it with foreign programs: nginx and Caddy read what `try` writes for them,
/// and Caddy passes on what onehop passes on.
const FOREIGN: [(&str, &str, &[&str]); 4] = [
    ("onehop", "access_logs", &["--ignored", "goaccess_reads_every_line"]),
    ("onehop", "https", &["--ignored", "haproxy_is_understood"]),
    ("onehop", "proxy", &["--ignored", "caddy_and_onehop_pass_the_same_on"]),
    ("try", "onehop_try", &["detect"]),
];

/// Measures a server that sleeps for as long as others work: it takes nothing from the tests beside it, nor they from it.
const SLEEPING: &str = "saturation";

/// Package and program of tests that need an ACME server.
const ACME: [(&str, &str); 2] = [("acme", "pebble"), ("onehop", "https_acme")];

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

/// Cargo with clippy in the place of the compiler: what it builds is linted on the way, and nothing is built twice for that.
/// A warning is an error.
pub(crate) fn linting(words: &[&str]) -> Command {
    let mut cargo = command("cargo", words);
    // As `cargo clippy` does it, whose words for clippy are one variable.
    cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    cargo.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    cargo
}

/// Builds and lints them.
pub(crate) fn build(tests: Tests) -> Outcome {
    quiet(linting(&words(tests)).arg("--no-run"))
}

/// Runs them. Comments have no examples to run: those are in the crates' `examples`, as `cargo xtask tidy` asks.
pub(crate) fn run(tests: Tests) -> Outcome {
    let mut programs = programs(tests)?;
    // The largest first: the last to end is then a short one.
    programs.sort_by_key(|program| std::cmp::Reverse(program.bytes));
    let named = match tests {
        Tests::Quick | Tests::All => None,
        Tests::Foreign => Some(FOREIGN.map(|(package, name, _)| (package, name)).to_vec()),
        Tests::Acme => Some(ACME.to_vec()),
    };
    if let Some(named) = named {
        programs.retain(|program| named.contains(&(&program.package, &program.name)));
        if programs.len() != named.len() {
            return Err(
                "a program of FOREIGN or ACME is not there: the lists are in xtask/src/programs.rs".into()
            );
        }
    }
    let (measuring, others): (Vec<Program>, Vec<Program>) = programs.into_iter().partition(measures);
    let (sleeping, measuring) = measuring.into_iter().partition(|program| program.name == SLEEPING);
    let mut failed = std::thread::scope(|scope| {
        let beside = scope.spawn(|| in_lanes(1, sleeping, tests));
        let mut failed = in_lanes(1, measuring, tests);
        failed.extend(beside.join().unwrap_or_else(|_| vec![format!("{SLEEPING} broke")]));
        failed
    });
    // Two programs would take the same ports for Pebble.
    let lanes = if tests == Tests::Acme { 1 } else { SIDE_BY_SIDE };
    failed.extend(in_lanes(lanes, others, tests));
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
}

/// Runs the tests of certificates from an ACME server.
pub(crate) fn acme() -> Outcome {
    install::pebble()?;
    run(Tests::Acme)
}

fn words(tests: Tests) -> Vec<&'static str> {
    let mut words = WORDS.to_vec();
    if tests == Tests::Quick {
        words.extend(["--lib", "--bins"]);
        words.extend(QUICK.iter().flat_map(|name| ["--test", name]));
    }
    words
}

/// Such tests hold the load's clock against the server's: nothing that works may run beside them.
fn measures(program: &Program) -> bool {
    ["bench", "load"].contains(&program.package.as_str()) || program.name.starts_with("bench")
}

fn programs(tests: Tests) -> Outcome<Vec<Program>> {
    let mut cargo = linting(&words(tests));
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
fn in_lanes(lanes: usize, programs: Vec<Program>, tests: Tests) -> Vec<String> {
    let waiting = Mutex::new(VecDeque::from(programs));
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(program) = next else { break };
                    if let Err(error) = run_one(&program, tests) {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(error);
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one; what it says is shown as one piece when it has ended.
fn run_one(program: &Program, which: Tests) -> Result<(), String> {
    let title = format!("{} {}", program.package, program.name);
    let begun = Instant::now();
    let mut tests = Command::new(&program.path);
    tests.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder).stdin(Stdio::null());
    if let (Tests::Foreign, Some(words)) = (which, program.foreign()) {
        tests.args(words).env("ONEHOP_FOREIGN", "1");
        if let Ok(caddy) = install::caddy() {
            tests.env("ONEHOP_CADDY", caddy);
        }
    }
    if which == Tests::Acme {
        tests.env("ONEHOP_PEBBLE", install::pebble().map_err(|error| error.to_string())?);
    }
    let output = tests.arg("--show-output").output().map_err(|error| format!("{title}: {error}"))?;
    let [said, complained] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    for (test, reason) in skipped(&said) {
        note_skipped(format!("{title}: {test}: {reason}"));
    }
    let shown = without_what_passed(&said);
    println!("    {title} ({:.1} s)\n{shown}{complained}", begun.elapsed().as_secs_f64());
    if which == Tests::Foreign && said.contains("running 0 tests") {
        return Err(format!("{title}: FOREIGN names no test of it"));
    }
    if output.status.success() { Ok(()) } else { Err(format!("{title} ended with {}", output.status)) }
}

impl Program {
    /// What of it needs foreign programs.
    fn foreign(&self) -> Option<&'static [&'static str]> {
        let row = FOREIGN.iter().find(|(package, name, _)| (*package, *name) == (&self.package, &self.name));
        row.map(|(.., words)| *words)
    }
}

/// Tests that printed why they cannot run here, with the reason (libtest shows what a test printed below its name).
fn skipped(said: &str) -> Vec<(&str, &str)> {
    let mut test = "";
    let mut found = Vec::new();
    for line in said.lines() {
        if let Some(name) = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----")) {
            test = name;
        } else if let Some(reason) = line.strip_prefix("skipped: ") {
            found.push((test, reason));
        }
    }
    found
}

/// Without what tests printed that passed, which is shown for [`skipped`] only.
fn without_what_passed(said: &str) -> String {
    let to = said.find("\nfailures:\n").or_else(|| said.rfind("\ntest result: "));
    match (said.find("\nsuccesses:\n"), to) {
        (Some(from), Some(to)) if from < to => format!("{}{}", &said[..from], &said[to..]),
        _ => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_were_skipped_are_found_and_what_others_printed_is_left_out() {
        let said = "\nrunning 2 tests\ntest a::b ... ok\ntest c ... ok\n\nsuccesses:\n\n---- a::b stdout ----\nskipped: no root\n\n\n---- c stdout ----\nhello\n\n\nsuccesses:\n    a::b\n    c\n\ntest result: ok. 2 passed\n";
        assert_eq!(skipped(said), [("a::b", "no root")]);
        let shown = "\nrunning 2 tests\ntest a::b ... ok\ntest c ... ok\n\ntest result: ok. 2 passed\n";
        assert_eq!(without_what_passed(said), shown);
        let failed =
            said.replace("\ntest result: ok", "\nfailures:\n\n---- d stdout ----\n\ntest result: FAILED");
        assert!(without_what_passed(&failed).contains("test c ... ok\n\nfailures:\n\n---- d stdout"));
    }

    #[test]
    fn programs_of_tests_are_picked_from_all_that_cargo_says() {
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
