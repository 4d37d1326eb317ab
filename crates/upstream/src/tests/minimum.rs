//! The floor, and what is retired.

use std::net::Shutdown;

use onehop_http1::{AskHead, BodyLength, BodyRead, ResponseHead};

use super::*;
use crate::limits::CONNECTION_SOUND_AFTER;

#[test]
fn the_floor_is_there_without_a_request_and_again_after_the_upstream_was_restarted() {
    let mut upstream = Upstream::start();
    let peer = peer_at(upstream.address, PeerSettings { connections_min: 5, ..settings() });
    let cores = Cores::start(2, &[&peer]);
    wait_until("open", || peer.counts().idle == 5);
    wait_until("accepted", || upstream.accepted() == 5);
    assert!((2..=3).contains(&peer.idle_on(0)), "each core has its share: {}", peer.idle_on(0));
    upstream.stop();
    wait_until("closed", || peer.counts().open == 0);
    wait_until("refused", || peer.counts().dial_failures > 0);
    assert_eq!(peer.counts().closed_idle, 5);
    let upstream = Upstream::start_at(upstream.address);
    wait_until("open again", || peer.counts().idle == 5);
    wait_until("accepted", || upstream.accepted() == 5);
    let counts = peer.counts();
    assert_eq!((counts.open, counts.taken_idle, counts.stolen, counts.retired), (5, 0, 0, 0));
    assert_eq!(peer.closes_after(), None, "a restart is no learned");
    drop(cores);
    assert_eq!(peer.counts().open, 0);
}

#[test]
fn one_that_the_upstream_closes_is_replaced_and_no_more_than_the_floor_are_opened() {
    let upstream = Upstream::start();
    let peer = peer_at(upstream.address, PeerSettings { connections_min: 2, ..settings() });
    let _cores = Cores::start(2, &[&peer]);
    wait_until("open", || peer.counts().idle == 2 && upstream.accepted() == 2);
    upstream.connection(0).shutdown(Shutdown::Both).unwrap();
    wait_until("noticed", || peer.counts().closed_idle == 1);
    // Until the third dial, the closed one may still be counted as idle.
    wait_until("replaced", || peer.counts().dials == 3 && peer.counts().idle == 2);
    assert_eq!((peer.counts().open, peer.counts().dials), (2, 3));
}

#[test]
fn beyond_the_floor_connections_go_after_their_rest_and_the_floor_stays() {
    let upstream = Upstream::start();
    let keep = Duration::from_millis(100);
    let peer =
        peer_at(upstream.address, PeerSettings { connections_min: 2, idle_timeout: keep, ..settings() });
    let cores = Cores::start(2, &[&peer]);
    wait_until("open", || peer.counts().idle == 2);
    let held: Vec<_> = (0..5).map(|number| cores.hold(number % 2, &peer)).collect();
    assert_eq!(peer.counts().open, 5);
    held.into_iter().for_each(Held::give_back);
    wait_until("retired", || peer.counts().retired == 3);
    let begun = Instant::now();
    wait_until("idle_for for longer", || begun.elapsed() > keep * 3);
    let counts = peer.counts();
    assert_eq!((counts.open, counts.idle, counts.retired, counts.dials), (2, 2, 3, 5));
}

#[test]
fn a_floor_is_kept_under_a_ceiling_and_while_its_connections_are_in_use() {
    let upstream = Upstream::start();
    let peer = peer_at(
        upstream.address,
        PeerSettings { connections_min: 3, connections_max: Some(3), ..settings() },
    );
    let cores = Cores::start(2, &[&peer]);
    wait_until("open", || peer.counts().idle == 3);
    let held: Vec<_> = (0..3).map(|number| cores.hold(number % 2, &peer)).collect();
    let counts = peer.counts();
    assert_eq!((counts.open, counts.idle, counts.dials), (3, 0, 3));
    held.into_iter().for_each(Held::give_back);
    assert_eq!(peer.counts().idle, 3);
}

