//! A row of named steps: each is run, timed and reported; the output of a failing one is shown.
//!
//! It decides nothing about what a step does. A step that fails does not stop the others, unless they
//! are marked as needing it.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{Outcome, workspace};

/// How a step ended.
enum End {
    Passed,
    Skipped(String),
    Failed(String),
}

/// The steps of one run and how they ended.
pub(crate) struct Steps {
    title: &'static str,
    begun: Instant,
    ends: Vec<(String, Duration, End)>,
}

/// Tests within steps that were skipped, with their reasons.
static SKIPPED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Counts a test that was skipped within a step: its name and the reason.
pub(crate) fn note_skipped(test: String) {
    SKIPPED.lock().unwrap_or_else(PoisonError::into_inner).push(test);
}

/// A step that cannot run here, with the reason; counted apart from passed and failed.
#[derive(Debug)]
pub(crate) struct Skip(pub(crate) String);

impl std::fmt::Display for Skip {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

impl Steps {
    /// A row without steps.
    pub(crate) fn new(title: &'static str) -> Steps {
        Steps { title, begun: Instant::now(), ends: Vec::new() }
    }

    /// Runs one step and says how it went.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Outcome) {
        println!("==> {name}");
        let _ = std::io::stdout().flush();
        let begun = Instant::now();
        let end = match work() {
            Ok(()) => End::Passed,
            Err(error) if error.is::<Skip>() => End::Skipped(error.to_string()),
            Err(error) => End::Failed(error.to_string()),
        };
        let took = begun.elapsed();
        match &end {
            End::Passed => println!("    {name}: ok ({:.1} s)", took.as_secs_f64()),
            End::Skipped(reason) => println!("    {name}: SKIPPED: {reason}"),
            End::Failed(reason) => {
                println!("    {name}: FAILED ({:.1} s), {}\n{reason}", took.as_secs_f64(), free_space());
            }
        }
        self.ends.push((name.to_owned(), took, end));
    }

    /// Whether a step of this name ran and failed.
    pub(crate) fn failed(&self, name: &str) -> bool {
        self.ends.iter().any(|(step, _, end)| step == name && matches!(end, End::Failed(_)))
    }

    /// Prints the sum and what was skipped; an error when a step failed, and where nothing may be skipped (`CI=true`).
    pub(crate) fn finish(self) -> Outcome {
        println!("\n{}:", self.title);
        let (mut passed, mut skipped, mut failed) = (0, 0, 0);
        for (name, took, end) in &self.ends {
            let word = match end {
                End::Passed => {
                    passed += 1;
                    "ok"
                }
                End::Skipped(reason) => {
                    skipped += 1;
                    note_skipped(format!("{name}: {reason}"));
                    "skipped"
                }
                End::Failed(_) => {
                    failed += 1;
                    "FAILED"
                }
            };
            println!("  {name:<24} {word:<8} {:>7.1} s", took.as_secs_f64());
        }
        let all = self.begun.elapsed().as_secs();
        println!(
            "{}: {passed} steps passed, {failed} failed, {skipped} skipped, in {} min {:02} s",
            self.title,
            all / 60,
            all % 60
        );
        let left_out = std::mem::take(&mut *SKIPPED.lock().unwrap_or_else(PoisonError::into_inner));
        println!("{}: {} skipped steps and tests", self.title, left_out.len());
        for test in &left_out {
            println!("  skipped: {test}");
        }
        if failed > 0 {
            return Err(format!("{failed} of {} steps failed", self.ends.len()).into());
        }
        if !left_out.is_empty() && std::env::var("CI").is_ok_and(|value| value == "true") {
            return Err(format!("{} steps and tests were skipped, and CI allows none", left_out.len()).into());
        }
        Ok(())
    }
}

/// What is left on the disks that steps write to: tests fail in many ways where one is full.
fn free_space() -> String {
    let free = |folder: &std::path::Path| {
        rustix::fs::statvfs(folder).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize) >> 20)
    };
    let temporary = std::env::temp_dir();
    format!("{} MiB free here, {} MiB in {}", free(&workspace::root()), free(&temporary), temporary.display())
}

/// Runs a command quietly; its output is kept and becomes the error's text when it fails.
pub(crate) fn quiet(command: &mut Command) -> Outcome {
    whole_output(command).map(drop)
}

/// What a command writes to its standard output, when it has ended.
pub(crate) fn whole_output(command: &mut Command) -> Outcome<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!(
        "{}{}`{}` ended with {}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        written_out(command),
        output.status
    )
    .into())
}

/// Runs a command whose output goes straight to the terminal.
pub(crate) fn shown(command: &mut Command) -> Outcome {
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cannot run {}: {error}", command.get_program().display()))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`{}` ended with {status}", written_out(command)).into())
}

/// A command in the checkout's top folder.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(workspace::root());
    command
}

fn written_out(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}
