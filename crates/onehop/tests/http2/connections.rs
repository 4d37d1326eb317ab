//! The life of a connection: its settings, reloads, the server's stop, and connections over which nothing comes.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use onehop_testkit::http2::{FRAME_BYTES_MAX, Frame, Http2, PREFACE, code, kind, setting};
use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Folder, wait_for};
use rustix::process::Signal;

use crate::subject::{Subject, clear, encrypted};

/// An upstream that answers `/slow` at a signal, half of it at once, and all else immediately.
fn holding() -> (Upstream, Sender<()>) {
    let (go_on, signalled): (Sender<()>, Receiver<()>) = channel();
    let signalled = Mutex::new(signalled);
    let upstream = Upstream::start(move |connection| {
        while let Some(request) = connection.request() {
            if request.target() == "/slow" {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
                let _ = signalled.lock().expect("a receiver").recv();
                connection.send("half");
            } else {
                connection.answer("200 OK", "", "at once");
            }
        }
    });
    (upstream, go_on)
}

#[test]
fn the_first_frame_is_settings_within_their_bounds() {
    let subject = Subject::start("\trespond hello");
    let mut client = subject.connect();
    let first = client.pump().expect("a frame");
    assert_eq!((first.kind, first.flags, first.stream), (kind::SETTINGS, 0, 0));
    let settings = client.settings.clone();
    let streams = settings.get(&setting::MAX_CONCURRENT_STREAMS).copied();
    assert!(streams.is_some_and(|streams| (100..=1000).contains(&streams)), "{settings:?}");
    let list = settings.get(&setting::MAX_HEADER_LIST_SIZE).copied();
    assert!(list.is_some_and(|bytes| bytes <= 128 * 1024), "{settings:?}");
    // RFC 9113 section 6.5.2: a server has no other value for push; RFC 8441 section 3.
    assert!(settings.get(&setting::ENABLE_PUSH).is_none_or(|push| *push == 0), "{settings:?}");
    assert_eq!(settings.get(&setting::ENABLE_CONNECT_PROTOCOL), Some(&1), "{settings:?}");
    client.wait_for("an acknowledgement", |client| (client.acks == 1).then_some(()));
}

#[test]
fn streams_beyond_the_setting_are_refused_and_the_others_answered() {
    let (upstream, go_on) = holding();
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    client.ping();
    let most = client.settings[&setting::MAX_CONCURRENT_STREAMS];
    let streams: Vec<u32> = (0..most).map(|_| client.request("GET", "/slow", &[], true)).collect();
    let beyond = client.request("GET", "/at-once", &[], true);
    // RFC 9113 section 5.1.2.
    let refused = client.answer(beyond);
    let codes = [Some(code::REFUSED_STREAM), Some(code::PROTOCOL_ERROR)];
    assert!(codes.contains(&refused.reset), "{refused:?}");
    for _ in &streams {
        go_on.send(()).expect("the upstream's script");
    }
    for stream in streams {
        assert_eq!(client.answer(stream).text(), "halfhalf");
    }
    assert_eq!(client.get("/").text(), "at once");
}

#[test]
fn streams_beyond_the_first_count_as_connections_in_what_memory_allows() {
    let (upstream, _go_on) = holding();
    let site = clear(&format!("\treverse_proxy {}", upstream.address()));
    // Beside files and the server itself 5 MiB are left: 160 connections.
    let subject = Subject::start_in(Folder::new(), "\tmemory 17MiB files 4MiB", &site);
    let (mut one, mut other) = (subject.connect(), subject.connect());
    let begin = |client: &mut Http2| {
        let stream = client.request("GET", "/slow", &[], true);
        client.wait_on(stream, "a part, or a refusal", |answer| answer.body == b"half" || answer.is_over())
    };
    // Streams are counted in powers of two: 63 more of each connection, then 127.
    for client in [&mut one, &mut other] {
        for _ in 0..64 {
            assert_eq!(begin(client).reset, None);
        }
    }
    assert_eq!(begin(&mut other).reset, Some(code::REFUSED_STREAM));
    for stream in (1..128).step_by(2) {
        one.send(&Frame::reset(stream, code::CANCEL));
    }
    wait_for("room for a stream", || begin(&mut other).reset.is_none().then_some(()));
}

#[test]
fn a_ping_is_answered_with_its_own_octets() {
    let subject = Subject::start("\trespond hello");
    let mut client = subject.connect();
    client.send(&Frame::new(kind::PING, 0, 0, *b"octets!!"));
    loop {
        let frame = client.pump().expect("a frame");
        if frame.kind == kind::PING {
            assert_eq!((frame.flags, frame.payload.as_slice()), (1, &b"octets!!"[..]));
            return;
        }
    }
}

#[test]
fn frames_of_unknown_types_and_settings_are_ignored() {
    let subject = Subject::start("\trespond hello");
    let mut client = subject.connect_with(&[(0xaaaa, 5), (9, 1)]);
    client.send(&Frame::new(0xbb, 0xff, 0, *b"grease"));
    client.send(&Frame::new(0xbb, 0xff, 7, vec![0; FRAME_BYTES_MAX]));
    client.send(&Frame::new(kind::PRIORITY, 0, 3, [0, 0, 0, 0, 200]));
    client.send(&Frame::new(kind::PRIORITY_UPDATE, 0, 0, *b"\0\0\0\x01u=1, i"));
    let answer = client.ask("GET", "/", &[("priority", "u=0, i")]);
    assert_eq!(answer.text(), "hello");
}

