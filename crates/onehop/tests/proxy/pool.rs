//! `pool` seen from the upstream: connections that are open before a request comes, and stay.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use onehop_testkit::upstream::{Connection, Upstream};
use onehop_testkit::wait_for;

use crate::subject::{Subject, scaled};

/// Answers and keeps the connection, whatever the pause between two requests.
fn patient(connection: &mut Connection) {
    while let Some(request) = connection.request() {
        let body = request.target().to_owned();
        connection.answer("200 OK", "", &body);
    }
}

/// onehop with a floor of four, on so many threads.
fn with_floor(upstream: &Upstream, threads: usize) -> Subject {
    Subject::onehop(
        &format!("\tthreads {threads}"),
        &format!("\treverse_proxy {} {{\n\t\tpool min 4\n\t}}", upstream.address()),
    )
}

fn wait_for_open(upstream: &Upstream, count: usize) {
    wait_for(&format!("{count} connections"), || (upstream.open() == count).then_some(()));
}

/// The same, and the proxy knows of each: what the kernel has accepted for the upstream may still be on its way to it.
fn wait_for_idle(subject: &Subject, upstream: &Upstream, count: usize) {
    wait_for_open(upstream, count);
    let series = format!("onehop_upstream_connections_idle{{upstream=\"{}\"}} {count}", upstream.address());
    wait_for(&series, || subject.metrics().lines().any(|line| line == series).then_some(()));
}

#[test]
fn the_floor_is_open_before_the_first_request_and_no_request_shakes_hands() {
    for threads in [1, 2, 4] {
        let upstream = Upstream::start(patient);
        let subject = with_floor(&upstream, threads);
        wait_for_idle(&subject, &upstream, 4);
        assert_eq!((upstream.accepted(), upstream.requests()), (4, 0), "{threads} threads");
        // Each from a client of its own, which lands on any core.
        for number in 0..20 {
            let path = format!("/{number}");
            let (answer, _) = subject.get(&path);
            assert_eq!((answer.status, answer.text()), (200, path.as_str()));
        }
        assert_eq!((upstream.accepted(), upstream.open()), (4, 4), "{threads} threads");
        subject.expect_no_fault();
    }
}

#[test]
fn four_requests_at_once_use_the_four_that_are_open() {
    // A core that gets no time from the system for some milliseconds is not waited for: another connection is opened.
    let used = (0..5).map(|_| four_at_once()).find(|used| *used == (4, 4));
    assert_eq!(used, Some((4, 4)));
}

/// How many connections four requests used, and how many there were in the end.
fn four_at_once() -> (usize, usize) {
    let upstream = Upstream::start(|connection| {
        while let Some(request) = connection.request() {
            std::thread::sleep(Duration::from_millis(200));
            let body = request.target().to_owned();
            connection.answer("200 OK", "", &body);
        }
    });
    let subject = with_floor(&upstream, 2);
    wait_for_idle(&subject, &upstream, 4);
    let mut clients: Vec<_> = (0..4).map(|_| subject.connect()).collect();
    for client in &mut clients {
        client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.read().text(), "/x");
    }
    let used: std::collections::HashSet<usize> =
        upstream.seen().iter().map(|request| request.connection).collect();
    (used.len(), upstream.accepted())
}

#[test]
fn the_floor_is_still_open_after_an_idle_time() {
    let upstream = Upstream::start(patient);
    let subject = with_floor(&upstream, 2);
    wait_for_idle(&subject, &upstream, 4);
    assert_eq!(subject.get("/before").0.status, 200);
    std::thread::sleep(Duration::from_secs(scaled("ONEHOP_PROXY_REST_SECONDS", 4)));
    let accepted = upstream.accepted();
    assert_eq!((accepted, upstream.open()), (4, 4));
    assert_eq!(subject.get("/after").0.status, 200);
    assert_eq!(upstream.accepted(), accepted, "a handshake on a request's path");
}

#[test]
fn connections_that_the_upstream_closes_while_idle_are_opened_again_without_a_request() {
    let upstream = Upstream::start(|connection| {
        while connection.wait_for_request(Duration::from_millis(400)) == Some(true) {
            if connection.request().is_none() {
                return;
            }
            connection.answer("200 OK", "", "well");
        }
    });
    let subject = with_floor(&upstream, 2);
    wait_for("a second set of connections", || (upstream.accepted() >= 8).then_some(()));
    wait_for_open(&upstream, 4);
    assert_eq!(upstream.requests(), 0);
    for _ in 0..20 {
        assert_eq!(subject.get("/").0.status, 200);
        std::thread::sleep(Duration::from_millis(70));
    }
    subject.expect_no_fault();
}

#[test]
fn a_restart_of_the_upstream_is_healed_without_a_request() {
    let upstream = Upstream::start(patient);
    let address = upstream.address();
    let subject = with_floor(&upstream, 2);
    wait_for_idle(&subject, &upstream, 4);
    upstream.kill();
    let begun = Instant::now();
    // Long enough for attempts to fail: a restart takes its time.
    std::thread::sleep(Duration::from_millis(700));
    let upstream = Upstream::start_at(&address, patient);
    wait_for_idle(&subject, &upstream, 4);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(upstream.requests(), 0);
    let accepted = upstream.accepted();
    assert_eq!(subject.get("/").0.status, 200);
    assert_eq!(upstream.accepted(), accepted, "a handshake on a request's path");
    subject.expect_no_fault();
}

