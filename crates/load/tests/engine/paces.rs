//! When requests begin, how many, and when it is over.

use std::time::Instant;

use onehop_load::engine::{LoadError, run as engine_run};
use onehop_load::outcome::{End, Failures};
use onehop_load::plan::{Pace, Spacing, Until};
use onehop_load::{Address, Observer, Plan, Progress, Unobserved};

use super::plain::Plain;
use super::server::{Server, Step, fine, fine_after};
use super::{alone, at, closed, millis, open, request, run, with_others};

#[test]
fn exactly_so_many_requests_are_made_by_all_threads_together() {
    let _with_others = with_others();
    let server = Server::start(|_| fine());
    let seen = run(&Plan { threads: 3, ..closed(at(&server), 7, 1003) });
    assert_eq!((seen.total.good, server.requests(), seen.end), (1003, 1003, End::Requests));
    assert_eq!(server.connections(), 7);

    let plan = open(at(&server), 7, 5000.0, millis(10_000));
    let until = Until { requests: Some(501), ..plan.until };
    let seen = run(&Plan { threads: 3, until, ..plan });
    assert_eq!((seen.total.good, server.requests(), seen.end), (501, 1504, End::Requests));
}

#[test]
fn weights_are_kept_exactly() {
    let _with_others = with_others();
    let server = Server::start(|_| fine());
    let mut plan = closed(at(&server), 5, 1000);
    plan.requests = vec![request(at(&server)), request(at(&server)), request(at(&server))];
    for (request, weight) in plan.requests.iter_mut().zip([7, 2, 1]) {
        request.weight = weight;
    }
    let counts: Vec<u64> = run(&plan).by_request.iter().map(|tally| tally.good).collect();
    assert_eq!(counts, [700, 200, 100]);
}

#[test]
fn several_servers_are_all_asked_by_their_weights() {
    let _with_others = with_others();
    let (one, other) = (Server::start(|_| fine()), Server::start(|_| fine()));
    let mut plan = open(at(&one), 8, 400.0, millis(1000));
    plan.requests = vec![request(at(&one)), request(at(&other))];
    plan.requests[0].weight = 3;
    assert_eq!(run(&plan).total.good, 400);
    assert_eq!((one.requests(), other.requests()), (300, 100));

    // One connection alternates between the servers; eight are divided among them. Each answer takes 2 ms, so that one
    // server cannot give all 400 while the machine delays the threads of the other.
    let (one, other) = (Server::start(|_| fine_after(millis(2))), Server::start(|_| fine_after(millis(2))));
    plan.requests[0].address = at(&one);
    plan.requests[1].address = at(&other);
    for connections in [1, 8] {
        let pace = Pace::Closed { connections, think: millis(0) };
        let until = Until { requests: Some(400), ..Until::default() };
        let before = other.requests();
        let seen = run(&Plan { pace, until, ..plan.clone() });
        assert_eq!((seen.total.good, seen.total.failures.sum()), (400, 0));
        assert!(other.requests() - before >= 20, "{}", other.requests());
    }
}

#[test]
fn an_open_loop_sends_at_its_rate_whatever_the_answers_do() {
    let _alone = alone();
    let server = Server::start(|_| fine_after(millis(30)));
    for (spacing, threads, slack) in
        [(Spacing::Constant, 1, 0), (Spacing::Constant, 2, 0), (Spacing::Poisson, 2, 120)]
    {
        let mut plan = Plan { threads, ..open(at(&server), 100, 500.0, millis(1000)) };
        if let Pace::Open { arrivals, .. } = &mut plan.pace {
            arrivals.spacing = spacing;
        }
        let plain = Plain::start();
        let seen = run(&plan);
        // 500 expected of a Poisson process, within 5 standard deviations.
        assert!(seen.total.requests().abs_diff(500) <= slack, "{spacing:?}: {}", seen.total.requests());
        // Nothing stays unsent but on a machine of which others take much.
        let Failures { unsent, .. } = seen.total.failures;
        assert!(unsent == 0 || plain.end().is_stolen(), "{spacing:?}: {unsent}");
        assert_eq!(seen.total.failures.sum(), unsent);
        // Those for which a connection was free: all, unless the machine stood still.
        let prompt = seen.generator.lateness.count();
        assert!(prompt > 0 && prompt <= seen.total.good, "{prompt} of {}", seen.total.good);
        assert!(seen.total.service.count() == seen.total.good && seen.total.service.at(0.0) >= millis(30));
        assert!(seen.end == End::Time && seen.elapsed >= millis(1000));
    }
}

#[test]
fn arrivals_without_a_connection_wait_and_those_never_sent_are_counted() {
    let _alone = alone();
    // 2 connections at 50 ms each can do 40 a second; 200 come.
    let server = Server::start(|_| fine_after(millis(50)));
    let seen = run(&open(at(&server), 2, 200.0, millis(1000)));
    assert_eq!(seen.total.requests(), 200);
    assert!(seen.total.failures.unsent >= 100, "{:?}", seen.total.failures);
    assert!(seen.total.latency.at(0.5) > seen.total.service.at(0.5) * 5);
    // The answers that came in the second, and not those that came later.
    assert!(seen.rate() <= 41.0, "{}", seen.rate());
}

#[test]
fn a_server_far_behind_has_the_rate_that_it_answers_at_though_nothing_due_in_time_was_answered() {
    let _alone = alone();
    // 4 connections at 20 ms each can do 200 a second; 2000 come. The warm-up alone brings more than it can answer
    // until the end.
    let server = Server::start(|_| fine_after(millis(20)));
    let seen = run(&Plan { warm_up: millis(1000), ..open(at(&server), 4, 2000.0, millis(1000)) });
    assert_eq!((seen.total.good, seen.total.failures.unsent), (0, 2000));
    // A machine that stands still answers fewer, never more.
    assert!(seen.has_good() && (20.0..=204.0).contains(&seen.rate()), "{}", seen.rate());
}

