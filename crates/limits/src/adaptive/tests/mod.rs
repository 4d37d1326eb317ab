//! The bound against a queueing model: how much is answered, how long it takes, how soon it follows a change.

mod model;

use std::time::Duration;

use self::model::{LIMITER, Limiter, Phase, SHORT, Second, Service, run};
use super::vegas::INITIAL;
use super::{Adaptive, InFlight};

/// What each simulation is made with in turn: one that holds by chance holds for no other. Every build takes the first
/// two, `ONEHOP_SEEDS=5` all of them.
fn seeds() -> impl Iterator<Item = u64> {
    let many = std::env::var("ONEHOP_SEEDS").ok().and_then(|many| many.parse().ok()).unwrap_or(2);
    [7, 4, 2, 3, 1].into_iter().take(many)
}

/// Servers and service times that are as different as applications are.
const KINDS: [(&str, usize, Service); 9] = [
    ("one event loop, 5 ms each", 1, Service::Constant(0.005)),
    ("one event loop, 5 ms in the mean", 1, Service::Exponential(0.005)),
    ("five connections to a database, 20 ms each", 5, Service::Constant(0.020)),
    ("eight threads, 10 ms in the mean", 8, Service::Exponential(0.010)),
    ("eight threads, one of ten takes 100 ms, the others 2", 8, Service::Routes(0.002, 0.100, 0.1)),
    ("a hundred at a time, 100 ms in the mean", 100, Service::Exponential(0.100)),
    ("two slow ones, 200 ms each", 2, Service::Constant(0.200)),
    ("fifty threads, one of ten takes 500 ms, the others 2", 50, Service::Routes(0.002, 0.500, 0.1)),
    ("one event loop, 2 ms each, one of ten waits for 500 ms", 1, WAITS),
];

/// A route of 2 ms, and one that waits for half a second for something that others do.
const WAITS: Service = Service::Waits { busy: 0.002, waits: 0.500, share: 0.1 };

/// What a stretch of time amounts to.
#[derive(Debug)]
struct Stretch {
    /// Answers a second.
    goodput: f64,
    /// Requests a second that came.
    offered: f64,
    refused: usize,
    /// From being let in to the answer, in seconds.
    p99: f64,
    bounds: Vec<u32>,
    /// Requests in flight at once.
    most: usize,
}

/// What is not as it should be, over all kinds and seeds.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn expect(&mut self, holds: bool, finding: impl FnOnce() -> String) {
        if !holds {
            self.0.push(finding());
        }
    }

    /// Nine tenths of what comes and can be answered are, and once let in take at most five times as long as one alone, or
    /// 100 ms more.
    fn expect_good(&mut self, name: &str, capacity: f64, alone: f64, found: &Stretch) {
        let share = found.goodput / capacity.min(found.offered);
        let is_quick = found.p99 <= (5.0 * alone).max(alone + 0.100);
        self.expect(share >= 0.9 && is_quick, || {
            let (p99, bounds) = (found.p99, &found.bounds);
            format!(
                "{name}: goodput {share:.3} of capacity, p99 {p99:.3} s, alone {alone:.3}, bounds {bounds:?}"
            )
        });
    }
}

impl Drop for Findings {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.0.is_empty(), "{} findings\n{}", self.0.len(), self.0.join("\n"));
        }
    }
}

fn stretch(seconds: &[Second]) -> Stretch {
    let mut took: Vec<f64> = seconds.iter().flat_map(|second| second.took.iter().copied()).collect();
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took.get((took.len() as f64 * share) as usize).copied().unwrap_or_default();
    Stretch {
        goodput: seconds.iter().map(|second| second.answered).sum::<usize>() as f64 / seconds.len() as f64,
        offered: seconds.iter().map(|second| second.arrived).sum::<usize>() as f64 / seconds.len() as f64,
        refused: seconds.iter().map(|second| second.refused).sum(),
        p99: at(0.99),
        most: seconds.iter().map(|second| second.in_flight_most).max().unwrap_or_default(),
        bounds: seconds.iter().map(|second| second.bound).collect(),
    }
}

fn phase(seconds: usize, load: f64, servers: usize, service: Service) -> Phase {
    Phase { seconds, rate: load * service.capacity(servers), servers, service, long_polls: 0.0 }
}

