//! Upstreams that close connections while nobody uses them: the moment in which a request meets the closing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Client, wait_for};

use crate::subject::{Subject, raise_descriptor_limit, scaled};

/// How often a token was executed.
type Executed = Arc<Mutex<HashMap<String, usize>>>;

/// How long a closed connection is read for the request that was on its way. The proxy ends its side at once.
const CROSSING_WAIT: Duration = Duration::from_secs(2);

/// Closes each connection that was idle for this long after an answer, without having said so, as `node:http` does
/// after 5 s. It waits longer for the first request of a new connection, as all servers do. POSTs
/// that were sent before the close could be seen are counted in `crossed` and not executed.
fn closing_after(idle: Duration, executed: &Executed, crossed: &Arc<AtomicUsize>) -> Upstream {
    let (executed, crossed) = (Arc::clone(executed), Arc::clone(crossed));
    Upstream::start(move |connection| {
        let mut timeout = idle + Duration::from_secs(2);
        while connection.wait_for_request(timeout) == Some(true) {
            timeout = idle;
            let Some(mut request) = connection.head() else { return };
            if connection.body(&mut request).is_none() {
                return;
            }
            if request.method() == "POST" {
                *executed.lock().expect("a count").entry(request.text()).or_default() += 1;
            }
            let token = request.target().to_owned();
            connection.answer("200 OK", "", &token);
        }
        connection.end_of_sending();
        if connection.wait_for_request(CROSSING_WAIT) == Some(true) {
            let is_post = connection.head().is_some_and(|request| request.method() == "POST");
            crossed.fetch_add(usize::from(is_post), Ordering::SeqCst);
        }
    })
}

#[derive(Default)]
struct Tally {
    gets: AtomicUsize,
    posts: AtomicUsize,
    failed_posts: AtomicUsize,
}

/// One client with pauses about as long as the upstream's timeout, so that requests meet closings.
fn visit(subject_address: &str, number: u64, idle: Duration, until: Instant, tally: &Tally) {
    let mut client = Client::connect(subject_address);
    let mut round = 0_u32;
    while Instant::now() < until {
        round += 1;
        // Pauses from half to one and a half of the upstream's timeout, most of them around it.
        let share = 0.5 + f64::from((round * 7 + u32::try_from(number).unwrap_or(0) * 3) % 21) / 20.0;
        std::thread::sleep(idle.mul_f64(share));
        let token = format!("{number}-{round}");
        if round.is_multiple_of(4) {
            tally.posts.fetch_add(1, Ordering::SeqCst);
            client.send(format!(
                "POST /{token} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{token}",
                token.len()
            ));
            let answer = client.read_for("POST");
            assert!([200, 502].contains(&answer.status), "{}", answer.head);
            tally.failed_posts.fetch_add(usize::from(answer.status != 200), Ordering::SeqCst);
        } else {
            tally.gets.fetch_add(1, Ordering::SeqCst);
            let answer = client.get(&format!("/{token}"));
            assert_eq!((answer.status, answer.text()), (200, format!("/{token}").as_str()), "GET {token}");
        }
    }
}

#[test]
fn no_get_fails_and_no_post_is_executed_twice_where_idle_connections_are_closed() {
    raise_descriptor_limit();
    let idle = Duration::from_millis(scaled("ONEHOP_PROXY_IDLE_MS", 20));
    let seconds = scaled("ONEHOP_PROXY_IDLE_SECONDS", 8);
    // 1500 clients, 5000 ms and 480 s make 100,000 GETs that meet what `node:http` does.
    let clients = scaled("ONEHOP_PROXY_IDLE_CLIENTS", 24);
    let (executed, crossed) = (Executed::default(), Arc::default());
    let upstream = closing_after(idle, &executed, &crossed);
    let subject = Subject::with_globals("\tthreads 2", &format!("\treverse_proxy {}", upstream.address()));
    let until = Instant::now() + Duration::from_secs(seconds);
    let tally = Tally::default();
    std::thread::scope(|scope| {
        for number in 0..clients {
            let (address, tally) = (subject.address.as_str(), &tally);
            scope.spawn(move || visit(address, number, idle, until, tally));
        }
    });
    let [gets, posts, failed] =
        [&tally.gets, &tally.posts, &tally.failed_posts].map(|count| count.load(Ordering::SeqCst));
    let connections = upstream.accepted();
    println!("{gets} GETs, {posts} POSTs, {failed} failed, {connections} connections");
    let executed = executed.lock().expect("a count");
    let twice: Vec<_> = executed.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "executed twice: {twice:?}");
    assert!(
        executed.len() + failed >= posts,
        "{} of {posts} POSTs were executed, {failed} failed",
        executed.len()
    );
    assert!(connections > 24, "nothing was ever closed: the test tests nothing");
    // Where nobody looked whether a connection is closed, many more would fail.
    assert!(failed * 10 <= posts, "{failed} of {posts} POSTs failed");
    // A POST fails only where it was sent before the close could be seen, however busy the machine is.
    wait_for("as many POSTs that crossed a close as failed", || {
        (failed <= crossed.load(Ordering::SeqCst)).then_some(())
    });
}

#[test]
fn an_upstream_that_tells_its_timeout_is_never_met_at_it() {
    let executed = Executed::default();
    let counted = Arc::clone(&executed);
    let upstream = Upstream::start(move |connection| {
        while connection.wait_for_request(Duration::from_secs(2)) == Some(true) {
            let Some(request) = connection.request() else { return };
            *counted.lock().expect("a count").entry(request.text()).or_default() += 1;
            connection.answer("200 OK", "Keep-Alive: timeout=2\r\n", "well");
        }
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    for (round, pause) in [0, 500, 1_900, 2_000, 2_100, 100].into_iter().enumerate() {
        std::thread::sleep(Duration::from_millis(pause));
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n{round}"));
        assert_eq!(client.read().status, 200, "round {round}");
    }
    assert_eq!(executed.lock().expect("a count").len(), 6);
    subject.expect_no_fault();
}
