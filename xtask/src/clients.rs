//! Tests in tests/e2e: real clients and applications against the program under test, run by Node.
//!
//! A file that needs more than Node says so in a line of its own, `// Needs: NAME.`, and one that measures, beside which nothing
//! may run, `// Alone: REASON.`; nothing else keeps a list.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{Skip, command, note_skipped, quiet, shown};
use crate::{Outcome, bench, install, workspace};

/// Which files are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clients {
    /// Those that need nothing but Node.
    Node,
    /// The others, and the applications on Node's frameworks.
    Foreign,
    All,
}

/// Begins the line that names what a file needs.
const NEEDS: &str = "// Needs: ";

/// Begins the line that says why nothing runs beside a file.
const ALONE: &str = "// Alone: ";

/// Files that run at a time: most of them wait for half of their time.
const SIDE_BY_SIDE: usize = 3;

/// Folders whose packages of npm the tests use.
const NPM_FOLDERS: &[&str] = &["tests/e2e", "tests/e2e/apps", FRAMEWORKS, "examples/quickstart"];

/// Applications on Node's frameworks; they have a lockfile of their own, which brings other versions of Node.
const FRAMEWORKS: &str = "tests/e2e/frameworks";

/// The page that the server embeds.
const DASHBOARD: &str = "dashboard";

/// Servers that the experiments compare, and that are built from crates.io and Go's modules.
const RIVALS: [&str; 6] =
    ["caddy", "portfolio-actix", "portfolio-axum", "spa-axum", "spa-axum-embed", "static-web-server"];

/// The tests take some minutes; `suites` runs them ten times as long.
const SECONDS: &str = "1800";

/// All frameworks on all versions take ten minutes on two cores.
const FRAMEWORKS_SECONDS: &str = "3600";

/// The packages that the tests use, and those of the experiments, which they start.
pub(crate) fn packages() -> Outcome {
    NPM_FOLDERS.iter().try_for_each(|folder| install::npm(folder))?;
    for entry in std::fs::read_dir(workspace::root().join("experiments"))? {
        let entry = entry?;
        if entry.path().join("package-lock.json").exists() {
            install::packages_of(&format!("experiments/{}", entry.file_name().to_string_lossy()))?;
        }
    }
    Ok(())
}

/// Runs files of tests/e2e. `variables` lengthen them.
pub(crate) fn run(clients: Clients, variables: &[(&str, &str)]) -> Outcome {
    packages()?;
    let mut files: Vec<PathBuf> =
        tests_in("tests/e2e")?.into_iter().filter(|file| clients.include(file)).collect();
    let mut variables: Vec<(&str, OsString)> =
        variables.iter().map(|(name, value)| (*name, value.into())).collect();
    if clients != Clients::Node {
        // First, because they take longest.
        files.splice(0..0, tests_in(FRAMEWORKS)?);
        match install::caddy() {
            Ok(path) => variables.push(("ONEHOP_CADDY", path.into())),
            Err(error) if error.is::<Skip>() => println!("    without Caddy: {error}"),
            Err(error) => return Err(error),
        }
        variables.push(("ONEHOP_BUN", install::bun()?.into()));
    }
    let (alone, others) = files.into_iter().partition(|file| says(file, ALONE));
    let run = |name, files: Vec<PathBuf>, at_a_time| {
        let mut tests = Tests::of(name, SECONDS, &files, at_a_time)?;
        tests.node.envs(variables.iter().cloned());
        tests.finish(shown)
    };
    let ends = [run("clients", others, SIDE_BY_SIDE), run("clients-alone", alone, 1)];
    ends.into_iter().collect()
}

/// The library that Node's and Bun's workers load, against a server made by hand.
pub(crate) fn worker_library() -> Outcome {
    let mut files = Vec::new();
    for folder in ["sdk/node/test", "sdk/node/test/fetch", "sdk/node/test/node-http"] {
        files.extend(tests_in(folder)?);
    }
    Tests::of("worker-library", SECONDS, &files, 1)?.finish(shown)
}

/// The dashboard's own tests: that what is embedded is what the source builds, and every view in Chromium before a server
/// made by hand.
pub(crate) fn dashboard() -> Outcome {
    install::npm(DASHBOARD)?;
    Tests::of("dashboard", SECONDS, &tests_in("dashboard/test")?, 1)?.finish(shown)
}

/// Applications that are built from npm first, which takes minutes: Next.js, React Router, SvelteKit, Nitro.
pub(crate) fn built_applications() -> Outcome {
    packages()?;
    Tests::of("built", SECONDS, &tests_in("tests/e2e/apps")?, 1)?.finish(shown)
}