#[test]
fn at_any_load_nine_tenths_of_the_peak_are_answered_in_at_most_five_times_the_time() {
    let mut findings = Findings::default();
    for (name, servers, service) in KINDS {
        let capacity = service.capacity(servers);
        for (load, seed) in
            [1.0, 2.0, 5.0, 10.0].into_iter().flat_map(|load| seeds().map(move |seed| (load, seed)))
        {
            // Until the first answers nothing can be known, and what was let in meanwhile has to be answered.
            let from = 5 + (30.0 * servers as f64 / capacity) as usize;
            let seconds = run(seed, SHORT, &[phase(20, load, servers, service)]);
            let name = format!("{name}, load {load}, seed {seed}");
            findings.expect_good(&name, capacity, service.p99(), &stretch(&seconds[from..]));
        }
    }
}

#[test]
fn below_capacity_nobody_is_refused() {
    let mut findings = Findings::default();
    for (name, servers, service) in KINDS {
        for seed in seeds() {
            let found = stretch(&run(seed, SHORT, &[phase(60, 0.5, servers, service)]));
            findings.expect(found.refused == 0, || format!("{name}, seed {seed}: {found:?}"));
        }
    }
}

#[test]
fn without_a_queue_of_its_own_the_limiter_still_keeps_the_servers_busy() {
    let mut findings = Findings::default();
    for (name, servers, service) in KINDS {
        for seed in seeds() {
            let limiter = Limiter { queue: 0, ..LIMITER };
            let seconds = run(seed, limiter, &[phase(20, 10.0, servers, service)]);
            let found = stretch(&seconds[5..]);
            let share = found.goodput / service.capacity(servers);
            findings.expect(share >= 0.85, || format!("{name}, seed {seed}: {share} {found:?}"));
        }
    }
}

#[test]
fn an_overload_leaves_no_trace_two_seconds_after_it() {
    let mut findings = Findings::default();
    for (name, servers, service) in KINDS {
        for seed in seeds() {
            let phases = [phase(20, 10.0, servers, service), phase(20, 0.5, servers, service)];
            let seconds = run(seed, SHORT, &phases);
            let found = stretch(&seconds[22..]);
            let slower = found.p99 / service.p99();
            findings.expect(found.refused == 0 && slower <= 5.0, || {
                format!("{name}, seed {seed}: {slower} times {found:?}")
            });
        }
    }
}

#[test]
fn a_bound_that_is_not_needed_for_half_a_minute_starts_anew() {
    let (servers, service) = (100, Service::Exponential(0.100));
    for seed in seeds() {
        let phases = [phase(10, 10.0, servers, service), phase(35, 0.01, servers, service)];
        let found = stretch(&run(seed, SHORT, &phases));
        assert!(found.bounds[9] >= 80, "seed {seed}: {found:?}");
        // Some are in flight when it starts.
        assert!(f64::from(found.bounds[44]) <= 2.0 * INITIAL, "seed {seed}: {found:?}");
    }
}

#[test]
fn a_change_of_capacity_is_followed_within_two_seconds() {
    let mut findings = Findings::default();
    let thread = Service::Exponential(0.010);
    let slow = Service::Exponential(0.020);
    // The load is the same in requests all the time: five times of what eight threads can do.
    let with = |servers, service| Phase { seconds: 15, rate: 4_000.0, servers, service, long_polls: 0.0 };
    let changes = [
        ("half of the threads", with(4, thread)),
        ("twice as many threads", with(16, thread)),
        ("all take twice as long", with(8, slow)),
    ];
    for ((name, changed), seed) in
        changes.into_iter().flat_map(|change| seeds().map(move |seed| (change, seed)))
    {
        let usual = with(8, thread);
        let seconds = run(seed, SHORT, &[usual, changed, usual]);
        for (name, from, phase) in [(name, 17, &changed), (&format!("{name}, and back"), 32, &usual)] {
            let capacity = phase.service.capacity(phase.servers);
            let name = format!("{name}, seed {seed}");
            findings.expect_good(&name, capacity, phase.service.p99(), &stretch(&seconds[from..from + 12]));
        }
    }
}

#[test]
fn another_mix_of_fast_and_slow_routes_is_followed_within_three_seconds() {
    let mut findings = Findings::default();
    let with = |share| Phase {
        seconds: 15,
        rate: 4_000.0,
        servers: 8,
        service: Service::Routes(0.002, 0.100, share),
        long_polls: 0.0,
    };
    let phases = [with(0.02), with(0.5), with(0.02)];
    for seed in seeds() {
        let seconds = run(seed, SHORT, &phases);
        for (phase, from) in phases.iter().zip([3, 18, 33]) {
            let capacity = phase.service.capacity(phase.servers);
            let name = format!("{:?}, seed {seed}", phase.service);
            findings.expect_good(&name, capacity, 0.100, &stretch(&seconds[from..from + 12]));
        }
    }
}