#[test]
fn tunnels_leave_a_whole_floor_for_other_requests_and_count_for_the_ceiling() {
    for (max, open) in [(None, 4), (Some(3), 3)] {
        let upstream = Upstream::start();
        let keep = Duration::from_millis(50);
        let peer = peer_at(
            upstream.address,
            PeerSettings { connections_min: 2, connections_max: max, idle_timeout: keep, ..settings() },
        );
        let cores = Cores::start(2, &[&peer]);
        wait_until("open", || peer.counts().idle == 2);
        let (end, ended) = std_mpsc::channel::<tokio::sync::oneshot::Sender<()>>();
        for core in 0..2 {
            let (asked, end) = (Arc::clone(&peer), end.clone());
            cores.start_on(core, move |pools| async move {
                let connection = pools.get(&asked, Reuse::Any).await.expect("a connection");
                let _tunnel = connection.become_tunnel();
                let (over, is_over) = tokio::sync::oneshot::channel();
                end.send(over).expect("still wanted");
                let _ = is_over.await;
            });
        }
        let over: Vec<_> = (0..2).map(|_| ended.recv_timeout(DEADLINE).unwrap()).collect();
        wait_until("open again", || peer.counts().idle as usize == open - 2);
        let begun = Instant::now();
        wait_until("looked at again", || begun.elapsed() > keep * 4);
        assert_eq!((peer.open(), peer.idle()), (open, open - 2), "no more than that, and none is retired");
        drop(over);
        wait_until("tunnels are over", || peer.counts().open == 2 && peer.counts().idle == 2);
    }
}

/// Closes what has rested for so long, as servers do.
struct Impatient {
    address: SocketAddr,
    open: Arc<AtomicUsize>,
}

impl Impatient {
    /// Its last words are these.
    fn start(timeout: Duration, goodbye: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let open = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&open);
        // Ends with the test's process.
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                count.fetch_add(1, Ordering::SeqCst);
                let count = Arc::clone(&count);
                std::thread::spawn(move || {
                    stream.set_read_timeout(Some(timeout)).unwrap();
                    let mut byte = [0];
                    while stream.read(&mut byte).is_ok_and(|read| read > 0) {}
                    // Whoever has gone hears nothing.
                    let _ = stream.write_all(goodbye);
                    count.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, open }
    }
}

#[test]
fn an_upstream_that_closed_everything_at_once_for_a_moment_has_its_floor_again_and_it_stays() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    // Ends with the test's process.
    std::thread::spawn(move || {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept() {
            if well.load(Ordering::SeqCst) {
                open.push(stream);
            }
        }
    });
    let peer = peer_at(address, PeerSettings { connections_min: 2, ..settings() });
    let _cores = Cores::start(2, &[&peer]);
    wait_until("closed", || peer.counts().closed_idle >= 4);
    is_well.store(true, Ordering::SeqCst);
    wait_until("open", || peer.counts().idle == 2);
    let dials = peer.counts().dials;
    let begun = Instant::now();
    wait_until("idle", || begun.elapsed() > CONNECTION_SOUND_AFTER * 2);
    let counts = peer.counts();
    assert_eq!((counts.idle, counts.retired, peer.closes_after()), (2, 0, None));
    // One of the two may have been on its way when it was well again.
    assert!(counts.dials <= dials + 2, "{dials} and then {}", counts.dials);
}

#[test]
fn an_upstream_that_says_goodbye_has_its_connections_replaced_before_it_does() {
    let timeout = Duration::from_millis(1_600);
    let goodbye = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n";
    let upstream = Impatient::start(timeout, goodbye);
    let peer = peer_at(upstream.address, PeerSettings { connections_min: 2, ..settings() });
    let _cores = Cores::start(2, &[&peer]);
    wait_until("learned", || peer.closes_after().is_some());
    let learned = peer.closes_after().unwrap();
    assert!(learned <= timeout + timeout / 8, "{learned:?}");
    wait_until("one is retired", || peer.counts().retired > 0);
}

