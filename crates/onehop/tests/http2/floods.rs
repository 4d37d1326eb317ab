//! Clients that send much of what costs them little: each flood ends its connection within a bound, holds little memory,
//! and keeps nobody else from being served.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use onehop_testkit::TIMEOUT;
use onehop_testkit::http2::{Frame, GoAway, PREFACE, code, flag, integer, kind, literals};
use onehop_testkit::upstream::Upstream;

use crate::subject::{MIB, Subject};

/// Memory that a server may have more during and after any flood: what allocators keep, and a connection's bounds.
const GROWTH_BYTES_MAX: usize = 24 * MIB;

/// Each flood ends within this time on a busy machine; a fraction of it elsewhere.
const FLOOD_MAX: Duration = Duration::from_secs(20);

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":authority", "localhost"), (":path", "/")];

/// What is sent on one stream.
type Round = fn(u32) -> Vec<u8>;

/// What became of a flood.
#[derive(Debug)]
struct Outcome {
    /// Rounds that the kernel took.
    rounds: u32,
    /// Whether the server ended the connection.
    has_ended: bool,
    goaways: Vec<GoAway>,
}

impl Outcome {
    /// Checks that the connection ended with one of these codes.
    fn ended_with(&self, codes: &[u32]) {
        let last = self.goaways.last().map(|goaway| goaway.code);
        // What the server said may be lost where it closes a connection on which more arrives (RFC 9113 section 5.4.1).
        let is_right = last.is_none_or(|last| codes.contains(&last));
        assert!(self.has_ended && is_right, "{self:?}");
    }
}

/// Sends rounds until the connection ends or all are sent, and reads meanwhile; others are served all the time.
fn flood(subject: &Subject, rounds: u32, round: impl Fn(u32) -> Vec<u8> + Sync) -> Outcome {
    let mut other = subject.connect();
    assert_eq!(other.get("/other").status, 200);
    let before = subject.resident_bytes();
    let begun = Instant::now();
    let is_over = AtomicBool::new(false);
    let (mut outcome, most) = std::thread::scope(|scope| {
        let flooding = scope.spawn(|| {
            let outcome = flood_connection(subject.address(), rounds, &round);
            is_over.store(true, Ordering::SeqCst);
            outcome
        });
        let mut most = 0;
        while !is_over.load(Ordering::SeqCst) {
            let asked = Instant::now();
            assert_eq!(other.get("/other").status, 200);
            assert!(asked.elapsed() < Duration::from_secs(5), "another client waited {:?}", asked.elapsed());
            most = most.max(subject.resident_bytes());
        }
        (flooding.join().expect("a flood"), most)
    });
    assert_eq!(subject.connect().get("/other").status, 200);
    let grown = most.max(subject.resident_bytes()).saturating_sub(before);
    assert!(grown < GROWTH_BYTES_MAX, "{} KiB more, {outcome:?}", grown / 1024);
    assert!(begun.elapsed() < FLOOD_MAX, "{:?}, {outcome:?}", begun.elapsed());
    outcome.goaways.dedup();
    outcome
}

fn flood_connection(address: &str, rounds: u32, round: &dyn Fn(u32) -> Vec<u8>) -> Outcome {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
    let mut reader = stream.try_clone().expect("a descriptor");
    let reading = std::thread::spawn(move || {
        let mut goaways = Vec::new();
        loop {
            match Frame::read(&mut reader) {
                Ok(frame) if frame.kind == kind::GOAWAY => goaways.push(GoAway {
                    last_stream: frame.number_at(0),
                    code: frame.number_at(4),
                    text: String::from_utf8_lossy(frame.payload.get(8..).unwrap_or_default()).into_owned(),
                }),
                Ok(_) => {}
                Err(_) => return goaways,
            }
        }
    });
    let mut begin = PREFACE.to_vec();
    begin.extend(Frame::settings(&[]).bytes());
    stream.write_all(&begin).expect("sent");
    let sent = (0..rounds).take_while(|number| stream.write_all(&round(*number)).is_ok()).count();
    let has_ended = sent < rounds as usize;
    if !has_ended {
        // What is answered late is waited for; the server sees the end of what we send.
        let _ = stream.shutdown(Shutdown::Write);
    }
    let goaways = reading.join().expect("a reader");
    let has_ended = has_ended || goaways.iter().any(|goaway| goaway.code != code::NO_ERROR);
    Outcome { rounds: u32::try_from(sent).unwrap_or(u32::MAX), has_ended, goaways }
}

