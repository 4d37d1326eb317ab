//! A request's way through several gates: in their order, and all or nothing.

use std::pin::pin;
use std::time::Duration;

use onehop_config::checked::limit::Bound;

use super::*;

fn gate(label: &str, bound: u32, queue: u32) -> Arc<Gate> {
    let wait = Duration::from_secs(20);
    let bound = Bound::Fixed(bound);
    Gate::new(Arc::new(Limit { label: label.to_owned(), bound, queue, wait, lag: None, shed_status: 503 }))
}

/// The server's, a site's and a route's.
fn gates(bounds: [(u32, u32); 3]) -> (Gates, [Arc<Gate>; 3]) {
    let all = bounds.map(|(bound, queue)| gate("test", bound, queue));
    (Gates::new(all.to_vec(), true), all)
}

fn gathered(numbers: &[u8]) -> Gathered {
    let mut gathered = Gathered::default();
    numbers.iter().for_each(|number| gathered.add(*number));
    gathered
}

fn ask<'g>(gates: &'g Gates, numbers: &[u8]) -> Entrance<'g> {
    Pass::ask(Way::new(Some(gates), gathered(numbers), None), 0, Instant::now())
}

fn pass<'g>(gates: &'g Gates, numbers: &[u8]) -> Pass<'g> {
    match ask(gates, numbers) {
        Entrance::In(pass) => pass,
        Entrance::Later(_) => panic!("it has to wait"),
        Entrance::Shed(fault) => panic!("{fault:?}"),
    }
}

