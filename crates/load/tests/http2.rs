//! The load and the one-request client over HTTP/2, against servers of this process: one that sends frames as a test says,
//! and one of the `h2` crate.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use onehop_load::http2::Http2Seen;
use onehop_load::plan::{Arrivals, Expect, Pace, Phase, Protocol, Request, Reuse, Spacing, Timeouts, Until};
use onehop_load::{Address, Client, Plan, RequestError, Run, Unobserved, Url};

const NO_ERROR: u32 = 0;
const REFUSED_STREAM: u32 = 7;
const ENHANCE_YOUR_CALM: u32 = 11;

/// What the server does for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// A whole response of this body.
    Answer(&'static [u8]),
    /// A head that promises so many bytes, fewer of them, and the end of the stream.
    Short(u8),
    /// A head, a part of the body, and the end of the connection.
    Cut,
    /// RST_STREAM.
    Reset(u32),
    /// GOAWAY with this code, whose last stream is so many requests before this one; the connection stays.
    GoAway(u32, u32),
    /// The end of the connection.
    Close,
    /// Nothing.
    Wait,
}

/// What the server saw.
#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    requests: AtomicUsize,
    cancelled: AtomicUsize,
}

/// A server that sends frames. `script` is asked for each request: which connection, and which request on it, from 0.
struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
}

impl Server {
    fn start(script: impl Fn(usize, u32) -> Vec<Step> + Send + Sync + 'static) -> Server {
        Server::allowing(None, script)
    }

    fn allowing(
        streams: Option<u32>,
        script: impl Fn(usize, u32) -> Vec<Step> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let (script, of_thread) = (Arc::new(script), Arc::clone(&seen));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&of_thread));
                let number = seen.connections.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || serve(stream, streams, &seen, |request| script(number, request)));
            }
        });
        Server { address, seen }
    }

    fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// `:status: 200`, and Content-Length where it is given, as literals (RFC 7541 section 6).
fn head(stream: u32, length: Option<u8>, is_end: bool) -> Vec<u8> {
    let mut block = vec![0x88];
    if let Some(length) = length {
        let digits = length.to_string();
        block.extend_from_slice(&[0x0f, 0x0d, u8::try_from(digits.len()).unwrap()]);
        block.extend_from_slice(digits.as_bytes());
    }
    frame(1, 0x4 | u8::from(is_end), stream, &block)
}

fn serve(mut stream: TcpStream, streams: Option<u32>, seen: &Seen, script: impl Fn(u32) -> Vec<Step>) {
    stream.set_nodelay(true).unwrap();
    let mut preface = [0; 24];
    if stream.read_exact(&mut preface).is_err() || preface != *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" {
        return;
    }
    let mut settings = Vec::new();
    if let Some(streams) = streams {
        settings.extend_from_slice(&[0, 3]);
        settings.extend_from_slice(&streams.to_be_bytes());
    }
    if stream.write_all(&frame(4, 0, 0, &settings)).is_err() {
        return;
    }
    let mut requests = 0;
    loop {
        let mut start = [0; 9];
        if stream.read_exact(&mut start).is_err() {
            return;
        }
        let mut payload = vec![0; u32::from_be_bytes([0, start[0], start[1], start[2]]) as usize];
        if stream.read_exact(&mut payload).is_err() {
            return;
        }
        let id = u32::from_be_bytes([start[5], start[6], start[7], start[8]]);
        let out = match (start[3], start[4] & 1) {
            (1, _) => {
                seen.requests.fetch_add(1, Ordering::SeqCst);
                let steps = script(requests);
                requests += 1;
                let mut out = Vec::new();
                for step in &steps {
                    out.extend(frames(step, id));
                }
                if steps.iter().any(|step| matches!(step, Step::Close | Step::Cut)) {
                    let _ = stream.write_all(&out);
                    return;
                }
                out
            }
            (3, _) => {
                seen.cancelled.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            (4, 0) => frame(4, 1, 0, &[]),
            (6, 0) => frame(6, 1, 0, &payload),
            _ => continue,
        };
        if stream.write_all(&out).is_err() {
            return;
        }
    }
}

