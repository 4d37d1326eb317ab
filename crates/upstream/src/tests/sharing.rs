//! Taking, giving back, borrowing, and what makes a connection unusable.

use super::*;
use crate::limits::{IDLE_ONCE_ONLY, WINDOW_KEPT};

#[test]
fn a_core_takes_the_connection_that_it_used_last() {
    let upstream = Upstream::start();
    let peer = peer_at(upstream.address, settings());
    let cores = Cores::start(1, &[]);
    let (first, second) = (cores.hold(0, &peer), cores.hold(0, &peer));
    second.give_back();
    first.give_back();
    cores.use_once(0, &peer, Reuse::Any);
    cores.use_once(0, &peer, Reuse::Alive);
    let counts = peer.counts();
    assert_eq!((counts.open, counts.idle, counts.dials, counts.taken_idle), (2, 2, 2, 2));
    assert_eq!(counts.dial_failures, 0);
    upstream.has_accepted(2);
}

#[test]
fn a_core_without_an_idle_connection_borrows_one_before_it_dials() {
    let upstream = Upstream::start();
    let peer = peer_at(upstream.address, settings());
    let cores = Cores::start(2, &[]);
    cores.use_once(0, &peer, Reuse::Any);
    let mut theirs = upstream.connection(0);
    let asked = Arc::clone(&peer);
    let echoed = cores.start_on(1, move |pools| async move {
        let connection = pools.get(&asked, Reuse::Alive).await.expect("a connection");
        let echoed = echo(&connection, b"moved").await;
        finish(&pools, &asked, connection);
        echoed
    });
    let mut bytes = [0; 5];
    theirs.read_exact(&mut bytes).unwrap();
    theirs.write_all(&bytes).unwrap();
    assert_eq!(echoed.recv_timeout(DEADLINE).unwrap(), b"moved");
    let counts = peer.counts();
    assert_eq!((counts.dials, counts.stolen, counts.open, counts.idle), (1, 1, 1, 1));
    assert_eq!((peer.idle_on(0), peer.idle_on(1)), (0, 1));
    upstream.has_accepted(1);
}

#[test]
fn an_upstream_on_this_machine_is_dialled_rather_than_borrowed_from() {
    let upstream = Upstream::start();
    let endpoint = Endpoint::Address(upstream.address);
    let peer = Peer::nearby("app".to_owned(), endpoint, settings());
    let cores = Cores::start(2, &[]);
    cores.use_once(0, &peer, Reuse::Any);
    cores.use_once(1, &peer, Reuse::Any);
    let counts = peer.counts();
    assert_eq!((counts.dials, counts.stolen, counts.idle), (2, 0, 2));
}

#[test]
fn cores_under_load_dial_rather_than_borrow_where_a_dial_costs_little() {
    for (took, dials) in [(Duration::from_micros(50), 5), (Duration::from_millis(200), 4)] {
        let upstream = Upstream::start();
        let peer = peer_at(upstream.address, settings());
        let cores = Cores::start(2, &[]);
        let rests = cores.hold(0, &peer);
        let held: Vec<_> = (0..3).map(|_| cores.hold(1, &peer)).collect();
        rests.give_back();
        peer.note_dial_time(took);
        let last = cores.hold(1, &peer);
        assert_eq!(peer.counts().dials, dials, "{took:?}");
        last.give_back();
        held.into_iter().for_each(Held::give_back);
    }
}

