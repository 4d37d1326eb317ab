//! Clients that hold what the server gave them: windows that never open, sockets that nobody reads, heads without end.
//!
//! Each holds bounded memory, and others are served meanwhile.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use onehop_testkit::http2::{Frame, Http2, PREFACE, flag, kind, literals, setting};
use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Folder, TIMEOUT, wait_for};
use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
use rustix::process::Signal;

use crate::subject::{MIB, Subject, clear, content, encrypted};

fn with_file() -> (Subject, Vec<u8>) {
    let content = content(8 * MIB);
    let folder = Folder::new();
    folder.write("files/large.bin", &content);
    folder.write("files/small.txt", "small");
    let subject = Subject::start_in(folder, "\tthreads 2", &clear("\troot files\n\tfile_server"));
    // What a first request of each core allocates is there before anything is measured.
    for _ in 0..8 {
        assert!(subject.connect().get("/large.bin").body == content);
    }
    (subject, content)
}

/// Checks how much more is resident than before.
fn grown_less_than(subject: &Subject, before: usize, most: usize, what: &str) {
    let grown = subject.resident_bytes().saturating_sub(before);
    println!("{what}: {} KiB more", grown / 1024);
    assert!(grown < most, "{what}: {} KiB more", grown / 1024);
}

/// A thousand streams on ten connections, none of whose windows opens.
fn stalled(connect: impl Fn() -> Http2, path: &str) -> Vec<Http2> {
    (0..10)
        .map(|_| {
            let mut client = connect();
            client.takes_all = false;
            let streams: Vec<u32> = (0..100).map(|_| client.request("GET", path, &[], true)).collect();
            for stream in streams {
                let answer = client.wait_on(stream, "a head", |answer| answer.status != 0);
                assert_eq!((answer.status, answer.body.len()), (200, 0));
            }
            client
        })
        .collect()
}

#[test]
fn a_thousand_streams_without_a_window_hold_little_memory() {
    let (subject, content) = with_file();
    let before = subject.resident_bytes();
    let clients = stalled(|| subject.connect_with(&[(setting::INITIAL_WINDOW_SIZE, 0)]), "/large.bin");
    assert!(subject.connect().get("/large.bin").body == content);
    // The first piece of each, and what belongs to a stream.
    grown_less_than(&subject, before, 1000 * 32 * 1024, "files");
    drop(clients);
    assert!(subject.connect().get("/large.bin").body == content);
}

#[test]
fn a_thousand_proxied_streams_without_a_window_hold_bounded_memory() {
    let upstream = Upstream::answering(|request| {
        let length = if request.target() == "/small" { 5 } else { MIB };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        [head.into_bytes(), vec![b'x'; length]].concat()
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    assert_eq!(subject.connect().get("/small").body.len(), 5);
    let before = subject.resident_bytes();
    let clients = stalled(|| subject.connect_with(&[(setting::INITIAL_WINDOW_SIZE, 0)]), "/large");
    assert_eq!(subject.connect().get("/small").body.len(), 5);
    // Of each response 64 KiB may wait, not a megabyte.
    grown_less_than(&subject, before, 1000 * 96 * 1024, "proxied");
    drop(clients);
    wait_for("the end of the upstream's exchanges", || (upstream.used_and_open() <= 8).then_some(()));
}

/// A connection in clear text with a small buffer in the kernel, on which large windows are open and so many requests sent.
fn slow_reader(subject: &Subject, requests: u32) -> TcpStream {
    let address: std::net::SocketAddr = subject.address().parse().expect("an address");
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    sockopt::set_socket_recv_buffer_size(&socket, 4096).expect("its buffer");
    connect(&socket, &address).expect("connected");
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let mut bytes = PREFACE.to_vec();
    bytes.extend(Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 30)]).bytes());
    bytes.extend(Frame::window_update(0, 1 << 30).bytes());
    for stream in (1..requests * 2).step_by(2) {
        let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/large.bin")];
        let flags = flag::END_HEADERS | flag::END_STREAM;
        bytes.extend(Frame::new(kind::HEADERS, flags, stream, literals(&fields)).bytes());
    }
    stream.write_all(&bytes).expect("sent");
    let first = Frame::read(&mut stream).expect("a frame");
    assert_eq!(first.kind, kind::SETTINGS);
    stream
}

#[test]
fn connections_that_are_not_read_hold_little_memory() {
    let (subject, content) = with_file();
    let before = subject.resident_bytes();
    let mut slow: Vec<TcpStream> = (0..50).map(|_| slow_reader(&subject, 100)).collect();
    for _ in 0..3 {
        assert!(subject.connect().get("/large.bin").body == content);
    }
    // 5,000 streams wait on 50 connections, each with its first piece.
    grown_less_than(&subject, before, 5000 * 32 * 1024, "slow readers");
    // One that reads again gets what it asked for.
    let mut last = slow.pop().expect("a slow reader");
    let mut rest = vec![0; 4 * MIB];
    last.read_exact(&mut rest).expect("the responses go on");
}