fn frames(step: &Step, id: u32) -> Vec<u8> {
    match step {
        Step::Answer(body) => {
            let length = u8::try_from(body.len()).unwrap();
            [head(id, Some(length), false), frame(0, 1, id, body)].concat()
        }
        Step::Short(length) => [head(id, Some(*length), false), frame(0, 1, id, b"short")].concat(),
        Step::Cut => [head(id, Some(100), false), frame(0, 0, id, b"a part")].concat(),
        Step::Reset(code) => frame(3, 0, id, &code.to_be_bytes()),
        Step::GoAway(code, before) => {
            let last = id.saturating_sub(2 * before);
            frame(7, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
        }
        Step::Close | Step::Wait => Vec::new(),
    }
}

fn request(address: SocketAddr, streams: u32) -> Request {
    Request {
        name: "it".to_owned(),
        url: Url::parse("http://localhost/").unwrap(),
        address: Address::Tcp(address),
        tls: None,
        protocol: Protocol::Http2 { streams },
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: None,
        weight: 1,
        expect: Expect::Success,
    }
}

fn closed(address: SocketAddr, connections: usize, streams: u32, requests: u64) -> Plan {
    Plan {
        requests: vec![request(address, streams)],
        pace: Pace::Closed { connections, think: Duration::ZERO },
        until: Until { requests: Some(requests), ..Until::default() },
        warm_up: Duration::ZERO,
        threads: 1,
        cores: Vec::new(),
        reuse: Reuse::Kept,
        timeouts: Timeouts::default(),
        seed: 1,
    }
}

fn open(address: SocketAddr, connections: usize, streams: u32, rate: f64, time: Duration) -> Plan {
    let phases = vec![Phase { from: rate, to: rate, length: time }];
    Plan {
        pace: Pace::Open { connections, arrivals: Arrivals { spacing: Spacing::Constant, phases } },
        until: Until { time: Some(time), ..Until::default() },
        ..closed(address, connections, streams, 1)
    }
}

fn run(plan: &Plan) -> Run {
    onehop_load::engine::run(plan, &mut Unobserved).unwrap()
}

fn http2(run: &Run) -> &Http2Seen {
    run.http2.as_ref().unwrap()
}

#[test]
fn every_response_counts_once_with_the_bytes_of_the_connection() {
    let server = Server::start(|_, _| vec![Step::Answer(b"hello")]);
    let run = run(&closed(server.address, 2, 8, 1000));
    assert_eq!((run.total.good, run.total.failures.sum()), (1000, 0));
    assert_eq!((run.generator.connections_opened, server.connections()), (2, 2));
    assert_eq!(http2(&run).streams_opened, 1000);
    assert_eq!(server.seen.requests.load(Ordering::SeqCst), 1000);
    // Each response is a head of 14 bytes and a frame with 5; each connection has SETTINGS and their acknowledgement before.
    assert_eq!(run.total.bytes_read, 1000 * (9 + 5 + 9 + 5) + 2 * (9 + 9));
    assert!(run.total.bytes_written > 1000 * 9);
    assert_eq!(http2(&run).streams_allowed, None);
}

#[test]
fn a_server_that_allows_fewer_streams_gets_fewer() {
    let server = Server::allowing(Some(3), |_, _| vec![Step::Answer(b"hello")]);
    let run = run(&closed(server.address, 2, 10, 300));
    assert_eq!((run.total.good, run.total.failures.sum()), (300, 0));
    assert_eq!(http2(&run).streams_allowed, Some(3));
}

#[test]
fn a_goaway_without_an_error_loses_no_request() {
    // Every connection takes 10 requests: the one after is not processed, and there are up to 4 on their way.
    let script = |_, request: u32| match request {
        0..10 => vec![Step::Answer(b"hello")],
        10 => vec![Step::GoAway(NO_ERROR, 1)],
        _ => Vec::new(),
    };
    let server = Server::start(script);
    let run = run(&closed(server.address, 1, 4, 200));
    assert_eq!((run.total.good, run.total.failures.sum()), (200, 0), "{:?}", http2(&run));
    assert_eq!(run.generator.connections_opened, 20);
    let goaways = http2(&run).goaways.clone();
    assert!(goaways.len() == 1 && (19..=20).contains(&goaways[&NO_ERROR]), "{goaways:?}");
    assert!(http2(&run).resent >= 19, "{:?}", http2(&run));
    let server = Server::start(script);
    let run = run_open_of_a_second(server.address);
    assert_eq!((run.total.good, run.total.failures.sum()), (200, 0), "{:?}", http2(&run));
}

fn run_open_of_a_second(address: SocketAddr) -> Run {
    run(&open(address, 2, 4, 200.0, Duration::from_secs(1)))
}

#[test]
fn a_goaway_with_an_error_and_a_reset_are_failures_by_code() {
    let server = Server::start(|_, request| match request % 10 {
        9 => vec![Step::Reset(REFUSED_STREAM)],
        _ => vec![Step::Answer(b"hello")],
    });
    let seen = run(&closed(server.address, 1, 1, 100));
    assert_eq!((seen.total.good, seen.total.failures.reset, seen.total.failures.sum()), (90, 10, 10));
    assert_eq!(http2(&seen).resets, [(REFUSED_STREAM, 10)].into());
    assert_eq!(seen.generator.connections_opened, 1);

    let server = Server::start(|_, request| match request {
        9 => vec![Step::GoAway(ENHANCE_YOUR_CALM, 1)],
        _ => vec![Step::Answer(b"hello")],
    });
    let seen = run(&closed(server.address, 1, 1, 100));
    assert_eq!((seen.total.good, seen.total.failures.goaway, seen.total.failures.sum()), (90, 10, 10));
    assert_eq!(http2(&seen).goaways, [(ENHANCE_YOUR_CALM, 10)].into());
    assert_eq!(http2(&seen).resent, 0);
}

#[test]
fn a_server_that_takes_no_request_back_and_forth_is_given_up() {
    let server = Server::start(|_, _| vec![Step::GoAway(NO_ERROR, 1)]);
    let seen = run(&closed(server.address, 1, 1, 3));
    assert_eq!((seen.total.good, seen.total.failures.goaway), (0, 3));
    assert_eq!(http2(&seen).resent, 9);
}

#[test]
fn a_connection_that_is_refused_with_goaway_at_once_takes_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let goaway = frame(7, 0, 0, &[0_u32.to_be_bytes(), ENHANCE_YOUR_CALM.to_be_bytes()].concat());
            let _ = stream.write_all(&[frame(4, 0, 0, &[]), goaway].concat());
            // Until the client ends it.
            thread::spawn(move || while stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {});
        }
    });
    let seen = run(&closed(address, 1, 4, 3));
    assert_eq!((seen.total.failures.goaway, seen.total.failures.sum()), (3, 3));
    assert_eq!(http2(&seen).goaways, [(ENHANCE_YOUR_CALM, 3)].into());
}

