//! Requests that share connections of HTTP/2.

use std::future::poll_fn;

use bytes::Bytes;
use h2::Reason;
use h2::server::{Builder, Connection};
use onehop_http1::{AskHead, BodyLength, BodyRead, ResponseHead};
use tokio::net::TcpStream as AsyncTcpStream;

use super::*;

type Accepted = Connection<AsyncTcpStream, Bytes>;

/// Serves each connection, on a thread of its own, by this; its number is counted from 0.
struct Multiplexing {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Multiplexing {
    fn start<F: Future<Output = ()> + 'static>(
        streams_max: u32,
        serve: impl Fn(usize, Accepted) -> F + Clone + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build_local(tokio::runtime::LocalOptions::default()).unwrap();
            runtime.block_on(async move {
                listener.set_nonblocking(true).unwrap();
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((socket, _)) = listener.accept().await {
                    let (serve, number) = (serve.clone(), count.fetch_add(1, Ordering::SeqCst));
                    tokio::task::spawn_local(async move {
                        let handshake = Builder::new().max_concurrent_streams(streams_max).handshake(socket);
                        if let Ok(connection) = handshake.await {
                            serve(number, connection).await;
                        }
                    });
                }
            });
        });
        Self { address, accepted }
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    fn peer(&self) -> Arc<Peer> {
        self.peer_with(PeerSettings { idle_timeout: Duration::from_secs(60), ..settings() })
    }

    fn peer_with(&self, settings: PeerSettings) -> Arc<Peer> {
        peer_at(self.address, PeerSettings { versions: Versions::Http2, ..settings })
    }
}

/// Responds to each request with its path.
async fn echo_paths(_: usize, mut connection: Accepted) {
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let path = request.uri().path().to_owned();
        let _ = respond.send_response(http::Response::new(()), false).map(|mut body| {
            let _ = body.send_data(Bytes::from(path), true);
        });
    }
}

/// Moves a connection's frames for as long as it lives.
async fn drive(connection: &mut Accepted) {
    let _ = poll_fn(|context| connection.poll_closed(context)).await;
}

/// Sends a request without a body.
async fn ask(link: &Link, method: &str, path: &str) {
    send(link, method, path, b"").await;
}

async fn send(link: &Link, method: &str, path: &str, body: &[u8]) {
    let length = if body.is_empty() { BodyLength::None } else { BodyLength::Chunked };
    let head = AskHead {
        method: method.as_bytes(),
        target: path.as_bytes(),
        fields: b"Host: a.test\r\nX-Field: 1\r\n",
        body: length,
        upgrade: false,
        trailers: true,
    };
    let mut output = Vec::new();
    link.codec().write_request_head(&mut output, head).expect("a head");
    link.codec().write_data(&mut output, body);
    link.codec().finish(&mut output, b"X-Sum: 7\r\n".get(..if body.is_empty() { 0 } else { 10 }).unwrap());
    link.write(&output, &[]).await.expect("written");
}

/// The status, the body and the trailers; the error is what the link says.
async fn response(link: &Link) -> Result<(u16, Vec<u8>, String), String> {
    let (mut input, mut head) = (Input::new(), ResponseHead::new());
    let broken = |_| link.failure().unwrap_or_else(|| "broken".to_owned());
    let mut status = None;
    while status.is_none() {
        if link.codec().read_head(input.unread(), &mut head).expect("a head").is_some() {
            status = Some(head.status()).filter(|status| *status >= 200);
        } else {
            poll_fn(|context| link.poll_fill(&mut input, context)).await.map_err(broken)?;
        }
    }
    let mut body = Vec::new();
    loop {
        let read = link.codec().read_body(input.unread()).expect("a body");
        match read {
            BodyRead::Data { at, consumed } => {
                body.extend_from_slice(&input.unread()[at]);
                input.consume(consumed);
            }
            BodyRead::End { .. } => break,
            BodyRead::NeedMore => {
                if poll_fn(|context| link.poll_fill(&mut input, context)).await.map_err(broken)? == 0 {
                    link.codec().read_eof(0).map_err(|_| "cut off".to_owned())?;
                }
            }
        }
    }
    let trailers = String::from_utf8(link.codec().trailers().to_vec()).expect("text");
    Ok((status.unwrap_or_default(), body, trailers))
}

async fn get(pools: &Pools, peer: &Arc<Peer>, path: &str) -> Result<(u16, Vec<u8>, String), String> {
    let link = pools.get(peer, Reuse::Alive).await.map_err(|none| none.to_string())?;
    ask(&link, "GET", path).await;
    response(&link).await
}

