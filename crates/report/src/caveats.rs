//! What follows from a run and must be known before its figures are believed.
//!
//! Owns the words for the load's own limits, what a closed loop left out, stalls, faults and early ends. Never
//! softens one of them, and never repeats what another part of the report has already found.

use std::time::Duration;

use onehop_load::caveat::{Caveat, CaveatCode};
use onehop_load::http2::{self, Http2Seen};
use onehop_load::outcome::{Bottleneck, End, Failures, Run, Stall, Tally};
use onehop_load::plan::{Pace, Plan, Protocol, Until};

use super::figures;
use super::{Load, secrets};

/// Stalls that are told one by one; of more the longest are told.
const STALLS_REPORTED_MAX: usize = 3;

/// Answers that a p99 needs, so that at least ten are slower than it.
const RESPONSES_FOR_P99: u64 = 1000;

/// A load that used more than this share of a machine's time stolen by others is worth a word.
const STEAL_WORTH_A_WORD: f64 = 0.005;

/// What a reader of a load must know, repetitions together.
pub(crate) fn of_load(load: &Load) -> Vec<Caveat> {
    let mut reported = Vec::new();
    for (place, run) in load.runs.iter().enumerate() {
        let of_run = of_run(&load.plan, run).into_iter();
        reported.extend(of_run.map(|caveat| match load.runs.len() {
            1 => caveat,
            _ => caveat.of(&format!("Run {}", place + 1)),
        }));
    }
    reported
        .extend(load.disagreements.iter().map(|words| CaveatCode::Disagreement.says(secrets::hide(words))));
    if load.runs.len() == 1 {
        reported.push(
            CaveatCode::OneRun
                .says("There was one run only: nothing here shows how far a second one would differ."),
        );
    }
    reported
}

/// What a reader of one run must know.
pub(crate) fn of_run(plan: &Plan, run: &Run) -> Vec<Caveat> {
    let mut reported = Vec::new();
    // Where nothing was answered well, no limit of the load is the cause.
    let bottleneck = run.generator.bottleneck.filter(|_| run.has_good());
    reported.extend(bottleneck.map(|bottleneck| limit(plan, run, bottleneck)));
    reported.extend(omission(run));
    reported.extend(stalls(run).map(|words| CaveatCode::Stall.says(words)));
    reported.extend(no_whole_response(run).map(|words| CaveatCode::NoAnswer.says(words)));
    reported.extend(run.http2.iter().flat_map(Http2Seen::caveats));
    reported.extend(unexpected(run).map(|words| CaveatCode::UnexpectedStatus.says(words)));
    reported.extend(end(plan, run));
    if (1..RESPONSES_FOR_P99).contains(&run.total.good) && run.end != End::Interrupted {
        reported.push(CaveatCode::FewAnswers.says(format!(
            "{} only: the high percentiles rest on a few of them.",
            figures::counted(run.total.good, "good answer")
        )));
    }
    reported
}

/// What the load itself limited, and what to do.
pub(crate) fn limit(plan: &Plan, run: &Run, bottleneck: Bottleneck) -> Caveat {
    let reached = figures::number(run.rate());
    let more = more_threads(plan);
    let (code, text) = match bottleneck {
        Bottleneck::Thread { share } => (
            CaveatCode::LoadLimited,
            format!(
                "The load reached its own limit at {reached} answers per second (a thread of it used {} of a core); \
             the server can do at least that, and the latencies hold the load's own waiting. {more}",
                figures::percent(share)
            ),
        ),
        Bottleneck::Core { share } => (
            CaveatCode::LoadLimited,
            format!(
                "The load reached its own limit at {reached} answers per second: a thread of it waited {} of the time \
             for a core. The server can do at least that, and the latencies hold the load's own waiting. Free \
             cores for the load, or bind it and the server to cores of their own.",
                figures::percent(share)
            ),
        ),
        Bottleneck::Late { p99, is_in_median } => (
            CaveatCode::LoadLate,
            format!(
                "The load itself sent requests late (1 % of them by {} or more), and that is in {}: they are not the \
             server's alone. Ask for a lower rate, or give the load more: {more}",
                figures::duration(p99),
                if is_in_median { "the latencies" } else { "the longest latencies" }
            ),
        ),
        Bottleneck::System { refused } => (
            CaveatCode::LoadLimited,
            format!(
                "This machine refused the load's own connections {} (no local port, descriptor or memory was left): \
             the server can do at least {reached} answers per second, and the latencies hold the load's own \
             waiting. Keep connections instead of opening new ones, or load from several addresses.",
                figures::counted(refused, "time")
            ),
        ),
        Bottleneck::Connections { arrivals } => (
            CaveatCode::ConnectionsBusy,
            format!(
                "All {} were busy when {} came due. Their waiting is in the latencies. Where the server is to be \
             given more at a time, give more connections (-c); where it is not, this is what its users would see.",
                of_connections(plan),
                figures::counted(arrivals, "request")
            ),
        ),
    };
    code.says(text)
}

