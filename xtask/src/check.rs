//! `cargo xtask check`, `cargo xtask test` and `cargo xtask suites --ci`: rows of steps, each a superset of what the
//! one before looks at in another way, with what they need installed on the way.
//!
//! This file knows the steps of each row and their order. What a step checks is known elsewhere: cargo, `tidy/`,
//! `programs.rs`, `clients.rs`, `fuzz.rs`, `bench/`.

use std::path::PathBuf;
use std::thread::JoinHandle;

use crate::clients::Clients;
use crate::programs::Tests;
use crate::steps::{Skip, Steps, command, quiet};
use crate::workspace::Options;
use crate::{
    Outcome, bench, caddy_fixtures, claims, clients, dist, fuzz, http2, install, programs, tidy, workspace,
};

/// While programming: under three minutes after a small change.
const CHECK: &[&str] = &["format", "clippy", "tidy", "claims", "quick-tests"];

/// README's command: all that needs no foreign program but Node.
const TEST: &[&str] = &["packages", "format", "tidy", "claims", "compile", "tests", "end-to-end"];

/// What `.ci/run` does after that: all that needs one, and what would make the row above too long.
const CI: &[&str] = &[
    "install",
    "compile",
    "foreign-tests",
    "acme",
    "caddy-fixtures",
    "worker-library",
    "dashboard",
    "build",
    "http2",
    "foreign-clients",
    "dist",
    "fuzz",
    "bench-mixed",
    "bench-proxy",
    "bench-idle",
    "bench-tree",
];

/// Debian packages that the tests use.
const PACKAGES: &[&str] = &[
    "chromium",
    "curl",
    "strace",
    "fonts-dejavu-core",
    "apache2-utils",
    "nghttp2-client",
    "bind9",
    "goaccess",
    "haproxy",
    "mariadb-server",
    "nginx-light",
    "prometheus",
    "libnginx-mod-http-brotli-static",
    "wrk",
];

/// How long each fuzz target runs here; `suites` runs them longer.
const FUZZ_SECONDS: u64 = 3;

/// Format, lints, tidy and the tests that start no program.
pub(crate) fn check(words: &[&str]) -> Outcome {
    row("cargo xtask check", CHECK, words)
}

/// Everything that needs no foreign program but Node.
pub(crate) fn test(words: &[&str]) -> Outcome {
    row("cargo xtask test", TEST, words)
}

/// Everything else that each change has to pass.
pub(crate) fn ci(words: &[&str]) -> Outcome {
    row("cargo xtask suites --ci", CI, words)
}

/// Runs a row's steps, or those named by `--only`.
fn row(title: &'static str, names: &'static [&'static str], words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    if options.flag("--list") {
        println!("{}", names.join("\n"));
        return options.finish();
    }
    let only = options.names("--only", names, names)?;
    options.finish()?;
    let mut steps = Steps::new(title);
    let mut beside = Beside::default();
    for &name in names.iter().filter(|name| only.iter().any(|wanted| wanted == *name)) {
        beside.begin_before(name, &only);
        let built = !steps.failed("compile") && !steps.failed("build");
        steps.step(name, || step(name, built, &mut beside));
    }
    steps.finish()
}

/// What goes on beside other steps: fetching waits for the network. Nothing is built beside clients: some of them hold the
/// server to its times.
#[derive(Default)]
struct Beside {
    fetching: Option<JoinHandle<Result<(), String>>>,
}

impl Beside {
    /// Begins what a later step of the chosen ones waits for.
    fn begin_before(&mut self, name: &str, only: &[String]) {
        if name == "packages" && only.len() > 1 {
            self.fetching =
                Some(std::thread::spawn(|| clients::packages().map_err(|error| error.to_string())));
        }
    }

    /// Waits for npm's packages if they are being fetched.
    fn fetched(&mut self) -> Outcome {
        match self.fetching.take() {
            None => Ok(()),
            Some(fetching) => Ok(fetching.join().map_err(|_| "fetching packages broke")??),
        }
    }
}

fn step(name: &str, built: bool, beside: &mut Beside) -> Outcome {
    match name {
        "install" => foreign_programs(),
        // Fetched beside the next steps where there are some.
        "packages" if beside.fetching.is_some() => Ok(()),
        "packages" => clients::packages(),
        "format" => quiet(&mut command("cargo", &["fmt", "--all", "--check"])),
        "clippy" => {
            let words =
                ["clippy", "--quiet", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
            quiet(&mut command("cargo", &words))
        }
        "tidy" => tidy::run(&[]),
        "claims" => claims::run(&[]),
        "compile" => compile(),
        "quick-tests" => programs::run(Tests::Quick),
        // Some tests hold the load's clock against the server's: nothing is built beside them.
        "tests" => beside.fetched().and_then(|()| programs::run(Tests::All)),
        "foreign-tests" => programs::run(Tests::Foreign),
        "acme" => programs::acme(),
        "caddy-fixtures" => caddy_fixtures::compare(),
        "worker-library" => clients::worker_library(),
        "dashboard" => clients::dashboard(),
        "build" => build(),
        "end-to-end" => {
            beside.fetched().and_then(|()| with_program(built, &|| clients::run(Clients::Node, &[])))
        }
        "http2" => with_program(built, &http2::run),
        "foreign-clients" => with_program(built, &|| clients::run(Clients::Foreign, &[])),
        "dist" => with_program(built, &dist::smoke),
        "fuzz" => fuzz::run(FUZZ_SECONDS),
        _ => with_program(built, &|| smoke_run(name)),
    }
}

/// A short run of a benchmark: that it works, not how fast.
fn smoke_run(name: &str) -> Outcome {
    let bench = name.strip_prefix("bench-").ok_or_else(|| format!("no such step: {name}"))?;
    bench::run(bench, &["--smoke"])
}

/// The tests and the program that they start, which is also what end-to-end tests start.
fn compile() -> Outcome {
    workspace::use_program(debug_program());
    programs::build(Tests::All)
}

/// The tests' own build, linked once more: as a static file, which also runs where nothing else is.
fn build() -> Outcome {
    workspace::use_program(debug_program());
    let words = ["rustc", "--quiet", "--locked", "--package", "onehop", "--bin", "onehop"];
    quiet(programs::linting(&words).args(["--", "-C", "target-feature=+crt-static"]))
}

fn debug_program() -> PathBuf {
    workspace::target().join("debug/onehop")
}

fn with_program(built: bool, work: &dyn Fn() -> Outcome) -> Outcome {
    let program = workspace::program();
    match (built, program.is_file()) {
        (false, _) => Err(Skip("the program was not built".to_owned()).into()),
        (true, false) => {
            let missing = format!("{} is not there: add `compile` to --only", program.display());
            Err(format!("{missing}, or name another program in ONEHOP_PROGRAM").into())
        }
        (true, true) => work(),
    }
}

/// Programs that tests and benchmarks start.
fn foreign_programs() -> Outcome {
    install::debian(PACKAGES)?;
    install::debian(install::CONTAINERS)?;
    clients::packages()?;
    match install::caddy() {
        // The tests that compare with it say that they are skipped.
        Err(error) if !error.is::<Skip>() => Err(error),
        _ => Ok(()),
    }
}