/// An upstream that answers `/other` and keeps all else waiting.
fn waiting() -> (Upstream, Subject) {
    let upstream = Upstream::start(|connection| {
        while let Some(request) = connection.request() {
            if request.target() == "/other" {
                connection.answer("200 OK", "", "served");
            } else {
                connection.wait_for_end();
                return;
            }
        }
    });
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    (upstream, subject)
}

fn fixed() -> Subject {
    Subject::start("\trespond hello")
}

fn stream_of(round: u32) -> u32 {
    round * 2 + 1
}

fn headers(stream: u32, flags: u8) -> Vec<u8> {
    Frame::new(kind::HEADERS, flags, stream, literals(&GET)).bytes()
}

/// A request that is complete.
fn get(stream: u32) -> Vec<u8> {
    headers(stream, flag::END_HEADERS | flag::END_STREAM)
}

/// A request whose body is to come.
fn post(stream: u32) -> Vec<u8> {
    headers(stream, flag::END_HEADERS)
}

#[test]
fn rapid_reset_ends_the_connection() {
    // CVE-2023-44487: what a stream has begun goes on after its reset, while the client opens the next one.
    let reset =
        |round| [get(stream_of(round)), Frame::reset(stream_of(round), code::CANCEL).bytes()].concat();
    let (upstream, subject) = waiting();
    let outcome = flood(&subject, 20_000, reset);
    outcome.ended_with(&[code::ENHANCE_YOUR_CALM]);
    assert!(upstream.accepted() < 2000, "{} connections to the upstream", upstream.accepted());
    flood(&fixed(), 20_000, reset).ended_with(&[code::ENHANCE_YOUR_CALM]);
}

#[test]
fn streams_that_the_server_is_made_to_reset_end_the_connection() {
    // CVE-2025-8671: the same without a reset of the client's own, which counting the client's resets misses.
    let made: [(&str, Round); 4] = [
        ("WINDOW_UPDATE of 0", |stream| [get(stream), Frame::window_update(stream, 0).bytes()].concat()),
        ("a window beyond 2^31-1", |stream| {
            [get(stream), Frame::window_update(stream, 0x7fff_ffff).bytes()].concat()
        }),
        ("a body of another length", |stream| {
            let fields = literals(&[&GET[..], &[("content-length", "5")]].concat());
            let head = Frame::new(kind::HEADERS, flag::END_HEADERS, stream, fields).bytes();
            [head, Frame::new(kind::DATA, flag::END_STREAM, stream, *b"abc").bytes()].concat()
        }),
        ("a malformed request", |stream| {
            let fields = literals(&[&GET[..], &[("Upper", "case")]].concat());
            Frame::new(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, fields).bytes()
        }),
    ];
    for (what, round) in made {
        let (upstream, subject) = waiting();
        let outcome = flood(&subject, 20_000, |number| round(stream_of(number)));
        println!("{what}: {} rounds, {:?}", outcome.rounds, outcome.goaways);
        // h2 ends a connection at once whose client opens a window by 0 (RFC 9113 section 5.4.1 allows that).
        outcome.ended_with(&[code::ENHANCE_YOUR_CALM, code::PROTOCOL_ERROR]);
        assert!(upstream.accepted() < 2000, "{what}: {} connections to the upstream", upstream.accepted());
    }
}

#[test]
fn data_beyond_the_end_of_streams_ends_the_connection() {
    let (_upstream, subject) = waiting();
    let outcome = flood(&subject, 20_000, |round| {
        let stream = stream_of(round);
        [get(stream), Frame::new(kind::DATA, 0, stream, *b"x").bytes()].concat()
    });
    // RFC 9113 section 5.1 names STREAM_CLOSED; h2 takes the first such frame for a PROTOCOL_ERROR of the connection.
    outcome.ended_with(&[code::ENHANCE_YOUR_CALM, code::STREAM_CLOSED, code::PROTOCOL_ERROR]);
}

#[test]
fn a_flood_of_continuation_frames_ends_the_connection() {
    // CVE-2024-27316 and its relatives: a field block without end.
    let (small, large) = ("y".repeat(5), "y".repeat(16_000));
    for fields in [&[][..], &[("x", small.as_str())], &[("x", large.as_str())]] {
        let block = literals(fields);
        let outcome = flood(&fixed(), 50_000, |round| match round {
            0 => headers(1, flag::END_STREAM),
            _ => Frame::new(kind::CONTINUATION, 0, 1, block.clone()).bytes(),
        });
        println!("{} octets: {} rounds, {:?}", block.len(), outcome.rounds, outcome.goaways);
        outcome.ended_with(&[code::ENHANCE_YOUR_CALM]);
    }
}