#[test]
fn another_mix_refuses_nobody_where_there_is_no_overload() {
    let mut findings = Findings::default();
    let with = |share| Phase {
        seconds: 20,
        rate: 200.0,
        servers: 1,
        service: Service::Waits { busy: 0.002, waits: 0.500, share },
        long_polls: 0.0,
    };
    for seed in seeds() {
        let found = stretch(&run(seed, SHORT, &[with(0.02), with(0.5), with(0.02), with(0.2)]));
        findings.expect(found.refused == 0, || format!("seed {seed}: {found:?}"));
    }
}

#[test]
fn a_queue_that_stands_for_minutes_does_not_become_usual() {
    let mut findings = Findings::default();
    let (servers, service) = (2, Service::Exponential(0.005));
    let seconds = run(7, LIMITER, &[phase(600, 1.2, servers, service)]);
    let found = stretch(&seconds[560..]);
    findings.expect_good("after ten minutes", service.capacity(servers), service.p99(), &found);
}

#[test]
fn a_handler_of_microseconds_may_have_as_many_as_it_answers_in_a_few_milliseconds() {
    let service = Service::Constant(0.000_2);
    let found = stretch(&run(7, LIMITER, &[phase(6, 2.0, 1, service)])[4..]);
    println!("{:.3} of capacity, p99 {:.5}, {:?}", found.goodput * 0.000_2, found.p99, found.bounds);
    assert!(found.goodput >= 0.9 / 0.000_2, "{found:?}");
    assert!(found.p99 <= 0.010, "{found:?}");
}

#[test]
fn long_polls_are_let_in_by_the_hundred_while_nobody_waits() {
    let mut findings = Findings::default();
    let service = Service::Exponential(0.005);
    for seed in seeds() {
        let usual = Phase { long_polls: 20.0, ..phase(90, 0.4, 2, service) };
        let seconds = run(seed, LIMITER, &[usual]);
        let found = stretch(&seconds);
        assert!(seconds.iter().any(|second| second.in_flight > 400), "there are no long polls: {found:?}");
        findings.expect(found.refused == 0, || format!("seed {seed}: {found:?}"));
    }
}

#[test]
fn among_long_polls_an_overload_still_leaves_the_servers_busy() {
    let mut findings = Findings::default();
    let service = Service::Exponential(0.005);
    for seed in seeds() {
        let calm = Phase { long_polls: 10.0, ..phase(40, 0.4, 2, service) };
        let overload = Phase { seconds: 30, rate: 3.0 * service.capacity(2), ..calm };
        let found = stretch(&run(seed, LIMITER, &[calm, overload])[45..]);
        let share = found.goodput / service.capacity(2);
        findings.expect(share >= 0.8, || format!("seed {seed}: {share:.3} of capacity, {found:?}"));
    }
}

#[test]
fn the_bound_stays_between_its_ends() {
    for (min, max) in [(1, 1), (4, 6), (50, 50), (0, 0), (9, 3), (1, u32::MAX)] {
        let limiter = Limiter { min, max, ..LIMITER };
        let seconds = run(7, limiter, &[phase(10, 5.0, 2, Service::Exponential(0.005))]);
        let lowest = min.max(1);
        for second in &seconds {
            assert!((lowest..=max.max(lowest)).contains(&second.bound), "{min} to {max}: {}", second.bound);
        }
    }
}

#[test]
fn samples_of_several_threads_come_to_one_bound() {
    let adaptive = Adaptive::new(1, 100);
    assert_eq!(adaptive.bound(), 8);
    const IN_FLIGHT: InFlight = InFlight { at_start: 50, now: 50 };
    let start = std::time::Instant::now();
    // Ten seconds in which all that come are given up.
    std::thread::scope(|scope| {
        for core in 0..4 {
            let adaptive = &adaptive;
            scope.spawn(move || {
                for step in 0..10_000_u64 {
                    let now = start + Duration::from_millis(step);
                    adaptive.sample(now, core, Duration::ZERO, IN_FLIGHT, true, || None);
                }
            });
        }
    });
    assert!(adaptive.bound() < 50, "{}", adaptive.bound());
    // Then nothing is answered: those in flight may wait for each other, and more are let in.
    for second in 11..30 {
        adaptive.is_met(start + Duration::from_secs(second), adaptive.bound(), || None);
    }
    assert_eq!(adaptive.bound(), 100);
}

#[test]
fn what_becomes_slower_by_itself_is_let_in_again_after_a_moment() {
    let mut findings = Findings::default();
    let with = |share| Phase {
        seconds: 20,
        rate: 100.0,
        servers: 1,
        service: Service::Waits { busy: 0.002, waits: 0.500, share },
        long_polls: 0.0,
    };
    for seed in seeds() {
        let seconds = run(seed, LIMITER, &[with(0.0), with(1.0)]);
        let (moment, found) = (stretch(&seconds[20..23]), stretch(&seconds[23..]));
        findings.expect(moment.refused <= 150 && found.refused == 0, || {
            format!("seed {seed}: {} refused, then {found:?}", moment.refused)
        });
    }
}

