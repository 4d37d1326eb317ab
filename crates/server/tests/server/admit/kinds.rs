//! Which requests are bounded, by what, and for how long.

use super::*;
use crate::harness::write;

#[test]
fn what_is_answered_from_memory_is_never_in_flight_and_never_refused() {
    let holding = Holding::start();
    let server = serve(&holding, "limit in_flight 1\napp /api/* APP\nrespond /hello hi\nspa ./dist");
    let mut first = ask(&server, "/api/1");
    wait_until(&server, 1, 0);
    assert_eq!(server.connect().get("/api/2").status, 503);
    for path in ["/", "/robots.txt", "/hello"] {
        assert_eq!(server.connect().get(path).status, 200, "{path}");
    }
    assert_eq!(limit(&server).let_in, 1);
    holding.let_go(1);
    assert_eq!(first.answer().status, 200);
}

#[test]
fn files_from_disk_are_in_flight() {
    let holding = Holding::start();
    let folder = application();
    write(folder.path(), "localhost/page.txt", b"from disk");
    let directives = "limit in_flight 1\napp /api/* APP\nroot * ./{host}\nfile_server";
    let server = TestServer::start(folder, &text("", &holding.program, directives), Wishes::default());
    let mut client = server.connect();
    assert_eq!(client.get("/page.txt").text(), "from disk");
    wait_until(&server, 0, 0);
    assert_eq!(limit(&server).let_in, 1);
    let mut first = ask(&server, "/api/1");
    wait_until(&server, 1, 0);
    assert_eq!(client.get("/page.txt").status, 503);
    holding.let_go(1);
    assert_eq!(first.answer().status, 200);
    wait_until(&server, 0, 0);
    assert_eq!(client.get("/page.txt").text(), "from disk");
}

#[test]
fn a_file_from_disk_waits_its_turn() {
    let holding = Holding::start();
    let folder = application();
    write(folder.path(), "localhost/page.txt", b"from disk");
    let directives = "limit in_flight 1 queue 2 wait 20s\napp /api/* APP\nroot * ./{host}\nfile_server";
    let server = TestServer::start(folder, &text("", &holding.program, directives), Wishes::default());
    let mut first = ask(&server, "/api/1");
    wait_until(&server, 1, 0);
    let (mut second, third) = (ask(&server, "/page.txt"), ask(&server, "/page.txt"));
    wait_until(&server, 1, 2);
    third.reset();
    wait_until(&server, 1, 1);
    holding.let_go(1);
    assert_eq!(first.answer().status, 200);
    assert_eq!(second.answer().text(), "from disk");
    wait_until(&server, 0, 0);
}

#[test]
fn a_way_over_the_disk_to_somebody_else_is_one_request_in_flight() {
    let directives = "limit in_flight 1\nroot * ./{host}\n@page file {path}\nhandle @page {\nfile_server\n}\n\
                      handle {\napp APP\n}";
    let (holding, server, mut first) = busy(directives);
    assert_eq!(server.connect().get("/2").status, 503);
    holding.let_go(1);
    assert_eq!(first.answer().text(), "/1");
    wait_until(&server, 0, 0);
    assert_eq!(limit(&server).let_in, 1);
}

#[test]
fn files_behind_a_matcher_that_asks_the_disk_are_in_flight_too() {
    let holding = Holding::start();
    let folder = application();
    write(folder.path(), "localhost/page.txt", b"from disk");
    let directives = "root * ./{host}\n@page file {path}\nhandle @page {\nlimit in_flight 1\nfile_server\n}\n\
                      handle {\napp APP\n}";
    let server = TestServer::start(folder, &text("", &holding.program, directives), Wishes::default());
    let mut client = server.connect();
    for count in 1..3 {
        assert_eq!(client.get("/page.txt").text(), "from disk");
        wait_until(&server, 0, 0);
        assert_eq!(limit(&server).let_in, count);
    }
}

#[test]
fn a_way_over_the_disk_keeps_its_priority() {
    let directives = "limit in_flight 1 queue 1 wait 20s\nlimit /high priority high\nroot * ./{host}\n\
                      try_files {path} {path}\napp APP";
    let (holding, server, mut first) = busy(directives);
    let mut second = ask(&server, "/2");
    wait_until(&server, 1, 1);
    let mut high = ask(&server, "/high");
    assert_eq!(second.answer().status, 503);
    assert_eq!(refused(&server, "outranked"), (1, 1));
    holding.let_go(2);
    assert_eq!((first.answer().text(), high.answer().text()), ("/1".to_owned(), "/high".to_owned()));
}