/// Whether the rate of this run says nothing about the server but that it can do that much. Without one good answer
/// it says not even that.
pub(crate) fn is_own_limit(run: &Run) -> bool {
    use Bottleneck::{Core, System, Thread};
    run.has_good() && matches!(run.generator.bottleneck, Some(Thread { .. } | Core { .. } | System { .. }))
}

/// What a closed loop left out, in words.
pub(crate) fn omission(run: &Run) -> Option<Caveat> {
    let omitted = run.omitted.as_ref()?;
    let stalled = match longest(&run.stalls, 1).first() {
        Some(stall) => format!(
            "at {} the server gave no answer for {}, and ",
            figures::duration(stall.at),
            figures::duration(stall.length)
        ),
        None => String::new(),
    };
    Some(CaveatCode::Omission.says(format!(
        "A closed loop asks nothing while it waits: {stalled}{} that would have come in that time were never \
         sent. The p99 of {} leaves them out; with them it is {} (worked out, not measured: an open loop, -r RATE, \
         measures it).",
        figures::counted(omitted.requests, "request"),
        figures::duration(run.total.latency.at(0.99)),
        figures::duration(omitted.corrected.at(0.99))
    )))
}

/// What came instead of good answers in all runs together, in words: statuses, then faults.
pub(crate) fn failures(runs: &[Run]) -> String {
    let mut total = Tally::default();
    runs.iter().for_each(|run| total.merge(&run.total));
    let mut reported = Vec::new();
    if total.unexpected > 0 {
        let responses = figures::counted(total.unexpected, "answer");
        reported.push(format!("{responses} with a status that was not expected ({})", status_list(&total)));
    }
    reported.extend(failure_list(&total.failures));
    figures::listed(&reported)
}

/// Failures by cause, in words; empty where there are none.
pub(crate) fn failure_list(failures: &Failures) -> Vec<String> {
    let causes = [
        (failures.connect, "without a connection"),
        (failures.tls, "without a TLS handshake"),
        (failures.closed, "closed before the answer"),
        (failures.truncated, "cut off within the answer"),
        (failures.reset, "reset by the server (RST_STREAM)"),
        (failures.goaway, "not taken by the server (GOAWAY)"),
        (failures.malformed, "answered with what is no HTTP"),
        (failures.timed_out, "not answered in time"),
        (failures.unsent, "never sent, since no connection was free"),
    ];
    let some = causes.into_iter().filter(|(number, _)| *number > 0);
    some.map(|(number, what)| format!("{} {what}", figures::count(number))).collect()
}

/// Statuses with their counts: `200: 1,234, 404: 5`.
fn status_list(total: &Tally) -> String {
    let statuses = total.statuses.iter();
    let list: Vec<String> =
        statuses.map(|(status, number)| format!("{status}: {}", figures::count(*number))).collect();
    if list.is_empty() { "no answer at all".to_owned() } else { list.join(", ") }
}

/// Stolen time, where it is worth a word.
pub(crate) fn steal(share: Option<f64>) -> Option<Caveat> {
    let share = share.filter(|share| *share > STEAL_WORTH_A_WORD)?;
    Some(CaveatCode::Steal.says(format!(
        "{} of this machine's time was taken by others on its host meanwhile (steal): latencies hold that too.",
        figures::percent(share)
    )))
}

/// `64 connections`, or over HTTP/2 `streams (64) of 1 connection`.
fn of_connections(plan: &Plan) -> String {
    let connections = figures::counted(plan.pace.connections() as u64, "connection");
    match plan.protocol() {
        Protocol::Http1 => connections,
        Protocol::Http2 { streams } => format!("streams ({streams}) of {connections}"),
    }
}

