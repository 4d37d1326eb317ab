//! A side-by-side run from begin to end, on one page: where the application listens, whether both answer the same, what they
//! say of themselves, what they cost.
//!
//! Owns the order. Never measures what does not answer the same. `looking.rs` is the part before, `measuring.rs` the
//! part after the decision to measure.

use std::time::Instant;

use onehop_load::progress::Observer;

use super::looking::{self, Looked};
use super::measuring::Bench;
use super::settings::Settings;
use super::setup::Setup;
use super::stacks::StackBuilder;
use super::{SideBySide, SideBySideError, same};

/// Starts today's stack and onehop's, asks both the same, and measures both where they answer alike.
///
/// # Errors
/// Where one of the two does not run, with the last lines of its output.
pub fn run(
    setup: &Setup,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<SideBySide, SideBySideError> {
    let mut bench = Bench::new(settings, Instant::now());
    let mut setup = setup.clone();
    let mut side_by_side = empty(&setup);
    side_by_side.caveats.extend(looking::settle_port(&mut setup, &bench, observer)?);
    let Some((first, others)) = setup.today.split_first() else {
        return Err(SideBySideError::Measurement("nothing was found that serves this today".to_owned()));
    };
    let mut builder = StackBuilder::new(&setup, &settings.onehop);
    side_by_side.onehopfile = builder.shown_onehopfile();

    let looked = looking::look(&mut builder, first, &mut bench, observer)?;
    let Looked { mut stacks, routes, skipped, sameness, measured, caveat, own_figures } = looked;
    side_by_side.routes = routes;
    side_by_side.skipped.extend(skipped);
    side_by_side.own_figures = own_figures;
    side_by_side.caveats.extend(sameness.changing);
    side_by_side.caveats.push(same::IGNORED.to_owned());
    side_by_side.caveats.extend(caveat);
    side_by_side.compared = sameness.compared;

    side_by_side.today.extend(stacks.first().map(|stack| stack.words.clone()));
    side_by_side.onehop.extend(stacks.last().map(|stack| stack.words.clone()));
    let paths = match measured {
        Ok(paths) => paths,
        Err(reason) => {
            side_by_side.unmeasured = Some(reason);
            return Ok(side_by_side);
        }
    };
    for front in others {
        if observer.is_interrupted() || !bench.has_time_for(stacks.len() + 1, setup.application.is_some()) {
            side_by_side.caveats.push("There was no time for the other stack of today.".to_owned());
            break;
        }
        match looking::beside(&mut builder, front, &paths, &bench, observer) {
            Ok(mut stack) => {
                stack.tell_from(front, &stacks);
                side_by_side.today.push(stack.words.clone());
                stacks.push(stack);
            }
            Err(reason) => side_by_side.caveats.push(reason),
        }
    }
    if observer.is_interrupted() {
        side_by_side.unmeasured = Some("it was broken off before".to_owned());
        return Ok(side_by_side);
    }
    let measured = bench.measure(&stacks, &paths, setup.application.is_some(), observer)?;
    side_by_side.comparison = Some(measured.comparison);
    side_by_side.at_same_load = measured.at_same_load;
    side_by_side.caveats.extend(measured.caveats);
    side_by_side.caveats.extend(bench.overrun_words());
    side_by_side.measured = paths;
    Ok(side_by_side)
}

fn empty(setup: &Setup) -> SideBySide {
    SideBySide {
        found: setup.found.clone(),
        today: Vec::new(),
        onehop: Vec::new(),
        onehopfile: String::new(),
        routes: Vec::new(),
        skipped: setup.skipped.clone(),
        compared: Vec::new(),
        measured: Vec::new(),
        comparison: None,
        unmeasured: None,
        at_same_load: None,
        own_figures: Vec::new(),
        caveats: setup.notes.clone(),
    }
}
