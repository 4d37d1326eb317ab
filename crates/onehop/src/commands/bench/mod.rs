//! `onehop bench`: what was typed becomes a plan, is measured by the load crate, and told.
//!
//! Owns defaults, the refusal to load other people's hosts, and exit codes. Never computes a figure: the load crate
//! does. `requests.rs` makes requests of what was typed, `session.rs` is what surrounds every measurement,
//! `output.rs` where results go; one file for each kind of measurement beside them.

mod collection;
mod compare;
mod foreign;
mod load;
mod marks;
mod max;
mod output;
mod requests;
mod scenario;
mod session;
mod targets;

use onehop_bench::foreign::Tool;

use crate::arguments::{Bench, BenchCommand};
use crate::failure::Failure;

pub(super) use self::session::Session;

pub(crate) fn bench(arguments: &Bench) -> Result<(), Failure> {
    match &arguments.what {
        None => load::load(&arguments.load),
        Some(BenchCommand::Compare(compare)) => compare::compare(compare),
        Some(BenchCommand::Max(max)) => max::max(max),
        Some(BenchCommand::Collection(collection)) => collection::collection(collection),
        Some(BenchCommand::Run(run)) => scenario::run(run),
        Some(BenchCommand::Init(init)) => scenario::init(init),
        Some(BenchCommand::Wrk(words)) => foreign::foreign(Tool::Wrk, &words.words),
        Some(BenchCommand::Ab(words)) => foreign::foreign(Tool::Ab, &words.words),
        Some(BenchCommand::Autocannon(words)) => foreign::foreign(Tool::Autocannon, &words.words),
        Some(BenchCommand::Oha(words)) => foreign::foreign(Tool::Oha, &words.words),
        Some(BenchCommand::Hey(words)) => foreign::foreign(Tool::Hey, &words.words),
        Some(BenchCommand::K6(words)) => foreign::foreign(Tool::K6, &words.words),
        Some(BenchCommand::H2load(words)) => foreign::foreign(Tool::H2load, &words.words),
    }
}
