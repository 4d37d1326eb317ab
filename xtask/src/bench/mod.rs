//! `cargo xtask bench`: measurements against other servers on this machine.
//!
//! What compares servers is a scenario of benchmarks/ or experiments/, which `onehop bench run` runs; `scenario.rs` installs what one needs.
//! `rivals.rs` and `applications.rs` are what no package has. The rest measures what is no comparison of loads: `attacks/`, `limits.rs`,
//! `max.rs`, `instructions.rs`, `distant_search/`, `pack/`, `slow.rs`, `tree.rs`, `trust.rs`; for them `servers.rs` says on
//! which cores a server runs, `load.rs` loads it, `probe.rs` asks once, `report.rs` keeps figures, and `interrupt.rs` ends it
//! all where a signal asks for that.
//! No measurement may start while another one runs: there are two cores, one for each side.

mod applications;
mod attacks;
mod distant_search;
mod instructions;
mod interrupt;
mod limits;
mod load;
mod max;
mod pack;
mod probe;
mod report;
mod rivals;
mod scenario;
mod servers;
mod slow;
mod tree;
mod trust;

pub(crate) use applications::folder as applications;
pub(crate) use scenario::{all as scenarios, provide};

use crate::steps::{command, quiet};
use crate::workspace::WrongUsage;
use crate::{Outcome, workspace};

/// Takes the words behind its name.
type Measurement = fn(&[&str]) -> Outcome;

/// The measurements that are no scenarios.
const OTHERS: &[(&str, Measurement)] = &[
    ("attacks", attacks::run),
    ("distant-search", distant_search::run),
    ("instructions", instructions::run),
    ("limits", limits::run),
    ("max", max::run),
    ("pack", pack::run),
    ("slow", slow::run),
    ("tree", tree::run),
    ("trust", trust::run),
];

/// Runs a measurement of the build that people get. A smoke run takes the build that is under test.
pub(crate) fn run(name: &str, words: &[&str]) -> Outcome {
    let other = OTHERS.iter().find(|(known, _)| *known == name);
    if other.is_none() && !scenarios()?.iter().any(|known| known == name) {
        let others: Vec<&str> = OTHERS.iter().map(|(known, _)| *known).collect();
        let known = format!("{} {}", scenarios()?.join(" "), others.join(" "));
        return Err(WrongUsage(format!("there is no measurement `{name}`; there are {known}")).into());
    }
    let is_named = std::env::var_os("ONEHOP_PROGRAM").is_some();
    if !is_named && !words.iter().any(|word| ["--smoke", "--list"].contains(word)) {
        let build = ["build", "--locked", "--package", "onehop", "--profile", workspace::PUBLISHED_PROFILE];
        quiet(&mut command("cargo", &build))?;
        workspace::use_program(workspace::target().join(workspace::PUBLISHED_PROFILE).join("onehop"));
    }
    match other {
        Some((_, other)) => interrupt::watched(*other, words),
        None => interrupt::watched(|words| scenario::run(name, words), words),
    }
}