/// A block that puts a field of 4,000 octets into the table, and then names it so many times.
fn bomb(times: usize) -> Vec<u8> {
    let mut block = literals(&GET);
    block.push(0x40);
    integer(&mut block, 0, 7, 1);
    block.push(b'a');
    integer(&mut block, 0, 7, 4000);
    block.extend([b'b'; 4000]);
    block.extend(std::iter::repeat_n(0x80 | 62, times));
    block
}

#[test]
fn a_field_block_that_unpacks_to_much_is_refused() {
    let outcome = flood(&fixed(), 300, |round| {
        // 12,000 octets that stand for 48 MB of fields.
        let flags = flag::END_HEADERS | flag::END_STREAM;
        Frame::new(kind::HEADERS, flags, stream_of(round), bomb(12_000)).bytes()
    });
    println!("{outcome:?}");
    outcome.ended_with(&[code::ENHANCE_YOUR_CALM]);
    // Twice of what is accepted: the request alone is refused.
    let subject = fixed();
    let mut client = subject.connect();
    let stream = client.open_in_pieces(&bomb(20));
    let answer = client.answer(stream);
    assert!(answer.status == 431 || answer.reset.is_some(), "{answer:?}");
}

#[test]
fn a_flood_of_settings_ends_the_connection_or_is_no_burden() {
    for settings in [&[][..], &[(4, 70_000)], &[(1, 0), (1, 4096)]] {
        let many = Frame::settings(settings).bytes().repeat(100);
        let outcome = flood(&fixed(), 5000, |_| many.clone());
        println!("{settings:?}: {} rounds, {:?}", outcome.rounds, outcome.goaways);
        outcome.ended_with(&[code::ENHANCE_YOUR_CALM]);
    }
}

#[test]
fn a_flood_of_pings_ends_the_connection() {
    let many = Frame::new(kind::PING, 0, 0, [7; 8]).bytes().repeat(100);
    let outcome = flood(&fixed(), 5000, |_| many.clone());
    println!("{} rounds, {:?}", outcome.rounds, outcome.goaways);
    outcome.ended_with(&[code::ENHANCE_YOUR_CALM]);
}

#[test]
fn a_flood_of_empty_data_ends_the_connection() {
    let (_upstream, subject) = waiting();
    for payload in [&b""[..], b"\0"] {
        let flags = if payload.is_empty() { 0 } else { flag::PADDED };
        let many = Frame::new(kind::DATA, flags, 1, payload).bytes().repeat(100);
        let outcome = flood(&subject, 5000, |round| if round == 0 { post(1) } else { many.clone() });
        println!("{payload:?}: {} rounds, {:?}", outcome.rounds, outcome.goaways);
        // Padding counts for windows, which end before the frames do (RFC 9113 section 6.9.1).
        outcome.ended_with(&[code::ENHANCE_YOUR_CALM, code::FLOW_CONTROL_ERROR]);
    }
}

#[test]
fn a_flood_of_frames_that_change_nothing_ends_the_connection() {
    let frames = [
        ("PRIORITY_UPDATE", Frame::new(kind::PRIORITY_UPDATE, 0, 0, *b"\0\0\0\x01u=1")),
        ("PRIORITY", Frame::new(kind::PRIORITY, 0, 1, [0, 0, 0, 0, 9])),
        ("WINDOW_UPDATE of the connection", Frame::window_update(0, 1)),
        ("WINDOW_UPDATE of a stream", Frame::window_update(1, 1)),
        ("an unknown type", Frame::new(0xbb, 0, 0, [])),
    ];
    for (what, frame) in frames {
        let (_upstream, subject) = waiting();
        let many = frame.bytes().repeat(100);
        let outcome = flood(&subject, 5000, |round| if round == 0 { get(1) } else { many.clone() });
        println!("{what}: {} rounds, {:?}", outcome.rounds, outcome.goaways);
        outcome.ended_with(&[code::ENHANCE_YOUR_CALM]);
    }
}

#[test]
fn a_flood_of_resets_of_streams_that_are_over_ends_the_connection() {
    let many = Frame::reset(1, code::CANCEL).bytes().repeat(100);
    let outcome = flood(&fixed(), 5000, |round| if round == 0 { get(1) } else { many.clone() });
    println!("{} rounds, {:?}", outcome.rounds, outcome.goaways);
    outcome.ended_with(&[code::ENHANCE_YOUR_CALM, code::STREAM_CLOSED]);
}
