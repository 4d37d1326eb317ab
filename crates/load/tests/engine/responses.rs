//! What counts as an answer, and what does not.

use std::time::Instant;

use onehop_load::outcome::{End, Failures};
use onehop_load::plan::{Expect, Reuse, Until};
use onehop_load::{Address, Plan, Run};

use super::server::{Options, Server, Step, fine, nobody, response, send};
use super::{at, closed, millis, run, with_others};

const REQUESTS: u64 = 30;

/// All of some requests end in the same way, on new connections and on kept ones.
fn check(name: &str, expected: Failures, good: u64, script: fn(&Options) -> Vec<Step>) -> Run {
    let server = Server::start(script);
    let plan = Plan { threads: 2, ..closed(at(&server), 3, REQUESTS) };
    let seen = run(&plan);
    assert_eq!((seen.total.failures, seen.total.good), (expected, good), "{name}");
    assert_eq!(seen.total.requests(), REQUESTS, "{name}");
    assert_eq!(seen.end, End::Requests, "{name}");
    seen
}

#[test]
fn a_run_whose_first_answers_have_all_one_wrong_status_is_given_up_at_once() {
    let _with_others = with_others();
    let server = Server::start(|_| vec![Step::Wait(millis(2)), Step::Send(response("404 Not Found", "no"))]);
    let until = Until { time: Some(millis(60_000)), ..Until::default() };
    let hour = Plan { warm_up: millis(60_000), until, ..closed(at(&server), 4, 1) };
    let begun = Instant::now();
    let seen = run(&hour);
    assert!(matches!(seen.end, End::OneStatus { status: 404, answers: 10.. }), "{:?}", seen.end);
    assert!(begun.elapsed() < millis(20_000) && !seen.has_good(), "{:?}", begun.elapsed());

    // Another status among the first, or an expected one: then it is a mix, and measured as such.
    for other in ["500 Oops", "200 OK"] {
        let server = Server::start(move |asked| {
            let status = if asked.number == 3 { other } else { "404 Not Found" };
            vec![Step::Wait(millis(20)), Step::Send(response(status, "no"))]
        });
        let until = Until { time: Some(millis(800)), ..Until::default() };
        let seen = run(&Plan { until, ..closed(at(&server), 4, 1) });
        assert_eq!(seen.end, End::Time, "{other}");
    }
}

