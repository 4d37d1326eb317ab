//! `cargo xtask bench SCENARIO`: installs what a scenario of benchmarks/ or experiments/ needs, and has `onehop bench run`
//! run it.
//!
//! The tool measures; this file only finds programs. Servers find onehop, its rivals and small helpers by their names in
//! PATH. Applications of benchmarks/ are beside their packages in `$BENCH_APPS`; an experiment has its own in its folder.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use onehop_bench::scenario::{Choice, FILE_NAME, Scenario};
use serde_json::Value;

use crate::steps::{command, shown};
use crate::{Outcome, install, workspace};

use super::report::{without_places, write_result};
use super::{applications, interrupt, rivals};

/// What a run that is only to show that it works says to the tool.
const SMOKE: [&str; 7] = ["--rounds", "1", "--time", "200ms", "--warm-up", "100ms", "--quiet"];

/// What people read of a scenario's result; kept of experiments.
const REPORTS: [&str; 2] = ["html", "markdown"];

/// Where scenarios are.
const FOLDERS: [&str; 2] = ["benchmarks", "experiments"];

/// The scenarios, by the names of their folders; one within another is `spa/tls`.
pub(crate) fn all() -> Outcome<Vec<String>> {
    let mut names = Vec::new();
    for folder in FOLDERS {
        for name in scenarios_in(&workspace::root().join(folder))? {
            let within = workspace::root().join(folder).join(&name);
            names.extend(scenarios_in(&within)?.iter().map(|inner| format!("{name}/{inner}")));
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The names of those folders in one that hold a scenario.
fn scenarios_in(folder: &Path) -> Outcome<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().join(FILE_NAME).exists() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// The folder of a scenario, relative to the checkout.
fn folder_of(name: &str) -> Outcome<String> {
    let mut folders = FOLDERS.iter().map(|folder| format!("{folder}/{name}"));
    let found = folders.find(|folder| workspace::root().join(folder).join(FILE_NAME).exists());
    Ok(found.ok_or_else(|| format!("there is no scenario {name}"))?)
}

/// Runs one; all further words are those of `onehop bench run`, but `--smoke`, which shows that it works.
pub(super) fn run(name: &str, words: &[&str]) -> Outcome {
    let from = folder_of(name)?;
    let folder = workspace::root().join(&from);
    let smoke = words.contains(&"--smoke");
    let mut words: Vec<&str> = words.iter().copied().filter(|word| *word != "--smoke").collect();
    if smoke {
        words.extend(SMOKE);
    }
    // A scenario's file names them, so they come before it is read.
    rivals::make_site()?;
    rivals::make_certificate()?;
    let scenario = Scenario::read(&folder)?;
    let programs = provide(scenario.programs(&Choice::default())?.iter().chain(&scenario.file.needs))?;
    let name = name.replace('/', "-");
    let results = workspace::target_folder("bench/results")?.join(format!("{name}.json"));
    // What an earlier run left is no result of this one.
    let _ = std::fs::remove_file(&results);
    let mut tool = command(workspace::program(), &["bench", "run"]);
    tool.arg(&folder).args(&words).arg("--json").arg(&results).current_dir(workspace::root());
    for kind in REPORTS {
        tool.arg(format!("--{kind}")).arg(report_of(&results, kind));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    tool.env("PATH", format!("{}:{path}:/usr/sbin", programs.display()));
    tool.env("NODE_ENV", "production");
    match experiment_of(&from) {
        Some(experiment) => install::packages_of(experiment)?,
        None => drop(tool.env("BENCH_APPS", applications::folder()?)),
    }
    install::raise_descriptor_limit();
    let measured = shown(&mut tool);
    interrupt::check()?;
    if !results.exists() {
        return measured;
    }
    let mut found: Value = serde_json::from_str(&std::fs::read_to_string(&results)?)?;
    shorten(&mut found);
    let written = write_result(&name, smoke, &found)?;
    if from.starts_with("experiments/") {
        for kind in REPORTS {
            let text = std::fs::read_to_string(report_of(&results, kind))?;
            std::fs::write(report_of(&written, kind), without_places(&text))?;
        }
    }
    println!("written to {}", written.display());
    match smoke {
        // One round decides nothing, and a bound may be missed by chance.
        true if found["scenario"]["cases"].as_array().is_some_and(|cases| !cases.is_empty()) => Ok(()),
        _ => measured,
    }
}

/// The path of a report: that of the figures, with the report's ending.
fn report_of(figures: &Path, kind: &str) -> PathBuf {
    figures.with_extension(if kind == "markdown" { "md" } else { kind })
}

/// The folder with the packages of an experiment's applications, for it and the scenarios within it.
fn experiment_of(folder: &str) -> Option<&str> {
    let end = folder.match_indices('/').nth(1).map_or(folder.len(), |(slash, _)| slash);
    folder.get(..end).filter(|folder| folder.starts_with("experiments/"))
}

/// Builds or installs programs; says in which folder those are that Debian does not have.
pub(crate) fn provide(names: impl IntoIterator<Item = impl AsRef<str>>) -> Outcome<PathBuf> {
    let folder = workspace::target_folder("bench/programs")?;
    names.into_iter().try_for_each(|name| provide_one(name.as_ref(), &folder))?;
    Ok(folder)
}

fn provide_one(name: &str, folder: &Path) -> Outcome {
    let program = match name {
        "onehop" => workspace::program(),
        // The same once more, or another build: two figures that should be equal.
        "onehop-again" => std::env::var_os("ONEHOP_AGAIN").map_or_else(workspace::program, PathBuf::from),
        "caddy" => install::caddy()?,
        "floor" => rivals::build("floor")?,
        "onehop-static" => rivals::static_onehop()?,
        "portfolio-axum" | "portfolio-actix" => rivals::build_in("experiments/portfolio/rivals", name)?,
        "spa-axum" | "spa-axum-embed" => rivals::build_in("experiments/spa/rivals", name)?,
        "static-web-server" => install::static_web_server()?,
        "nginx" => return install::debian(&["nginx-light", "libnginx-mod-http-brotli-static"]),
        "h2o" => return install::debian(&["h2o"]),
        "haproxy" => return install::debian(&["haproxy"]),
        "mariadbd" => return install::debian(&["mariadb-server"]),
        "podman" => return install::debian(install::CONTAINERS),
        // What is there on any machine on which this is built.
        _ => return Ok(()),
    };
    let link: PathBuf = folder.join(name);
    let _ = std::fs::remove_file(&link);
    Ok(symlink(std::path::absolute(program)?, link)?)
}

/// Leaves out what nobody reads in a committed result: every slice of a run, and each bucket of its latencies.
fn shorten(found: &mut Value) {
    let cases = found["scenario"]["cases"].as_array_mut().into_iter().flatten();
    for sample in cases.flat_map(|case| case["comparison"]["samples"].as_array_mut().into_iter().flatten()) {
        let Some(run) = sample["run"].as_object_mut() else { continue };
        run.retain(|name, _| !["slices", "by_request", "generator", "omitted"].contains(&name.as_str()));
        for latency in ["latency", "latency_from_sending", "latency_of_unexpected"] {
            if let Some(latency) = run.get_mut("total").and_then(|total| total[latency].as_object_mut()) {
                latency.retain(|_, figure| !figure.is_array() && !figure.is_object());
            }
        }
    }
}
