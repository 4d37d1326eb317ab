//! `cargo xtask bench frameworks`: what a request costs with the servers that people write for Node, not one line
//! changed: on their own, under onehop, and behind nginx.
//!
//! A case is a framework and a question, an arm is a way to serve it, so that each framework is compared with
//! itself. One run has one Node (`--node PATH`), which stands beside every table and in the result's name.

use std::path::{Path, PathBuf};

use crate::ground::Options;
use crate::{Outcome, ground, install};

use super::super::report::{Comparison, Report};
use super::super::servers as cores;
use super::arms::{AppArm, Front, Runner, Surroundings};
use super::plan::{Case, Plan, case, rotated};
use super::questions::{Asked, Questions};

/// The ways to serve, in the order in which they are printed.
const WAYS: &[&str] = &["alone", "onehop", "onehop-http", "nginx"];

/// The ways of a smoke run.
const SMOKE: &[&str] = &["onehop", "nginx"];

/// What the others are measured by.
const BASES: [&str; 2] = ["alone", "nginx"];

/// A server's file in benchmarks/servers/frameworks, and the package that it is about.
#[derive(Clone, Copy)]
struct Framework {
    file: &'static str,
    package: Option<&'static str>,
}

const FASTIFY: Framework = Framework { file: "fastify.mjs", package: Some("fastify") };
const EXPRESS_5: Framework = Framework { file: "express5.mjs", package: Some("express") };
const EXPRESS_4: Framework = Framework { file: "express4.mjs", package: Some("express4") };
const KOA: Framework = Framework { file: "koa.mjs", package: Some("koa") };
const HONO: Framework = Framework { file: "hono.mjs", package: Some("hono") };
const NODE_HTTP: Framework = Framework { file: "node-http.mjs", package: None };

const CASES: &[(Framework, Case)] = &[
    (FASTIFY, case("fastify-json-c1", Asked::Item, 1)),
    (FASTIFY, case("fastify-json-c64", Asked::Item, 64)),
    (FASTIFY, case("fastify-json-c256", Asked::Item, 256)),
    (FASTIFY, case("fastify-post-c64", Asked::Echo, 64)),
    (EXPRESS_5, case("express5-json-c64", Asked::Item, 64)),
    (EXPRESS_5, case("express5-post-c64", Asked::Echo, 64)),
    (EXPRESS_4, case("express4-json-c64", Asked::Item, 64)),
    (EXPRESS_4, case("express4-post-c64", Asked::Echo, 64)),
    (KOA, case("koa-json-c64", Asked::Item, 64)),
    (KOA, case("koa-post-c64", Asked::Echo, 64)),
    (HONO, case("hono-json-c64", Asked::Item, 64)),
    (HONO, case("hono-post-c64", Asked::Echo, 64)),
    (NODE_HTTP, case("node-http-json-c64", Asked::Item, 64)),
    (NODE_HTTP, case("node-http-post-c64", Asked::Echo, 64)),
];

