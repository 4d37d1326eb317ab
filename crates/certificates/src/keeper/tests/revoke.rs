//! Certificates that an operator revokes.

use super::*;

#[test]
fn a_revoked_certificate_is_replaced_at_once_and_served_until_then() {
    let world = World::new();
    let issuer = world.issuer("ca");
    world.keeper.set(vec![wanted("a.example", &[&issuer])]);
    world.obtained();
    let first = lock(&world.published)[0].clone();
    issuer.gate.forget_permits(Semaphore::MAX_PERMITS);
    assert_eq!(world.keeper.revoke("A.example", RevocationReason::KeyCompromise).as_deref(), Ok("ca"));
    let revoked = [(first.chain_pem().to_owned(), RevocationReason::KeyCompromise)];
    assert_eq!(*lock(&issuer.revoked), revoked);
    assert_eq!(world.event(), Event::Revoked { name: "a.example".to_owned(), issuer: "ca".to_owned() });
    assert_eq!(lock(&world.published)[0].fingerprint, first.fingerprint);
    issuer.gate.add_permits(1);
    assert_eq!(world.obtained(), ("ca".to_owned(), true));
    assert_ne!(lock(&world.published)[0].fingerprint, first.fingerprint);
    assert_eq!(issuer.orders(), 2);
}

#[test]
fn a_revoked_certificate_is_ordered_with_back_off_until_there_is_another() {
    let world = World::new();
    let issuer = world.issuer("ca");
    world.keeper.set(vec![wanted("a.example", &[&issuer])]);
    world.obtained();
    issuer.gate.forget_permits(Semaphore::MAX_PERMITS);
    world.keeper.revoke("a.example", RevocationReason::Superseded).unwrap();
    assert!(matches!(world.event(), Event::Revoked { .. }));
    issuer.fail("no", None);
    issuer.gate.add_permits(1);
    assert_eq!(world.failure(), ("ca".to_owned(), "no".to_owned(), 60));
    // A reload in between asks neither sooner nor later.
    world.keeper.set(vec![wanted("a.example", &[&issuer])]);
    assert_eq!(world.status().next_renewal, at(START + 60));
    world.travel_to(60);
    assert_eq!(world.obtained(), ("ca".to_owned(), true));
}

#[test]
fn what_cannot_be_revoked_says_why_and_orders_nothing() {
    let world = World::new();
    let (before, after) = (world.issuer("before"), world.issuer("after"));
    let local = Arc::new(LocalAuthority::new(world.disk.clone(), Arc::clone(&world.clock)));
    let of_local = Wanted { issuers: vec![local], ..wanted("localhost", &[]) };
    world.keeper.set(vec![wanted("a.example", &[&before]), of_local.clone()]);
    for _ in 0..2 {
        world.obtained();
    }
    let revoke = |name| world.keeper.revoke(name, RevocationReason::Unspecified).unwrap_err();
    before.fail("not now", None);
    assert_eq!(revoke("a.example"), "not now");
    assert!(revoke("other.example").contains("has obtained no certificate for other.example"));
    assert!(revoke("localhost").contains("`local` cannot revoke"));
    after.gate.forget_permits(Semaphore::MAX_PERMITS);
    world.keeper.set(vec![wanted("a.example", &[&after]), of_local]);
    assert!(revoke("a.example").contains("before has issued"));
    assert_eq!((before.orders(), lock(&before.revoked).len()), (1, 0));
    assert!(world.events.try_recv().is_err());
}
