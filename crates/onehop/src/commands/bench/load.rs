//! `onehop bench URL…`: loads, each of them several times.

use std::time::Duration;

use onehop_bench::quantity::Rates;
use onehop_bench::repeat;
use onehop_load::engine;
use onehop_load::outcome::{End, Run};
use onehop_load::plan::{self, Arrivals, Pace, Plan, Request, Reuse, Spacing, Timeouts, Until};
use onehop_load::progress::Observer as _;
use onehop_report::Findings;

use super::marks::Marks;
use super::requests::{self, RequestOptions};
use super::session::Session;
use crate::arguments::{Load, Shape};
use crate::failure::Failure;
use crate::units;

/// Connections of a closed loop: enough that a server is busy, few enough that none waits for long.
const CONNECTIONS: usize = 64;
/// Connections of an open loop: arrivals wait only for a server that is far behind. Below the 1024 descriptors
/// that processes have by default.
pub(super) const CONNECTIONS_OF_RATE: usize = 512;
const TIME: Duration = Duration::from_secs(10);
/// An interval that does not get narrow enough is given up after this.
const TIME_UNTIL_NARROW: Duration = Duration::from_secs(300);
const WARM_UP: Duration = Duration::from_secs(1);

pub(super) fn load(arguments: &Load) -> Result<(), Failure> {
    let options = RequestOptions::of(&arguments.request)?;
    let mut requests = Vec::new();
    for url in &arguments.urls {
        let (weight, url) = requests::weighted(url)?;
        let url = match &arguments.shape.unix_socket {
            Some(socket) => url.over(socket.clone()),
            None => url,
        };
        requests.push(options.to(url, weight)?);
    }
    let mut plans = plans(arguments, requests)?;
    let mut session = Session::begin(&arguments.output)?;
    let is_own_host = arguments.shape.i_own_this_host;
    for plan in &mut plans {
        requests::reach(&mut plan.requests, is_own_host, arguments.shape.connect_timeout)?;
    }
    measure(&mut session, &plans, arguments.runs).and_then(|loads| tell(session, loads))
}

/// Measures each plan so often, and says at the start how long that takes. All plans are gone through before one is
/// repeated, so that what changes with time shows as a disagreement.
pub(super) fn measure(
    session: &mut Session,
    plans: &[Plan],
    runs: usize,
) -> Result<Vec<onehop_report::Load>, Failure> {
    announce(session, plans, runs);
    session.caveats.extend(plan::unverified(plans.iter().flat_map(|plan| &plan.requests)));
    let _marks = Marks::begin(plans.iter().flat_map(|plan| &plan.requests).map(|request| &request.address));
    let mut loads: Vec<onehop_report::Load> = plans
        .iter()
        .map(|plan| onehop_report::Load { plan: plan.clone(), runs: Vec::new(), disagreements: Vec::new() })
        .collect();
    'runs: for repetition in 0..runs {
        for load in &mut loads {
            // Another seed, other arrivals: two runs that agree are then not the same one twice.
            let plan = Plan { seed: load.plan.seed.wrapping_add(repetition as u64), ..load.plan.clone() };
            session.stage(&stage(&plan, repetition, runs, plans.len() > 1));
            let run = engine::run(&plan, session).map_err(|error| Failure::failed(error.to_string()))?;
            let ends = run.end.is_early();
            load.runs.push(run);
            if ends {
                break 'runs;
            }
        }
    }
    loads.retain(|load| !load.runs.is_empty());
    for load in &mut loads {
        load.disagreements = repeat::disagreements(&load.runs);
    }
    Ok(loads)
}

/// Prints the loads; without one good answer there is nothing to be read out of the figures.
pub(super) fn tell(session: Session, loads: Vec<onehop_report::Load>) -> Result<(), Failure> {
    let has_good = loads.iter().flat_map(|load| &load.runs).any(Run::has_good);
    let given_up = loads.iter().find_map(|load| {
        let end = &load.runs.iter().find(|run| run.end.given_up().is_some())?.end;
        Some((shown_urls(&load.plan), end.clone()))
    });
    session.tell(Findings::Loads(loads))?;
    match (has_good, given_up) {
        (false, Some((urls, end))) => Err(nothing_good(&urls, &end)),
        (false, None) => Err(Failure::failed("not one good answer: see above what came instead")),
        (true, Some((urls, end))) => Err(Failure::failed(format!(
            "{urls}: broken off, no good answers came any more: {}",
            end.given_up().unwrap_or_default()
        ))),
        (true, None) => Ok(()),
    }
}