#[test]
fn requests_that_come_together_share_one_connection() {
    let upstream = Multiplexing::start(100, echo_paths);
    let (peer, cores) = (upstream.peer(), Cores::start(1, &[]));
    let asked = Arc::clone(&peer);
    cores.on(0, move |pools| async move {
        let requests = (0..50).map(|number| {
            let (pools, asked) = (Rc::clone(&pools), Arc::clone(&asked));
            tokio::task::spawn_local(async move {
                let path = format!("/{number}");
                let (status, body, _) = get(&pools, &asked, &path).await.expect("a response");
                assert_eq!((status, body), (200, path.into_bytes()));
            })
        });
        for request in requests.collect::<Vec<_>>() {
            request.await.expect("it ends");
        }
    });
    assert_eq!((upstream.accepted(), peer.counts().dials, peer.open()), (1, 1, 1));
}

#[test]
fn more_requests_than_a_connection_takes_get_another_or_wait() {
    // Nothing is responded to before four requests are there.
    let held: Arc<Mutex<usize>> = Arc::default();
    let seen = Arc::clone(&held);
    let upstream = Multiplexing::start(2, move |_, mut connection| {
        let seen = Arc::clone(&seen);
        async move {
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                *seen.lock().unwrap() += 1;
                let seen = Arc::clone(&seen);
                tokio::task::spawn_local(async move {
                    while *seen.lock().unwrap() < 4 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    let _ = respond.send_response(http::Response::new(()), true);
                });
            }
        }
    });
    let peer = upstream.peer_with(PeerSettings { connections_max: Some(2), ..settings() });
    let cores = Cores::start(1, &[]);
    let asked = Arc::clone(&peer);
    cores.on(0, move |pools| async move {
        let requests = (0..9).map(|_| {
            let (pools, asked) = (Rc::clone(&pools), Arc::clone(&asked));
            tokio::task::spawn_local(async move { get(&pools, &asked, "/").await.expect("a response").0 })
        });
        for request in requests.collect::<Vec<_>>() {
            assert_eq!(request.await.expect("it ends"), 200);
        }
    });
    assert_eq!(upstream.accepted(), 2);
    assert_eq!((peer.counts().waiting, *held.lock().unwrap()), (0, 9));
}

#[test]
fn a_connection_that_received_goaway_is_replaced_before_a_request_uses_it() {
    let upstream = Multiplexing::start(100, |_, mut connection| async move {
        if let Some(Ok((_, mut respond))) = connection.accept().await {
            let _ = respond.send_response(http::Response::new(()), true);
        }
        connection.graceful_shutdown();
        drive(&mut connection).await;
    });
    let (peer, cores) = (upstream.peer(), Cores::start(1, &[]));
    for number in 1..=20 {
        let asked = Arc::clone(&peer);
        let got = cores.on(0, move |pools| async move { get(&pools, &asked, "/").await });
        // A request may cross the goodbye: then it was refused, and never lost.
        if let Err(reason) = got {
            assert!(reason.contains("refused the stream"), "request {number}: {reason}");
        }
    }
}

#[test]
fn a_request_that_waits_for_a_stream_gets_another_connection_after_goaway() {
    let waits = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&waits);
    let upstream = Multiplexing::start(1, move |number, mut connection| {
        let seen = Arc::clone(&seen);
        async move {
            if number > 0 {
                return echo_paths(number, connection).await;
            }
            // The first request has no response; the second waits for its stream.
            let _first = connection.accept().await;
            while !seen.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            connection.graceful_shutdown();
            drive(&mut connection).await;
        }
    });
    let peer = upstream.peer_with(PeerSettings { connections_max: Some(1), ..settings() });
    let cores = Cores::start(1, &[]);
    cores.on(0, move |pools| async move {
        let first = pools.get(&peer, Reuse::Any).await.expect("a stream");
        ask(&first, "GET", "/").await;
        let (others, asked) = (Rc::clone(&pools), Arc::clone(&peer));
        let second = tokio::task::spawn_local(async move { get(&others, &asked, "/second").await });
        while peer.counts().waiting == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        waits.store(true, Ordering::SeqCst);
        let (status, body, _) = second.await.expect("it ends").expect("a response");
        assert_eq!((status, body.as_slice()), (200, b"/second".as_slice()));
        drop(first);
    });
    assert_eq!(upstream.accepted(), 2);
}

#[test]
fn a_stream_that_is_refused_was_not_begun_and_one_that_is_reset_may_have_been() {
    let upstream = Multiplexing::start(100, |_, mut connection| async move {
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            respond.send_reset(match request.uri().path() {
                "/refused" => Reason::REFUSED_STREAM,
                _ => Reason::INTERNAL_ERROR,
            });
        }
    });
    let (peer, cores) = (upstream.peer(), Cores::start(1, &[]));
    cores.on(0, move |pools| async move {
        for (path, is_refused) in [("/refused", true), ("/reset", false)] {
            let link = pools.get(&peer, Reuse::Any).await.expect("a stream");
            ask(&link, "POST", path).await;
            response(&link).await.expect_err("it is reset");
            assert_eq!((link.is_refused(), link.is_reset()), (is_refused, !is_refused), "{path}");
        }
    });
}