fn more_threads(plan: &Plan) -> String {
    let next = plan.threads.saturating_mul(2).max(2);
    format!("Give it more threads (-t {next}) where cores are free, or run it on another machine.")
}

fn stalls(run: &Run) -> Option<String> {
    // The longest one is told with what it left out.
    let reported_already = usize::from(run.omitted.is_some());
    let reported: Vec<String> = longest(&run.stalls, STALLS_REPORTED_MAX)
        .into_iter()
        .skip(reported_already)
        .map(|stall| format!("{} at {}", figures::duration(stall.length), figures::duration(stall.at)))
        .collect();
    if reported.is_empty() {
        return None;
    }
    let more = run.stalls.len() - reported_already - reported.len();
    let more = if more == 0 { String::new() } else { format!(", and {more} shorter ones") };
    Some(format!("No answer came although many were waited for: for {}{more}.", figures::listed(&reported)))
}

fn longest(stalls: &[Stall], most: usize) -> Vec<Stall> {
    let mut sorted = stalls.to_vec();
    sorted.sort_by_key(|stall| std::cmp::Reverse(stall.length));
    sorted.truncate(most);
    sorted
}

fn no_whole_response(run: &Run) -> Option<String> {
    let failures = &run.total.failures;
    let list = failure_list(failures);
    if list.is_empty() {
        return None;
    }
    let resets = run.http2.as_ref().map(|seen| &seen.resets).filter(|resets| !resets.is_empty());
    let codes = resets.map(|resets| format!(" (codes of RST_STREAM: {})", http2::code_list(resets)));
    Some(format!(
        "{} got no whole answer: {}{}. None of them counts as an answer, in no rate and in no latency.",
        figures::counted(failures.sum(), "request"),
        figures::listed(&list),
        codes.unwrap_or_default()
    ))
}

fn unexpected(run: &Run) -> Option<String> {
    if run.total.unexpected == 0 {
        return None;
    }
    let all_bad = if !run.has_good() { " Not one had the expected one." } else { "" };
    Some(format!(
        "{} had a status that was not expected (all answers: {}): they are in no rate and in no latency.{all_bad}",
        figures::counted(run.total.unexpected, "answer"),
        status_list(&run.total)
    ))
}

/// Why a run was over before its time.
pub(crate) fn end(plan: &Plan, run: &Run) -> Option<Caveat> {
    match &run.end {
        End::Time | End::Requests | End::Narrow => None,
        End::Interrupted => {
            let wanted = match plan.until {
                Until { time: Some(time), .. } => format!(" of {}", figures::length(time)),
                Until { requests: Some(requests), .. } => {
                    format!(" of {}", figures::counted(requests, "request"))
                }
                _ => String::new(),
            };
            let text = format!("It was broken off after {}{wanted}.", figures::duration(run.elapsed));
            Some(CaveatCode::BrokenOff.says(text))
        }
        End::Hopeless(why) => Some(CaveatCode::GivenUp.says(format!(
            "It was given up after {}, since nothing but failures came: {}.",
            figures::duration(run.elapsed),
            secrets::hide(&figures::visible(why)).trim_end_matches('.')
        ))),
        End::OneStatus { .. } => {
            run.end.given_up().map(|why| CaveatCode::GivenUp.says(format!("It was given up: {why}.")))
        }
    }
}

/// `64 connections`, or `10,000 requests per second`: how a load differs from others of a sweep.
pub(crate) fn step_name(plan: &Plan) -> String {
    match &plan.pace {
        Pace::Closed { connections, .. } => figures::counted(*connections as u64, "connection"),
        Pace::Open { arrivals, .. } => match arrivals.phases.as_slice() {
            [phase] if (phase.from - phase.to).abs() < f64::EPSILON => figures::rate(phase.from),
            [.., last] => format!("up to {}", figures::rate(last.to)),
            [] => "no rate".to_owned(),
        },
    }
}

/// The share of a core that the load used, all threads together.
pub(crate) fn cores_used(run: &Run) -> f64 {
    run.generator.cpu.as_secs_f64() / run.elapsed.max(Duration::from_nanos(1)).as_secs_f64()
}
