//! That what is told is what the server did.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use onehop_load::Plan;
use onehop_load::outcome::{Bottleneck, Run};
use onehop_load::plan::Until;

use super::plain::{Delays, Plain};
use super::server::{Options, Server, Step, fine_after, response};
use super::{alone, at, closed, is_within, millis, open, run, with_others};

/// A machine that is busy with other things makes answers late; it never makes them early. A fault of the load
/// shows each time.
const ATTEMPTS: usize = 5;

/// No further attempt begins after this.
const ATTEMPTS_WITHIN: Duration = Duration::from_secs(60);

fn within_attempts(mut attempt: impl FnMut() -> Result<(), String>) {
    let begun = Instant::now();
    let mut failures = Vec::new();
    while failures.len() < ATTEMPTS && begun.elapsed() < ATTEMPTS_WITHIN {
        match attempt() {
            Ok(()) => return,
            Err(failure) => failures.push(failure),
        }
    }
    panic!("{failures:#?}");
}

/// One in ten takes four times as long as the others. The times are long, since a hundredth of them has to be more than a
/// busy machine takes to wake a thread.
fn bimodal(short: Duration) -> impl Fn(&Options) -> Vec<Step> {
    move |asked| fine_after(if asked.number % 10 == 3 { 4 * short } else { short })
}

/// Percentiles of the load are within one per cent of those that the server noted, and what a plain client sees of the
/// machine.
fn agree(server: &Server, seen: &Run, delays: &Delays, shares: &[f64]) -> Result<(), String> {
    for share in shares {
        let (load, truth) = (seen.total.latency.at(*share), server.noted_at(*share));
        let machine = delays.beside(*share);
        if load < truth.mul_f64(0.99) || load > truth.mul_f64(1.0 + delays.late_max(0.01)) + machine {
            return Err(format!("p{}: {load:?} seen, {truth:?} noted, machine {machine:?}", share * 100.0));
        }
    }
    Ok(())
}

#[test]
fn percentiles_are_within_a_hundredth_of_what_the_server_noted() {
    let _alone = alone();
    within_attempts(|| {
        let server = Server::start(bimodal(millis(250)));
        let plain = Plain::start();
        let seen = run(&closed(at(&server), 16, 200));
        assert_eq!(seen.total.good, 200);
        agree(&server, &seen, &plain.end(), &[0.25, 0.5, 0.75, 0.89, 0.95, 0.99])
    });
}

#[test]
fn percentiles_of_an_open_loop_are_too() {
    let _alone = alone();
    within_attempts(|| {
        // Each request waits for its time in a thread of the load, which is woken late on a busy machine.
        let server = Server::start(bimodal(millis(500)));
        let plain = Plain::start();
        let seen = run(&Plan { threads: 2, ..open(at(&server), 100, 100.0, millis(2000)) });
        assert_eq!((seen.total.good, seen.total.failures.sum()), (200, 0));
        agree(&server, &seen, &plain.end(), &[0.25, 0.5, 0.75, 0.89, 0.95, 0.99])
    });
}

/// It stands still for a second, one second after the first request; else answers take five milliseconds.
fn stalling() -> Server {
    let first: Arc<OnceLock<Instant>> = Arc::default();
    Server::start(move |_| {
        let now = Instant::now();
        let begun = *first.get_or_init(|| now);
        let due = now + millis(5);
        let stall = begun + millis(1000)..begun + millis(2000);
        let due = if stall.contains(&due) { stall.end } else { due };
        vec![Step::WaitUntil(due), Step::Send(response("200 OK", "x"))]
    })
}

#[test]
fn a_stall_is_in_the_percentiles_of_an_open_loop() {
    let _alone = alone();
    within_attempts(|| {
        // With few connections the others wait for one, and behind the stall until the queue is served.
        for (connections, p70_max) in [(250, millis(100)), (4, millis(500))] {
            let server = stalling();
            let plain = Plain::start();
            let seen = run(&open(at(&server), connections, 200.0, millis(4000)));
            assert_eq!(seen.total.requests(), 800);
            // A quarter of all arrivals fell into the second, evenly: the worst hundredth waited for more than 95 %
            // of it. Behind the stall all of them are answered at once, which takes a busy machine a while.
            let (p70, p99) = (seen.total.latency.at(0.7), seen.total.latency.at(0.99));
            let delays = plain.end();
            let machine = delays.beside(0.99);
            let late = p99.saturating_sub(millis(965));
            if p99 < millis(965).mul_f64(0.95)
                || late > millis(965).mul_f64(delays.late_max(0.05)) + machine
                || (p70 > p70_max && !delays.is_stolen())
            {
                return Err(format!("{connections}: p70 {p70:?}, p99 {p99:?}, machine {machine:?}"));
            }
            if seen.generator.bottleneck.is_some_and(|limit| matches!(limit, Bottleneck::Connections { .. }))
            {
                return Err(format!("{connections}: {:?}", seen.generator.bottleneck));
            }
            check_stall(&seen)?;
        }
        Ok(())
    });
}

