//! `cargo xtask bench`: measurements against other servers on this machine.
//!
//! Servers are started, bound to cores and weighed by `onehop_load::measure`, and loaded by its engine.
//! `arms.rs` names who is measured and how each is started, `servers.rs` on which cores, `load.rs` says what the
//! engine is to ask and `outside.rs` has wrk check it, `probe.rs` asks one question at a time, `report.rs` prints and
//! keeps the figures; `interrupt.rs` ends it all where a signal asks for that; `files.rs`, `app/`, `proxy/`, `overload/`,
//! `limits.rs`,
//! `instructions.rs`, `distance/`, `pack/`, `idle.rs`, `slow.rs` and `tree.rs` are the measurements.
//! No measurement may start while another one runs: there are two cores, one for each side.

mod app;
mod arms;
mod distance;
mod files;
mod idle;
mod instructions;
mod interrupt;
mod limits;
mod load;
mod outside;
mod overload;
mod pack;
mod probe;
mod proxy;
mod report;
mod servers;
mod slow;
mod tree;
mod trust;

use crate::steps::{command, quiet};
use crate::{Outcome, ground};

/// Other servers, and files.
pub(crate) fn files(words: &[&str]) -> Outcome {
    measured(files::run, words)
}

/// A small application.
pub(crate) fn app(words: &[&str]) -> Outcome {
    measured(app::run, words)
}

/// Servers on frameworks, unchanged.
pub(crate) fn frameworks(words: &[&str]) -> Outcome {
    measured(app::frameworks, words)
}

/// Other proxies.
pub(crate) fn proxy(words: &[&str]) -> Outcome {
    measured(proxy::run, words)
}

/// Limiters, when more is asked than can be answered.
pub(crate) fn overload(words: &[&str]) -> Outcome {
    measured(overload::run, words)
}

/// What limits cost where they hold nobody up.
pub(crate) fn limits(words: &[&str]) -> Outcome {
    measured(limits::run, words)
}

/// User instructions per request.
pub(crate) fn instructions(words: &[&str]) -> Outcome {
    measured(instructions::run, words)
}

/// A proxy before a server that is far away.
pub(crate) fn distance(words: &[&str]) -> Outcome {
    measured(distance::run, words)
}

/// Slow clients, made by slowhttptest, and other people beside them.
pub(crate) fn slow(words: &[&str]) -> Outcome {
    measured(slow::run, words)
}

/// Memory of idle connections.
pub(crate) fn idle(words: &[&str]) -> Outcome {
    measured(idle::run, words)
}

/// Time to ready, and memory of changes.
pub(crate) fn tree(words: &[&str]) -> Outcome {
    measured(tree::run, words)
}

/// Packed applications.
pub(crate) fn pack(words: &[&str]) -> Outcome {
    measured(pack::run, words)
}

/// Whether comparisons may be believed.
pub(crate) fn trust(words: &[&str]) -> Outcome {
    measured(trust::run, words)
}

/// Runs a measurement of the build that people get. A smoke run takes the build that is under test.
fn measured(run: fn(&[&str]) -> Outcome, words: &[&str]) -> Outcome {
    let is_named = std::env::var_os("ONEHOP_PROGRAM").is_some();
    if !is_named && !words.iter().any(|word| ["--smoke", "--list"].contains(word)) {
        let build = ["build", "--locked", "--package", "onehop", "--profile", ground::PUBLISHED_PROFILE];
        quiet(&mut command("cargo", &build))?;
        ground::use_program(ground::target().join(ground::PUBLISHED_PROFILE).join("onehop"));
    }
    interrupt::watched(run, words)
}
