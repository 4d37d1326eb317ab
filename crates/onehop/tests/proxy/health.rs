//! Several upstreams, of which some are not well.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use onehop_testkit::upstream::Upstream;
use onehop_testkit::wait_for;

use crate::subject::{SOON, Subject};

/// Answers with its name; what it says of its health can be changed.
struct Named {
    upstream: Upstream,
    is_well: Arc<AtomicBool>,
    asked_for_health: Arc<AtomicUsize>,
}

impl Named {
    fn start(name: &'static str) -> Named {
        let is_well = Arc::new(AtomicBool::new(true));
        let asked_for_health = Arc::new(AtomicUsize::new(0));
        let (well, asked) = (Arc::clone(&is_well), Arc::clone(&asked_for_health));
        let upstream = Upstream::answering(move |request| {
            let is_health = request.target().starts_with("/health");
            asked.fetch_add(usize::from(is_health), Ordering::SeqCst);
            let status = match is_health && !well.load(Ordering::SeqCst) {
                true => "503 Service Unavailable",
                false => "200 OK",
            };
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{name}", name.len()).into()
        });
        Named { upstream, is_well, asked_for_health }
    }

    fn set_well(&self, is_well: bool) {
        self.is_well.store(is_well, Ordering::SeqCst);
    }
}

