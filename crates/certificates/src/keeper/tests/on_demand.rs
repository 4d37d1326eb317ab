//! Names that handshakes ask for, with an endpoint that the test answers for.

use std::collections::HashSet;

use super::*;
use crate::limits::{
    ASKED_PER_MINUTE_MAX, ON_DEMAND_ORDERS_PER_MINUTE_MAX, ON_DEMAND_WAITING_PER_NAME_MAX, REFUSAL_TIME,
};

/// Permits these names, or gives no answer.
#[derive(Default)]
struct Endpoint {
    permitted: Mutex<HashSet<String>>,
    is_down: AtomicBool,
    asked: AtomicUsize,
}

impl Endpoint {
    fn permit(&self, name: &str) {
        lock(&self.permitted).insert(name.to_owned());
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Permission for Endpoint {
    fn allows<'a>(&'a self, name: &'a str) -> Asking<'a> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match self.is_down.load(Ordering::SeqCst) {
                true => Err("nothing listens there".to_owned()),
                false => Ok(lock(&self.permitted).contains(name)),
            }
        })
    }
}

fn asking(endpoint: &Arc<Endpoint>, name: &str, issuer: &Arc<Fake>) -> Wanted {
    Wanted { permission: Some(endpoint.clone()), ..wanted(name, &[issuer]) }
}

#[test]
fn a_permitted_name_is_asked_for_once_and_again_at_its_renewal() {
    let world = World::new();
    let (issuer, endpoint) = (world.issuer("ca"), Arc::new(Endpoint::default()));
    endpoint.permit("a.example");
    for _ in 0..3 {
        let obtained = wait(world.obtain(asking(&endpoint, "A.example", &issuer)));
        assert_eq!(obtained.unwrap().names, ["a.example"]);
    }
    assert_eq!((endpoint.asked(), issuer.orders()), (1, 1));
    assert_eq!(world.obtained(), ("ca".to_owned(), false));
    world.travel_to(61 * DAY);
    assert_eq!(world.obtained(), ("ca".to_owned(), true));
    assert_eq!((endpoint.asked(), issuer.orders()), (2, 2));
    // A customer who has left: the certificate is shown to its end, and not renewed.
    lock(&endpoint.permitted).clear();
    world.travel_to(122 * DAY);
    assert!(world.failure().1.contains("does not permit"));
    assert_eq!((issuer.orders(), world.published().len()), (2, 1));
}

#[test]
fn a_refused_name_is_not_ordered_and_asked_for_again_a_minute_later() {
    let world = World::new();
    let (issuer, endpoint) = (world.issuer("ca"), Arc::new(Endpoint::default()));
    for _ in 0..3 {
        let refused = wait(world.obtain(asking(&endpoint, "a.example", &issuer))).unwrap_err();
        assert!(refused.contains("does not permit a certificate for a.example"), "{refused}");
    }
    assert_eq!((endpoint.asked(), issuer.orders()), (1, 0));
    assert!(world.keeper.status().is_empty());
    endpoint.permit("a.example");
    world.travel_to(REFUSAL_TIME.as_secs());
    wait(world.obtain(asking(&endpoint, "a.example", &issuer))).unwrap();
    assert_eq!((endpoint.asked(), issuer.orders()), (2, 1));
}

#[test]
fn an_endpoint_that_is_down_refuses_new_names_and_no_stored_ones() {
    let world = World::new();
    let (issuer, endpoint) = (world.issuer("ca"), Arc::new(Endpoint::default()));
    endpoint.is_down.store(true, Ordering::SeqCst);
    let stored = valid_for("stored.example", at(START), LIFE);
    save_certificate(&*world.disk, "ca", "stored.example", &stored).unwrap();
    for _ in 0..2 {
        let refused = wait(world.obtain(asking(&endpoint, "new.example", &issuer))).unwrap_err();
        assert!(refused.contains("nothing listens there"), "{refused}");
    }
    // One event for the two of them.
    assert!(world.failure().1.contains("nothing listens there"));
    wait(world.obtain(asking(&endpoint, "stored.example", &issuer))).unwrap();
    assert_eq!((endpoint.asked(), issuer.orders()), (1, 0));
    assert!(world.events.try_recv().is_err());
}

