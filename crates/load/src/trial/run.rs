//! A trial from begin to end, on one page: where the application listens, whether both answer the same, what they
//! say of themselves, what they cost.
//!
//! Owns the order. Never measures what does not answer the same. `looking.rs` is the part before, `measuring.rs` the
//! part after the decision to measure.

use std::time::Instant;

use super::looking::{self, Looked};
use super::measuring::Bench;
use super::settings::Settings;
use super::setup::Setup;
use super::stacks::Workshop;
use super::{Trial, TrialError, same};
use crate::progress::Observer;

/// Starts today's stack and onehop's, asks both the same, and measures both where they answer alike.
///
/// # Errors
/// Where one of the two does not run, with the last lines of its output.
pub fn run(setup: &Setup, settings: &Settings, observer: &mut dyn Observer) -> Result<Trial, TrialError> {
    let mut bench = Bench::new(settings, Instant::now());
    let mut setup = setup.clone();
    let mut trial = empty(&setup);
    trial.caveats.extend(looking::settle_port(&mut setup, &bench, observer)?);
    let Some((first, others)) = setup.today.split_first() else {
        return Err(TrialError::Measurement("nothing was found that serves this today".to_owned()));
    };
    let mut workshop = Workshop::new(&setup, &settings.onehop);
    trial.onehopfile = workshop.shown_onehopfile();

    let looked = looking::look(&mut workshop, first, &mut bench, observer)?;
    let Looked { mut stacks, sameness, measured, caveat, own_figures } = looked;
    trial.own_figures = own_figures;
    trial.caveats.extend(sameness.changing);
    trial.caveats.push(same::IGNORED.to_owned());
    trial.caveats.extend(caveat);
    trial.compared = sameness.compared;

    trial.today.extend(stacks.first().map(|stack| stack.words.clone()));
    trial.onehop.extend(stacks.last().map(|stack| stack.words.clone()));
    let paths = match measured {
        Ok(paths) => paths,
        Err(reason) => {
            trial.caveats.push(format!("Nothing was measured: {reason}."));
            return Ok(trial);
        }
    };
    for front in others {
        if observer.is_interrupted() || !bench.has_time_for(stacks.len() + 1, setup.application.is_some()) {
            trial.caveats.push("There was no time for the other stack of today.".to_owned());
            break;
        }
        match looking::beside(&mut workshop, front, &paths, &bench, observer) {
            Ok(mut stack) => {
                stack.tell_from(front, &stacks);
                trial.today.push(stack.words.clone());
                stacks.push(stack);
            }
            Err(reason) => trial.caveats.push(reason),
        }
    }
    if observer.is_interrupted() {
        trial.caveats.push("Nothing was measured: it was broken off before.".to_owned());
        return Ok(trial);
    }
    let measured = bench.measure(&stacks, &paths, setup.application.is_some(), observer)?;
    trial.comparison = Some(measured.comparison);
    trial.at_same_load = measured.at_same_load;
    trial.caveats.extend(measured.caveats);
    trial.caveats.extend(bench.overrun_words());
    trial.measured = paths;
    Ok(trial)
}

fn empty(setup: &Setup) -> Trial {
    Trial {
        found: setup.found.clone(),
        today: Vec::new(),
        onehop: Vec::new(),
        onehopfile: String::new(),
        compared: Vec::new(),
        measured: Vec::new(),
        comparison: None,
        at_same_load: None,
        own_figures: Vec::new(),
        caveats: setup.notes.clone(),
    }
}
