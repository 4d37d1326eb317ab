//! What a reader must know before believing a row, in words.
//!
//! Pure: owns the sentences and when they apply. Never decides a verdict: `table.rs` does.

use std::collections::BTreeSet;

use onehop_load::caveat::{Caveat, CaveatCode};
use onehop_load::http2::Http2Seen;
use onehop_load::outcome::Tally;
use onehop_load::plan;
use onehop_statistics::PAIRS_MIN;

use super::{Mark, Metric, Row, Sample, Settings, Source, Target, table};

/// Rounds below which an interval is so wide that only large differences are found.
const ROUNDS_FEW: usize = 5;
/// Answers whose sizes differ more than this are not the same answers; a date or a number in one differs less.
const SIZE_SHARE_MAX: f64 = 0.01;

/// All that apply.
pub(super) fn of(targets: &[Target], settings: &Settings, samples: &[Sample], rows: &[Row]) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let rounds = samples.iter().map(|sample| sample.round).collect::<BTreeSet<_>>().len();
    if rounds < ROUNDS_FEW {
        caveats.push(CaveatCode::FewRounds.says(format!(
            "{rounds} rounds are few: only large differences can be shown; {} are usual",
            Settings::default().rounds
        )));
    }
    caveats.extend(plan::unverified(targets.iter().flat_map(|target| &target.requests)));
    caveats.extend(of_running(targets));
    for (place, target) in targets.iter().enumerate() {
        let own: Vec<&Sample> = samples.iter().filter(|sample| sample.target == place).collect();
        caveats.extend(of_usage(target, &own));
        caveats.extend(of_marks(target, &own));
        caveats.extend(of_streams(target, &own));
    }
    if let Some((control, tests)) = targets.split_first() {
        let sums = Sums::of(0, control, samples);
        for (index, test) in tests.iter().enumerate() {
            caveats.extend(of_protocols(control, test));
            // Beyond capacity each server refuses in its own way.
            if !settings.is_overload {
                caveats.extend(of_responses((control, &sums), (test, &Sums::of(index + 1, test, samples))));
            }
        }
    }
    caveats.extend(of_rows(targets, settings, samples, rows));
    caveats
}

/// Targets that nobody starts anew.
fn of_running(targets: &[Target]) -> Option<Caveat> {
    let running = targets.iter().filter(|target| matches!(target.source, Source::Running));
    let names = in_words(running.map(|target| format!("`{}`", target.name)).collect())?;
    Some(CaveatCode::RanAlready.says(format!(
        "{names} ran already: one start is in all rounds, so the luck of that start (where memory lies, which cores \
         it has) is part of the difference. Give a command instead to have it started anew in each round"
    )))
}

fn of_usage(target: &Target, own: &[&Sample]) -> Option<Caveat> {
    let unknown = own.iter().filter(|sample| sample.usage.is_none()).count();
    if unknown == 0 {
        return None;
    }
    let why = match target.source {
        Source::Running => "who listens there was not found, or may not be looked at by this user",
        Source::Command(_) | Source::Staged(_) => "its processes could not be read",
    };
    Some(CaveatCode::UsageUnknown.says(format!(
        "CPU time and memory of `{}` are not known in {unknown} of {} rounds: {why}",
        target.name,
        own.len()
    )))
}

fn of_marks(target: &Target, own: &[&Sample]) -> Vec<Caveat> {
    let name = &target.name;
    let rounds = |is: fn(&Mark) -> bool| -> Option<String> {
        let marked = own.iter().filter(|sample| sample.marks.iter().any(is));
        let numbers: Vec<String> = marked.map(|sample| (sample.round + 1).to_string()).collect();
        match numbers.len() {
            1 => in_words(numbers).map(|number| format!("round {number}")),
            count if count > 1 && count == own.len() => Some("all rounds".to_owned()),
            _ => in_words(numbers).map(|numbers| format!("rounds {numbers}")),
        }
    };
    let mut caveats = Vec::new();
    if let Some(rounds) = rounds(|mark| matches!(mark, Mark::StartUp { .. })) {
        caveats.push(CaveatCode::NotWarm.says(format!(
            "`{name}` was not warm yet when it was measured in {rounds}; left out. A longer warm-up avoids that"
        )));
    }
    if let Some(rounds) = rounds(|mark| matches!(mark, Mark::Pause { .. })) {
        let text = format!("`{name}`, or the machine, stood still in {rounds}: rate and latency left out");
        caveats.push(CaveatCode::Pause.says(text));
    }
    if let Some(rounds) = rounds(|mark| *mark == Mark::Restarted) {
        let text = format!("`{name}` ended or was started anew while it was measured in {rounds}; left out");
        caveats.push(CaveatCode::Restarted.says(text));
    }
    if let Some(rounds) = rounds(|mark| *mark == Mark::LoadWasTheBottleneck) {
        caveats.push(CaveatCode::LoadLimited.says(format!(
            "the load was at its own limit with `{name}` in {rounds}: rate and latency are left out, they say \
             nothing about the server"
        )));
    }
    if let Some(rounds) = rounds(|mark| *mark == Mark::LoadWasLate) {
        caveats.push(CaveatCode::LoadLate.says(format!(
            "the load sent some requests to `{name}` late in {rounds}: its longest latencies are left out there"
        )));
    }
    let voids = own.iter().flat_map(|sample| sample.marks.iter().map(|mark| (sample.round + 1, mark)));
    let mut voids = voids.filter_map(|(round, mark)| match mark {
        Mark::Void(why) => Some((round, why)),
        _ => None,
    });
    if let Some((round, why)) = voids.next() {
        let more = voids.count();
        let more = match more {
            0 => String::new(),
            1 => " (one other round too)".to_owned(),
            more => format!(" ({more} other rounds too)"),
        };
        caveats.push(CaveatCode::Void.says(format!("round {round} of `{name}` is void{more}: {why}")));
    }
    caveats
}

