//! Upstreams of HTTP/2, frame by frame. gRPC with a real client and a real server is in tests/e2e/grpc.test.mjs.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use onehop_testkit::http2::{Frame, Http2, Http2Server, code, head, kind, response, setting};
use onehop_testkit::upstream::{AUTHORITY_PEM, Connection, Upstream, tls_settings_offering};
use onehop_testkit::{Folder, TIMEOUT, wait_for};

use crate::streams::{expect_echo, tunnel};
use crate::subject::Subject;

/// Responds to each request with its path.
fn paths(connection: &mut Connection) {
    let Some(mut server) = Http2Server::start(connection, &[]) else { return };
    while let Some((stream, request)) = server.request() {
        server.respond(stream, "200", &format!("{} over HTTP/2", request.target()));
    }
}

/// The same in HTTP/1.1.
fn paths_in_http1(connection: &mut Connection) {
    while let Some(request) = connection.request() {
        let body = format!("{} over HTTP/1.1", request.target());
        connection.answer("200 OK", "", &body);
    }
}

fn before(upstream: &Upstream, options: &str) -> Subject {
    Subject::onehop("", &format!("\treverse_proxy h2c://{} {{\n{options}\n\t}}", upstream.address()))
}

/// Tells the client that the last stream which was looked at is this one.
fn goaway(last: u32) -> Frame {
    Frame::new(kind::GOAWAY, 0, 0, [last.to_be_bytes(), code::NO_ERROR.to_be_bytes()].concat())
}

#[test]
fn the_handshake_of_tls_decides_which_version_is_spoken() {
    let cases: [(&str, &[&str], &str); 6] = [
        ("1.1 2", &["h2", "http/1.1"], "HTTP/2"),
        ("1.1 2", &["http/1.1"], "HTTP/1.1"),
        ("1.1 2", &[], "HTTP/1.1"),
        ("2", &["h2"], "HTTP/2"),
        // There is nothing that both speak.
        ("2", &["http/1.1"], ""),
        ("2", &[], ""),
    ];
    let folder = Folder::with(&[("authority.pem", AUTHORITY_PEM)]);
    let mut directives = String::new();
    let upstreams = cases.iter().enumerate().map(|(number, &(versions, offered, spoken))| {
        let script = if spoken == "HTTP/2" { paths } else { paths_in_http1 };
        let upstream = Upstream::start_tls(tls_settings_offering(offered), script);
        directives += &format!(
            "\thandle /{number} {{\n\t\treverse_proxy https://localhost:{} {{\n\t\t\ttransport http {{\n\t\t\t\tversions \
             {versions}\n\t\t\t\ttls_trust_pool file {}\n\t\t\t}}\n\t\t}}\n\t}}\n",
            upstream.port(),
            folder.join("authority.pem").display()
        );
        upstream
    });
    let upstreams: Vec<Upstream> = upstreams.collect();
    let subject = Subject::onehop("", &directives);
    for (number, (versions, offered, spoken)) in cases.into_iter().enumerate() {
        let case = format!("`versions {versions}` where the upstream offers {offered:?}");
        // On the connection that was made for the first request, too.
        for _ in 0..2 {
            let (answer, _) = subject.get(&format!("/{number}"));
            if spoken.is_empty() {
                assert_eq!((answer.status, upstreams[number].requests()), (502, 0), "{case}");
            } else {
                let expected = format!("/{number} over {spoken}");
                assert_eq!((answer.status, answer.text()), (200, expected.as_str()), "{case}");
            }
        }
    }
}

#[test]
fn requests_that_wait_for_the_first_handshake_all_go_on_where_it_negotiates_http_1() {
    let folder = Folder::with(&[("authority.pem", AUTHORITY_PEM)]);
    let upstream = Upstream::start_tls(tls_settings_offering(&["http/1.1"]), paths_in_http1);
    let subject = Subject::onehop(
        "",
        &format!(
            "\treverse_proxy https://localhost:{} {{\n\t\ttransport http {{\n\t\t\tversions 1.1 2\n\t\t\ttls_trust_pool file {}\n\t\t}}\n\t\tpool min 0\n\t}}",
            upstream.port(),
            folder.join("authority.pem").display()
        ),
    );
    let begun = Instant::now();
    let mut client = Http2::connect(&subject.address);
    let streams: Vec<u32> = (0..8).map(|_| client.request("GET", "/", &[], true)).collect();
    for stream in streams {
        client.wait_on(stream, "its response", |answer| answer.body == b"/ over HTTP/1.1");
    }
    // Longer than a request waits for a connection; until then none may be left behind.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn an_upstream_on_a_unix_socket_speaks_http_2_in_the_clear() {
    let folder = Folder::new();
    let path = folder.join("upstream.sock");
    let upstream = Upstream::start_unix(&path, paths);
    let subject = Subject::onehop("", &format!("\treverse_proxy unix+h2c/{}", path.display()));
    for _ in 0..2 {
        assert_eq!(subject.get("/a").0.text(), "/a over HTTP/2");
    }
    assert_eq!(upstream.requests(), 2);
}

