//! `onehop bench compare`: servers side by side, in rounds.

use std::time::Duration;

use onehop_bench::compare::{self, Comparison, Mark, Sample, Settings, Source, Target};
use onehop_load::Observer as _;
use onehop_load::measure;
use onehop_load::plan::{Pace, Reuse, Timeouts};
use onehop_report::Findings;

use super::marks::Marks;
use super::requests::{self, RequestOptions};
use super::session::Session;
use super::{load, targets};
use crate::arguments::Compare;
use crate::failure::Failure;
use crate::units;

pub(super) fn compare(arguments: &Compare) -> Result<(), Failure> {
    let options = RequestOptions::of(&arguments.request)?;
    let mut targets = targets::read(&arguments.arms, &arguments.url, &options, arguments.ready_within)?;
    let settings = settings(arguments, &targets);
    let mut session = Session::begin(&arguments.output)?;
    for request in targets.iter().flat_map(|target| &target.requests) {
        requests::permit(&request.url, arguments.i_own_this_host)?;
    }
    for target in &mut targets {
        prepare(target, arguments, &mut session)?;
    }
    announce(&session, &settings, targets.len());
    let running = targets.iter().filter(|target| matches!(target.source, Source::Running));
    let marks = Marks::begin(running.flat_map(|target| &target.requests).map(|request| &request.address));
    let comparison = compare::compare(&targets, &settings, &mut session)
        .map_err(|error| Failure::failed(error.to_string()))?;
    drop(marks);
    let nothing = match session.is_interrupted() {
        false => nothing_good(&comparison).map(|target| format!("{target} gave not one good answer")),
        // An arm that was hardly asked is not to blame for having answered nothing.
        true if comparison.samples.iter().any(is_measured) => None,
        true => Some("broken off before anything was measured: let the first round end".to_owned()),
    };
    session.tell(Findings::Comparison(comparison))?;
    nothing.map_or(Ok(()), |why| Err(Failure::failed(why)))
}

/// A server that runs has to be reachable now; one that is started tells its version.
fn prepare(target: &mut Target, arguments: &Compare, session: &mut Session) -> Result<(), Failure> {
    match &target.source {
        Source::Running => {
            let timeouts = Timeouts::default().connect;
            requests::reach(&mut target.requests, arguments.i_own_this_host, timeouts)
        }
        Source::Staged(_) => Ok(()),
        Source::Command(start) => {
            for request in &target.requests {
                request.field_lines().map_err(|error| Failure::wrong(error.to_string()))?;
            }
            if let Some(program) = start.words.first().filter(|program| *program != "sh") {
                session.note_version(program);
            }
            Ok(())
        }
    }
}

fn settings(arguments: &Compare, targets: &[Target]) -> Settings {
    let is_started = targets.iter().any(|target| matches!(target.source, Source::Command(_)));
    let usual = if is_started { compare::WARM_UP_STARTED } else { Settings::default().warm_up };
    let connections = arguments.connections.unwrap_or(load::usual_connections(arguments.rate.is_some()));
    let (server_cores, load_cores) = cores(arguments);
    Settings {
        rounds: arguments.rounds,
        until_decided: arguments.until_decided,
        warm_up: arguments.warm_up.unwrap_or(usual),
        warm_up_pace: None,
        time: arguments.time,
        pace: match &arguments.rate {
            Some(rates) => load::open(rates, arguments.arrivals, arguments.time, connections),
            None => Pace::Closed { connections, think: Duration::ZERO },
        },
        reuse: if arguments.new_connections { Reuse::New } else { Reuse::Kept },
        timeouts: Timeouts { response: arguments.timeout, ..Timeouts::default() },
        threads: arguments.threads.unwrap_or(load_cores.len().max(1)).min(connections),
        server_cores,
        load_cores,
        idle: arguments.idle,
        idle_connections: 0,
        recovery: None,
        is_overload: false,
        confidence: arguments.confidence,
        least_difference: arguments.least,
        seed: arguments.seed,
    }
}

/// The cores that were named; where one side has none, it gets what the other leaves.
fn cores(arguments: &Compare) -> (Vec<usize>, Vec<usize>) {
    let (server, load) = measure::split_cores();
    let all: Vec<usize> = server.iter().chain(&load).copied().collect();
    let rest = |taken: &[usize]| all.iter().copied().filter(|core| !taken.contains(core)).collect::<Vec<_>>();
    match (&arguments.server_cores, &arguments.load_cores) {
        (None, None) => (server, load),
        (Some(server), None) => (server.0.clone(), rest(&server.0)),
        (None, Some(load)) => (rest(&load.0), load.0.clone()),
        (Some(server), Some(load)) => (server.0.clone(), load.0.clone()),
    }
}

/// An arm without a single good answer in any round.
pub(super) fn nothing_good(comparison: &Comparison) -> Option<String> {
    let has_good = |target: usize| {
        comparison.samples.iter().any(|sample| sample.target == target && is_measured(sample))
    };
    comparison.targets.iter().enumerate().find(|(target, _)| !has_good(*target)).map(|(_, name)| name.clone())
}

/// Whether its figures count for anything.
fn is_measured(sample: &Sample) -> bool {
    sample.run.has_good() && !sample.marks.iter().any(|mark| matches!(mark, Mark::Void(_)))
}

/// Noise for which it is said what can be found: that of a quiet machine, and that of a shared one.
const NOISE: [f64; 2] = [0.02, 0.05];

/// Says what is about to be measured and what it can find. Gives how long it takes at least.
pub(super) fn announce(session: &Session, settings: &Settings, targets: usize) -> Duration {
    let each = settings.time + settings.warm_up + settings.idle.unwrap_or_default();
    let measurements = targets.saturating_mul(settings.rounds);
    let together = each.saturating_mul(u32::try_from(measurements).unwrap_or(u32::MAX));
    let most = settings.looks().last().filter(|most| *most > settings.rounds);
    session.say(&format!(
        "{} of {}, {} and more, for starts and ends{}; Ctrl-C breaks off",
        units::counted(settings.rounds as u64, "round"),
        units::counted(targets as u64, "server"),
        units::duration(together),
        most.map(|most| format!("; up to {most} rounds until it is decided")).unwrap_or_default(),
    ));
    let [quiet, shared] = NOISE.map(|noise| 100.0 * settings.detectable(noise));
    if quiet.is_finite() {
        session.say(&format!(
            "a difference of {quiet:.0} % will be found (95 of 100 times) where figures vary by 2 % from round to round, of \
             {shared:.0} % where by 5 %"
        ));
    }
    together
}