#[test]
fn a_stop_lets_streams_in_flight_end() {
    let (upstream, go_on) = holding();
    let directives = format!("\treverse_proxy {}", upstream.address());
    let globals = "\tgrace_period 20s";
    let check = |mut subject: Subject, mut client: Http2| {
        let stream = client.request("GET", "/slow", &[], true);
        client.wait_on(stream, "a part", |answer| answer.body == b"half");
        subject.onehop.process.signal(Signal::TERM);
        subject.onehop.process.wait_for_event("stopping");
        // RFC 9113 section 6.8: first that no more streams are to come, then which was the last.
        client.wait_for("a first GOAWAY", |client| (!client.goaways.is_empty()).then_some(()));
        client.ping();
        assert!(!client.seen(stream).is_over());
        go_on.send(()).expect("the upstream's script");
        assert_eq!(client.answer(stream).text(), "halfhalf");
        let goaways = client.read_to_end();
        assert!(goaways.iter().all(|goaway| goaway.code == code::NO_ERROR), "{goaways:?}");
        assert!(goaways.len() >= 2, "{goaways:?}");
        assert_eq!(goaways[0].last_stream, 0x7fff_ffff, "{goaways:?}");
        assert_eq!(goaways.last().expect("a frame").last_stream, stream, "{goaways:?}");
        let status = subject.onehop.process.wait().expect("it ends");
        assert!(status.success(), "{status}");
    };
    let subject = Subject::start_in(Folder::new(), globals, &clear(&directives));
    let client = subject.connect();
    check(subject, client);
    let subject = Subject::start_in(Folder::new(), globals, &encrypted(&directives));
    let client = subject.connect_tls("localhost");
    check(subject, client);
}

#[test]
fn a_stop_ends_connections_without_streams_at_once() {
    let mut subject = Subject::start_in(Folder::new(), "\tgrace_period 20s", &clear("\trespond hello"));
    let mut used = subject.connect();
    assert_eq!(used.get("/").text(), "hello");
    let mut unused = subject.connect();
    unused.ping();
    subject.onehop.process.signal(Signal::TERM);
    for client in [&mut used, &mut unused] {
        let goaways = client.read_to_end();
        assert!(goaways.last().is_some_and(|goaway| goaway.code == code::NO_ERROR), "{goaways:?}");
    }
    let status = subject.onehop.process.wait().expect("it ends");
    assert!(status.success(), "{status}");
}

#[test]
fn a_reload_that_changes_no_listener_keeps_connections_and_their_streams() {
    let (upstream, go_on) = holding();
    let directives = |text: &str| {
        format!("\thandle /text {{\n\t\trespond {text}\n\t}}\n\treverse_proxy {}", upstream.address())
    };
    let check = |subject: &Subject, mut client: Http2, site: fn(&str) -> String| {
        assert_eq!(client.get("/text").text(), "old");
        let stream = client.request("GET", "/slow", &[], true);
        client.wait_on(stream, "a part", |answer| answer.body == b"half");
        subject.reload("", &site(&directives("new")));
        assert_eq!(client.get("/text").text(), "new");
        go_on.send(()).expect("the upstream's script");
        assert_eq!(client.answer(stream).text(), "halfhalf");
        assert_eq!(client.get("/text").text(), "new");
        assert!(client.goaways.is_empty(), "{:?}", client.goaways);
    };
    let subject = Subject::start(&directives("old"));
    let client = subject.connect();
    check(&subject, client, clear);
    let subject = Subject::start_in(Folder::new(), "", &encrypted(&directives("old")));
    let client = subject.connect_tls("localhost");
    check(&subject, client, encrypted);
}

#[test]
fn a_preface_that_is_none_ends_the_connection() {
    let subject = Subject::start("\trespond hello");
    let mut wrong = PREFACE.to_vec();
    wrong[20] = b'X';
    let mut client = subject.connect_http1();
    client.send(wrong);
    client.read_to_end();
    // Over TLS the protocol is known before the first octet.
    let subject = Subject::start_in(Folder::new(), "", &encrypted("\trespond hello"));
    let connection = subject.handshake("localhost", &["h2"]).expect("a connection");
    let mut client = onehop_testkit::Client::over_tls(connection, "localhost");
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let came = client.read_to_end();
    assert!(!came.starts_with(b"HTTP/"), "{:?}", String::from_utf8_lossy(&came));
}

#[test]
fn what_a_client_says_goodbye_with_ends_its_connection_after_its_streams() {
    let (upstream, go_on) = holding();
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    let stream = client.request("GET", "/slow", &[], true);
    client.wait_on(stream, "a part", |answer| answer.body == b"half");
    client.send(&Frame::new(kind::GOAWAY, 0, 0, [0; 8]));
    client.ping();
    go_on.send(()).expect("the upstream's script");
    assert_eq!(client.answer(stream).text(), "halfhalf");
}