/// The experiments' tests once more, with the rivals that take minutes to build: all send the same bytes.
pub(crate) fn rivals() -> Outcome {
    packages()?;
    let sites = "experiments/portfolio/rivals/Cargo.toml";
    quiet(
        command("cargo", &["test", "--quiet", "--locked", "--manifest-path", sites])
            .env("CARGO_TARGET_DIR", workspace::target_folder("rivals")?),
    )?;
    let programs = bench::provide(RIVALS)?;
    let files = ["spa", "portfolio"].map(|name| workspace::root().join(format!("tests/e2e/{name}.test.mjs")));
    let mut tests = Tests::of("rivals", SECONDS, &files, 1)?;
    tests.node.env("SPA_RIVALS", &programs).env("PORTFOLIO_RIVALS", &programs);
    tests.finish(shown)
}

/// Every framework on every version of Node, by Node alone and below onehop.
pub(crate) fn frameworks() -> Outcome {
    packages()?;
    let mut tests = Tests::of("frameworks", FRAMEWORKS_SECONDS, &tests_in(FRAMEWORKS)?, 1)?;
    tests.node.env("ONEHOP_E2E_FULL", "1");
    tests.finish(shown)
}

impl Clients {
    fn include(self, file: &Path) -> bool {
        match self {
            Clients::Node => !says(file, NEEDS),
            Clients::Foreign => says(file, NEEDS),
            Clients::All => true,
        }
    }
}

/// Whether the comment at a file's top has a line that begins so.
fn says(file: &Path, words: &str) -> bool {
    has_line(&std::fs::read_to_string(file).unwrap_or_default(), words)
}

fn has_line(text: &str, words: &str) -> bool {
    text.lines().take_while(|line| line.starts_with("//")).any(|line| line.starts_with(words))
}

/// Node's runner takes files; the list is the folder's, so that a new test needs no second place.
fn tests_in(folder: &str) -> Outcome<Vec<PathBuf>> {
    let entries = std::fs::read_dir(workspace::root().join(folder))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".test.mjs"));
    files.sort();
    Ok(files)
}

/// A run of Node's own runner, against the program under test.
struct Tests {
    node: Command,
    /// Where a reporter of ours writes what was skipped.
    skipped: PathBuf,
}

impl Tests {
    fn of(name: &str, seconds: &str, files: &[PathBuf], at_a_time: usize) -> Outcome<Tests> {
        install::raise_descriptor_limit();
        let output = workspace::target_folder("e2e")?;
        let skipped = output.join(format!("skipped-{name}.txt"));
        // What an earlier run left is not this one's.
        let _ = std::fs::remove_file(&skipped);
        let reporter = workspace::root().join("tests/e2e/skipped.mjs").display().to_string();
        // A process that outlives its test would keep the runner waiting for ever.
        let mut node = command("timeout", &["--kill-after=5", seconds, "node", "--test"]);
        node.arg(format!("--test-concurrency={at_a_time}"));
        node.args(["--test-reporter=spec", "--test-reporter-destination=stdout"]);
        node.arg(format!("--test-reporter={reporter}"));
        node.arg(format!("--test-reporter-destination={}", skipped.display()));
        node.args(files).env("ONEHOP_PROGRAM", workspace::program()).env("ONEHOP_E2E_OUTPUT", output);
        Ok(Tests { node, skipped })
    }

    fn finish(mut self, run: impl FnOnce(&mut Command) -> Outcome) -> Outcome {
        let outcome = run(&mut self.node);
        for line in std::fs::read_to_string(&self.skipped).unwrap_or_default().lines() {
            note_skipped(line.to_owned());
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_at_its_top_that_it_needs_more_than_node() {
        assert!(has_line("// What it shows.\n// Needs: curl.\n\nimport x;\n", NEEDS));
        assert!(!has_line("// What it shows.\n\nconst a = 1;\n// Needs: curl.\n", NEEDS));
    }

    #[test]
    fn what_starts_a_foreign_program_says_so() {
        for file in tests_in("tests/e2e").unwrap() {
            let text = std::fs::read_to_string(&file).unwrap();
            let foreign = [
                "playwright-core",
                "startCaddy",
                "\"curl\"",
                "\"nghttp\"",
                "\"strace\"",
                "podman",
                "ONEHOP_BUN",
                "empty-root.mjs",
            ];
            if foreign.iter().any(|name| text.contains(name)) {
                assert!(has_line(&text, NEEDS), "{}: name what it needs (`{NEEDS}…`)", file.display());
            }
        }
    }
}