#[test]
fn who_waits_for_an_application_takes_no_place_of_the_whole_server() {
    let holding = Holding::start();
    let other = Program::start(|talk, _| talk.answer("other"));
    let text = format!(
        "{{\nlimit in_flight 3\n}}\nhttp://localhost:0 {{\nbind 127.0.0.1\nreverse_proxy /other {}\napp {{\nsupervise off {}\n\
         limit in_flight 1 queue 8 wait 20s\n}}\n}}\n",
        other.address, holding.program.address
    );
    let server = TestServer::start(application(), &text, Wishes::default());
    let mut clients: Vec<_> = (0..6).map(|number| ask(&server, &format!("/{number}"))).collect();
    let begun = Instant::now();
    let of_app = || {
        limits(&server).into_iter().find(|limit| limit.limit.starts_with("app")).expect("the application's")
    };
    while (of_app().in_flight, of_app().queued) != (1, 5) {
        assert!(begun.elapsed() < TIMEOUT, "{:?}", limits(&server));
        std::thread::yield_now();
    }
    assert_eq!(server.connect().get("/other").text(), "other");
    holding.let_go(6);
    clients.iter_mut().for_each(|client| assert_eq!(client.answer().status, 200));
}

#[test]
fn a_stream_of_events_is_in_flight_until_it_has_begun() {
    let program = Program::start(|talk, head| {
        if path_of(head) == "/events" {
            talk.say(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
            );
            // Until its client has gone.
            talk.rest();
            return false;
        }
        talk.answer("other")
    });
    let server = serve_with("", &program, "limit in_flight 1\napp APP");
    let mut streams: Vec<_> = (0..3)
        .map(|_| {
            let mut client = ask(&server, "/events");
            assert!(client.try_head().unwrap().contains("200"));
            wait_until(&server, 0, 0);
            client
        })
        .collect();
    assert_eq!(server.connect().get("/other").text(), "other");
    assert!(streams.pop().is_some());
    assert_eq!(limit(&server).let_in, 4);
}