/// Place, cause and next step of a load that was given up.
fn nothing_good(urls: &str, end: &End) -> Failure {
    let why = end.given_up().unwrap_or_default();
    let next = match end {
        End::OneStatus { status, .. } => {
            format!(
                "correct the URL; to measure it as it is, count that status as success: --expect {status}"
            )
        }
        _ => "look whether the server still runs, and what it logged".to_owned(),
    };
    Failure::failed(format!("{urls}: not one good answer: {why}\n  {next}"))
}

/// The first URL, and how many more there are.
fn shown_urls(plan: &Plan) -> String {
    let first = plan.requests.first().map(|request| request.url.to_string()).unwrap_or_default();
    match plan.requests.len() {
        0 | 1 => first,
        all => format!("{first} and {} more", all - 1),
    }
}

fn plans(arguments: &Load, requests: Vec<Request>) -> Result<Vec<Plan>, Failure> {
    let until = Until {
        time: match (arguments.duration, arguments.requests, arguments.until) {
            (Some(time), ..) => Some(time),
            (None, Some(_), _) => None,
            (None, None, Some(_)) => Some(TIME_UNTIL_NARROW),
            (None, None, None) => Some(TIME),
        },
        requests: arguments.requests,
        narrow: arguments.until,
    };
    let connections = match (arguments.connections.as_slice(), &arguments.rate) {
        ([], None) => vec![at_most(CONNECTIONS, arguments.requests)],
        ([], Some(_)) => vec![at_most(CONNECTIONS_OF_RATE, arguments.requests)],
        (typed, _) => typed.to_vec(),
    };
    if let (Some(requests), Some(most)) = (arguments.requests, connections.iter().max())
        && (*most as u64) > requests
    {
        return Err(Failure::wrong(format!(
            "{most} connections (-c) are more than {requests} requests (-n)"
        )));
    }
    if arguments.rate.as_ref().is_some_and(Rates::changes) && until.time.is_none() {
        return Err(Failure::wrong("a rate that changes is spread over the duration: say one with -d"));
    }
    let usual_warm_up = if arguments.requests.is_some() { Duration::ZERO } else { WARM_UP };
    let plan = |connections: usize| Plan {
        requests: requests.clone(),
        pace: match &arguments.rate {
            None => Pace::Closed { connections, think: arguments.think.unwrap_or_default() },
            Some(rates) => open(rates, arguments.arrivals, until.time.unwrap_or(TIME), connections),
        },
        until,
        warm_up: arguments.shape.warm_up.unwrap_or(usual_warm_up),
        ..skeleton(&arguments.shape, connections)
    };
    Ok(connections.into_iter().map(plan).collect())
}

/// A plan with what [`Shape`] says, and nothing else.
pub(super) fn skeleton(shape: &Shape, connections: usize) -> Plan {
    let cores = shape.cores.clone().map(|cores| cores.0).unwrap_or_default();
    Plan {
        requests: Vec::new(),
        pace: Pace::Closed { connections, think: Duration::ZERO },
        until: Until::default(),
        warm_up: shape.warm_up.unwrap_or(WARM_UP),
        threads: shape.threads.unwrap_or(cores.len().max(1)).min(connections),
        cores,
        reuse: match (shape.new_connections, shape.requests_per_connection) {
            (true, _) => Reuse::New,
            (false, Some(requests)) => Reuse::Requests(requests),
            (false, None) => Reuse::Kept,
        },
        timeouts: Timeouts { connect: shape.connect_timeout, response: shape.timeout },
        seed: shape.seed,
    }
}

/// An open loop over this time.
pub(super) fn open(rates: &Rates, spacing: Spacing, time: Duration, connections: usize) -> Pace {
    Pace::Open { connections, arrivals: Arrivals { spacing, phases: rates.over(time) } }
}