#[test]
fn a_websocket_needs_the_upstreams_extended_connect() {
    // What comes on a tunnel goes back. An upstream without the setting gets no CONNECT.
    let tunnels = |settings: &'static [(u16, u32)]| {
        Upstream::start(move |connection| {
            let Some(mut server) = Http2Server::start(connection, settings) else { return };
            while let Some(frame) = server.frame() {
                let stream = frame.stream;
                match frame.kind {
                    kind::HEADERS => {
                        let Some(request) = server.head(&frame) else { return };
                        let is_tunnel = request.method() == "CONNECT"
                            && request.lines().any(|line| line == ":protocol: websocket");
                        let leaks = ["connection", "upgrade", "sec-websocket-key"];
                        if is_tunnel && leaks.iter().all(|name| request.field(name).is_none()) {
                            server.send(&[head(stream, "200")]);
                        } else {
                            server.respond(stream, "400", &request.head);
                        }
                    }
                    kind::DATA => drop(server.send(&[frame])),
                    _ => {}
                }
            }
        })
    };
    let upstream = tunnels(&[(setting::ENABLE_CONNECT_PROTOCOL, 1)]);
    let subject = before(&upstream, "");
    let mut client = tunnel(&subject);
    for text in ["one", "two", "three"] {
        expect_echo(&mut client, text);
    }
    let upstream = tunnels(&[]);
    let subject = before(&upstream, "");
    let (answer, _) = subject.ask("GET", "/tunnel", "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    assert_eq!((answer.status, upstream.requests()), (502, 0), "{}", answer.head);
}

#[test]
fn health_is_asked_for_over_http_2() {
    let is_well = Arc::new(AtomicBool::new(true));
    let well = Arc::clone(&is_well);
    let upstream = Upstream::start(move |connection| {
        let Some(mut server) = Http2Server::start(connection, &[]) else { return };
        while let Some((stream, request)) = server.request() {
            let fails = request.target() == "/health" && !well.load(Ordering::SeqCst);
            server.respond(stream, if fails { "503" } else { "200" }, "");
        }
    });
    let subject = before(&upstream, "\t\thealth_uri /health\n\t\thealth_interval 50ms");
    for (is_well_now, status) in [(true, 200), (false, 503), (true, 200)] {
        is_well.store(is_well_now, Ordering::SeqCst);
        wait_for(&format!("status {status}"), || (subject.get("/").0.status == status).then_some(()));
    }
    assert!(upstream.seen().iter().any(|request| request.target() == "/health"));
}

#[test]
fn a_client_that_cancels_resets_the_upstreams_stream_and_no_other() {
    let (sender, resets) = channel();
    let closed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&closed);
    let upstream = Upstream::start(move |connection| {
        let Some(mut server) = Http2Server::start(connection, &[]) else { return };
        while let Some(frame) = server.frame() {
            let stream = frame.stream;
            match frame.kind {
                kind::HEADERS => {
                    let Some(request) = server.head(&frame) else { return };
                    let part = [head(stream, "200"), Frame::new(kind::DATA, 0, stream, "part")];
                    match request.target() {
                        "/waits" => {}
                        "/begins" => drop(server.send(&part)),
                        _ => drop(server.respond(stream, "200", "served")),
                    }
                }
                kind::RST_STREAM => drop(sender.send(frame.number_at(0))),
                _ => {}
            }
        }
        count.fetch_add(1, Ordering::SeqCst);
    });
    let subject = before(&upstream, "");
    let mut client = Http2::connect(&subject.address);
    for path in ["/waits", "/begins"] {
        let seen = upstream.requests();
        let stream = client.request("GET", path, &[], true);
        if path == "/begins" {
            client.wait_on(stream, "a part", |answer| answer.body == b"part");
        }
        wait_for("the request", || (upstream.requests() > seen).then_some(()));
        client.send(&Frame::reset(stream, code::CANCEL));
        assert_eq!(resets.recv_timeout(TIMEOUT), Ok(code::CANCEL), "{path}");
        assert_eq!(client.get("/").text(), "served", "after {path}");
        assert_eq!(closed.load(Ordering::SeqCst), 0, "no connection is closed after {path}");
    }
}

