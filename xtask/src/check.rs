//! `cargo xtask test`: the whole check, step by step, with what it needs installed on the way.
//!
//! It orders the steps and says which of them need the built program. What a step checks is known
//! elsewhere: cargo, `tidy/`, `tests/e2e`, `fuzz/`, `bench/`.

use std::path::PathBuf;
use std::process::Command;

use crate::ground::Options;
use crate::steps::{Skip, Steps, command, quiet, shown, whole_output};
use crate::{Outcome, bench, dist, fuzz, ground, install, programs, tidy};

const STEPS: &[&str] = &[
    "install",
    "format",
    "clippy",
    "tidy",
    "packages",
    "licences",
    "compile",
    "tests",
    "build",
    "end-to-end",
    "dist",
    "fuzz",
    "bench-files",
    "bench-app",
    "bench-frameworks",
    "bench-proxy",
    "bench-overload",
    "bench-limits",
    "bench-distance",
    "bench-idle",
    "bench-tree",
    "bench-pack",
];

/// Debian packages that the tests use.
const PACKAGES: &[&str] = &[
    "chromium",
    "curl",
    "strace",
    "fonts-dejavu-core",
    "apache2-utils",
    "nginx-light",
    "libnginx-mod-http-brotli-static",
    "wrk",
];

/// What images are tested with: much to fetch, so beside other steps.
const CONTAINERS: &[&str] = &["podman", "runc", "nftables"];

/// Folders whose packages of npm the end-to-end tests use.
const NPM_FOLDERS: &[&str] = &["tests/e2e", "tests/e2e/apps", FRAMEWORKS, "examples/quickstart"];

/// How long each fuzz target runs here; `suites` runs them longer.
const FUZZ_SECONDS: u64 = 3;

/// The end-to-end tests take two minutes here; `suites` runs them ten times as long.
const END_TO_END_SECONDS: &str = "1800";

/// Applications on Node's frameworks; they have a lockfile of their own, which brings other versions of Node.
const FRAMEWORKS: &str = "tests/e2e/frameworks";

/// All of them on all versions take ten minutes on two cores.
const FRAMEWORKS_SECONDS: &str = "3600";

/// A benchmark, with its options.
type Bench = fn(&[&str]) -> Outcome;

/// A short run of each benchmark: that it works, not how fast.
const SMOKE_RUNS: [(&str, Bench); 10] = [
    ("bench-files", bench::files),
    ("bench-app", bench::app),
    ("bench-frameworks", bench::frameworks),
    ("bench-proxy", bench::proxy),
    ("bench-overload", bench::overload),
    ("bench-limits", bench::limits),
    ("bench-distance", bench::distance),
    ("bench-idle", bench::idle),
    ("bench-tree", bench::tree),
    ("bench-pack", bench::pack),
];

/// Runs all steps, or those named by `--only`.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    if options.flag("--list") {
        println!("{}", STEPS.join("\n"));
        return options.finish();
    }
    let only = options.value("--only")?;
    options.finish()?;
    let only: Option<Vec<String>> = only.map(|list| list.split(',').map(str::to_owned).collect());
    if let Some(unknown) = only.iter().flatten().find(|name| !STEPS.contains(&name.as_str())) {
        return Err(ground::WrongUsage(format!("no such step: {unknown}")).into());
    }

    let mut steps = Steps::new("cargo xtask test", only);
    // What runs beside other steps is begun only for a step that waits for it.
    let [fetches, fuzzes] = ["packages", "fuzz"].map(|name| steps.includes(name));
    let mut fetching = None;
    steps.step("install", || {
        install::debian(PACKAGES)?;
        // Mostly waiting for the network: the next steps go on meanwhile.
        fetching = fetches.then(|| std::thread::spawn(|| fetch().map_err(|error| error.to_string())));
        Ok(())
    });
    steps.step("format", || quiet(&mut command("cargo", &["fmt", "--all", "--check"])));
    steps.step("clippy", || {
        let words = ["clippy", "--quiet", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
        quiet(&mut command("cargo", &words))
    });
    steps.step("tidy", || tidy::run(&[]));
    steps.step("packages", || match fetching.take() {
        None => fetch(),
        Some(fetching) => Ok(fetching.join().map_err(|_| "fetching packages broke")??),
    });
    steps.step("licences", licences);
    steps.step("compile", programs::build);
    // Some tests hold the load's clock against the server's: nothing is built beside them.
    steps.step("tests", programs::run);
    steps.step("build", || {
        // The tests' own build, linked once more: as a static file, which also runs where nothing else is.
        ground::use_program(ground::target().join("debug/onehop"));
        let words = ["rustc", "--quiet", "--locked", "--package", "onehop", "--bin", "onehop"];
        quiet(command("cargo", &words).args(["--", "-C", "target-feature=+crt-static"]))
    });
    // The end-to-end tests mostly wait.
    let fuzzing = fuzzes.then(|| std::thread::spawn(|| drop(fuzz::build())));
    let built = !steps.failed("build");
    let with_program = |work: &dyn Fn() -> Outcome| {
        let program = ground::program();
        match (built, program.is_file()) {
            (false, _) => Err(Skip("the program was not built".to_owned()).into()),
            (true, false) => {
                let missing = format!("{} is not there: add `build` to --only", program.display());
                Err(format!("{missing}, or name another program in ONEHOP_PROGRAM").into())
            }
            (true, true) => work(),
        }
    };
    steps.step("end-to-end", || with_program(&|| end_to_end(&[])));
    steps.step("dist", || with_program(&dist::smoke));
    steps.step("fuzz", || {
        // A target that could not be built fails below, with the compiler's words.
        let _ = fuzzing.map(std::thread::JoinHandle::join);
        fuzz::run(FUZZ_SECONDS)
    });
    for (name, smoke) in SMOKE_RUNS {
        steps.step(name, || with_program(&|| smoke(&["--smoke"])));
    }
    steps.finish()
}

