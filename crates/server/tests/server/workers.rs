//! Workers that do what they must not: the server lives, says why, and answers its clients.

use std::os::unix::fs::PermissionsExt;

use onehop_server::Event;
use onehop_server::control::AppEvent;
use tempfile::TempDir;

use crate::client::{Client, Response};
use crate::harness::{TestServer, Wishes, application, write};

const SCRIPTED: &str = include_str!("workers/scripted.py");

/// A server whose application is one scripted worker with this behaviour and these options.
pub(crate) fn serve(behaviour: &str, options: &str) -> TestServer {
    serve_in(application(), behaviour, options)
}

pub(crate) fn serve_in(folder: TempDir, behaviour: &str, options: &str) -> TestServer {
    serve_workers(folder, 1, behaviour, options)
}

/// The same with so many workers.
pub(crate) fn serve_workers(folder: TempDir, workers: usize, behaviour: &str, options: &str) -> TestServer {
    serve_wishing(folder, workers, behaviour, options, Wishes::default())
}

pub(crate) fn serve_wishing(
    folder: TempDir,
    workers: usize,
    behaviour: &str,
    options: &str,
    wishes: Wishes,
) -> TestServer {
    let text = site_text(&folder, workers, behaviour, options, "");
    TestServer::start(folder, &text, wishes)
}

/// One scripted worker, in a site with these directives.
pub(crate) fn serve_in_site(folder: TempDir, behaviour: &str, options: &str, directives: &str) -> TestServer {
    let text = site_text(&folder, 1, behaviour, options, directives);
    TestServer::start(folder, &text, Wishes::default())
}

fn site_text(folder: &TempDir, workers: usize, behaviour: &str, options: &str, directives: &str) -> String {
    let runtime = folder.path().join("scripted.py");
    write(folder.path(), "scripted.py", SCRIPTED.as_bytes());
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o755)).unwrap();
    write(folder.path(), "app.mjs", behaviour.as_bytes());
    format!(
        "http://localhost:0 {{\n\tbind 127.0.0.1\n\tapp /api/* ./app.mjs {{\n\t\truntime {}\n\t\t\
         workers {workers}\n\t\t{options}\n\t}}\n\tspa ./dist\n\t{directives}\n}}\n",
        runtime.display()
    )
}

fn get(server: &TestServer, path: &str) -> Response {
    server.connect().get(path)
}

/// Why the server ended the worker.
fn reason(server: &TestServer) -> String {
    server.wait_for(|event| match event {
        Event::App(AppEvent::WorkerEnded { reason, .. }) => Some(reason.clone()),
        _ => None,
    })
}

/// The worker's lane is given up with this reason, its request answered 502, everything else goes on.
fn check_broken(behaviour: &str, why: &str) {
    let server = serve(behaviour, "");
    assert_eq!(get(&server, "/api/x").status, 502, "{behaviour}");
    let said = reason(&server);
    assert!(said.contains(why), "{behaviour}: {said}");
    assert_eq!(get(&server, "/").status, 200, "{behaviour}: files are served on");
    // Its successor is as bad, and is there.
    assert_eq!(get(&server, "/api/x").status, 502, "{behaviour}");
}

#[test]
fn a_worker_that_keeps_to_the_protocol_is_answered_for() {
    let server = serve("answer", "");
    let answer = get(&server, "/api/one?two=3");
    assert_eq!(answer.status, 200);
    assert!(answer.text().ends_with(" /api/one?two=3"), "{}", answer.text());
    assert_eq!(answer.field("Content-Type"), Some("text/plain"));
    assert!(answer.head.contains("X-Own-Case: yes"), "{}", answer.head);
    assert_eq!(server.metric("onehop_requests_total{site=\"http://localhost:0\",handler=\"app\""), 1);
}

#[test]
fn garbage_on_a_connection_costs_that_worker() {
    check_broken("garbage", "broke the worker protocol");
}

#[test]
fn a_frame_of_four_gibibytes_is_refused_by_its_length() {
    check_broken("huge_frame", "a frame announces 4294967295 bytes");
}

#[test]
fn a_second_answer_to_one_request_costs_the_worker() {
    let server = serve("answers_twice", "");
    // The first one is whole, and was there first.
    let answer = get(&server, "/api/x");
    assert!(matches!(answer.status, 200 | 502), "{}", answer.status);
    if answer.status == 200 {
        assert_eq!(answer.text(), "one");
    }
    let said = reason(&server);
    assert!(said.contains("an answer that it had ended"), "{said}");
}