#[test]
fn a_tunnel_is_in_flight_until_it_has_begun() {
    let program = Program::start(|talk, head| {
        if path_of(head) == "/tunnel" {
            talk.say("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
            talk.rest();
            return false;
        }
        talk.answer("other")
    });
    let server = serve_with("", &program, "limit in_flight 1\napp APP");
    let mut tunnel = server.connect();
    tunnel.send("GET /tunnel HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    assert!(tunnel.try_head().unwrap().contains("101"));
    wait_until(&server, 0, 0);
    assert_eq!(server.connect().get("/other").text(), "other");
}

#[test]
fn a_long_answer_is_in_flight_until_it_is_over() {
    let program = Program::start(|talk, head| {
        if path_of(head) == "/long" {
            talk.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
            talk.rest();
            return false;
        }
        talk.answer("other")
    });
    let server = serve_with("", &program, "limit in_flight 1\napp APP");
    let mut long = ask(&server, "/long");
    assert!(long.try_head().unwrap().contains("200"));
    wait_until(&server, 1, 0);
    assert_eq!(server.connect().get("/other").status, 503);
    long.reset();
    wait_until(&server, 0, 0);
    assert_eq!(server.connect().get("/other").text(), "other");
}

#[test]
fn a_request_passes_the_servers_limit_its_sites_and_its_routes() {
    let holding = Holding::start();
    let server = serve_with(
        "limit in_flight 3",
        &holding.program,
        "limit in_flight 2\nlimit /narrow/* in_flight 1\napp APP",
    );
    let counts = || {
        let limits = limits(&server);
        let of = |end: &str| limits.iter().find(|limit| limit.limit.ends_with(end)).unwrap().in_flight;
        [of("server"), of("localhost:0"), of("/narrow/*")]
    };
    let wait_for = |expected: [u32; 3]| {
        let begun = Instant::now();
        while counts() != expected {
            assert!(begun.elapsed() < TIMEOUT, "{:?}", limits(&server));
            std::thread::yield_now();
        }
    };
    let _one = ask(&server, "/narrow/1");
    wait_for([1, 1, 1]);
    assert_eq!(server.connect().get("/narrow/2").status, 503);
    wait_for([1, 1, 1]);
    let _two = ask(&server, "/wide");
    wait_for([2, 2, 1]);
    assert_eq!(server.connect().get("/wide").status, 503);
    wait_for([2, 2, 1]);
    holding.let_go(2);
    wait_for([0, 0, 0]);
}

#[test]
fn a_reverse_proxy_is_bounded_as_an_application_is() {
    let holding = Holding::start();
    let proxy = format!("limit in_flight 1 queue 1 wait 20s\nreverse_proxy {}", holding.program.address);
    let server = serve(&holding, &proxy);
    let mut first = ask(&server, "/1");
    wait_until(&server, 1, 0);
    let mut second = ask(&server, "/2");
    wait_until(&server, 1, 1);
    assert_eq!(server.connect().get("/3").status, 503);
    holding.let_go(2);
    assert_eq!((first.answer().text(), second.answer().text()), ("/1".to_owned(), "/2".to_owned()));
    wait_until(&server, 0, 0);
}

#[test]
fn an_application_is_protected_where_nothing_is_written_and_not_with_off() {
    let program = Program::start(|talk, _| talk.answer("here"));
    let app = format!("app {{\nsupervise off {}\n}}", program.address);
    let server = serve_with("", &program, &app);
    assert_eq!(server.connect().get("/").text(), "here");
    let limit = limit(&server);
    assert!(limit.is_adaptive && limit.limit.starts_with("app "), "{limit:?}");
    let server = serve_with("", &program, "app APP");
    assert_eq!(server.connect().get("/").text(), "here");
    assert!(limits(&server).is_empty());
}

#[test]
fn an_application_whose_event_loop_is_late_is_given_no_more() {
    // By its own word it is a second late.
    let server = crate::workers::serve("late_loop 1000", "limit lag 70ms");
    let begun = Instant::now();
    let refusal = loop {
        let answer = server.connect().get("/api/x");
        if answer.status != 200 {
            break answer;
        }
        assert!(begun.elapsed() < TIMEOUT, "{:?}", limits(&server));
    };
    assert_eq!((refusal.status, refusal.field("Retry-After")), (503, Some("1")));
    let (by_limit, by_all) = refused(&server, "lag");
    assert!(by_limit > 0 && by_limit == by_all, "{by_limit} {by_all}");
    assert_eq!(limit(&server).bound, None);
    assert_eq!(server.connect().get("/").status, 200, "files are served on");
    let punctual = crate::workers::serve("late_loop 20", "limit lag 70ms");
    for _ in 0..20 {
        assert_eq!(punctual.connect().get("/api/x").status, 200);
    }
}

#[test]
fn a_limit_is_kept_over_a_reload_that_names_it_with_equal_settings() {
    let (holding, server, mut first) = busy("limit in_flight 1\napp APP");
    server.running().reload().unwrap();
    assert_eq!(server.connect().get("/2").status, 503);
    let wider = text("", &holding.program, "limit in_flight 2\napp APP");
    std::fs::write(server.folder.path().join("Onehopfile"), wider).unwrap();
    server.running().reload().unwrap();
    let mut third = ask(&server, "/3");
    wait_until(&server, 1, 0);
    wait_for_paths(&holding, 2);
    holding.let_go(2);
    assert_eq!((first.answer().text(), third.answer().text()), ("/1".to_owned(), "/3".to_owned()));
    wait_until(&server, 0, 0);
}

#[test]
fn a_refusal_may_have_a_page_that_is_at_hand_and_asks_nobody_for_one() {
    let pages = "handle_errors 503 {\nheader X-Busy yes\nrespond \"come back, {err.status_code}\"\n}";
    let (holding, server, _first) = busy(&format!("limit in_flight 1\napp APP\n{pages}"));
    let answer = server.connect().get("/2");
    assert_eq!((answer.status, answer.text().as_str()), (503, "come back, 503"));
    assert_eq!((answer.field("Retry-After"), answer.field("X-Busy")), (Some("1"), Some("yes")));
    let of_others = format!("handle_errors {{\nreverse_proxy {}\n}}", holding.program.address);
    let server = serve(&holding, &format!("limit in_flight 1\napp APP\n{of_others}"));
    let _first = ask(&server, "/3");
    wait_until(&server, 1, 0);
    assert_eq!(server.connect().get("/4").status, 503);
    assert_eq!(holding.paths().iter().filter(|path| *path == "/4").count(), 0);
}