#[test]
fn a_response_that_is_read_slowly_is_whole_although_the_server_stops() {
    let content = content(MIB / 2);
    let folder = Folder::new();
    folder.write("files/large.bin", &content);
    let mut subject = Subject::start_in(folder, "\tgrace_period 30s", &clear("\troot files\n\tfile_server"));
    let mut slow = slow_reader(&subject, 1);
    subject.onehop.process.signal(Signal::TERM);
    subject.onehop.process.wait_for_event("stopping");
    let mut body: Vec<u8> = Vec::new();
    loop {
        let frame =
            Frame::read(&mut slow).unwrap_or_else(|error| panic!("{error} after {} bytes", body.len()));
        match frame.kind {
            kind::DATA => body.extend(&frame.payload),
            kind::RST_STREAM => panic!("{frame:?} after {} bytes", body.len()),
            _ => {}
        }
        if frame.kind == kind::DATA && frame.has(flag::END_STREAM) {
            break;
        }
        // What the server has left takes longer than it waits for a client that takes nothing.
        std::thread::sleep(Duration::from_millis(if body.len() > MIB / 4 { 200 } else { 0 }));
        // Clients that measure the path go on with it.
        let _ = slow.write_all(&Frame::new(kind::PING, 0, 0, [0; 8]).bytes());
    }
    assert!(body == content, "{} bytes", body.len());
    drop(slow);
    let status = subject.onehop.process.wait().expect("it ends");
    assert!(status.success(), "{status}");
}

#[test]
fn idle_connections_hold_little_memory() {
    let (subject, _) = with_file();
    let before = subject.resident_bytes();
    let mut idle: Vec<Http2> = (0..400).map(|_| subject.connect()).collect();
    for client in &mut idle {
        assert_eq!(client.get("/small.txt").text(), "small");
    }
    grown_less_than(&subject, before, 400 * 64 * 1024, "idle connections");
    for client in &mut idle {
        assert_eq!(client.get("/small.txt").text(), "small");
        assert!(client.goaways.is_empty());
    }
}

#[test]
fn heads_without_an_end_are_given_up() {
    let (subject, _) = with_file();
    let unfinished: Vec<(TcpStream, usize)> = (0..20)
        .map(|number| {
            let mut stream = TcpStream::connect(subject.address()).expect("connected");
            stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
            let settings = Frame::settings(&[]).bytes();
            let head = Frame::new(kind::HEADERS, flag::END_STREAM, 1, [0x82, 0x86]).bytes();
            let all = [PREFACE, &settings, &head].concat();
            // Ends within a frame, and between HEADERS and CONTINUATION.
            let end = [PREFACE.len() + 4, all.len() - 1, all.len()][number % 3];
            stream.write_all(&all[..end]).expect("sent");
            (stream, end)
        })
        .collect();
    assert_eq!(subject.connect().get("/small.txt").text(), "small");
    let begun = Instant::now();
    let open = unfinished.into_iter().filter_map(|(mut stream, end)| {
        let rest = TIMEOUT.saturating_sub(begun.elapsed()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(rest)).expect("a timeout");
        let error = stream.read_to_end(&mut Vec::new()).err()?;
        (!onehop_testkit::http2::is_end(&error)).then_some(end)
    });
    let open: Vec<usize> = open.collect();
    assert!(open.is_empty(), "connections that ended after so many octets are still open: {open:?}");
    assert_eq!(subject.connect().get("/small.txt").text(), "small");
}

#[test]
fn uploads_that_nobody_reads_hold_no_more_than_their_windows() {
    // The upstream takes heads and no bodies.
    let (hold, held) = channel::<()>();
    let held = Mutex::new(held);
    let upstream = Upstream::start(move |connection| {
        while let Some(request) = connection.head() {
            if request.method() == "GET" {
                connection.answer("200 OK", "", "small");
            } else {
                // Until this end is dropped with the upstream, nothing is read.
                let _ = held.lock().expect("a receiver").recv();
                return;
            }
        }
    });
    let site = encrypted(&format!("\treverse_proxy {}", upstream.address()));
    let subject = Subject::start_in(Folder::new(), "", &site);
    assert_eq!(subject.connect_tls("localhost").get("/").text(), "small");
    let before = subject.resident_bytes();
    let mut clients: Vec<Http2> = (0..10).map(|_| subject.connect_tls("localhost")).collect();
    for client in &mut clients {
        client.ping();
        let windows = client.send_windows();
        let streams: Vec<u32> = (0..50).map(|_| client.request("POST", "/", &[], false)).collect();
        // As much as the windows allow, and no more.
        let mut rest = windows.0;
        for stream in streams {
            let now = rest.min(windows.1);
            rest -= now;
            client.upload(stream, &vec![0; now], false);
        }
    }
    assert_eq!(subject.connect_tls("localhost").get("/").text(), "small");
    // Windows of 2 MiB for each connection, and what belongs to each of 500 exchanges with the upstream.
    grown_less_than(&subject, before, 10 * 2 * MIB + 500 * 160 * 1024, "uploads");
    drop(hold);
}