#[test]
fn the_floor_is_one_for_each_upstream_where_nothing_is_said() {
    let (a, b) = (Upstream::start(patient), Upstream::start(patient));
    let subject = Subject::onehop("\tthreads 4", &format!("\treverse_proxy {} {}", a.address(), b.address()));
    wait_for_idle(&subject, &a, 1);
    wait_for_idle(&subject, &b, 1);
    assert_eq!(a.accepted() + b.accepted(), 2);
    // The core that accepts this may have neither of them; it dials where the core that has one does not respond in time.
    assert_eq!(subject.get("/").0.status, 200);
}

#[test]
fn no_more_than_max_are_ever_open_and_requests_wait_for_them() {
    let upstream = Upstream::start(|connection| {
        while let Some(request) = connection.request() {
            std::thread::sleep(Duration::from_millis(20));
            let body = request.target().to_owned();
            connection.answer("200 OK", "", &body);
        }
    });
    let subject = Subject::onehop(
        "\tthreads 2",
        &format!("\treverse_proxy {} {{\n\t\tpool min 1 max 3\n\t}}", upstream.address()),
    );
    std::thread::scope(|scope| {
        for number in 0..16 {
            let (subject, upstream) = (&subject, &upstream);
            scope.spawn(move || {
                let mut client = subject.connect();
                for round in 0..5 {
                    let path = format!("/{number}/{round}");
                    let answer = client.get(&path);
                    assert_eq!((answer.status, answer.text()), (200, path.as_str()));
                    assert!(upstream.open() <= 3, "{} connections", upstream.open());
                }
            });
        }
    });
    assert_eq!(upstream.requests(), 80);
    subject.expect_no_fault();
}

#[test]
fn a_reload_keeps_the_connections_that_it_names_again() {
    let upstream = Upstream::start(patient);
    let subject = with_floor(&upstream, 2);
    wait_for_idle(&subject, &upstream, 4);
    let directive =
        format!("\theader X-New yes\n\treverse_proxy {} {{\n\t\tpool min 4\n\t}}", upstream.address());
    subject.reload("\tthreads 2", &directive);
    let (answer, _) = subject.get("/");
    assert_eq!((answer.status, answer.field("X-New")), (200, Some("yes")));
    assert_eq!((upstream.accepted(), upstream.open()), (4, 4));
    // And closes those that nobody names any more.
    subject.reload("\tthreads 2", "\trespond gone");
    assert_eq!(subject.get("/").0.text(), "gone");
    wait_for_open(&upstream, 0);
}

#[test]
fn requests_that_keep_coming_dial_no_upstream_whatever_the_bound_on_idle_connections() {
    const CLIENTS: usize = 64;
    for idle_conns in ["keepalive_idle_conns 20", "keepalive_idle_conns_per_host 1", ""] {
        // All requests of a round are with the upstream before it answers any of them, so that all its connections come
        // back together: as many are idle as a bound on idle connections can ever meet.
        let round = Barrier::new(CLIENTS);
        let upstream = Upstream::start(move |connection| {
            while let Some(request) = connection.request() {
                round.wait();
                let body = request.target().to_owned();
                connection.answer("200 OK", "", &body);
            }
        });
        let directives = format!(
            "\treverse_proxy {} {{\n\t\tpool min 0\n\t\ttransport http {{\n\t\t\t{idle_conns}\n\t\t}}\n\t}}",
            upstream.address()
        );
        let subject = Subject::onehop("", &directives);
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| subject.connect()).collect();
        let started = Instant::now();
        for _ in 0..50 {
            for client in &mut clients {
                client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
            }
            for client in &mut clients {
                assert_eq!(client.read().text(), "/x");
            }
        }
        // Each may be replaced once for each second in which the machine left one of the three without a processor.
        let seconds = usize::try_from(started.elapsed().as_secs()).expect("a few");
        let accepted = upstream.accepted();
        assert_eq!(upstream.requests(), 50 * CLIENTS);
        assert!(
            accepted <= CLIENTS * (1 + seconds),
            "{idle_conns}: {accepted} connections for {CLIENTS} clients in {seconds} s"
        );
    }
}

#[test]
fn idle_connections_above_the_bound_are_closed_when_requests_stop() {
    let round = Barrier::new(8);
    let upstream = Upstream::start(move |connection| {
        while connection.request().is_some() {
            round.wait();
            connection.answer("200 OK", "", "");
        }
    });
    let transport = "pool min 0\n\t\ttransport http {\n\t\t\tkeepalive_idle_conns 3\n\t\t}";
    let subject =
        Subject::onehop("", &format!("\treverse_proxy {} {{\n\t\t{transport}\n\t}}", upstream.address()));
    let mut clients: Vec<_> = (0..8).map(|_| subject.connect()).collect();
    for client in &mut clients {
        client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.read().status, 200);
    }
    assert_eq!(upstream.accepted(), 8);
    wait_for_open(&upstream, 3);
}