#[test]
fn a_place_that_a_failure_frees_goes_to_the_arrival_that_waits_longest() {
    let _with_others = with_others();
    // One connection that can do 80 a second and is closed without an answer each third time; 200 come.
    let server = Server::start(|asked| match asked.number % 3 {
        2 => vec![Step::Wait(millis(12)), Step::Close],
        _ => fine_after(millis(12)),
    });
    let seen = run(&open(at(&server), 1, 200.0, millis(1000)));
    // A loop that stands still until a deadline asks three times only.
    assert!(server.requests() >= 9, "{} asked, {:?}", server.requests(), seen.total.failures);
    assert!(seen.total.failures.closed >= 3 && seen.total.requests() == 200, "{:?}", seen.total.failures);
}

#[test]
fn thinking_connections_ask_no_sooner() {
    let _with_others = with_others();
    let server = Server::start(|_| fine());
    let mut plan = closed(at(&server), 1, 10);
    plan.pace = Pace::Closed { connections: 1, think: millis(50) };
    let seen = run(&plan);
    assert!(seen.total.good == 10 && seen.elapsed >= millis(9 * 50), "{:?}", seen.elapsed);
}

#[test]
fn what_began_in_the_warm_up_does_not_count() {
    let _with_others = with_others();
    let server = Server::start(|_| fine_after(millis(20)));
    let until = Until { time: Some(millis(500)), ..Until::default() };
    let seen = run(&Plan { warm_up: millis(500), until, ..closed(at(&server), 4, 1) });
    let all = server.requests();
    // Each connection asked at least once in either half.
    assert!(seen.total.good + 4 <= all && seen.total.good >= 4, "{} of {all}", seen.total.good);
    assert!(seen.elapsed < millis(1000), "{:?}", seen.elapsed);
    // Those that began before and ended within are in the series.
    let series: u64 = seen.slices.iter().map(|slice| slice.good).sum();
    assert!(seen.slices.len() == 5 && series > 0, "{:?}", seen.slices);
}

#[test]
fn answers_that_are_owed_at_the_end_are_waited_for_as_long_as_the_timeout_lasts() {
    let _with_others = with_others();
    let server = Server::start(|_| fine_after(millis(5500)));
    let until = Until { time: Some(millis(200)), ..Until::default() };
    let seen = run(&Plan { until, ..closed(at(&server), 2, 1) });
    assert_eq!((seen.total.good, seen.total.failures.sum(), seen.end), (2, 0, End::Time));
}

#[test]
fn a_number_of_requests_does_not_include_the_warm_up() {
    let _with_others = with_others();
    let server = Server::start(|_| fine_after(millis(5)));
    let seen = run(&Plan { warm_up: millis(500), threads: 2, ..closed(at(&server), 4, 50) });
    assert!(seen.total.good == 50 && server.requests() > 50, "{}", server.requests());
}

/// Breaks off after some answers.
struct Impatient {
    good: u64,
    calls: u64,
}

impl Observer for Impatient {
    fn progress(&mut self, progress: &Progress) {
        self.good = progress.good;
        self.calls += 1;
    }

    fn is_interrupted(&self) -> bool {
        self.good >= 20
    }
}

#[test]
fn a_run_that_is_broken_off_tells_what_it_saw() {
    let _with_others = with_others();
    let server = Server::start(|_| fine_after(millis(5)));
    let until = Until { time: Some(millis(60_000)), ..Until::default() };
    let begun = Instant::now();
    let mut observer = Impatient { good: 0, calls: 0 };
    let seen = engine_run(&Plan { until, ..closed(at(&server), 2, 1) }, &mut observer).unwrap();
    assert!(seen.end == End::Interrupted && begun.elapsed() < millis(30_000));
    assert!(seen.total.good >= 20 && seen.total.failures.sum() == 0 && observer.calls > 0);
    assert!(seen.elapsed <= begun.elapsed());
}

#[test]
fn a_run_ends_when_its_rate_is_known_well_enough() {
    let _with_others = with_others();
    let server = Server::start(|_| fine_after(millis(2)));
    let until = Until { narrow: Some(0.9), time: Some(millis(60_000)), ..Until::default() };
    let seen = run(&Plan { until, ..closed(at(&server), 4, 1) });
    assert_eq!(seen.end, End::Narrow);
    assert!(seen.slices.len() >= 15 && seen.elapsed < millis(60_000), "{:?}", seen.elapsed);
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is_sent() {
    let _with_others = with_others();
    let address = Address::Tcp(([127, 0, 0, 1], 9).into());
    let none = Plan { requests: Vec::new(), ..closed(address.clone(), 1, 1) };
    let endless = Plan { until: Until::default(), ..closed(address.clone(), 1, 1) };
    let still = open(address.clone(), 1, 0.0, millis(10));
    for plan in [none, endless, still, closed(address.clone(), 0, 1)] {
        assert!(matches!(engine_run(&plan, &mut Unobserved), Err(LoadError::Nothing(_))));
    }
    let mut odd = closed(address.clone(), 1, 1);
    odd.requests[0].url.path = "/a b".to_owned();
    assert!(matches!(engine_run(&odd, &mut Unobserved), Err(LoadError::Path { odd: ' ', .. })));

    let many = engine_run(&closed(address, usize::MAX / 1024, 1), &mut Unobserved);
    let text = many.unwrap_err().to_string();
    assert!(text.contains("ulimit -n") && text.contains("allowed"), "{text}");
}