#[test]
fn connections_are_replaced_before_the_upstream_closes_them_once_its_idle_timeout_is_learned() {
    let timeout = Duration::from_millis(1_600);
    let upstream = Impatient::start(timeout, b"");
    let peer = peer_at(upstream.address, PeerSettings { connections_min: 2, ..settings() });
    let _cores = Cores::start(2, &[&peer]);
    wait_until("learned", || peer.closes_after().is_some());
    let learned = peer.closes_after().unwrap();
    // Its own clock began a little later.
    assert!(learned <= timeout + timeout / 8, "{learned:?}");
    // What was opened before that was known is closed, or retired, by then.
    wait_until("full again", || {
        let counts = peer.counts();
        counts.closed_idle + counts.retired >= 4 && counts.idle >= 2
    });
    let (closed, retired) = (peer.counts().closed_idle, peer.counts().retired);
    let begun = Instant::now();
    while begun.elapsed() < timeout * 2 {
        assert!(peer.counts().idle >= 2, "there is a gap in the minimum");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(peer.counts().closed_idle, closed, "the upstream has closed none since");
    assert!(peer.counts().retired >= retired + 2);
    assert!(upstream.open.load(Ordering::SeqCst) <= 6);
}

#[test]
fn a_connection_rests_no_longer_than_its_answer_says() {
    let upstream = Upstream::start();
    let peer = peer_at(upstream.address, settings());
    let cores = Cores::start(1, &[]);
    let asked = Arc::clone(&peer);
    let used = cores.start_on(0, move |pools| async move {
        let connection = pools.get(&asked, Reuse::Any).await.expect("a connection");
        let (fields, target) = (&b"Host: a\r\n"[..], &b"/"[..]);
        let ask = AskHead {
            method: b"GET",
            target,
            fields,
            body: BodyLength::None,
            upgrade: false,
            trailers: false,
        };
        let mut output = Vec::new();
        connection.codec().write_request_head(&mut output, ask).unwrap();
        connection.codec().finish(&mut output, &[]);
        connection.write(&output, &[]).await.unwrap();
        let (mut input, mut head) = (Input::new(), ResponseHead::new());
        while connection.codec().read_head(input.unread(), &mut head).unwrap().is_none() {
            std::future::poll_fn(|context| connection.poll_fill(&mut input, context)).await.unwrap();
        }
        assert!(matches!(connection.codec().read_body(&[]), Ok(BodyRead::End { consumed: 0 })));
        connection.note_keep_alive(&head);
        // Held against what is planned: a busy machine may retire it later than that.
        let Link::Http1(connection) = connection else { panic!("HTTP/2") };
        assert_eq!(asked.idle_time_max(&connection), Duration::from_millis(750));
        let connection = Link::Http1(connection);
        finish(&pools, &asked, connection);
        assert_eq!(asked.counts().idle, 1);
    });
    let answer = b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 0\r\n\r\n";
    let begun = Instant::now();
    upstream.connection(0).write_all(answer).unwrap();
    used.recv_timeout(DEADLINE).unwrap();
    wait_until("retired", || peer.counts().retired == 1 && peer.counts().open == 0);
    assert!(begun.elapsed() > Duration::from_millis(500), "{:?}", begun.elapsed());
    assert_eq!(peer.counts().closed_idle, 0);
}

#[test]
fn connections_to_an_address_that_has_gone_are_used_up_and_the_floor_moves() {
    let (old, new) = (Upstream::start(), Upstream::start());
    let endpoint = Endpoint::Name("upstream.test".to_owned(), 80);
    let peer = Peer::new("a".to_owned(), endpoint, PeerSettings { connections_min: 2, ..settings() });
    peer.publish_addresses(vec![old.address]);
    let cores = Cores::start(1, &[&peer]);
    wait_until("open", || peer.counts().idle == 2 && old.accepted() == 2);
    let held = cores.hold(0, &peer);
    peer.publish_addresses(vec![new.address]);
    wait_until("one is replaced", || new.accepted() == 1 && peer.counts().idle == 2);
    // One was in use and is closed after that; the other works, and may be used once more.
    held.give_back();
    wait_until("the minimum is at the new address", || new.accepted() == 2 && peer.counts().idle == 3);
    assert_eq!((peer.counts().open, peer.counts().closed_idle), (3, 0));
    let held: Vec<_> = (0..3).map(|_| cores.hold(0, &peer)).collect();
    held.into_iter().for_each(Held::give_back);
    let counts = peer.counts();
    assert_eq!((counts.open, counts.idle, counts.dials), (2, 2, 4));
}