/// Nothing before, little for a moment, and calm for as long as nobody remembers.
const BEFORE: [usize; 3] = [0, 2, 40];

/// How long it is looked at afterwards, in seconds.
const MEASURED: usize = 8;

#[test]
fn a_sudden_overload_is_over_for_those_let_in_three_seconds_later() {
    let mut findings = Findings::default();
    let turns = ("one event loop that answers in turns, 5 ms each", 1, Service::Turns(0.005));
    for (name, servers, service) in KINDS.into_iter().chain([turns]) {
        let capacity = service.capacity(servers);
        // Seconds of work for nobody are before everybody otherwise.
        let client_timeout = if service.p99() > 0.1 { f64::INFINITY } else { 4.0 };
        let reports_lag = matches!(service, Service::Turns(_));
        for (load, before) in
            [2.0, 5.0, 10.0].into_iter().flat_map(|load| BEFORE.map(|before| (load, before)))
        {
            for seed in seeds() {
                // Of two that take 200 ms few answers tell anything, and what was let in takes seconds.
                let wait = if servers == 2 { 12 } else { 3 };
                let phases =
                    [phase(before, 0.5, servers, service), phase(wait + MEASURED, load, servers, service)];
                let seconds = run(seed, Limiter { client_timeout, reports_lag, ..SHORT }, &phases);
                let found = stretch(&seconds[before + wait..]);
                let name = format!("{name}, load {load} after {before} s, seed {seed}");
                findings.expect_good(&name, capacity, service.p99(), &found);
            }
        }
    }
}

#[test]
fn from_a_cold_start_a_handler_that_computes_for_20_ms_answers_nine_tenths_from_the_third_second_on() {
    let mut findings = Findings::default();
    for (load, reports_lag) in
        [2.0, 4.0, 10.0].into_iter().flat_map(|load| [true, false].map(|reports_lag| (load, reports_lag)))
    {
        for seed in [7, 4, 2, 3, 1, 8, 9, 10, 11, 12] {
            for service in [Service::Constant(0.020), Service::Turns(0.020)] {
                if matches!(service, Service::Turns(_)) && !reports_lag {
                    continue;
                }
                let limiter = Limiter { reports_lag, ..LIMITER };
                let seconds = run(seed, limiter, &[phase(10, load, 1, service)]);
                let mut in_all: Vec<f64> =
                    seconds.iter().flat_map(|second| second.took_in_all.clone()).collect();
                in_all.sort_by(f64::total_cmp);
                let p99 = in_all[in_all.len() * 99 / 100];
                let found = stretch(&seconds[2..]);
                findings.expect(found.goodput >= 0.9 * 50.0 && p99 <= LIMITER.wait + 1.0 && found.most <= 32, || {
                    format!("{service:?}, load {load}, reports {reports_lag}, seed {seed}: p99 {p99}, {found:?}")
                });
            }
        }
    }
}

/// Requests of which none is answered while others come.
fn silent(seconds: usize, rate: f64) -> Phase {
    Phase { seconds, rate: 0.0, servers: 1, service: Service::Constant(0.005), long_polls: rate }
}

#[test]
fn those_who_wait_for_each_other_at_a_cold_limiter_are_all_let_in() {
    for seed in seeds() {
        // Three hundred within a tenth of a millisecond, and a thousand in three seconds.
        for (at_once, phases) in
            [(300, [silent(3, 0.0), silent(1, 0.0)]), (0, [silent(3, 333.0), silent(3, 0.0)])]
        {
            let seconds = run(seed, Limiter { at_once, ..LIMITER }, &phases);
            let found = stretch(&seconds);
            assert_eq!(found.refused, 0, "{at_once} at once, seed {seed}: {found:?}");
            assert!(found.most >= 300, "{at_once} at once, seed {seed}: {found:?}");
        }
    }
}

#[test]
fn those_who_wait_for_each_other_after_quick_answers_are_let_in_where_the_event_loop_has_time() {
    let quick = phase(5, 0.4, 1, Service::Constant(0.001));
    for seed in seeds() {
        let limiter = Limiter { reports_lag: true, ..LIMITER };
        let seconds = run(seed, limiter, &[quick, silent(6, 250.0)]);
        let found = stretch(&seconds);
        assert_eq!(found.refused, 0, "seed {seed}: {found:?}");
        assert!(found.most >= 1_200, "seed {seed}: {found:?}");
    }
}