#[test]
fn a_truncated_response_is_no_response() {
    for (step, connections) in [(Step::Cut, 4), (Step::Short(9), 1)] {
        let shown = step.clone();
        let server = Server::start(move |_, _| vec![step.clone()]);
        let run = run(&closed(server.address, 1, 1, 4));
        assert_eq!((run.total.good, run.total.failures.truncated), (0, 4), "{shown:?}");
        assert_eq!(run.generator.connections_opened, connections, "{shown:?}");
        let error = Client::new(Address::Tcp(server.address))
            .request(&request(server.address, 1), Timeouts::default())
            .unwrap_err();
        assert!(matches!(error, RequestError::Truncated { .. }), "{shown:?}: {error}");
    }
}

#[test]
fn a_connection_that_ends_fails_all_its_streams_and_is_replaced() {
    // The last of four ends the connection, the three before it have no response.
    let server = Server::start(|connection, request| match (connection, request) {
        (0, 0..3) => vec![Step::Wait],
        (0, _) => vec![Step::Close],
        _ => vec![Step::Answer(b"hello")],
    });
    let run = run(&closed(server.address, 1, 4, 20));
    assert_eq!((run.total.good, run.total.failures.closed, run.total.failures.sum()), (16, 4, 4));
    assert_eq!(run.generator.connections_opened, 2);
}

#[test]
fn a_request_without_a_response_is_cancelled_and_its_connection_kept() {
    let server = Server::start(|_, request| match request {
        0 => vec![Step::Wait],
        _ => vec![Step::Answer(b"hello")],
    });
    let mut plan = closed(server.address, 1, 1, 10);
    plan.timeouts.response = Duration::from_millis(100);
    let run = run(&plan);
    assert_eq!((run.total.good, run.total.failures.timed_out), (9, 1));
    assert_eq!(run.generator.connections_opened, 1);
    assert_eq!(server.seen.cancelled.load(Ordering::SeqCst), 1);
}

#[test]
fn connections_are_replaced_after_so_many_requests() {
    for (reuse, streams, connections) in [(Reuse::New, 1, 60), (Reuse::Requests(10), 4, 6)] {
        let server = Server::start(|_, _| vec![Step::Answer(b"hello")]);
        let run = run(&Plan { reuse, ..closed(server.address, 1, streams, 60) });
        assert_eq!((run.total.good, run.total.failures.sum()), (60, 0), "{reuse:?}");
        assert_eq!(run.generator.connections_opened, connections, "{reuse:?}");
    }
}

#[test]
fn a_rate_is_kept_over_streams() {
    let server = Server::allowing(Some(5), |_, _| vec![Step::Answer(b"hello")]);
    let run = run(&open(server.address, 1, 10, 500.0, Duration::from_secs(1)));
    assert_eq!((run.total.good, run.total.failures.sum()), (500, 0));
    assert_eq!(run.generator.connections_opened, 1);
    assert_eq!(run.total.service.count(), 500);
}