/// The usual number of connections for a comparison.
pub(super) fn usual_connections(has_rate: bool) -> usize {
    if has_rate { CONNECTIONS_OF_RATE } else { CONNECTIONS }
}

fn at_most(connections: usize, requests: Option<u64>) -> usize {
    let requests = requests.and_then(|requests| usize::try_from(requests).ok()).unwrap_or(usize::MAX);
    connections.min(requests)
}

fn announce(session: &Session, plans: &[Plan], runs: usize) {
    let each: Option<Duration> =
        plans.iter().map(|plan| plan.until.time.map(|time| time + plan.warm_up)).sum();
    let times = match runs {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        runs => format!("{runs} times"),
    };
    let takes = each.and_then(|each| each.checked_mul(u32::try_from(runs).ok()?));
    let takes = takes.map(|time| format!(", at most {} together", units::duration(time)));
    let once = if runs == 1 { " (one run alone shows no spread)" } else { "" };
    session.say(&format!("measuring {times}{}{once}; Ctrl-C breaks off", takes.unwrap_or_default()));
}

fn stage(plan: &Plan, repetition: usize, runs: usize, is_sweep: bool) -> String {
    let mut words = format!("run {} of {runs}", repetition + 1);
    if is_sweep {
        words = format!("{words}, {}", units::counted(plan.pace.connections() as u64, "connection"));
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn typed(line: &str) -> Result<Vec<Plan>, Failure> {
        let words = ["onehop", "bench"].into_iter().chain(line.split(' '));
        let Command::Bench(bench) = Arguments::try_parse_from(words).unwrap().command else {
            panic!("{line} is a bench");
        };
        let options = RequestOptions::of(&bench.load.request)?;
        let requests = bench
            .load
            .urls
            .iter()
            .map(|url| requests::weighted(url).and_then(|(weight, to)| options.to(to, weight)));
        plans(&bench.load, requests.collect::<Result<_, _>>()?)
    }

    #[test]
    fn without_options_it_is_a_closed_loop_of_ten_seconds() {
        let plans = typed(":8080").unwrap();
        let plan = plans.first().unwrap();
        assert_eq!(plan.pace, Pace::Closed { connections: 64, think: Duration::ZERO });
        assert_eq!(plan.until, Until { time: Some(TIME), ..Until::default() });
        assert_eq!((plan.warm_up, plan.threads, plan.reuse), (WARM_UP, 1, Reuse::Kept));
    }

    #[test]
    fn a_count_has_no_other_end_and_no_warm_up() {
        let plans = typed(":8080 -n 20").unwrap();
        let plan = plans.first().unwrap();
        assert_eq!(plan.until, Until { requests: Some(20), ..Until::default() });
        assert_eq!((plan.pace.connections(), plan.warm_up), (20, Duration::ZERO));
        assert!(typed(":8080 -n 20 -c 30").is_err());
    }

    #[test]
    fn several_connections_are_a_sweep_and_several_urls_a_mix() {
        let plans = typed("-c 1,8,64 3=:8080/a :8080/b -t 4 -X PUT -b text").unwrap();
        assert_eq!(plans.iter().map(|plan| plan.pace.connections()).collect::<Vec<_>>(), [1, 8, 64]);
        let first = plans.first().unwrap();
        assert_eq!(first.threads, 1);
        assert_eq!(first.requests.iter().map(|request| request.weight).collect::<Vec<_>>(), [3, 1]);
        assert!(first.requests.iter().all(|request| request.method == "PUT" && request.body.is_some()));
    }

    #[test]
    fn a_rate_is_an_open_loop_over_the_duration() {
        let plans = typed(":8080 -r 100..200,400 -d 10s --arrivals constant").unwrap();
        let Pace::Open { connections, arrivals } = &plans.first().unwrap().pace else { panic!("open") };
        assert_eq!((*connections, arrivals.spacing), (CONNECTIONS_OF_RATE, Spacing::Constant));
        assert!(arrivals.phases.iter().all(|phase| phase.length == Duration::from_secs(5)));
        assert!(typed(":8080 -r 100..200 -n 1000").is_err());
        assert!(typed(":8080 -r 100 -n 1000").is_ok());
    }
}