fn names_answering(subject: &Subject, count: usize) -> Vec<String> {
    let mut names: Vec<String> = (0..count)
        .map(|_| {
            let (answer, _) = subject.get("/");
            assert_eq!(answer.status, 200, "{}", answer.head);
            answer.text().to_owned()
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

const ACTIVE: &str = "\t\tlb_policy round_robin\n\t\thealth_uri /health\n\t\thealth_interval 100ms";

#[test]
fn an_upstream_that_says_it_is_ill_gets_no_requests_until_it_is_well_again_and_again() {
    let (a, b) = (Named::start("a"), Named::start("b"));
    let subject = Subject::start(&format!(
        "\treverse_proxy {} {} {{\n{ACTIVE}\n\t}}",
        a.upstream.address(),
        b.upstream.address()
    ));
    wait_for("both to answer", || (names_answering(&subject, 4) == ["a", "b"]).then_some(()));
    for _ in 0..3 {
        a.set_well(false);
        wait_for("b alone to answer", || (names_answering(&subject, 4) == ["b"]).then_some(()));
        // Nobody is asked any more: not only by chance.
        assert_eq!(names_answering(&subject, 20), ["b"]);
        a.set_well(true);
        wait_for("both to answer", || (names_answering(&subject, 4) == ["a", "b"]).then_some(()));
    }
    subject.expect_no_fault();
}

#[test]
fn where_all_say_that_they_are_ill_it_is_503_at_once() {
    let (a, b) = (Named::start("a"), Named::start("b"));
    let subject = Subject::start(&format!(
        "\treverse_proxy {} {} {{\n{ACTIVE}\n\t}}",
        a.upstream.address(),
        b.upstream.address()
    ));
    wait_for("both to answer", || (names_answering(&subject, 4) == ["a", "b"]).then_some(()));
    a.set_well(false);
    b.set_well(false);
    let (answer, took) = wait_for("none to be well", || {
        let (answer, took) = subject.get("/");
        (answer.status != 200).then_some((answer, took))
    });
    assert_eq!(answer.status, 503);
    assert!(took < SOON && answer.body.is_empty(), "{took:?} {answer:?}");
    subject.expect_refused("upstream_none", 503, 1);
    a.set_well(true);
    wait_for("a to be well", || (subject.get("/").0.status == 200).then_some(()));
}

#[test]
fn one_bad_answer_in_between_is_forgiven_where_several_are_asked_for() {
    let (a, b) = (Named::start("a"), Named::start("b"));
    let subject = Subject::start(&format!(
        "\treverse_proxy {} {} {{\n{ACTIVE}\n\t\thealth_fails 1000\n\t\thealth_passes 2\n\t}}",
        a.upstream.address(),
        b.upstream.address()
    ));
    wait_for("both to answer", || (names_answering(&subject, 4) == ["a", "b"]).then_some(()));
    a.set_well(false);
    let asked = a.asked_for_health.load(Ordering::SeqCst);
    wait_for("some questions", || (a.asked_for_health.load(Ordering::SeqCst) > asked + 5).then_some(()));
    assert_eq!(names_answering(&subject, 8), ["a", "b"]);
}

#[test]
fn health_is_asked_once_for_the_whole_process_whatever_its_threads() {
    let a = Named::start("a");
    let subject = Subject::with_globals(
        "\tthreads 4",
        &format!(
            "\treverse_proxy {} {{\n\t\thealth_uri /health\n\t\thealth_interval 200ms\n\t}}",
            a.upstream.address()
        ),
    );
    let begun = Instant::now();
    let first = a.asked_for_health.load(Ordering::SeqCst);
    wait_for("some questions", || (a.asked_for_health.load(Ordering::SeqCst) >= first + 5).then_some(()));
    assert!(begun.elapsed() > Duration::from_millis(600), "5 questions in {:?}", begun.elapsed());
    drop(subject);
}

#[test]
fn one_that_refuses_is_passed_over_and_left_alone_for_a_while() {
    let nobody = Upstream::nobody();
    let b = Named::start("b");
    let subject = Subject::start(&format!(
        "\treverse_proxy {nobody} {} {{\n\t\tlb_policy round_robin\n\t\tlb_retries 1\n\t\tfail_duration 2s\n\t\tmax_fails 1\n\t}}",
        b.upstream.address()
    ));
    // The failure is hidden: another one is asked.
    assert_eq!(names_answering(&subject, 4), ["b"]);
    let begun = Instant::now();
    let a = Upstream::answering_at(&nobody, |_| b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na".to_vec());
    assert_eq!(names_answering(&subject, 4), ["b"], "it was asked again too soon");
    assert_eq!(a.requests(), 0);
    wait_for("both to answer", || (names_answering(&subject, 2) == ["a", "b"]).then_some(()));
    assert!(begun.elapsed() > Duration::from_secs(1), "{:?}", begun.elapsed());
    subject.expect_no_fault();
}

#[test]
fn without_retries_each_failure_is_seen_and_the_other_still_answers() {
    let b = Named::start("b");
    let subject = Subject::start(&format!(
        "\treverse_proxy {} {} {{\n\t\tlb_policy round_robin\n\t}}",
        Upstream::nobody(),
        b.upstream.address()
    ));
    let statuses: Vec<u16> = (0..8).map(|_| subject.get("/").0.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 4, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 502).count(), 4, "{statuses:?}");
    subject.expect_refused("upstream_unreachable", 502, 4);
}

#[test]
fn a_status_that_counts_as_a_failure_takes_an_upstream_away() {
    let a =
        Upstream::answering(|_| b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n".to_vec());
    let b = Named::start("b");
    let subject = Subject::start(&format!(
        "\treverse_proxy {} {} {{\n\t\tlb_policy round_robin\n\t\tfail_duration 60s\n\t\tunhealthy_status 5xx\n\t}}",
        a.address(),
        b.upstream.address()
    ));
    let statuses: Vec<u16> = (0..8).map(|_| subject.get("/").0.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 500).count(), 1, "{statuses:?}");
    assert_eq!(a.requests(), 1);
}

#[test]
fn with_all_dead_others_are_tried_for_as_long_as_was_asked_for() {
    let (a, b) = (Upstream::nobody(), Upstream::nobody());
    let subject = Subject::start(&format!(
        "\treverse_proxy {a} {b} {{\n\t\tlb_try_duration 600ms\n\t\tlb_try_interval 50ms\n\t}}"
    ));
    let (answer, took) = subject.get("/");
    assert_eq!(answer.status, 502);
    assert!(took >= Duration::from_millis(500) && took < SOON, "{took:?}");
    subject.expect_refused("upstream_unreachable", 502, 1);
}

#[test]
fn one_that_comes_up_while_others_are_tried_gets_the_request() {
    let nobody = Upstream::nobody();
    let subject = Subject::start(&format!(
        "\treverse_proxy {nobody} {{\n\t\tlb_try_duration 10s\n\t\tlb_try_interval 50ms\n\t}}"
    ));
    let mut client = subject.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
    let upstream = Upstream::answering_at(&nobody, |request| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n{}", request.text()).into()
    });
    let answer = client.read();
    assert_eq!((answer.status, answer.text()), (200, "body"));
    assert_eq!(upstream.requests(), 1);
}

#[test]
fn with_all_dead_and_known_to_be_it_is_503_at_once() {
    let (a, b) = (Upstream::nobody(), Upstream::nobody());
    let subject = Subject::start(&format!("\treverse_proxy {a} {b} {{\n\t\tfail_duration 60s\n\t}}"));
    let statuses: Vec<u16> = (0..6).map(|_| subject.get("/").0.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 502).count(), 2, "{statuses:?}");
    assert!(statuses.iter().skip(4).all(|status| *status == 503), "{statuses:?}");
    subject.expect_refused("upstream_none", 503, 4);
    subject.expect_reported("upstream_unreachable", &a);
    subject.expect_reported("upstream_none", &format!("{a} {b}"));
}

#[test]
fn an_upstream_that_is_killed_in_the_middle_is_replaced_by_the_other() {
    let (a, b) = (Named::start("a"), Named::start("b"));
    let subject = Subject::start(&format!(
        "\treverse_proxy {} {} {{\n\t\tlb_policy round_robin\n\t\tlb_retries 2\n\t\tfail_duration 60s\n\t}}",
        a.upstream.address(),
        b.upstream.address()
    ));
    assert_eq!(names_answering(&subject, 8), ["a", "b"]);
    a.upstream.kill();
    // GETs on connections that have just died, and dials that fail: none of it is seen.
    assert_eq!(names_answering(&subject, 20), ["b"]);
    subject.expect_no_fault();
}
