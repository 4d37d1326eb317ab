//! The permits of a request at several limiters: in their order, and all or nothing.

use std::pin::pin;
use std::time::Duration;

use onehop_config::checked::limit::Bound;

use super::*;

fn limiter(label: &str, bound: u32, queue: u32) -> Arc<ConcurrencyLimiter> {
    let wait = Duration::from_secs(20);
    let bound = Bound::Fixed(bound);
    ConcurrencyLimiter::new(Arc::new(Limit {
        label: label.to_owned(),
        bound,
        queue,
        wait,
        lag: None,
        shed_status: 503,
    }))
}

/// The server's, a site's and a route's.
fn limiters(bounds: [(u32, u32); 3]) -> (SiteLimiters, [Arc<ConcurrencyLimiter>; 3]) {
    let all = bounds.map(|(bound, queue)| limiter("test", bound, queue));
    (SiteLimiters::new(all.to_vec(), true), all)
}

fn limits(numbers: &[u8]) -> RequestLimits {
    let mut limits = RequestLimits::default();
    numbers.iter().for_each(|number| limits.add(*number));
    limits
}

fn ask<'g>(limiters: &'g SiteLimiters, numbers: &[u8]) -> Acquired<'g> {
    Permits::acquire(Limiters::new(limiters, limits(numbers), None), 0, Instant::now())
}

fn permits<'g>(limiters: &'g SiteLimiters, numbers: &[u8]) -> Permits<'g> {
    match ask(limiters, numbers) {
        Acquired::Admitted(permits) => permits,
        Acquired::Queued(_) => panic!("it has to wait"),
        Acquired::Rejected(fault, _) => panic!("{fault:?}"),
    }
}