#[test]
fn a_closed_loop_hides_a_stall_in_its_percentiles_and_says_what_it_left_out() {
    let _alone = alone();
    within_attempts(|| {
        let server = stalling();
        let until = Until { time: Some(millis(4000)), ..Until::default() };
        let seen = run(&Plan { until, threads: 2, ..closed(at(&server), 4, 1) });
        let naive = seen.total.latency.at(0.99);
        // The four that met the stall are less than a hundredth of 2,400, not of what a machine does that stands still.
        if naive > millis(100) && seen.total.good >= 500 {
            return Err(format!("p99 {naive:?} of {} requests", seen.total.good));
        }
        let omitted = seen.omitted.as_ref().ok_or("nothing omitted")?;
        // Four connections, about 1 s at some 5 ms a request.
        let each = seen.total.latency.at(0.5);
        let expected = 4.0 / each.as_secs_f64();
        let share = omitted.requests as f64 / expected;
        if !(0.65..=1.1).contains(&share) || omitted.corrected.at(0.99) < millis(850) {
            let p99 = omitted.corrected.at(0.99);
            return Err(format!("{} of {expected} omitted, {each:?} each, p99 {p99:?}", omitted.requests));
        }
        check_stall(&seen)
    });
}

fn check_stall(seen: &Run) -> Result<(), String> {
    match seen.stalls.as_slice() {
        [stall] if is_within(stall.length, millis(1000), 0.05) && is_within(stall.at, millis(1000), 0.05) => {
            Ok(())
        }
        stalls => Err(format!("stalls {stalls:?}")),
    }
}

#[test]
fn a_stall_at_the_end_does_not_vanish() {
    let _alone = alone();
    let begun = Instant::now();
    let server =
        Server::start(
            move |_| {
                if begun.elapsed() < millis(500) { fine_after(millis(5)) } else { Vec::new() }
            },
        );
    let mut plan = closed(at(&server), 4, 1);
    plan.until = Until { time: Some(millis(1000)), ..Until::default() };
    plan.timeouts.response = millis(1500);
    let seen = run(&plan);
    assert_eq!((seen.total.failures.timed_out, seen.total.failures.sum()), (4, 4));
    let stall = seen.stalls.last().copied();
    assert!(stall.is_some_and(|stall| stall.length > millis(1000)), "{:?}", seen.stalls);
    assert!(is_within(seen.elapsed, millis(1000), 0.05), "{:?}", seen.elapsed);
}

#[test]
fn a_slow_server_is_no_stall_and_leaves_nothing_out() {
    let _alone = alone();
    let server = Server::start(|_| fine_after(millis(150)));
    let seen = run(&closed(at(&server), 2, 12));
    assert!(seen.stalls.is_empty() && seen.omitted.is_none(), "{:?}", seen.stalls);
    let rate = seen.rate();
    assert!(rate < 13.4 && rate > 8.0, "{rate}");
}

#[test]
fn too_few_connections_for_a_server_at_ease_are_said_to_be_the_limit() {
    let _alone = alone();
    within_attempts(|| {
        let server = Server::start(|_| fine_after(millis(50)));
        let seen = run(&open(at(&server), 2, 100.0, millis(1000)));
        match seen.generator.bottleneck {
            Some(Bottleneck::Connections { arrivals }) if arrivals > 50 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

#[test]
fn the_load_tells_its_own_cost() {
    let _alone = alone();
    let server = Server::start(|_| fine_after(Duration::ZERO));
    let until = Until { time: Some(millis(500)), ..Until::default() };
    let seen = run(&Plan { until, ..closed(at(&server), 4, 1) });
    let generator = &seen.generator;
    assert!(generator.cpu > Duration::ZERO && generator.busiest > 0.0 && generator.busiest <= 1.0);
    assert!(generator.cpu <= millis(550), "{generator:?}");
    assert!((0.0..=1.0).contains(&generator.waiting));
}

#[test]
fn threads_stay_on_their_core_and_a_core_that_is_not_there_is_an_error() {
    let _with_others = with_others();
    let server = Server::start(|_| fine_after(Duration::ZERO));
    let plan = Plan { cores: vec![0], threads: 2, ..closed(at(&server), 4, 20) };
    assert_eq!(run(&plan).total.good, 20);
    let plan = Plan { cores: vec![999], ..plan };
    let error = onehop_load::engine::run(&plan, &mut onehop_load::Unobserved).unwrap_err().to_string();
    assert!(error.contains("binding a thread to a core"), "{error}");
}