#[test]
fn a_stream_that_is_not_read_holds_no_other_up() {
    let upstream = Multiplexing::start(200, |_, mut connection| async move {
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            let is_long = request.uri().path() == "/long";
            let _ = respond.send_response(http::Response::new(()), false).map(|mut body| {
                let length = if is_long { 4 << 20 } else { 1 << 10 };
                let _ = body.send_data(Bytes::from(vec![b'x'; length]), true);
            });
        }
    });
    let (peer, cores) = (upstream.peer(), Cores::start(1, &[]));
    let asked = Arc::clone(&peer);
    cores.on(0, move |pools| async move {
        let mut unread = Vec::new();
        for _ in 0..100 {
            let link = pools.get(&asked, Reuse::Any).await.expect("a stream");
            ask(&link, "GET", "/long").await;
            unread.push(link);
        }
        for _ in 0..20 {
            assert_eq!(get(&pools, &asked, "/short").await.expect("a response").1.len(), 1 << 10);
        }
        for link in unread.drain(..3) {
            assert_eq!(response(&link).await.expect("a response").1.len(), 4 << 20);
        }
    });
    assert_eq!(upstream.accepted(), 1);
}

#[test]
fn a_body_and_its_trailers_go_both_ways() {
    let upstream = Multiplexing::start(100, |_, mut connection| async move {
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            tokio::task::spawn_local(async move {
                assert_eq!(request.headers()["te"], "trailers");
                let (mut body, mut sent) = (request.into_body(), 0usize);
                while let Some(Ok(data)) = body.data().await {
                    sent += data.len();
                    let _ = body.flow_control().release_capacity(data.len());
                }
                let mut trailers = body.trailers().await.unwrap().unwrap();
                trailers.insert("x-bytes", sent.into());
                let mut out = respond.send_response(http::Response::new(()), false).unwrap();
                out.send_data(Bytes::from_static(b"hi"), false).unwrap();
                out.send_trailers(trailers).unwrap();
            });
        }
    });
    let (peer, cores) = (upstream.peer(), Cores::start(1, &[]));
    let (status, body, trailers) = cores.on(0, move |pools| async move {
        let link = pools.get(&peer, Reuse::Any).await.expect("a stream");
        send(&link, "POST", "/", &vec![b'x'; 3 << 20]).await;
        response(&link).await.expect("a response")
    });
    assert_eq!((status, body), (200, b"hi".to_vec()));
    assert_eq!(trailers, "x-sum: 7\r\nx-bytes: 3145728\r\n");
}

#[test]
fn the_death_of_a_connection_breaks_all_its_streams_and_the_next_request_gets_another() {
    let upstream = Multiplexing::start(100, |number, mut connection| async move {
        let mut begun = Vec::new();
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            let body = respond.send_response(http::Response::new(()), false);
            let Ok(mut body) = body else { continue };
            let _ = body.send_data(Bytes::from_static(b"half"), number > 0);
            begun.push(body);
            if number == 0 && begun.len() == 3 {
                // The heads go out first.
                let mut turns = 0;
                poll_fn(|context| {
                    let _ = connection.poll_closed(context);
                    turns += 1;
                    context.waker().wake_by_ref();
                    if turns < 10 { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
                })
                .await;
                return;
            }
        }
    });
    let (peer, cores) = (upstream.peer(), Cores::start(1, &[]));
    let asked = Arc::clone(&peer);
    cores.on(0, move |pools| async move {
        let mut links = Vec::new();
        for _ in 0..3 {
            let link = pools.get(&asked, Reuse::Any).await.expect("a stream");
            ask(&link, "GET", "/").await;
            links.push(link);
        }
        for link in links {
            let reason = response(&link).await.expect_err("it is cut off");
            assert!(reason.contains("the connection broke"), "{reason}");
        }
        assert_eq!(get(&pools, &asked, "/").await.expect("a response").1, b"half");
    });
    assert_eq!(upstream.accepted(), 2);
}