fn in_flight(all: &[Arc<ConcurrencyLimiter>; 3]) -> [u32; 3] {
    [0, 1, 2].map(|number| all[number].in_flight())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

#[test]
fn a_request_is_in_flight_at_every_limiter_on_its_route_and_no_other() {
    let (limiters, all) = limiters([(4, 0), (4, 0), (4, 0)]);
    let one = permits(&limiters, &[1, 2]);
    let two = permits(&limiters, &[1]);
    let three = permits(&limiters, &[]);
    assert_eq!(in_flight(&all), [3, 2, 1]);
    drop((one, two, three));
    assert_eq!(in_flight(&all), [0, 0, 0]);
}

#[test]
fn without_limits_no_permit_is_held() {
    let limiters = SiteLimiters::default();
    assert_eq!(permits(&limiters, &[]).held, 0);
    let limiters = Limiters::new(&limiters, limits(&[]), None);
    assert!(matches!(Permits::acquire(limiters, 0, Instant::now()), Acquired::Admitted(_)));
}

#[test]
fn a_request_rejected_by_an_inner_limiter_releases_the_outer_ones() {
    let (limiters, all) = limiters([(4, 0), (4, 0), (1, 0)]);
    let one = permits(&limiters, &[1, 2]);
    assert!(matches!(ask(&limiters, &[1, 2]), Acquired::Rejected(HttpError::Shed { .. }, Some(_))));
    assert_eq!(in_flight(&all), [1, 1, 1]);
    drop(one);
    assert_eq!(in_flight(&all), [0, 0, 0]);
}

#[test]
fn a_request_queued_at_an_inner_limiter_holds_no_permit_of_the_outer_ones() {
    let (limiters, all) = limiters([(4, 0), (4, 0), (1, 4)]);
    let one = permits(&limiters, &[1, 2]);
    let Acquired::Queued(queued) = ask(&limiters, &[1, 2]) else { panic!("there was room") };
    assert_eq!(in_flight(&all), [1, 1, 1]);
    assert_eq!(all[0].admitted(), 1, "it was never admitted");
    let gone = block_on(queued.over(async |_| {}));
    assert_eq!(gone.err(), Some(HttpError::ClientGone));
    assert_eq!((in_flight(&all), all[2].queued()), ([1, 1, 1], 0));
    drop(one);
    assert_eq!(in_flight(&all), [0, 0, 0]);
}

#[test]
fn a_queued_request_acquires_one_permit_after_the_other() {
    let (limiters, all) = limiters([(1, 4), (1, 4), (1, 4)]);
    let one = permits(&limiters, &[1, 2]);
    let Acquired::Queued(queued) = ask(&limiters, &[1, 2]) else { panic!("there was room") };
    assert_eq!((in_flight(&all), all[0].queued()), ([1, 1, 1], 1));
    let two = block_on(async {
        drop(one);
        queued.over(async |_| std::future::pending().await).await
    });
    assert!(two.is_ok());
    assert_eq!(in_flight(&all), [1, 1, 1]);
}

#[test]
fn a_request_that_has_queued_at_an_inner_limiter_queues_at_an_outer_one_and_keeps_the_inner_permit() {
    let (limiters, all) = limiters([(2, 4), (4, 0), (1, 4)]);
    let one = permits(&limiters, &[1, 2]);
    let Acquired::Queued(queued) = ask(&limiters, &[1, 2]) else { panic!("there was room") };
    let other = permits(&limiters, &[1]);
    assert_eq!((in_flight(&all), all[2].queued()), ([2, 2, 1], 1));
    block_on(async {
        let third = permits_after(one, &limiters);
        let mut waiting = pin!(queued.over(async |_| std::future::pending().await));
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

/// One leaves, and another takes its place behind the first limiters before anybody else is asked.
fn permits_after<'g>(one: Permits<'g>, limiters: &'g SiteLimiters) -> Permits<'g> {
    drop(one);
    permits(limiters, &[1])
}

#[test]
fn what_lasts_for_ever_makes_room_once_it_has_begun() {
    let (limiters, all) = limiters([(1, 0), (1, 0), (1, 0)]);
    let mut one = permits(&limiters, &[1]);
    one.answered(200, false);
    assert_eq!(in_flight(&all), [1, 1, 0]);
    one.answered(200, true);
    assert_eq!(in_flight(&all), [0, 0, 0]);
    let two = permits(&limiters, &[1]);
    drop(one);
    assert_eq!(in_flight(&all), [1, 1, 0], "it leaves once");
    drop(two);
}

#[test]
fn one_that_waits_for_its_client_has_left_and_comes_back_without_waiting() {
    let (limiters, all) = limiters([(1, 0), (1, 0), (1, 0)]);
    let mut one = permits(&limiters, &[1]);
    one.pause();
    assert_eq!(in_flight(&all), [0, 0, 0]);
    let other = permits(&limiters, &[1]);
    one.resume();
    assert_eq!(in_flight(&all), [2, 2, 0], "it goes on beside the one that came");
    assert!(matches!(ask(&limiters, &[1]), Acquired::Rejected(..)));
    drop(one);
    drop(other);
    assert_eq!(in_flight(&all), [0, 0, 0]);
    let mut last = permits(&limiters, &[1]);
    last.pause();
    drop(last);
    assert_eq!(in_flight(&all), [0, 0, 0], "it was in none when it ended");
}

#[test]
fn one_whose_body_is_waited_for_was_never_in() {
    let (limiters, all) = limiters([(4, 0), (2, 0), (1, 4)]);
    assert_eq!(ask(&limiters, &[1]).places(), Some(2));
    assert!(ask(&limiters, &[1, 2]).undo(Instant::now()).is_ok());
    let _one = permits(&limiters, &[1, 2]);
    assert!(ask(&limiters, &[1, 2]).undo(Instant::now()).is_ok(), "it waited");
    assert_eq!((in_flight(&all), all[2].queued(), all[2].admitted()), ([1, 1, 1], 0, 1));
    let (limiters, _all) = self::limiters([(1, 0), (1, 0), (1, 0)]);
    let _one = permits(&limiters, &[]);
    assert!(matches!(ask(&limiters, &[]).undo(Instant::now()), Err(HttpError::Shed { .. })));
}

#[test]
fn limiters_that_are_found_later_are_acquired_too() {
    let (limiters, all) = limiters([(1, 0), (1, 0), (1, 0)]);
    let one = permits(&limiters, &[1]);
    let Acquired::Admitted(one) = one.extend(Limiters::new(&limiters, limits(&[1, 2]), None)) else {
        panic!("it is in already")
    };
    assert_eq!(in_flight(&all), [1, 1, 1]);
    drop(one);
    assert_eq!(in_flight(&all), [0, 0, 0]);
}

#[test]
fn the_last_bit_is_the_applications_own() {
    let mut limits = RequestLimits::default();
    limits.add(u8::MAX);
    assert_eq!(limits, RequestLimits::default(), "nobody has that number");
    assert_eq!(OWN, 63);
}
