//! `cargo xtask suites`: what takes long or needs more than a test machine has. Results are written to
//! tests/suites/results with their date, to be committed.

use std::fmt::Write as _;
use std::time::Instant;

use crate::steps::{Skip, command};
use crate::workspace::Options;
use crate::{Outcome, caddy_fixtures, clients, fuzz, install, programs, testssl, workspace};

const SUITES: &[&str] = &[
    "end-to-end",
    "frameworks",
    "built-applications",
    "rivals",
    "node",
    "fuzz",
    "licences",
    "advisories",
    "acme",
    "caddy-fixtures",
    "httplint",
    "slowhttptest",
    "testssl",
    "bench-tree",
    "bench-overload",
    "bench-limits",
    "bench-instructions",
    "bench-files",
    "bench-handlers",
    "bench-proxy-shared",
    "bench-distant-search",
    "bench-handlers-in-server",
    "bench-handlers-in-server/mariadb",
    "bench-map",
    "bench-portfolio",
    "bench-spa",
    "bench-spa/tls",
    "bench-pack",
];

/// Seconds per fuzz target.
const FUZZ_SECONDS: u64 = 300;

/// Runs all suites, or those named by `--only`; `--smoke` shortens them.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let smoke = options.flag("--smoke");
    let names = options.names("--only", SUITES, SUITES)?;
    options.finish()?;
    // A program that the environment names is there already, and Caddy's fixtures need none.
    let is_named = std::env::var_os("ONEHOP_PROGRAM").is_some();
    if !is_named && names.iter().any(|name| name != "caddy-fixtures") {
        let build = ["build", "--release", "--locked", "--package", "onehop"];
        crate::steps::quiet(&mut command("cargo", &build))?;
    }

    let mut record = format!("date: {}\nmachine: {:#}\n", workspace::date(), workspace::machine());
    let mut failed = 0;
    for name in &names {
        println!("==> {name}");
        let begun = Instant::now();
        let outcome = match name.as_str() {
            "end-to-end" => long_end_to_end(smoke),
            "frameworks" => frameworks(smoke),
            "built-applications" => clients::built_applications(),
            "rivals" => clients::rivals(),
            "fuzz" => fuzz::run(if smoke { 5 } else { FUZZ_SECONDS }),
            "licences" => licences(),
            "advisories" => advisories(),
            "acme" => programs::acme(),
            "caddy-fixtures" if smoke => caddy_fixtures::compare(),
            "caddy-fixtures" => caddy_fixtures::record(),
            "httplint" => httplint(),
            "node" => node_suites(smoke),
            "testssl" => testssl::run(!smoke),
            "slowhttptest" => crate::bench::run("slow", if smoke { &["--smoke"] } else { &[] }),
            _ => {
                let bench = name.strip_prefix("bench-").unwrap_or(name);
                crate::bench::run(bench, if smoke { &["--smoke"] } else { &[] })
            }
        };
        let word = match &outcome {
            Ok(()) => "passed".to_owned(),
            Err(error) if error.is::<Skip>() => format!("SKIPPED: {error}"),
            Err(error) => {
                failed += 1;
                format!("FAILED: {error}")
            }
        };
        println!("    {name}: {word}");
        writeln!(record, "{name}: {word} ({:.0} s)", begun.elapsed().as_secs_f64())?;
    }
    let folder = match smoke {
        true => workspace::target_folder("suites")?,
        false => workspace::root().join("tests/suites/results"),
    };
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{}.txt", workspace::date()));
    std::fs::write(&path, record)?;
    println!("written to {}", path.display());
    if failed > 0 {
        return Err(format!("{failed} of {} suites failed", names.len()).into());
    }
    Ok(())
}

/// The end-to-end tests at the length that the design promises, with Caddy itself beside us.
fn long_end_to_end(smoke: bool) -> Outcome {
    if smoke {
        return clients::run(clients::Clients::All, &[]);
    }
    clients::run(
        clients::Clients::All,
        &[
            ("ONEHOP_REBUILDS", "20"),
            ("ONEHOP_RELOAD_REQUESTS", "200000"),
            ("ONEHOP_RELOADS", "100"),
            ("ONEHOP_KILL_RUNS", "1000"),
            ("ONEHOP_SLOWEST_RESTART_MS", "500"),
            ("ONEHOP_ROLLING_REQUESTS", "50000"),
            ("ONEHOP_ROLLING_RELOADS", "50"),
            ("ONEHOP_WEBSOCKETS", "1000"),
            ("ONEHOP_LOG_MIB", "10240"),
        ],
    )
}

/// Frameworks for Node, each on each version; what was compared is kept beside the results.
fn frameworks(smoke: bool) -> Outcome {
    if smoke {
        return Err(Skip("a part of the end-to-end tests".to_owned()).into());
    }
    clients::frameworks()?;
    let counts = workspace::target_folder("e2e")?;
    let mut record = format!("date: {}\nmachine: {:#}\n", workspace::date(), workspace::machine());
    for name in ["frameworks.txt", "behaviours.txt"] {
        write!(record, "\n{}", std::fs::read_to_string(counts.join(name))?)?;
    }
    let kept = format!("tests/suites/results/{}-frameworks.txt", workspace::date());
    Ok(std::fs::write(workspace::root().join(kept), record)?)
}

/// Bans, licences and sources of what is linked into the program.
fn licences() -> Outcome {
    let deny = install::cargo_deny()?;
    crate::steps::quiet(&mut command(deny, &["--all-features", "check", "bans", "licenses", "sources"]))
}

/// The advisory database is a git repository of its own, which needs the open network.
fn advisories() -> Outcome {
    let deny = install::cargo_deny()?;
    let output = command(deny, &["--all-features", "check", "advisories"]).output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Ok(());
    }
    if text.contains("failed to fetch advisory database") {
        return Err(Skip("the advisory database cannot be reached from here".to_owned()).into());
    }
    Err(text.into_owned().into())
}

/// Test suites of frameworks and middleware, with the servers that they create under onehop. Their result has a
/// file of its own.
fn node_suites(smoke: bool) -> Outcome {
    let script = workspace::root().join("tests/suites/node/run.mjs");
    let mut node = command("node", &[&script.display().to_string()]);
    if smoke {
        node.arg("--short");
    } else {
        let name = format!("tests/suites/results/{}-node-suites.txt", workspace::date());
        node.arg("--record").arg(workspace::root().join(name));
    }
    crate::install::raise_descriptor_limit();
    crate::steps::shown(node.env("ONEHOP_PROGRAM", workspace::program()))
}

/// httplint (PyPI) reads our answers as a reviewer of HTTP would.
fn httplint() -> Outcome {
    let place = workspace::target().join("tools/python");
    let python = place.join("bin/python");
    if !place.join("bin/httplint").exists() {
        crate::steps::quiet(command("python3", &["-m", "venv"]).arg(&place))?;
        crate::steps::quiet(&mut command(&python, &["-m", "pip", "install", "--quiet", "httplint"]))?;
    }
    let script = workspace::root().join("tests/suites/httplint.mjs");
    let mut node = command("node", &[&script.display().to_string()]);
    node.env("ONEHOP_PROGRAM", workspace::program()).env("HTTPLINT", place.join("bin/httplint"));
    crate::steps::shown(&mut node)
}