#[test]
fn of_a_far_upstream_the_connection_that_any_core_used_last_is_taken_once_windows_may_be_gone() {
    let upstream = Upstream::start();
    let peer = peer_at(upstream.address, settings());
    let cores = Cores::start(2, &[]);
    let (mine, theirs) = (cores.hold(0, &peer), cores.hold(1, &peer));
    peer.note_dial_time(Duration::from_millis(180));
    mine.give_back();
    // Times are compared by the millisecond.
    std::thread::sleep(Duration::from_millis(5));
    theirs.give_back();
    let (asked, used) = (Arc::clone(&peer), Instant::now());
    cores.on(0, move |pools| async move {
        let after = |rest| asked.newer_elsewhere(&pools.core, used + rest);
        assert_eq!(after(Duration::ZERO), None, "its own window is still there");
        assert_eq!(after(Duration::from_secs(1)), Some(1));
    });
    let (here, stolen) = (peer.idle_on(0), peer.counts().stolen);
    std::thread::sleep(WINDOW_KEPT + Duration::from_millis(5));
    cores.use_once(0, &peer, Reuse::Any);
    assert_eq!((peer.counts().stolen, peer.idle_on(0)), (stolen + 1, here + 1));
    std::thread::sleep(WINDOW_KEPT + Duration::from_millis(5));
    cores.use_once(0, &peer, Reuse::Any);
    assert_eq!((peer.counts().stolen, peer.counts().dials), (stolen + 1, 2), "the newest is here already");
}

#[test]
fn a_request_that_may_be_sent_once_only_shakes_no_hands_with_a_far_upstream() {
    for (took, dials) in [(Duration::from_micros(50), 2), (Duration::from_millis(180), 1)] {
        let upstream = Upstream::start();
        let peer = peer_at(upstream.address, settings());
        let cores = Cores::start(1, &[]);
        cores.use_once(0, &peer, Reuse::Any);
        peer.note_dial_time(took);
        std::thread::sleep(IDLE_ONCE_ONLY + Duration::from_millis(5));
        cores.use_once(0, &peer, Reuse::Alive);
        assert_eq!(peer.counts().dials, dials, "{took:?}");
    }
}

#[test]
fn a_connection_that_is_lent_too_late_stays_where_it_is() {
    let upstream = Upstream::start();
    let peer = peer_at(upstream.address, settings());
    let cores = Cores::start(2, &[]);
    cores.use_once(0, &peer, Reuse::Any);
    let (is_busy, busy) = std_mpsc::channel();
    let (release, released) = std_mpsc::channel::<()>();
    let stuck = cores.start_on(0, move |_| async move {
        is_busy.send(()).unwrap();
        // The whole core stands still.
        released.recv_timeout(DEADLINE).unwrap();
    });
    busy.recv_timeout(DEADLINE).unwrap();
    cores.use_once(1, &peer, Reuse::Any);
    release.send(()).unwrap();
    stuck.recv_timeout(DEADLINE).unwrap();
    // What was asked before is answered before this.
    cores.on(0, |_| async {});
    cores.on(0, |_| async {});
    let counts = peer.counts();
    assert_eq!((counts.dials, counts.stolen, counts.open, counts.idle), (2, 0, 2, 2));
    assert_eq!((peer.idle_on(0), peer.idle_on(1)), (1, 1));
}

#[test]
fn bytes_on_an_idle_connection_make_it_unusable() {
    for reuse in [Reuse::Any, Reuse::Alive] {
        let upstream = Upstream::start();
        let peer = peer_at(upstream.address, settings());
        let cores = Cores::start(1, &[]);
        cores.use_once(0, &peer, Reuse::Any);
        upstream.connection(0).write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").unwrap();
        wait_until("noticed", || peer.counts().closed_idle == 1);
        cores.use_once(0, &peer, reuse);
        let counts = peer.counts();
        assert_eq!((counts.open, counts.dials, counts.taken_idle), (1, 2, 0), "{reuse:?}");
        assert_eq!(peer.closes_after(), None, "it closed nothing");
    }
}