#[test]
fn a_request_that_is_given_up_resets_its_stream() {
    let (sent, resets) = std_mpsc::channel();
    let (came, mut begun) = mpsc::unbounded_channel();
    let upstream = Multiplexing::start(100, move |_, mut connection| {
        let (sent, came) = (sent.clone(), came.clone());
        async move {
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                let sent = sent.clone();
                came.send(()).expect("it waits");
                tokio::task::spawn_local(async move {
                    let reason = poll_fn(|context| respond.poll_reset(context)).await;
                    let _ = sent.send(reason.ok());
                });
            }
        }
    });
    let (peer, cores) = (upstream.peer(), Cores::start(1, &[]));
    let asked = Arc::clone(&peer);
    cores.on(0, move |pools| async move {
        let link = pools.get(&asked, Reuse::Any).await.expect("a stream");
        ask(&link, "GET", "/").await;
        begun.recv().await.expect("it is begun");
        drop(link);
    });
    assert_eq!(resets.recv_timeout(DEADLINE), Ok(Some(Reason::CANCEL)));
    assert_eq!(peer.open(), 1, "the connection stays");
}

#[test]
fn a_server_that_speaks_only_http_1_is_no_http_2_for_all_that_wait() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 1024];
            let _ = stream.read(&mut bytes);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let peer = peer_at(address, PeerSettings { versions: Versions::Http2, ..settings() });
    let cores = Cores::start(1, &[]);
    let asked = Arc::clone(&peer);
    cores.on(0, move |pools| async move {
        let requests = (0..10).map(|_| {
            let (pools, asked) = (Rc::clone(&pools), Arc::clone(&asked));
            tokio::task::spawn_local(async move { get(&pools, &asked, "/").await.expect_err("no HTTP/2") })
        });
        for request in requests.collect::<Vec<_>>() {
            let reason = request.await.expect("it ends");
            assert!(reason.contains("no HTTP/2: what it sent is no HTTP/2"), "{reason}");
        }
    });
    assert_eq!(peer.open(), 0);
}

#[test]
fn an_idle_connection_is_closed_in_time_and_a_minimum_is_kept() {
    let upstream = Multiplexing::start(100, echo_paths);
    let idle_timeout = Duration::from_millis(50);
    let closing = upstream.peer_with(PeerSettings { idle_timeout, ..settings() });
    let kept = upstream.peer_with(PeerSettings { idle_timeout, connections_min: 1, ..settings() });
    let cores = Cores::start(1, &[&kept]);
    wait_until("the minimum", || kept.open() == 1);
    for peer in [&closing, &kept] {
        let asked = Arc::clone(peer);
        cores.on(0, move |pools| async move { get(&pools, &asked, "/").await.expect("a response") });
    }
    wait_until("it is closed", || closing.open() == 0);
    assert_eq!((kept.open(), kept.counts().dials), (1, 1));
}

#[test]
fn a_minimum_is_at_least_one_connection_for_each_core() {
    let upstream = Multiplexing::start(100, echo_paths);
    let idle_timeout = Duration::from_millis(50);
    let peer = upstream.peer_with(PeerSettings { idle_timeout, connections_min: 1, ..settings() });
    let cores = Cores::start(2, &[&peer]);
    wait_until("the minimum", || peer.open() == 2 && upstream.accepted() == 2);
    for core in [0, 1, 0, 1] {
        let asked = Arc::clone(&peer);
        cores.on(core, move |pools| async move { get(&pools, &asked, "/").await.expect("a response") });
    }
    assert_eq!((peer.open(), peer.counts().dials), (2, 2));
}

#[test]
fn each_core_has_a_connection_of_its_own_whatever_the_maximum() {
    let upstream = Multiplexing::start(100, echo_paths);
    let peer = upstream.peer_with(PeerSettings { connections_max: Some(1), ..settings() });
    let cores = Cores::start(2, &[]);
    for core in [0, 1, 0, 1] {
        let asked = Arc::clone(&peer);
        let got = cores.on(core, move |pools| async move { get(&pools, &asked, "/").await });
        assert_eq!(got.map(|(status, ..)| status), Ok(200));
    }
    assert_eq!(upstream.accepted(), 2);
}

#[test]
fn a_peer_that_answers_no_ping_is_given_up() {
    let upstream = Multiplexing::start(100, |_, connection| async move {
        // It keeps the connection, and does nothing any more.
        let _connection = connection;
        std::future::pending::<()>().await;
    });
    let probe_interval = Some(Duration::from_millis(200));
    let peer = upstream.peer_with(PeerSettings { probe_interval, ..settings() });
    let cores = Cores::start(1, &[]);
    let asked = Arc::clone(&peer);
    let reason = cores.on(0, move |pools| async move { get(&pools, &asked, "/").await });
    assert!(reason.as_ref().is_err_and(|reason| reason.contains("no answer to a PING")), "{reason:?}");
    wait_until("it is closed", || peer.open() == 0);
    let asked = Arc::clone(&peer);
    cores.on(0, move |pools| async move { drop(pools.get(&asked, Reuse::Any).await.expect("a stream")) });
    assert_eq!(upstream.accepted(), 2, "the next request gets another connection");
}