/// Packages of npm, what runs containers, and cargo-deny, which is built.
fn fetch() -> Outcome {
    npm_packages()?;
    install::debian(CONTAINERS)?;
    install::cargo_deny()?;
    match install::caddy() {
        // The tests that compare with it say that they are skipped.
        Err(error) if !error.is::<Skip>() => Err(error),
        _ => Ok(()),
    }
}

/// Bans, licences and sources. The advisory database is a git repository of its own; it is asked only
/// when it can be reached, and `suites` says so when it cannot.
fn licences() -> Outcome {
    let deny = install::cargo_deny()?;
    println!("    (advisories are a part of `cargo xtask suites`: their database needs the open network)");
    quiet(&mut command(deny, &["--all-features", "check", "bans", "licenses", "sources"]))
}

/// The tests of tests/e2e against the program under test. `variables` lengthen them.
pub(crate) fn end_to_end(variables: &[(&str, &str)]) -> Outcome {
    npm_packages()?;
    let mut node = node_tests(END_TO_END_SECONDS, &tests_in("tests/e2e")?)?;
    match install::caddy() {
        Ok(path) => drop(node.env("ONEHOP_CADDY", path)),
        Err(error) if error.is::<Skip>() => println!("    without Caddy: {error}"),
        Err(error) => return Err(error),
    }
    // These compare answers, whatever time they take: they run beside the others.
    let mut frameworks = node_tests(END_TO_END_SECONDS, &tests_in(FRAMEWORKS)?)?;
    frameworks.envs(variables.iter().copied());
    let beside = std::thread::spawn(move || whole_output(&mut frameworks).map_err(|error| error.to_string()));
    let others = shown(node.envs(variables.iter().copied()));
    println!("    {FRAMEWORKS}:");
    let frameworks =
        beside.join().map_err(|_| "the tests of frameworks broke")?.map(|output| print!("{output}"));
    others.and(frameworks.map_err(Into::into))
}

/// Applications that are built from npm first, which takes minutes: Next.js, React Router, SvelteKit, Nitro.
pub(crate) fn built_applications() -> Outcome {
    npm_packages()?;
    shown(&mut node_tests(END_TO_END_SECONDS, &tests_in("tests/e2e/apps")?)?)
}

fn npm_packages() -> Outcome {
    NPM_FOLDERS.iter().try_for_each(|folder| install::npm(folder))
}

/// Every framework on every version of Node, by Node alone and below onehop.
pub(crate) fn frameworks() -> Outcome {
    npm_packages()?;
    shown(node_tests(FRAMEWORKS_SECONDS, &tests_in(FRAMEWORKS)?)?.env("ONEHOP_E2E_FULL", "1"))
}

/// Node's runner takes files; the list is the folder's, so that a new test needs no second place.
fn tests_in(folder: &str) -> Outcome<Vec<PathBuf>> {
    let entries = std::fs::read_dir(ground::root().join(folder))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".test.mjs"));
    files.sort();
    Ok(files)
}

/// Node's runner with these files, against the program under test.
fn node_tests(seconds: &str, files: &[PathBuf]) -> Outcome<Command> {
    install::raise_descriptor_limit();
    // A process that outlives its test would keep the runner waiting for ever.
    let mut words = vec!["--kill-after=5", seconds, "node"];
    words.extend(["--test", "--test-reporter=spec", "--test-concurrency=1"]);
    let mut node = command("timeout", &words);
    node.args(files).env("ONEHOP_PROGRAM", ground::program());
    node.env("ONEHOP_E2E_OUTPUT", ground::target_folder("e2e")?);
    Ok(node)
}