#[test]
fn a_request_that_may_be_sent_once_only_asks_the_kernel_and_takes_nothing_that_rested_long() {
    let upstream = Upstream::start();
    let peer = peer_at(upstream.address, settings());
    let cores = Cores::start(1, &[]);
    cores.use_once(0, &peer, Reuse::Alive);
    upstream.connection(0).shutdown(std::net::Shutdown::Both).unwrap();
    cores.use_once(0, &peer, Reuse::Alive);
    assert_eq!((peer.counts().dials, peer.counts().closed_idle), (2, 1));
    let idle_for = Instant::now();
    wait_until("idle", || idle_for.elapsed() > crate::limits::IDLE_ONCE_ONLY);
    cores.use_once(0, &peer, Reuse::Alive);
    assert_eq!((peer.counts().dials, peer.counts().idle), (3, 2));
    cores.use_once(0, &peer, Reuse::Any);
    assert_eq!(peer.counts().dials, 3);
}

#[test]
fn a_fresh_connection_is_a_new_one() {
    let upstream = Upstream::start();
    let peer = peer_at(upstream.address, settings());
    let cores = Cores::start(2, &[]);
    cores.use_once(0, &peer, Reuse::Never);
    cores.use_once(0, &peer, Reuse::Never);
    cores.use_once(1, &peer, Reuse::Never);
    assert_eq!((peer.counts().dials, peer.counts().idle), (3, 3));
}

#[test]
fn of_connections_that_stay_idle_no_more_are_kept_than_the_bound_over_all_cores() {
    let upstream = Upstream::start();
    let peer = peer_at(upstream.address, PeerSettings { idle_max: 3, ..settings() });
    let cores = Cores::start(2, &[]);
    let held: Vec<_> = (0..6).map(|number| cores.hold(number % 2, &peer)).collect();
    assert_eq!(peer.counts().open, 6);
    held.into_iter().for_each(Held::give_back);
    wait_until("evicted", || peer.counts().retired >= 3);
    let counts = peer.counts();
    assert_eq!((counts.open, counts.idle, counts.retired), (3, 3, 3));
}

#[test]
fn connections_that_come_back_in_waves_are_used_again_whatever_the_bound_on_idle_ones() {
    let upstream = Upstream::start();
    let peer = peer_at(upstream.address, PeerSettings { idle_max: 3, ..settings() });
    let cores = Cores::start(2, &[]);
    let started = Instant::now();
    for _ in 0..20 {
        let held: Vec<_> = (0..16).map(|number| cores.hold(number % 2, &peer)).collect();
        held.into_iter().for_each(Held::give_back);
    }
    // Each connection may be replaced once for each second in which the machine left this test without a processor.
    let seconds = started.elapsed().as_secs();
    let dials = peer.counts().dials;
    assert!(dials <= 16 * (1 + seconds), "{dials} dials in {seconds} s");
}

#[test]
fn what_a_withdrawn_peer_had_goes_at_once() {
    let upstream = Upstream::start();
    let peer = peer_at(upstream.address, settings());
    let cores = Cores::start(1, &[]);
    let held = cores.hold(0, &peer);
    cores.use_once(0, &peer, Reuse::Any);
    peer.withdraw();
    wait_until("closed", || peer.counts().open == 1);
    held.give_back();
    assert_eq!((peer.counts().open, peer.counts().idle), (0, 0));
}

#[test]
fn a_refused_connection_is_reported_as_such_and_counts_as_none() {
    let mut upstream = Upstream::start();
    upstream.stop();
    let peer = peer_at(upstream.address, settings());
    let cores = Cores::start(1, &[]);
    let asked = Arc::clone(&peer);
    let refused = cores.on(0, move |pools| async move {
        matches!(pools.get(&asked, Reuse::Any).await, Err(ConnectError::Refused(_)))
    });
    assert!(refused);
    let counts = peer.counts();
    assert_eq!((counts.open, counts.dials, counts.dial_failures), (0, 1, 1));
    assert!(peer.last_failure().is_some_and(|reason| reason.contains("refused")));
}