#[test]
fn a_request_that_waits_for_a_stream_goes_on_when_more_are_allowed() {
    let upstream = Upstream::start(|connection| {
        let one = [(setting::MAX_CONCURRENT_STREAMS, 1)];
        let Some(mut server) = Http2Server::start(connection, &one) else { return };
        let mut first = None;
        while let Some(frame) = server.frame() {
            match (frame.kind, first) {
                (kind::HEADERS, None) => {
                    first = Some(frame.stream);
                    if server.head(&frame).is_none() {
                        return;
                    }
                }
                // The second comes while the first has no response.
                (kind::HEADERS, Some(first)) => {
                    let Some(request) = server.head(&frame) else { return };
                    server.respond(frame.stream, "200", request.target());
                    server.respond(first, "200", "first");
                }
                (kind::DATA, _) => {
                    server.send(&[Frame::settings(&[(setting::MAX_CONCURRENT_STREAMS, 2)])]);
                }
                _ => {}
            }
        }
    });
    let subject = before(&upstream, "\t\ttransport http {\n\t\t\tmax_conns_per_host 1\n\t\t}");
    let mut client = Http2::connect(&subject.address);
    let first = client.request("POST", "/first", &[], false);
    wait_for("the first request", || (upstream.requests() == 1).then_some(()));
    let second = client.request("GET", "/second", &[], true);
    let waiting = format!("onehop_upstream_waiting{{upstream=\"{}\"}} 1", upstream.address());
    wait_for(&waiting, || subject.metrics().contains(&waiting).then_some(()));
    client.send(&Frame::new(kind::DATA, 0, first, "part"));
    client.wait_on(second, "the second response", |answer| answer.body == b"/second");
    client.wait_on(first, "the first response", |answer| answer.body == b"first");
    subject.expect_no_fault();
}

#[test]
fn a_connection_gets_no_request_after_its_goaway() {
    let late = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&late);
    let upstream = Upstream::start(move |connection| {
        let Some(mut server) = Http2Server::start(connection, &[]) else { return };
        let mut served = 0;
        while let Some((stream, _)) = server.request() {
            served += 1;
            if served > 2 {
                count.fetch_add(1, Ordering::SeqCst);
            }
            let mut frames = response(stream, "200", "served").to_vec();
            frames.extend((served == 2).then(|| goaway(stream)));
            server.send(&frames);
        }
    });
    let subject = before(&upstream, "");
    let mut client = subject.connect();
    for number in 0..10 {
        // One that is not sent twice.
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
        let answer = client.read();
        assert_eq!((answer.status, answer.text()), (200, "served"), "request {number}: {}", answer.head);
    }
    assert_eq!((upstream.requests(), late.load(Ordering::SeqCst)), (10, 0));
    subject.expect_no_fault();
}

#[test]
fn a_request_that_the_upstream_has_not_begun_is_sent_again_whatever_its_method() {
    let refused = Mutex::new(HashSet::new());
    let upstream = Upstream::start(move |connection| {
        let Some(mut server) = Http2Server::start(connection, &[]) else { return };
        while let Some((stream, request)) = server.request() {
            let is_first = refused.lock().expect("a set").insert(request.target().to_owned());
            match request.target() {
                "/goaway" if is_first => drop(server.send(&[goaway(0)])),
                "/refused" if is_first => drop(server.send(&[Frame::reset(stream, code::REFUSED_STREAM)])),
                "/reset" => drop(server.send(&[Frame::reset(stream, code::INTERNAL_ERROR)])),
                target => drop(server.respond(stream, "200", target)),
            }
        }
    });
    let subject = before(&upstream, "");
    for (path, status, requests) in [("/goaway", 200, 2), ("/refused", 200, 2), ("/reset", 502, 1)] {
        let before = upstream.requests();
        let mut client = subject.connect();
        client.send(format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"));
        let answer = client.read();
        assert_eq!((answer.status, upstream.requests() - before), (status, requests), "{path}");
    }
}