fn in_flight(all: &[Arc<Gate>; 3]) -> [u32; 3] {
    [0, 1, 2].map(|number| all[number].in_flight())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

#[test]
fn a_request_is_in_flight_behind_every_gate_of_its_way_and_no_other() {
    let (gates, all) = gates([(4, 0), (4, 0), (4, 0)]);
    let one = pass(&gates, &[1, 2]);
    let two = pass(&gates, &[1]);
    let three = pass(&gates, &[]);
    assert_eq!(in_flight(&all), [3, 2, 1]);
    drop((one, two, three));
    assert_eq!(in_flight(&all), [0, 0, 0]);
}

#[test]
fn without_limits_nothing_is_passed() {
    let gates = Gates::default();
    assert_eq!(pass(&gates, &[]).held, 0);
    let way = Way::new(None, gathered(&[]), None);
    assert!(matches!(Pass::ask(way, 0, Instant::now()), Entrance::In(_)));
}

#[test]
fn who_is_refused_by_an_inner_gate_has_left_the_outer_ones() {
    let (gates, all) = gates([(4, 0), (4, 0), (1, 0)]);
    let one = pass(&gates, &[1, 2]);
    assert!(matches!(ask(&gates, &[1, 2]), Entrance::Shed(HttpError::Shed { .. })));
    assert_eq!(in_flight(&all), [1, 1, 1]);
    drop(one);
    assert_eq!(in_flight(&all), [0, 0, 0]);
}

#[test]
fn who_waits_before_an_inner_gate_takes_no_place_of_the_outer_ones() {
    let (gates, all) = gates([(4, 0), (4, 0), (1, 4)]);
    let one = pass(&gates, &[1, 2]);
    let Entrance::Later(later) = ask(&gates, &[1, 2]) else { panic!("there was room") };
    assert_eq!(in_flight(&all), [1, 1, 1]);
    assert_eq!(all[0].entered(), 1, "he was never in");
    let gone = block_on(later.over(async |_| {}));
    assert_eq!(gone.err(), Some(HttpError::ClientGone));
    assert_eq!((in_flight(&all), all[2].queued()), ([1, 1, 1], 0));
    drop(one);
    assert_eq!(in_flight(&all), [0, 0, 0]);
}

#[test]
fn who_waits_passes_one_gate_after_the_other() {
    let (gates, all) = gates([(1, 4), (1, 4), (1, 4)]);
    let one = pass(&gates, &[1, 2]);
    let Entrance::Later(later) = ask(&gates, &[1, 2]) else { panic!("there was room") };
    assert_eq!((in_flight(&all), all[0].queued()), ([1, 1, 1], 1));
    let two = block_on(async {
        drop(one);
        later.over(async |_| std::future::pending().await).await
    });
    assert!(two.is_ok());
    assert_eq!(in_flight(&all), [1, 1, 1]);
}

#[test]
fn who_has_waited_before_an_inner_gate_waits_before_an_outer_one_without_losing_his_place() {
    let (gates, all) = gates([(2, 4), (4, 0), (1, 4)]);
    let one = pass(&gates, &[1, 2]);
    let Entrance::Later(later) = ask(&gates, &[1, 2]) else { panic!("there was room") };
    let other = pass(&gates, &[1]);
    assert_eq!((in_flight(&all), all[2].queued()), ([2, 2, 1], 1));
    block_on(async {
        let third = pass_after(one, &gates);
        let mut waiting = pin!(later.over(async |_| std::future::pending().await));
        let looked = std::future::poll_fn(|context| std::task::Poll::Ready(waiting.as_mut().poll(context)));
        assert!(looked.await.is_pending());
        assert_eq!((in_flight(&all), all[0].queued(), all[2].queued()), ([2, 2, 1], 1, 0));
        drop(other);
        let waited = waiting.await;
        assert_eq!((waited.is_ok(), in_flight(&all)), (true, [2, 2, 1]));
        drop(third);
    });
    assert_eq!(in_flight(&all), [0, 0, 0]);
}

/// One leaves, and another takes its place behind the first gates before anybody else is asked.
fn pass_after<'g>(one: Pass<'g>, gates: &'g Gates) -> Pass<'g> {
    drop(one);
    pass(gates, &[1])
}

#[test]
fn what_lasts_for_ever_makes_room_once_it_has_begun() {
    let (gates, all) = gates([(1, 0), (1, 0), (1, 0)]);
    let mut one = pass(&gates, &[1]);
    one.answered(200, false);
    assert_eq!(in_flight(&all), [1, 1, 0]);
    one.answered(200, true);
    assert_eq!(in_flight(&all), [0, 0, 0]);
    let two = pass(&gates, &[1]);
    drop(one);
    assert_eq!(in_flight(&all), [1, 1, 0], "it leaves once");
    drop(two);
}

#[test]
fn one_that_waits_for_its_client_has_left_and_comes_back_without_waiting() {
    let (gates, all) = gates([(1, 0), (1, 0), (1, 0)]);
    let mut one = pass(&gates, &[1]);
    one.pause();
    assert_eq!(in_flight(&all), [0, 0, 0]);
    let other = pass(&gates, &[1]);
    one.resume();
    assert_eq!(in_flight(&all), [2, 2, 0], "it goes on beside the one that came");
    assert!(matches!(ask(&gates, &[1]), Entrance::Shed(_)));
    drop(one);
    drop(other);
    assert_eq!(in_flight(&all), [0, 0, 0]);
    let mut last = pass(&gates, &[1]);
    last.pause();
    drop(last);
    assert_eq!(in_flight(&all), [0, 0, 0], "it was in none when it ended");
}

#[test]
fn one_whose_body_is_waited_for_was_never_in() {
    let (gates, all) = gates([(4, 0), (2, 0), (1, 4)]);
    assert_eq!(ask(&gates, &[1]).places(), Some(2));
    assert!(ask(&gates, &[1, 2]).undo(Instant::now()).is_ok());
    let _one = pass(&gates, &[1, 2]);
    assert!(ask(&gates, &[1, 2]).undo(Instant::now()).is_ok(), "it waited");
    assert_eq!((in_flight(&all), all[2].queued(), all[2].entered()), ([1, 1, 1], 0, 1));
    let (gates, _all) = self::gates([(1, 0), (1, 0), (1, 0)]);
    let _one = pass(&gates, &[]);
    assert!(matches!(ask(&gates, &[]).undo(Instant::now()), Err(HttpError::Shed { .. })));
}

#[test]
fn a_way_that_turns_out_to_be_longer_is_gone_on_with() {
    let (gates, all) = gates([(1, 0), (1, 0), (1, 0)]);
    let one = pass(&gates, &[1]);
    let Entrance::In(one) = one.go_further(Way::new(Some(&gates), gathered(&[1, 2]), None)) else {
        panic!("it is in already")
    };
    assert_eq!(in_flight(&all), [1, 1, 1]);
    drop(one);
    assert_eq!(in_flight(&all), [0, 0, 0]);
}

#[test]
fn the_last_bit_is_the_applications_own() {
    let mut gathered = Gathered::default();
    gathered.add(u8::MAX);
    assert_eq!(gathered, Gathered::default(), "nobody has that number");
    assert_eq!(OWN, 63);
}