#[test]
fn a_name_that_nobody_resolves_is_waited_for_no_longer_than_a_dial_may_take() {
    let endpoint = Endpoint::Name("upstream.test".to_owned(), 80);
    let peer = Peer::new(
        "a".to_owned(),
        endpoint,
        PeerSettings { dial_timeout: Duration::from_millis(30), ..settings() },
    );
    let cores = Cores::start(1, &[]);
    let asked = Arc::clone(&peer);
    let late = cores.on(0, move |pools| async move {
        matches!(pools.get(&asked, Reuse::Any).await, Err(ConnectError::Timeout))
    });
    assert!(late);
    assert!(peer.take_doubt(), "asked for again");
    peer.publish_failure("no such name".to_owned());
    let asked = Arc::clone(&peer);
    let reason = cores.on(0, move |pools| async move {
        match pools.get(&asked, Reuse::Any).await {
            Err(ConnectError::Name(reason)) => reason,
            _ => String::new(),
        }
    });
    assert_eq!(reason, "no such name");
    assert_eq!(peer.counts().open, 0);
}

#[test]
fn a_dead_first_family_costs_no_more_than_the_fallback_delay() {
    // Nobody accepts and the queue is full: what is sent there is not answered.
    let dead = socket_without_room("[::1]:0".parse().unwrap());
    let upstream = Upstream::start();
    let delay = Duration::from_millis(50);
    let settings = PeerSettings { fallback_delay: Some(delay), ..settings() };
    let peer = Peer::new("a".to_owned(), Endpoint::Name("upstream.test".to_owned(), 80), settings.clone());
    peer.publish_addresses(vec![dead.address, upstream.address]);
    let cores = Cores::start(1, &[]);
    let begun = Instant::now();
    cores.use_once(0, &peer, Reuse::Any);
    assert!(begun.elapsed() >= delay, "the first family has its turn");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!((peer.counts().open, peer.counts().idle), (1, 1));

    // One that refuses costs nothing, even where nobody waits for the first family.
    let mut gone = Upstream::start();
    gone.stop();
    let peer = Peer::new(
        "b".to_owned(),
        Endpoint::Name("b.test".to_owned(), 80),
        PeerSettings { fallback_delay: None, ..settings },
    );
    peer.publish_addresses(vec![gone.address, upstream.address]);
    cores.use_once(0, &peer, Reuse::Any);
    assert_eq!(peer.counts().open, 1);
}

struct WithoutRoom {
    address: SocketAddr,
    _listener: std::os::fd::OwnedFd,
    _queued: Vec<std::os::fd::OwnedFd>,
}

fn socket_without_room(at: SocketAddr) -> WithoutRoom {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::net::{
        AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, listen, socket_with,
    };
    let open = || {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        socket_with(AddressFamily::INET6, SocketType::STREAM, flags, None).unwrap()
    };
    let listener = open();
    bind(&listener, &at).unwrap();
    listen(&listener, 0).unwrap();
    let address = SocketAddr::try_from(getsockname(&listener).unwrap()).unwrap();
    let mut queued = Vec::new();
    loop {
        let stream = open();
        let _ = connect(&stream, &address);
        let moment = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let is_connected = poll(&mut [PollFd::new(&stream, PollFlags::OUT)], Some(&moment)).unwrap() > 0;
        queued.push(stream);
        if !is_connected {
            return WithoutRoom { address, _listener: listener, _queued: queued };
        }
    }
}

#[test]
fn taking_a_connection_that_rests_and_giving_it_back_allocates_nothing() {
    let upstream = Upstream::start();
    let peer = peer_at(upstream.address, settings());
    let cores = Cores::start(1, &[]);
    cores.use_once(0, &peer, Reuse::Any);
    let asked = Arc::clone(&peer);
    let allocated = cores.on(0, move |pools| async move {
        let allocated = allocation_counter::measure(|| {
            for reuse in [Reuse::Any, Reuse::Alive] {
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                let getting = std::pin::pin!(pools.get(&asked, reuse));
                let std::task::Poll::Ready(Ok(connection)) = getting.poll(&mut context) else {
                    panic!("there is one")
                };
                finish(&pools, &asked, connection);
            }
        });
        allocated.count_total
    });
    assert_eq!((allocated, peer.counts().taken_idle), (0, 2));
}