#[test]
fn whole_answers_count_however_they_are_framed_and_cut() {
    let _with_others = with_others();
    let none = Failures::default();
    type Case = (&'static str, fn(&Options) -> Vec<Step>);
    let cases: &[Case] = &[
        ("length", |_| fine()),
        ("empty", |_| send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")),
        ("chunked", |_| {
            send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nA: b\r\n\r\n",
            )
        }),
        ("until close", |_| vec![Step::Send(b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec()), Step::Close]),
        ("informational", |_| {
            send(
                "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            )
        }),
        ("no content", |_| send("HTTP/1.1 204 No Content\r\n\r\n")),
        ("one byte at a time", |_| {
            response("200 OK", "hello").chunks(1).map(|byte| Step::Send(byte.to_vec())).collect()
        }),
        ("large", |_| vec![Step::Send(response("200 OK", &"x".repeat(3_000_000)))]),
        ("said to be the last", |_| {
            let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi".to_vec();
            vec![Step::Send(last), Step::Close]
        }),
        ("of an old server", |_| {
            vec![Step::Send(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_vec()), Step::Close]
        }),
    ];
    for (name, script) in cases {
        let seen = check(name, none, REQUESTS, *script);
        let is_kept = !matches!(*name, "until close" | "said to be the last" | "of an old server");
        // Where one thread is late, the other's connections may do all of it.
        assert_eq!(seen.generator.connections_opened <= 3, is_kept, "{name}");
    }
}

#[test]
fn what_is_no_whole_answer_never_counts_as_one() {
    let _with_others = with_others();
    let all = REQUESTS;
    type Case = (&'static str, Failures, fn(&Options) -> Vec<Step>);
    let cases: &[Case] = &[
        ("closed at once", Failures { closed: all, ..Failures::default() }, |_| vec![Step::Close]),
        ("body cut", Failures { truncated: all, ..Failures::default() }, |_| {
            vec![Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello".to_vec()), Step::Close]
        }),
        ("head cut", Failures { truncated: all, ..Failures::default() }, |_| {
            vec![Step::Send(b"HTTP/1.1 200 OK\r\nContent-Le".to_vec()), Step::Close]
        }),
        ("chunks cut", Failures { truncated: all, ..Failures::default() }, |_| {
            let text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n".to_vec();
            vec![Step::Send(text), Step::Close]
        }),
        ("garbage", Failures { malformed: all, ..Failures::default() }, |_| {
            send("SSH-2.0-OpenSSH_9.2\r\n\r\n")
        }),
        ("two lengths", Failures { malformed: all, ..Failures::default() }, |_| {
            send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi!")
        }),
        ("more than its length", Failures { malformed: all, ..Failures::default() }, |_| {
            send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi!")
        }),
    ];
    for (name, failures, script) in cases {
        check(name, *failures, 0, *script);
    }
}

#[test]
fn an_answer_that_begins_like_those_before_and_is_cut_is_truncated() {
    let _with_others = with_others();
    let server = Server::start(|asked| {
        let whole = response("200 OK", "hello");
        match asked.number % 5 {
            4 => vec![Step::Send(whole[..whole.len() - 1].to_vec()), Step::Close],
            _ => vec![Step::Send(whole)],
        }
    });
    let seen = run(&closed(at(&server), 2, 100));
    assert_eq!((seen.total.good, seen.total.failures.truncated), (80, 20));
}

#[test]
fn other_statuses_are_whole_answers_and_no_successes() {
    let _with_others = with_others();
    let server = Server::start(|asked| {
        let status = if asked.number.is_multiple_of(3) { "503 Service Unavailable" } else { "200 OK" };
        vec![Step::Send(response(status, "x"))]
    });
    let seen = run(&closed(at(&server), 4, 300)).total;
    assert_eq!((seen.good, seen.unexpected, seen.failures.sum()), (200, 100, 0));
    assert_eq!(seen.statuses.into_iter().collect::<Vec<_>>(), [(200, 200), (503, 100)]);
    assert_eq!((seen.latency.count(), seen.unexpected_latency.count()), (200, 100));
}

#[test]
fn a_head_request_and_an_unmodified_answer_have_no_body_whatever_their_length_says() {
    let _with_others = with_others();
    let server = Server::start(|asked| match asked.head.starts_with("HEAD") {
        true => send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
        false => send("HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"),
    });
    let mut plan = closed(at(&server), 2, 40);
    plan.requests.push(plan.requests[0].clone());
    plan.requests[0].method = "HEAD".to_owned();
    plan.requests[1].expect = Expect::Exactly(vec![304]);
    let seen = run(&plan);
    assert_eq!((seen.by_request[0].good, seen.by_request[1].good), (20, 20));
    assert_eq!(seen.generator.connections_opened, 2);
}

#[test]
fn requests_go_out_as_planned_with_their_bodies() {
    let _with_others = with_others();
    let server = Server::start(|_| fine());
    let mut plan = closed(at(&server), 2, 8);
    plan.requests[0].method = "POST".to_owned();
    plan.requests[0].fields = vec![("X-A".to_owned(), "b".to_owned())];
    plan.requests[0].body = Some(vec![b'x'; 5_000_000]);
    let seen = run(&plan);
    assert_eq!((seen.total.good, server.requests()), (8, 8));
    assert!(seen.total.bytes_written > 8 * 5_000_000);
    for noted in server.notes() {
        let head = &noted.asked.head;
        assert!(head.starts_with("POST / HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n"), "{head}");
        assert_eq!(noted.asked.body_bytes, 5_000_000);
    }
}

#[test]
fn nobody_there_is_a_failed_connection_for_each_request_and_soon_hopeless() {
    let _with_others = with_others();
    let gone = Address::Tcp(nobody());
    let seen = run(&closed(gone.clone(), 2, 10));
    assert_eq!((seen.total.failures.connect, seen.total.requests()), (10, 10));

    let begun = Instant::now();
    let long = Until { time: Some(millis(60_000)), ..Until::default() };
    let seen = run(&Plan { until: long, ..closed(gone, 4, 1) });
    assert!(matches!(&seen.end, End::Hopeless(why) if why.contains("refused")), "{:?}", seen.end);
    assert!(begun.elapsed() < millis(20_000) && seen.total.good == 0);
    // Rests grow to 100 ms: this is no hot loop.
    assert!(seen.total.failures.connect < 4 * 3 * 40, "{:?}", seen.total.failures);
}

#[test]
fn a_request_without_an_answer_is_given_up_when_the_timeout_ends() {
    let _with_others = with_others();
    let server = Server::start(|asked| match asked.number {
        0 => Vec::new(),
        _ => fine(),
    });
    let mut plan = closed(at(&server), 1, 3);
    plan.timeouts.response = millis(1500);
    let seen = run(&plan);
    assert_eq!((seen.total.failures.timed_out, seen.total.good), (1, 2));
    assert!(seen.elapsed >= millis(1500), "{:?}", seen.elapsed);
}

#[test]
fn connections_that_the_server_closes_while_they_rest_are_no_faults() {
    let _with_others = with_others();
    let server = Server::start(|_| vec![Step::Send(response("200 OK", "x")), Step::Close]);
    let mut plan = closed(at(&server), 2, 6);
    // Long enough for a server that lost its core between the answer and the end.
    plan.pace = onehop_load::plan::Pace::Closed { connections: 2, think: millis(500) };
    let seen = run(&plan);
    assert_eq!((seen.total.good, seen.total.failures.sum()), (6, 0));
    assert_eq!(seen.generator.connections_opened, 6);
}

#[test]
fn new_connections_are_new_for_each_request_and_say_so() {
    let _with_others = with_others();
    let server = Server::start(|_| fine());
    let seen = run(&Plan { reuse: Reuse::New, ..closed(at(&server), 3, 50) });
    assert_eq!((seen.total.good, seen.generator.connections_opened, server.connections()), (50, 50, 50));
    assert!(server.notes().iter().all(|noted| noted.asked.head.contains("Connection: close")));

    let seen = run(&Plan { reuse: Reuse::Requests(10), ..closed(at(&server), 1, 60) });
    assert_eq!((seen.total.good, seen.generator.connections_opened), (60, 6));
}

#[test]
fn unix_sockets_are_asked_like_others() {
    let _with_others = with_others();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let server = Server::start_at(&path, |_| fine());
    let mut plan = closed(Address::Unix(path), 4, 200);
    plan.requests[0].body = Some(vec![b'x'; 1_000_000]);
    plan.requests[0].method = "PUT".to_owned();
    let seen = run(&Plan { until: Until { requests: Some(20), ..Until::default() }, ..plan.clone() });
    assert_eq!((seen.total.good, server.requests()), (20, 20));
    plan.requests[0].body = None;
    let seen = run(&plan);
    assert_eq!((seen.total.good, server.requests()), (200, 220));
}