#[test]
fn what_cannot_be_done_is_said() {
    let address = "127.0.0.1:1".parse().unwrap();
    let mut mixed = closed(address, 1, 1, 1);
    mixed.requests.push(Request { protocol: Protocol::Http1, ..request(address, 1) });
    let mut spread = open(address, 2, 1, 1.0, Duration::from_secs(1));
    spread.requests.push(request("127.0.0.1:2".parse().unwrap(), 1));
    for (plan, part) in [
        (mixed, "same version"),
        (spread, "not yet"),
        (Plan { reuse: Reuse::New, ..closed(address, 1, 2, 1) }, "leave --streams out"),
        (closed(address, 1000, 10_000, 1), "a million"),
    ] {
        let error = onehop_load::engine::run(&plan, &mut Unobserved).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_server_of_http_1_1_is_found_out_before_the_load() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 24]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let mut reached = request(address, 1);
    reached.url = Url::parse(&format!("http://{address}/")).unwrap();
    let error = reached.reach(Duration::from_secs(5)).unwrap_err().to_string();
    assert!(error.contains("no HTTP/2") && error.contains("--http2"), "{error}");
}

/// A server of the `h2` crate, which answers with so many bytes and counts those that come, and the streams at a time.
struct Library {
    address: SocketAddr,
    most_streams: Arc<AtomicUsize>,
    received: Arc<Mutex<Vec<usize>>>,
}

impl Library {
    fn start(body: usize, window: u32) -> Library {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let (most_streams, received) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let library =
            Library { address, most_streams: Arc::clone(&most_streams), received: Arc::clone(&received) };
        let body = Bytes::from(vec![b'a'; body]);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                loop {
                    let (socket, _) = listener.accept().await.unwrap();
                    socket.set_nodelay(true).unwrap();
                    let (most, received, body) =
                        (Arc::clone(&most_streams), Arc::clone(&received), body.clone());
                    tokio::spawn(async move {
                        let mut builder = h2::server::Builder::new();
                        builder.initial_window_size(window);
                        let mut connection = builder.handshake::<_, Bytes>(socket).await.unwrap();
                        let streams = Arc::new(AtomicUsize::new(0));
                        while let Some(Ok((request, respond))) = connection.accept().await {
                            let now = streams.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            let (body, received, streams) =
                                (body.clone(), Arc::clone(&received), Arc::clone(&streams));
                            tokio::spawn(async move {
                                answer(request, respond, body, &received).await;
                                streams.fetch_sub(1, Ordering::SeqCst);
                            });
                        }
                    });
                }
            });
        });
        library
    }
}

async fn answer(
    mut request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    body: Bytes,
    received: &Mutex<Vec<usize>>,
) {
    let mut count = 0;
    while let Some(piece) = request.body_mut().data().await {
        let piece = piece.unwrap();
        count += piece.len();
        request.body_mut().flow_control().release_capacity(piece.len()).unwrap();
    }
    received.lock().unwrap().push(count);
    let head = http::Response::builder().header("content-length", body.len()).body(()).unwrap();
    let mut stream = respond.send_response(head, false).unwrap();
    stream.send_data(body, true).unwrap();
}

#[test]
fn bodies_larger_than_every_window_come_and_go_whole() {
    // More than the load allows to be sent ahead on a connection, and far more than the server does.
    let large = 20 * 1024 * 1024;
    let server = Library::start(large, 16 * 1024);
    let mut plan = closed(server.address, 1, 2, 4);
    plan.requests[0].body = Some(vec![b'b'; 3 * 1024 * 1024]);
    plan.requests[0].method = "POST".to_owned();
    let seen = run(&plan);
    assert_eq!((seen.total.good, seen.total.failures.sum()), (4, 0));
    assert!(seen.total.bytes_read > 4 * large as u64);
    assert!(seen.total.bytes_written > 4 * 3 * 1024 * 1024);
    assert_eq!(*server.received.lock().unwrap(), [3 * 1024 * 1024; 4]);
    let response = Client::new(Address::Tcp(server.address)).request(&plan.requests[0], Timeouts::default());
    let response = response.unwrap();
    assert_eq!((response.status, response.body.len()), (200, large));
    assert_eq!(response.field("Content-Length"), Some(large.to_string().as_str()));
}

#[test]
fn as_many_streams_are_open_at_a_time_as_were_asked_for() {
    let server = Library::start(1000, 65_535);
    let run = run(&closed(server.address, 1, 16, 2000));
    assert_eq!((run.total.good, run.total.failures.sum()), (2000, 0));
    assert_eq!(run.generator.connections_opened, 1);
    let most = server.most_streams.load(Ordering::SeqCst);
    assert!((2..=16).contains(&most), "{most}");
}