#[test]
fn a_second_head_in_one_answer_costs_the_worker() {
    let server = serve("two_heads", "");
    let mut client = server.connect();
    client.send("GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // Cut off before or after its head; never whole.
    if let Ok(answer) = client.try_answer(false) {
        assert!(answer.status == 502 || client.is_closed());
    }
    assert!(reason(&server).contains("answers a request twice"));
}

#[test]
fn an_answer_in_a_slot_that_never_was_costs_the_worker() {
    check_broken("gone_slot", "which never was");
}

#[test]
fn parts_of_an_answer_out_of_order_cost_the_worker() {
    check_broken("data_first", "out of order");
}

#[test]
fn more_bytes_than_were_granted_cost_the_worker_and_cut_the_answer() {
    let server = serve("too_much_data", "");
    let mut client = server.connect();
    client.send("GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // The client takes nothing, so nothing is granted.
    assert!(reason(&server).contains("more bytes came than were granted"));
    assert_eq!(get(&server, "/").status, 200);
}

#[test]
fn a_worker_that_closes_its_connection_is_replaced() {
    check_broken("closes_lane", "its connection was closed");
}

#[test]
fn a_worker_that_exits_at_start_is_reported_with_its_last_words() {
    let server = serve("exits_at_start", "");
    let said = reason(&server);
    assert!(said.contains("exit code 3") && said.contains("Cannot find module 'express'"), "{said}");
    let retry = server.wait_for(|event| match event {
        Event::App(AppEvent::Failing { retry_in, .. }) => Some(*retry_in),
        _ => None,
    });
    assert!(retry.as_secs() <= 10);
    let answer = get(&server, "/api/x");
    assert_eq!(answer.status, 503);
    assert!(answer.field("Retry-After").is_some(), "{}", answer.head);
    assert_eq!(get(&server, "/").status, 200);
}

#[test]
fn a_worker_that_says_why_it_cannot_start_is_quoted() {
    let server = serve("fails", "");
    let said = reason(&server);
    assert!(said.contains("SyntaxError: Unexpected token"), "{said}");
}

#[test]
fn a_worker_that_is_never_ready_is_ended_at_its_deadline() {
    let server = serve("never_ready", "start_timeout 300ms");
    let said = reason(&server);
    assert!(said.contains("not ready"), "{said}");
}

#[test]
fn a_handshake_that_is_none_ends_the_worker() {
    let server = serve("garbage_handshake", "");
    let said = reason(&server);
    assert!(said.contains("protocol"), "{said}");
}

#[test]
fn a_request_that_is_never_answered_is_a_504_and_its_late_answer_is_dropped() {
    let server = serve("late 1.2", "timeout 300ms\n\t\tstuck_after 30s");
    assert_eq!(get(&server, "/api/slow").status, 504);
    // The worker still sleeps; what it says afterwards belongs to nobody, and the next answer is its own.
    let mut client = server.connect();
    let mut answer = client.get("/api/next");
    while answer.status == 504 {
        answer = client.get("/api/next");
    }
    assert_eq!((answer.status, answer.text().as_str()), (200, "/api/next"));
}

#[test]
fn a_worker_that_dies_over_a_request_costs_a_502_and_is_replaced_at_once() {
    let server = serve("dies", "");
    let before = get(&server, "/api/x").text();
    assert_eq!(get(&server, "/api/die").status, 502);
    let begun = std::time::Instant::now();
    let after = get(&server, "/api/x");
    assert!(begun.elapsed().as_millis() < 2_000, "{:?}", begun.elapsed());
    assert_eq!(after.status, 200);
    assert_ne!(before, after.text());
    let said = reason(&server);
    assert!(said.contains("exit code 7") && said.contains("about to die"), "{said}");
}

#[test]
fn an_answer_that_breaks_off_is_seen_to_break_off() {
    for behaviour in ["dies_in_the_middle", "less_than_promised", "more_than_promised"] {
        let server = serve(behaviour, "");
        let mut client = server.connect();
        client.send("GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let answer = client.try_answer(true);
        assert!(answer.as_ref().map_or(true, |answer| answer.status == 502), "{behaviour}: {answer:?}");
        assert_eq!(get(&server, "/").status, 200, "{behaviour}");
        let counted = server.metric("onehop_refused_total{cause=\"worker_");
        assert_eq!(counted, 1, "{behaviour}: {}", server.metrics());
    }
}

#[test]
fn a_field_that_is_none_is_a_502_and_splits_no_answer() {
    for behaviour in ["bad_field", "splits_field"] {
        let server = serve(behaviour, "");
        let answer = get(&server, "/api/x");
        assert_eq!((answer.status, answer.field("Set-Cookie")), (502, None), "{behaviour}");
        // The worker itself goes on: only this answer is of no use.
        assert_eq!(get(&server, "/api/x").status, 502);
    }
}

#[test]
fn the_framing_of_an_answer_is_the_servers_own() {
    let server = serve("own_framing", "");
    let mut client = server.connect();
    for _ in 0..2 {
        let answer = client.get("/api/x");
        assert_eq!((answer.status, answer.text().as_str()), (200, "body"));
        assert_eq!(answer.field("Content-Length"), Some("4"));
        for name in ["Transfer-Encoding", "Connection", "Keep-Alive"] {
            assert_eq!(answer.field(name), None, "{}", answer.head);
        }
    }
}

#[test]
fn early_hints_go_before_the_answer() {
    let server = serve("hints", "");
    let mut client = server.connect();
    client.send("GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let hints = client.answer();
    assert_eq!((hints.status, hints.field("Link")), (103, Some("</app.css>; rel=preload")));
    assert_eq!(client.answer().text(), "after hints");
    // HTTP/1.0 knows no informational answers (RFC 9110 section 15.2).
    let mut client = server.connect();
    client.send("GET /api/x HTTP/1.0\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().status, 200);
}

#[test]
fn trailers_follow_a_chunked_answer() {
    let server = serve("trailers", "");
    let mut client = server.connect();
    client.send("GET /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut all = Vec::new();
    std::io::Read::read_to_end(&mut client.stream, &mut all).unwrap();
    let text = String::from_utf8(all).unwrap();
    assert!(text.contains("Transfer-Encoding: chunked"), "{text}");
    assert!(text.ends_with("0\r\nChecksum: abc\r\n\r\n"), "{text}");
}

#[test]
fn a_request_that_was_refused_before_it_was_begun_goes_elsewhere_also_a_post() {
    let folder = application();
    let marker = folder.path().join("refused-once");
    let server = serve_in(folder, &format!("refuses {}", marker.display()), "");
    let mut client = server.connect();
    client.send("POST /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody");
    let answer = client.answer();
    assert_eq!(answer.status, 200);
    assert!(marker.exists());
}

#[test]
fn a_handler_that_fails_is_a_500() {
    assert_eq!(get(&serve("handler_fails", ""), "/api/x").status, 500);
}

#[test]
fn an_upgrade_that_nobody_asked_for_is_a_502() {
    assert_eq!(get(&serve("unasked_upgrade", ""), "/api/x").status, 502);
}

#[test]
fn what_says_who_the_client_is_never_comes_from_the_client() {
    let server = serve("show_head", "");
    let mut client = server.connect();
    client.send(
        "GET /api/x HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 6.6.6.6\r\nx_forwarded_for: 6.6.6.6\r\n\
         Forwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nTE: trailers\r\n\
         Connection: keep-alive, X-Secret\r\nX-Secret: 6.6.6.6\r\nKeep-Alive: 6.6.6.6\r\n\
         Proxy-Authorization: 6.6.6.6\r\nUpgrade: 6.6.6.6\r\nX-Kept: yes\r\n\r\n",
    );
    let text = client.answer().text();
    assert!(text.contains("X-Kept:yes") && !text.contains("6.6.6.6") && !text.contains("https"), "{text}");
}

#[test]
fn a_body_of_any_framing_reaches_the_worker_whole() {
    let server = serve("echo_body", "");
    let mut client = server.connect();
    for size in [0, 1, 1_000, 65_535, 65_536, 65_537, 300_000, 3_000_000] {
        let body = "b".repeat(size);
        client.send(format!("POST /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n"));
        client.send(&body);
        assert_eq!(client.answer().text(), size.to_string(), "Content-Length");
        client.send("POST /api/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
        for chunk in body.as_bytes().chunks(7_777) {
            client.send(format!("{:x}\r\n", chunk.len())).send(chunk).send("\r\n");
        }
        client.send("0\r\nX-Trailer: yes\r\n\r\n");
        assert_eq!(client.answer().text(), size.to_string(), "chunked");
    }
}

#[test]
fn the_time_for_an_answer_begins_when_the_request_is_whole() {
    let server = serve("echo_body", "timeout 500ms");
    let mut client = server.connect();
    client.send("POST /api/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n");
    for _ in 0..10 {
        // A slow client, not a wait for a state.
        std::thread::sleep(std::time::Duration::from_millis(200));
        client.send("b");
    }
    assert_eq!(client.answer().text(), "10");
}

#[test]
fn a_body_that_is_no_body_is_refused_and_the_worker_informed() {
    let server = serve("echo_body", "");
    let mut client = server.connect();
    client.send("POST /api/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc");
    client.send("de\nnonsense");
    assert_eq!(client.answer().status, 400);
    assert!(client.is_closed());
    assert_eq!(server.connect().get("/api/x").text(), "0");
}

#[test]
fn a_file_that_the_application_names_is_sent_by_the_server_and_none_outside_of_its_folder() {
    let folder = application();
    write(folder.path(), "private/report.txt", b"0123456789");
    write(folder.path(), "secret.txt", b"secret");
    let outside = folder.path().join("secret.txt");
    std::os::unix::fs::symlink(&outside, folder.path().join("private/link.txt")).unwrap();
    let server = serve_in(folder, "sends_file", "files ./private");
    let mut client = server.connect();
    let answer = client.get("/api/x?path=report.txt");
    assert_eq!((answer.status, answer.text().as_str()), (200, "0123456789"));
    assert_eq!(answer.field("Content-Type"), Some("text/plain; charset=utf-8"));
    let etag = answer.field("ETag").expect("a tag").to_owned();
    client.send("GET /api/x?path=report.txt HTTP/1.1\r\nHost: localhost\r\nRange: bytes=2-4\r\n\r\n");
    let part = client.answer();
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    client.send(format!(
        "GET /api/x?path=report.txt HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {etag}\r\n\r\n"
    ));
    assert_eq!(client.answer().status, 304);
    for path in ["../secret.txt", "/../secret.txt", "link.txt", "missing.txt", "", ".", "a/../../secret.txt"]
    {
        let answer = client.get(&format!("/api/x?path={path}"));
        assert!(answer.status >= 400 && !answer.text().contains("secret"), "{path}: {}", answer.status);
    }
}

#[test]
fn a_field_may_name_a_file_where_a_folder_for_such_files_is_configured() {
    let folder = application();
    write(folder.path(), "private/a b.txt", b"by field");
    let root = folder.path().join("private").canonicalize().unwrap();
    let server = serve_in(folder, "names_file", "files ./private");
    let answer = get(&server, "/api/x?field=X-Accel-Redirect=/a%20b.txt");
    assert_eq!((answer.status, answer.text().as_str()), (200, "by field"));
    assert_eq!(answer.field("X-Accel-Redirect"), None);
    let answer = get(&server, &format!("/api/x?field=X-Sendfile={}/missing", root.display()));
    assert_eq!(answer.status, 404);
    assert_eq!(get(&server, "/api/x?field=X-Sendfile=/etc/passwd").status, 404);
    assert_eq!(get(&server, "/api/x?field=X-Accel-Redirect=/../b.txt").status, 404);
    let without = serve("names_file", "");
    let answer = get(&without, "/api/x?field=X-Sendfile=/etc/passwd");
    assert_eq!((answer.status, answer.field("X-Sendfile")), (200, Some("/etc/passwd")));
}

#[test]
fn requests_on_one_connection_are_answered_in_their_order() {
    let server = serve("answer", "");
    let mut client: Client = server.connect();
    let mut all = String::new();
    for number in 0..50 {
        all.push_str(&format!("GET /api/{number} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        all.push_str("GET /robots.txt HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    client.send(all);
    for number in 0..50 {
        assert!(client.answer().text().ends_with(&format!("/api/{number}")));
        assert!(client.answer().text().starts_with("User-agent"));
    }
}

/// How late the only worker's event loop is, in milliseconds.
fn lag(server: &TestServer) -> f64 {
    server.running().api().status().apps[0].workers.first().map_or(0.0, |worker| worker.lag_ms)
}

#[test]
fn an_event_loop_that_does_not_turn_at_all_is_given_no_more_and_then_some_again() {
    let server = serve("late 3", "limit lag 70ms");
    assert_eq!(get(&server, "/api/quick").text(), "/api/quick");
    let mut slow = server.connect();
    slow.send("GET /api/slow HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let begun = std::time::Instant::now();
    while lag(&server) < 140.0 {
        assert!(begun.elapsed().as_secs() < 20, "{}", lag(&server));
        std::thread::yield_now();
    }
    // It has not answered the slow one, and says nothing of its lag.
    let refusal = get(&server, "/api/quick");
    assert_eq!((refusal.status, refusal.field("Retry-After")), (503, Some("1")));
    assert!(server.metric("onehop_refused_total{cause=\"limit_lag\"") > 0);
    assert_eq!(get(&server, "/").status, 200, "files are served on");
    assert_eq!(slow.answer().text(), "/api/slow");
    let begun = std::time::Instant::now();
    while get(&server, "/api/quick").status != 200 {
        assert!(begun.elapsed().as_secs() < 20, "{}", lag(&server));
    }
}
