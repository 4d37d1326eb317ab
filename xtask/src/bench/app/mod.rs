//! `cargo xtask bench app`: the same small application, called by onehop and served by others; and, in
//! `frameworks.rs`, `cargo xtask bench frameworks`: servers of Node's frameworks, unchanged.
//!
//! `arms.rs` starts who is measured, `questions.rs` knows what is asked and which bytes must come back, `plan.rs` measures one arm once; this file goes through the cases. For each
//! case all arms run once per round, in an order that rotates. Cases of one group take turns within a round, because their figures
//! are divided by each other. The figure to trust is CPU time per request over all processes of an arm.

mod arms;
mod frameworks;
mod plan;
mod questions;

pub(crate) use frameworks::{run as frameworks, servers as framework_servers};

use crate::ground::Options;
use crate::{Outcome, ground, install};

use super::report::{Comparison, Report};
use super::servers::{self, Cores};
use arms::{AppArm, Surroundings};
use plan::{Case, Plan, case, rotated};
use questions::{Asked, Questions};

const CASES: &[Case] = &[
    case("json-c1", Asked::Item, 1),
    case("json-c64", Asked::Item, 64),
    case("json-c256", Asked::Item, 256),
    case("json-c64-browser", Asked::ItemFromBrowser, 64),
    case("post-c64", Asked::Echo, 64),
    // One process that burns fills a core: two need both cores, which they then share with the load.
    Case { name: BURN_ONE, asked: Asked::Burn, connections: 64, workers: 1, cores: Cores::All },
    Case { name: BURN_TWO, asked: Asked::Burn, connections: 64, workers: 2, cores: Cores::All },
    case("stream-1m", Asked::Stream, 16),
    case("upload-50m", Asked::Upload, 1),
    case("upload-50m-c4", Asked::Upload, 4),
];

const BURN_ONE: &str = "burn-1";
const BURN_TWO: &str = "burn-2";

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let known: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    if options.flag("--list") {
        println!("arms:  {}\ncases: {}", arms::ALL.join(" "), known.join(" "));
        return options.finish();
    }
    let smoke = options.flag("--smoke");
    let rounds = options.number("--rounds", if smoke { 1 } else { 3 })?.max(1);
    let seconds = options.number("--seconds", if smoke { 1 } else { 5 })?.max(1);
    let names = options.names("--arms", arms::ALL, if smoke { arms::SMOKE } else { arms::ALL })?;
    let cases = options.names("--cases", &known, &known)?;
    let node = options.value("--node")?.unwrap_or_else(|| "node".to_owned());
    options.finish()?;

    install::debian(&["wrk"])?;
    let arms = names.iter().map(|name| AppArm::prepare(name, &node)).collect::<Outcome<Vec<_>>>()?;
    install::raise_descriptor_limit();
    servers::move_to_load_core();
    let work = ground::target_folder("bench/app")?;
    let questions = Questions::prepare(&node)?;
    let surroundings = Surroundings { node, work, burn_rounds: questions.burn_rounds };
    let plan = Plan { smoke, seconds, surroundings, questions };

    let comparison = Comparison {
        name: "app".to_owned(),
        under: None,
        arms: arms::ALL,
        bases: ["fastify", "nginx-fastify"],
        checked: "fastify",
    };
    let checked = |case: &Case, arm: &AppArm| {
        let able = arms.iter().filter(|arm| arm.can_run(case.asked)).map(|arm| arm.name);
        comparison.is_checked(arm.name, able)
    };
    let versions = arms.iter().map(|arm| (arm.name.to_owned(), arm.version.clone())).collect();
    let mut report = Report::new(comparison.clone(), smoke, versions);
    let chosen: Vec<&Case> = CASES.iter().filter(|case| cases.iter().any(|name| name == case.name)).collect();
    for group in chosen.chunk_by(|one, other| one.asked == Asked::Burn && other.asked == Asked::Burn) {
        for round in 0..rounds {
            for arm in rotated(&arms, round) {
                for case in group.iter().filter(|case| arm.can_run(case.asked)) {
                    let measured = plan.measure(case, arm, round == 0 && checked(case, arm));
                    let measured =
                        measured.map_err(|error| format!("{}, {}: {error}", case.name, arm.name))?;
                    report.add(case.name, round, arm.name, measured);
                }
            }
        }
        for case in group {
            report.print_case(case.name);
        }
        if group.len() > 1 {
            report.print_rates_of(BURN_TWO, BURN_ONE);
        }
    }
    report.keep()
}