/// What servers said of the streams of their connections, all rounds together.
fn of_streams(target: &Target, own: &[&Sample]) -> Vec<Caveat> {
    let mut seen = Http2Seen::default();
    own.iter().filter_map(|sample| sample.run.http2.as_ref()).for_each(|one| seen.merge(one));
    seen.caveats().into_iter().map(|caveat| caveat.of(&format!("`{}`", target.name))).collect()
}

/// All that a target answered in all rounds.
struct Sums<'a> {
    /// Names and tallies of its requests.
    requests: Vec<(&'a str, Tally)>,
    statuses: BTreeSet<u16>,
}

impl<'a> Sums<'a> {
    fn of(place: usize, target: &'a Target, samples: &[Sample]) -> Sums<'a> {
        let mut requests: Vec<(&str, Tally)> =
            target.requests.iter().map(|request| (request.name.as_str(), Tally::default())).collect();
        let mut statuses = BTreeSet::new();
        for sample in samples.iter().filter(|sample| sample.target == place) {
            statuses.extend(sample.run.total.statuses.keys());
            for ((_, sum), tally) in requests.iter_mut().zip(&sample.run.by_request) {
                sum.merge(tally);
            }
        }
        Sums { requests, statuses }
    }
}

fn of_protocols(control: &Target, test: &Target) -> Option<Caveat> {
    let name = |target: &Target| target.requests.first().map(|request| request.protocol.name());
    let (one, other) = (name(control)?, name(test)?);
    (one != other).then(|| {
        CaveatCode::ProtocolsDiffer.says(format!(
            "`{}` was asked over {one}, `{}` over {other}: what differs may be the protocols' doing",
            control.name, test.name
        ))
    })
}

fn of_responses((control, sums): (&Target, &Sums<'_>), (test, others): (&Target, &Sums<'_>)) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if sums.statuses.is_empty() || others.statuses.is_empty() {
        return caveats;
    }
    let list = |statuses: &BTreeSet<u16>| in_words(statuses.iter().map(u16::to_string).collect());
    if sums.statuses != others.statuses
        && let (Some(one), Some(other)) = (list(&sums.statuses), list(&others.statuses))
    {
        caveats.push(CaveatCode::StatusesDiffer.says(format!(
            "the statuses differ: `{}` answered with {one}, `{}` with {other}",
            control.name, test.name
        )));
    }
    for ((name, one), (_, other)) in sums.requests.iter().zip(&others.requests) {
        let (one, other) = (response_bytes(one), response_bytes(other));
        let share = (other / one - 1.0).abs();
        if share > SIZE_SHARE_MAX && share.is_finite() {
            caveats.push(CaveatCode::SizesDiffer.says(format!(
                "the answers to `{name}` differ in size, heads included: {one:.0} bytes from `{}`, {other:.0} from \
                 `{}`. Look whether they are the same answers",
                control.name, test.name
            )));
        }
    }
    caveats
}

fn response_bytes(tally: &Tally) -> f64 {
    tally.bytes_read as f64 / (tally.good + tally.unexpected) as f64
}