#[test]
fn ten_thousand_unknown_names_are_refused_and_few_are_asked_for() {
    let world = World::new();
    let (issuer, endpoint) = (world.issuer("ca"), Arc::new(Endpoint::default()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for number in 0..10_000 {
        let obtaining = world.obtain(asking(&endpoint, &format!("{number}.example"), &issuer));
        assert!(runtime.block_on(obtaining).is_err());
    }
    assert_eq!((endpoint.asked(), issuer.orders()), (ASKED_PER_MINUTE_MAX, 0));
    assert!(world.keeper.status().is_empty());
    // A customer's name has its turn once the minute is over.
    endpoint.permit("a.example");
    world.travel_to(60);
    wait(world.obtain(asking(&endpoint, "a.example", &issuer))).unwrap();
}

#[test]
fn names_that_are_all_permitted_are_ordered_within_a_bound_and_none_is_lost() {
    let world = World::new();
    let (issuer, endpoint) = (world.issuer("ca"), Arc::new(Endpoint::default()));
    let names: Vec<_> = (0..=ON_DEMAND_ORDERS_PER_MINUTE_MAX).map(|at| format!("{at}.example")).collect();
    names.iter().for_each(|name| endpoint.permit(name));
    let waiting: Vec<_> = names.iter().map(|name| world.obtain(asking(&endpoint, name, &issuer))).collect();
    for _ in 0..ON_DEMAND_ORDERS_PER_MINUTE_MAX {
        world.obtained();
    }
    assert_eq!(issuer.orders(), ON_DEMAND_ORDERS_PER_MINUTE_MAX);
    world.travel_to(60);
    for obtaining in waiting {
        wait(obtaining).unwrap();
    }
    assert_eq!(issuer.orders(), names.len());
}

#[test]
fn handshakes_that_wait_are_bounded_and_make_room_when_they_leave() {
    let world = World::new();
    let (issuer, endpoint) = (world.issuer("ca"), Arc::new(Endpoint::default()));
    endpoint.permit("a.example");
    issuer.gate.forget_permits(Semaphore::MAX_PERMITS);
    let on_demand = world.keeper.on_demand(asking(&endpoint, "", &issuer));
    let waiting: Vec<_> =
        (0..ON_DEMAND_WAITING_MAX).map(|_| on_demand.obtain("a.example").unwrap()).collect();
    assert!(on_demand.obtain("b.example").is_none());
    while issuer.orders() == 0 {
        std::thread::yield_now();
    }
    drop(waiting);
    let last = on_demand.obtain("a.example").unwrap();
    issuer.gate.add_permits(1);
    wait(last).unwrap();
}

#[test]
fn a_name_whose_order_takes_long_leaves_room_for_other_names() {
    let world = World::new();
    let (issuer, endpoint) = (world.issuer("ca"), Arc::new(Endpoint::default()));
    ["slow.example", "other.example"].iter().for_each(|name| endpoint.permit(name));
    issuer.gate.forget_permits(Semaphore::MAX_PERMITS);
    let on_demand = world.keeper.on_demand(asking(&endpoint, "", &issuer));
    let obtain = |name: &str| on_demand.obtain(name).expect("room");
    let mut waiting: Vec<_> = (0..ON_DEMAND_WAITING_MAX).map(|_| obtain("slow.example")).collect();
    for refused in waiting.split_off(ON_DEMAND_WAITING_PER_NAME_MAX) {
        let reason = wait(refused).unwrap_err();
        assert_eq!(reason, "64 handshakes wait for the certificate of slow.example");
    }
    let other = obtain("other.example");
    issuer.gate.add_permits(2);
    wait(other).unwrap();
    waiting.into_iter().for_each(|obtaining| drop(wait(obtaining).unwrap()));
}
