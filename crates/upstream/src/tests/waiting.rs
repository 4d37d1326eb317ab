//! The maximum of connections, and the requests that wait under it.

use std::pin::pin;
use std::task::{Context, Waker};

use super::*;
use crate::WaitingClient;

fn bounded(upstream: &Upstream, max: usize, queue: (usize, Duration)) -> Arc<Peer> {
    peer_at(upstream.address, PeerSettings { connections_max: Some(max), queue, ..settings() })
}

#[test]
fn a_ceiling_is_exact_under_64_requests_on_two_cores() {
    let upstream = Upstream::start();
    let peer = bounded(&upstream, 4, (1_000, Duration::from_secs(20)));
    let cores = Cores::start(2, &[]);
    let in_use = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let over: Vec<_> = (0..64)
        .map(|number| {
            let (peer, in_use, most) = (Arc::clone(&peer), Arc::clone(&in_use), Arc::clone(&most));
            cores.start_on(number % 2, move |pools| async move {
                for turn in 0..20 {
                    let reuse = [Reuse::Any, Reuse::Alive, Reuse::Never][(number + turn) % 3];
                    let connection = pools.get(&peer, reuse).await.expect("a connection");
                    most.fetch_max(in_use.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    in_use.fetch_sub(1, Ordering::SeqCst);
                    finish(&pools, &peer, connection);
                }
            })
        })
        .collect();
    for over in over {
        over.recv_timeout(DEADLINE).expect("in time");
        assert!(peer.counts().open <= 4);
    }
    let counts = peer.counts();
    assert!(most.load(Ordering::SeqCst) <= 4);
    assert_eq!((counts.waiting, counts.open), (0, counts.idle));
    assert!(counts.waited > 0);
    assert_eq!(peer.waiting(), 0);
}

#[test]
fn who_waits_is_served_first_come_first_served_over_all_cores() {
    let upstream = Upstream::start();
    let peer = bounded(&upstream, 1, (10, Duration::from_secs(10)));
    let cores = Cores::start(2, &[]);
    let held = cores.hold(0, &peer);
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut over = Vec::new();
    for number in 0..6 {
        let (asked, order) = (Arc::clone(&peer), Arc::clone(&order));
        over.push(cores.start_on(number % 2, move |pools| async move {
            let connection = pools.get(&asked, Reuse::Any).await.expect("a connection");
            order.lock().unwrap().push(number);
            finish(&pools, &asked, connection);
        }));
        wait_until("waiting", || peer.waiting() == number + 1);
    }
    held.give_back();
    for over in over {
        over.recv_timeout(DEADLINE).expect("in time");
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
    let counts = peer.counts();
    assert_eq!((counts.dials, counts.waited, counts.open, counts.idle), (1, 6, 1, 1));
    upstream.has_accepted(1);
}

#[test]
fn a_connection_that_ends_lets_the_next_one_dial() {
    let upstream = Upstream::start();
    let peer = bounded(&upstream, 1, (10, Duration::from_secs(10)));
    let cores = Cores::start(2, &[]);
    let asked = Arc::clone(&peer);
    let (has, got) = std_mpsc::channel();
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let dropped = cores.start_on(0, move |pools| async move {
        let connection = pools.get(&asked, Reuse::Any).await.expect("a connection");
        has.send(()).unwrap();
        let _ = released.await;
        drop(connection);
    });
    got.recv_timeout(DEADLINE).unwrap();
    let asked = Arc::clone(&peer);
    let waiting = cores.start_on(1, move |pools| async move {
        let connection = pools.get(&asked, Reuse::Any).await.expect("a connection");
        finish(&pools, &asked, connection);
    });
    wait_until("waiting", || peer.waiting() == 1);
    release.send(()).unwrap();
    dropped.recv_timeout(DEADLINE).unwrap();
    waiting.recv_timeout(DEADLINE).expect("in time");
    let counts = peer.counts();
    assert_eq!((counts.dials, counts.open, counts.idle), (2, 1, 1));
}

#[test]
fn the_queue_is_bounded_in_length_and_time() {
    let upstream = Upstream::start();
    let peer = bounded(&upstream, 1, (2, Duration::from_millis(100)));
    let cores = Cores::start(2, &[]);
    let held = cores.hold(0, &peer);
    let ask = |core: usize| {
        let asked = Arc::clone(&peer);
        cores.start_on(core, move |pools| async move {
            let refused = pools.get(&asked, Reuse::Any).await.err();
            format!("{refused:?}")
        })
    };
    let (first, second) = (ask(0), ask(1));
    wait_until("waiting", || peer.waiting() == 2);
    assert_eq!(ask(0).recv_timeout(DEADLINE).unwrap(), "Some(QueueFull)");
    assert_eq!(first.recv_timeout(DEADLINE).unwrap(), "Some(QueueTimeout)");
    assert_eq!(second.recv_timeout(DEADLINE).unwrap(), "Some(QueueTimeout)");
    assert_eq!(peer.waiting(), 0);
    held.give_back();
    assert_eq!((peer.counts().open, peer.counts().idle), (1, 1));
}

#[test]
fn of_a_full_queue_one_whose_client_has_half_closed_makes_room() {
    let upstream = Upstream::start();
    let peer = bounded(&upstream, 1, (1, Duration::from_secs(10)));
    let cores = Cores::start(2, &[]);
    let held = cores.hold(0, &peer);
    let ask = |core: usize, is_half_closed: bool| {
        let asked = Arc::clone(&peer);
        cores.start_on(core, move |pools| async move {
            let client = WaitingClient::default();
            if is_half_closed {
                client.half_closed(&asked);
            }
            pools.get_for(&asked, Reuse::Any, &client).await.err().map(|none| format!("{none:?}"))
        })
    };
    let half = ask(0, true);
    wait_until("waiting", || peer.waiting() == 1);
    let open = ask(1, false);
    assert_eq!(half.recv_timeout(DEADLINE).unwrap().as_deref(), Some("QueueFull"));
    assert_eq!(ask(0, true).recv_timeout(DEADLINE).unwrap().as_deref(), Some("QueueFull"));
    held.give_back();
    assert_eq!(open.recv_timeout(DEADLINE).unwrap(), None);
}

#[test]
fn a_request_that_waits_and_is_dropped_costs_nothing() {
    let upstream = Upstream::start();
    let peer = bounded(&upstream, 1, (10, Duration::from_secs(10)));
    let cores = Cores::start(2, &[]);
    let asked = Arc::clone(&peer);
    cores.on(0, move |pools| async move {
        let mut context = Context::from_waker(Waker::noop());
        let connection = pools.get(&asked, Reuse::Any).await.expect("a connection");
        {
            // Dropped while it waits.
            let mut waiting = pin!(pools.get(&asked, Reuse::Any));
            assert!(waiting.as_mut().poll(&mut context).is_pending());
            assert_eq!(asked.waiting(), 1);
        }
        assert_eq!(asked.waiting(), 0);
        {
            // Dropped with a connection that it was handed and has not seen.
            let mut waiting = pin!(pools.get(&asked, Reuse::Any));
            assert!(waiting.as_mut().poll(&mut context).is_pending());
            finish(&pools, &asked, connection);
            assert_eq!((asked.waiting(), asked.idle()), (0, 0));
        }
        assert_eq!((asked.counts().open, asked.idle()), (1, 1));
        let connection = pools.get(&asked, Reuse::Any).await.expect("the same one");
        {
            // Dropped with the right to dial.
            let mut waiting = pin!(pools.get(&asked, Reuse::Any));
            assert!(waiting.as_mut().poll(&mut context).is_pending());
            drop(connection);
            assert_eq!(asked.counts().open, 1);
        }
        assert_eq!((asked.counts().open, asked.waiting()), (0, 0));
    });
    // Dropped with a connection of another core.
    let held = cores.hold(1, &peer);
    let asked = Arc::clone(&peer);
    let (has, got) = std_mpsc::channel();
    let (release, released) = std_mpsc::channel::<()>();
    let over = cores.start_on(0, move |pools| async move {
        let mut context = Context::from_waker(Waker::noop());
        let mut waiting = Box::pin(pools.get(&asked, Reuse::Any));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        has.send(()).unwrap();
        released.recv_timeout(DEADLINE).unwrap();
    });
    got.recv_timeout(DEADLINE).unwrap();
    held.give_back();
    release.send(()).unwrap();
    over.recv_timeout(DEADLINE).unwrap();
    let counts = peer.counts();
    assert_eq!((counts.open, counts.idle, counts.dials, counts.waiting), (1, 1, 2, 0));
    assert_eq!(peer.idle_on(0), 1);
}

#[test]
fn what_rests_and_will_not_do_makes_room_for_what_will() {
    let upstream = Upstream::start();
    let peer = bounded(&upstream, 1, (10, Duration::from_secs(10)));
    let cores = Cores::start(2, &[]);
    cores.use_once(0, &peer, Reuse::Any);
    cores.use_once(0, &peer, Reuse::Never);
    assert_eq!((peer.counts().dials, peer.counts().open), (2, 1));
    // On another core too.
    cores.use_once(1, &peer, Reuse::Never);
    assert_eq!((peer.counts().dials, peer.counts().open, peer.counts().idle), (3, 1, 1));
}