/// Rows for which too little was left.
fn of_rows(targets: &[Target], settings: &Settings, samples: &[Sample], rows: &[Row]) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    for (place, test) in targets.iter().enumerate().skip(1) {
        let few = rows.iter().filter(|row| row.test == place && row.pairs < PAIRS_MIN);
        if let Some(names) = in_words(few.map(|row| in_a_word(row.metric).to_owned()).collect()) {
            caveats.push(CaveatCode::TooFewPairs.says(format!(
                "nothing can be said of `{}` about {names}: fewer than {PAIRS_MIN} rounds are left in which both \
                 arms have a figure that counts",
                test.name
            )));
        }
    }
    if samples.is_empty() || settings.rounds < PAIRS_MIN {
        caveats.push(CaveatCode::FewRounds.says(format!("a verdict needs at least {PAIRS_MIN} rounds")));
    }
    let has_short = |sample: &Sample| {
        let responses = sample.run.total.good;
        table::value(sample, Metric::P99).is_some() && responses < P99_RESPONSES_MIN
    };
    if samples.iter().any(has_short) {
        caveats.push(CaveatCode::FewAnswers.says(format!(
            "some measurements hold fewer than {P99_RESPONSES_MIN} answers: their 99th percentile is based on fewer \
             than ten of them"
        )));
    }
    caveats
}

/// Answers of which a hundredth are ten: fewer are chance.
const P99_RESPONSES_MIN: u64 = 1000;

fn in_a_word(metric: Metric) -> &'static str {
    match metric {
        Metric::CpuPerRequest => "CPU time per request",
        Metric::Rate => "rate",
        Metric::P50 => "median latency",
        Metric::P99 => "99th percentile of latency",
        Metric::MemoryMedian => "memory",
        Metric::MemoryP99 => "peaks of memory",
        Metric::MemoryAtRest => "memory at rest",
        Metric::MemoryPerIdleConnection => "memory per idle connection",
        Metric::Switches => "context switches",
        Metric::IoBytes => "bytes read and written",
        Metric::ColdStart => "cold start",
        Metric::AfterIdle => "first answer after idleness",
        Metric::Recovery => "recovery from overload",
    }
}

/// `a, b and c`; `None` for nothing.
fn in_words(mut items: Vec<String>) -> Option<String> {
    let last = items.pop()?;
    Some(if items.is_empty() { last } else { format!("{} and {last}", items.join(", ")) })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onehop_load::plan::{Expect, Protocol, Request};
    use onehop_load::url::{Address, Url};

    use super::super::Check;
    use super::super::sample::sample;
    use super::*;

    fn target(name: &str) -> Target {
        let request = Request {
            name: "page".to_owned(),
            url: Url::parse("http://localhost:8080/").unwrap(),
            address: Address::Tcp("127.0.0.1:8080".parse().unwrap()),
            tls: None,
            protocol: Protocol::Http1,
            method: "GET".to_owned(),
            fields: Vec::new(),
            body: None,
            weight: 1,
            expect: Expect::Any,
        };
        Target {
            name: name.to_owned(),
            source: Source::Running,
            requests: vec![request],
            check: Check::default(),
        }
    }

    fn reported(samples: &[Sample]) -> String {
        let settings = Settings { rounds: 6, ..Settings::default() };
        let rows = table::rows(2, samples, &settings);
        let caveats = of(&[target("nginx"), target("onehop")], &settings, samples, &rows);
        caveats.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    fn six_rounds() -> Vec<Sample> {
        (0..6).flat_map(|round| [0, 1].map(|place| sample(place, round, 5000, 100, 10.0))).collect()
    }

    #[test]
    fn arms_that_agree_and_run_already_have_one_caveat() {
        insta::assert_snapshot!(reported(&six_rounds()));
    }

    #[test]
    fn everything_that_can_mislead_is_said() {
        let mut samples = six_rounds();
        let second = Duration::from_secs(1);
        samples[0].marks = vec![Mark::StartUp { lasted: second }];
        samples[2].marks = vec![Mark::Pause { at: second, length: second }];
        samples[4].marks = vec![Mark::LoadWasTheBottleneck];
        samples[6].marks = vec![Mark::Restarted];
        for sample in samples.iter_mut().filter(|sample| sample.target == 1) {
            sample.usage = None;
            sample.run.by_request[0].bytes_read *= 2;
            sample.run.total.statuses = [(200, 4000), (304, 1000)].into();
        }
        samples[1].marks = vec![Mark::Void("3 of 5000 requests failed: 3 broken off".to_owned())];
        samples[3].marks = samples[1].marks.clone();
        insta::assert_snapshot!(reported(&samples));
    }

    #[test]
    fn few_rounds_and_few_answers_are_said() {
        let few: Vec<Sample> =
            (0..2).flat_map(|round| [0, 1].map(|place| sample(place, round, 500, 100, 10.0))).collect();
        insta::assert_snapshot!(reported(&few));
    }
}