/// The cases of a smoke run: each framework once, and a body.
const SMOKE_CASES: &[&str] = &[
    "fastify-json-c64",
    "fastify-post-c64",
    "express5-json-c64",
    "express4-json-c64",
    "koa-json-c64",
    "hono-json-c64",
    "node-http-json-c64",
];

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let known: Vec<&str> = CASES.iter().map(|(_, case)| case.name).collect();
    if options.flag("--list") {
        println!("arms:  {}\ncases: {}", WAYS.join(" "), known.join(" "));
        return options.finish();
    }
    let smoke = options.flag("--smoke");
    let rounds = options.number("--rounds", if smoke { 1 } else { 3 })?.max(1);
    let seconds = options.number("--seconds", if smoke { 1 } else { 5 })?.max(1);
    let ways = options.names("--arms", WAYS, if smoke { SMOKE } else { WAYS })?;
    let cases = options.names("--cases", &known, if smoke { SMOKE_CASES } else { &known })?;
    let node = options.value("--node")?.unwrap_or_else(|| "node".to_owned());
    options.finish()?;

    install::debian(&["wrk"])?;
    let folder = servers()?;
    let (under, name) = runtime(&node)?;
    install::raise_descriptor_limit();
    cores::move_to_load_core();
    let work = ground::target_folder("bench/frameworks")?;
    let questions = Questions::prepare(&node)?;
    let surroundings = Surroundings { node: node.clone(), work, burn_rounds: questions.burn_rounds };
    let plan = Plan { smoke, seconds, surroundings, questions };

    let chosen: Vec<&(Framework, Case)> =
        CASES.iter().filter(|(_, case)| cases.iter().any(|name| name == case.name)).collect();
    let mut versions = std::collections::BTreeMap::new();
    let mut arms = Vec::new();
    for (framework, case) in &chosen {
        let made = arms_of(*framework, &ways, &folder, &node)?;
        for arm in &made {
            let stem = framework.file.trim_end_matches(".mjs");
            versions.insert(format!("{stem} {}", arm.name), arm.version.clone());
        }
        arms.push((case, made));
    }
    let comparison = Comparison { name, under: Some(under), arms: WAYS, bases: BASES, checked: "alone" };
    let mut report = Report::new(comparison.clone(), smoke, versions);
    for (case, arms) in &arms {
        for round in 0..rounds {
            for arm in rotated(arms, round) {
                let is_checked = comparison.is_checked(arm.name, arms.iter().map(|arm| arm.name));
                let measured = plan.measure(case, arm, round == 0 && is_checked);
                let measured = measured.map_err(|error| format!("{}, {}: {error}", case.name, arm.name))?;
                report.add(case.name, round, arm.name, measured);
            }
        }
        report.print_case(case.name);
    }
    report.keep()
}

/// The chosen ways to serve a framework. Only Fastify is measured over HTTP as well: what that costs is the
/// same for all of them.
fn arms_of(framework: Framework, ways: &[String], folder: &Path, node: &str) -> Outcome<Vec<AppArm>> {
    let script = folder.join(framework.file);
    let version = framework.package.map(|package| install::version_in(folder, package)).transpose()?;
    let mut arms = Vec::new();
    for &way in WAYS.iter().filter(|way| ways.iter().any(|chosen| chosen == *way)) {
        let onehop = |settings| Runner::Onehop { settings: source().join(settings), script: script.clone() };
        let (front, runner) = match way {
            "alone" => (Front::Nothing, Runner::Node(script.clone())),
            "onehop" => (Front::Nothing, onehop("Onehopfile")),
            "onehop-http" if framework.file == FASTIFY.file => (Front::Nothing, onehop("http.Onehopfile")),
            "nginx" => (Front::Nginx("nginx.conf"), Runner::Node(script.clone())),
            _ => continue,
        };
        arms.push(AppArm::made(way, node, version.clone(), front, runner)?);
    }
    Ok(arms)
}

fn source() -> PathBuf {
    ground::root().join("benchmarks/servers/frameworks")
}

/// The servers beside their packages, as an application's folder is.
pub(crate) fn servers() -> Outcome<PathBuf> {
    let place = install::javascript_rival("frameworks")?;
    let work = ground::root().join("benchmarks/servers/app/work.mjs");
    std::fs::copy(work, place.join("work.mjs"))?;
    for entry in std::fs::read_dir(source())? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "mjs") {
            std::fs::copy(entry.path(), place.join(entry.file_name()))?;
        }
    }
    Ok(place)
}

/// What a Node says of itself, and the name of its results.
fn runtime(node: &str) -> Outcome<(String, String)> {
    let version = ground::output_of(node, &["--version"]).ok_or_else(|| format!("{node} does not run"))?;
    let major = version.trim_start_matches('v').split('.').next().unwrap_or_default();
    Ok((format!("Node {}", version.trim_start_matches('v')), format!("frameworks-node{major}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smoke_run_asks_for_cases_and_ways_that_there_are() {
        assert!(SMOKE_CASES.iter().all(|name| CASES.iter().any(|(_, case)| case.name == *name)));
        assert!(SMOKE.iter().all(|way| WAYS.contains(way)));
        assert!(BASES.iter().all(|way| WAYS.contains(way)));
    }
}
