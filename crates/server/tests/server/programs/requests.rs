//! Requests on their way to a program.

use std::io::Write;
use std::sync::mpsc::channel;

use super::program::{Program, Talk, field};
use super::{serve, serve_with};
use crate::client::Client;
use crate::harness::{TestServer, Wishes, application};

fn echo() -> Program {
    Program::start(|talk, head| talk.body(head).is_some_and(|body| talk.answer(body)))
}

#[test]
fn a_program_sees_the_request_as_the_client_sent_it_and_who_that_is() {
    let program = Program::start(|talk, _| talk.answer("hello"));
    let server = serve_with(program.address, "", "rewrite /old/* /new{uri}");
    let mut client = server.connect();
    client.send("GET /old/%41?q=1 HTTP/1.1\r\nHost: localhost\r\nX-Odd-CASE: One\r\nCookie: a=b\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
    let head = program.heads().remove(0);
    let expected = "GET /new/old/%41?q=1 HTTP/1.1\r\nHost: localhost\r\nX-Odd-CASE: One\r\nCookie: a=b\r\n\
         X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: localhost";
    assert_eq!(head, expected);
}

#[test]
fn what_a_client_says_about_itself_or_the_connection_stays_behind() {
    let program = Program::start(|talk, _| talk.answer("hello"));
    let server = serve(&program);
    let mut client = server.connect();
    client.send(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 6.6.6.6\r\nx_forwarded_for: 6.6.6.6\r\n\
         X-Real-IP: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX_Forwarded_Proto: https\r\nX-Mine: 1\r\n\
         Connection: X-Forwarded-For, X-Forwarded-Proto, x-mine, Host\r\nKeep-Alive: timeout=9\r\n\
         Proxy-Connection: keep-alive\r\nTE: gzip, trailers\r\nUpgrade: h2c\r\n\r\n",
    );
    assert_eq!(client.answer().status, 200);
    let head = program.heads().remove(0);
    // RFC 9110 section 10.1.4: who sends TE names it in Connection.
    let expected = "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 127.0.0.1\r\n\
         X-Forwarded-Proto: http\r\nX-Forwarded-Host: localhost\r\nTE: trailers\r\nConnection: TE";
    assert_eq!(head, expected);
}

#[test]
fn bodies_of_every_length_and_framing_arrive_whole() {
    let program = echo();
    let server = serve(&program);
    let mut client = server.connect();
    for length in [0, 1, 1_000, 20_000, 70_000, 3_000_000] {
        let body: Vec<u8> = (0..length).map(|at: usize| (at % 251) as u8).collect();
        client.send(format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"));
        client.send(&body);
        assert!(client.answer().body == body, "{length} bytes of known length");
        client.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
        for piece in body.chunks(4_099) {
            client.send(format!("{:x}\r\n", piece.len())).send(piece).send("\r\n");
        }
        client.send("0\r\n\r\n");
        assert!(client.answer().body == body, "{length} bytes in chunks");
    }
    assert_eq!(program.connections(), 1);
}

#[test]
fn a_body_goes_on_as_it_comes() {
    let (sender, arrived) = channel();
    let program = Program::start(move |talk, _| {
        for _ in 0..2 {
            drop(sender.send(talk.bytes(3).unwrap()));
        }
        talk.answer("both")
    });
    let server = serve_with(program.address, "request_buffers off", "");
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\none");
    assert_eq!(arrived.recv().unwrap(), b"one");
    client.send("two");
    assert_eq!(client.answer().text(), "both");
}

#[test]
fn trailers_pass_both_ways_but_not_those_that_would_name_the_client() {
    let (sender, seen) = channel();
    let program = Program::start(move |talk, _| {
        sender.send(talk.chunks().unwrap()).unwrap();
        talk.say(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
             2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n",
        )
    });
    let server = serve(&program);
    let mut client = server.connect();
    client.send(
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nabc\r\n0\r\nX-Check: 1\r\nX_Forwarded_For: 6.6.6.6\r\n\r\n",
    );
    let answer = client.answer();
    assert_eq!(seen.recv().unwrap(), (b"abc".to_vec(), "X-Check: 1\n".to_owned()));
    assert_eq!((answer.text().as_str(), answer.trailers.as_str()), ("ok", "X-Sum: 7\n"));
    assert_eq!(answer.field("Trailer"), Some("X-Sum"));
}

/// What a program does with a request that expects to be told to continue.
fn expect(talk: &mut Talk, head: &str) -> bool {
    assert_eq!(field(head, "Expect"), Some("100-continue"));
    assert!(!talk.has_unread(), "a body before it was asked for");
    if head.starts_with("POST /no") {
        return talk.say("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
    }
    talk.say("HTTP/1.1 100 Continue\r\n\r\n");
    talk.body(head).is_some_and(|body| talk.answer(body))
}

#[test]
fn a_client_that_waits_to_continue_continues_when_the_program_says_so() {
    let program = Program::start(expect);
    let server = serve(&program);
    let mut client = server.connect();
    for _ in 0..2 {
        let fields = "Host: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
        client.send(format!("POST /yes HTTP/1.1\r\n{fields}"));
        assert_eq!(client.answer_to_head().status, 100);
        client.send("body");
        assert_eq!(client.answer().text(), "body");
    }
    assert_eq!(program.connections(), 1);
}

#[test]
fn a_program_that_refuses_a_body_is_not_asked_again_on_that_connection() {
    let program = Program::start(expect);
    let server = serve(&program);
    let mut client = server.connect();
    client.send("POST /no HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.field("Connection")), (417, Some("close")));
    assert!(client.is_closed());
    program.wait_for_ends(1);
}

#[test]
fn a_client_that_does_not_wait_to_continue_is_not_made_to() {
    let program = Program::start(|talk, head| talk.body(head).is_some_and(|body| talk.answer(body)));
    let server = serve(&program);
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    client.send("body");
    assert_eq!(client.answer().text(), "body");
    program.wait_for_ends(1);
}

#[test]
fn an_answer_need_not_wait_for_the_body() {
    let program = Program::start(|talk, _| {
        talk.say("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
        talk.rest();
        false
    });
    let server = serve(&program);
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nbeginning");
    let answer = client.answer();
    assert_eq!((answer.status, answer.text().as_str()), (413, "big"));
    assert!(client.is_closed());
    program.wait_for_ends(1);
}

#[test]
fn an_answer_without_a_body_does_not_wait_for_a_small_body_either() {
    let program = Program::start(|talk, _| {
        talk.say("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
        talk.rest();
        false
    });
    // By default a short body is waited for, as nginx does, so that slow clients hold no place.
    let server = serve_with(program.address, "request_buffers off", "");
    let mut client = server.connect();
    let began = std::time::Instant::now();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nbeginning");
    let answer = client.answer();
    assert_eq!((answer.status, answer.field("Connection")), (401, Some("close")));
    assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
    program.wait_for_ends(1);
}

#[test]
fn an_answer_passes_although_the_program_reads_no_body_and_closes() {
    let program = Program::start(|talk, _| {
        talk.say("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
        false
    });
    let server = serve(&program);
    for _ in 0..20 {
        let mut client = server.connect();
        client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n");
        client.send(vec![b'x'; 60_000]);
        assert_eq!(client.answer().status, 413);
    }
}

#[test]
fn a_client_that_leaves_takes_its_request_along() {
    let (sender, begun) = channel();
    let program = Program::start(move |talk, _| {
        sender.send(()).unwrap();
        talk.rest();
        false
    });
    let server = serve_with(program.address, "request_buffers off", "");
    for (number, request) in [
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
    ]
    .iter()
    .enumerate()
    {
        let mut client = server.connect();
        client.send(request);
        begun.recv().unwrap();
        client.reset();
        program.wait_for_ends(number + 1);
    }
}

#[test]
fn a_body_that_is_none_ends_the_request_at_the_program_too() {
    let (sender, begun) = channel();
    let program = Program::start(move |talk, _| {
        sender.send(talk.bytes(5).unwrap()).unwrap();
        assert_eq!(talk.rest(), b"\r\n", "the body never ends");
        false
    });
    let server = serve(&program);
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
    assert_eq!(begun.recv().unwrap(), b"2\r\nab");
    client.send("nonsense\r\n");
    assert_eq!(client.answer().status, 400);
    program.wait_for_ends(1);
}

#[test]
fn a_slow_program_slows_the_client_down() {
    let (sender, go_on) = channel::<()>();
    let go_on = std::sync::Mutex::new(go_on);
    let program = Program::start(move |talk, _| {
        go_on.lock().unwrap().recv().unwrap();
        talk.rest();
        false
    });
    let server = serve(&program);
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n");
    client.stream.set_write_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    let piece = vec![b'x'; 1_000_000];
    let mut sent = 0;
    while client.stream.write_all(&piece).is_ok() {
        sent += 1;
    }
    // What two pairs of socket buffers hold, and no more.
    assert!(sent < 40, "{sent} MB were taken from the client");
    drop(client);
    sender.send(()).unwrap();
    program.wait_for_ends(1);
}

#[test]
fn a_client_of_a_unix_socket_has_no_address() {
    let program = Program::start(|talk, _| talk.answer("hello"));
    let folder = application();
    let path = folder.path().join("site.sock");
    let address = program.address;
    let text = format!(
        "http://localhost {{\n\tbind unix/{}\n\tapp /* {{\n\t\tsupervise off {address}\n\t}}\n}}\n",
        path.display()
    );
    let _server = TestServer::start(folder, &text, Wishes::default());
    let mut client = Client::over(std::os::unix::net::UnixStream::connect(&path).unwrap());
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n");
    assert_eq!(client.answer().text(), "hello");
    let expected =
        "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: localhost";
    assert_eq!(program.heads(), [expected]);
}

#[test]
fn a_body_that_comes_while_the_way_looks_at_the_disk_is_the_programs() {
    let program = echo();
    let server = serve_with(program.address, "", "root * ./x/{host}\n\ttry_files {path}");
    let mut client = server.connect();
    for length in [5, 200_000] {
        let body = vec![b'b'; length];
        client.send(format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"));
        client.send(&body);
        let answer = client.answer();
        assert_eq!((answer.status, answer.body.len()), (200, length));
        assert!(answer.body == body);
    }
}

#[test]
fn a_client_that_leaves_while_the_program_takes_nothing_is_noticed() {
    let (sender, was_noticed) = channel::<()>();
    let was_noticed = std::sync::Mutex::new(was_noticed);
    let program = Program::start(move |_, _| {
        // Nothing of the body is read before the test is over.
        let _ = was_noticed.lock().unwrap().recv();
        false
    });
    let server = serve(&program);
    let mut client = server.connect();
    let length = 1_u64 << 40;
    client.send(format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"));
    client.stream.set_write_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    while client.stream.write_all(&[b'x'; 64 * 1024]).is_ok() {}
    // An end would wait behind what the kernel has not sent; a reset does not.
    client.reset();
    let begun = std::time::Instant::now();
    while server.metric("onehop_refused_total{cause=\"client_gone\"") == 0 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "it is waited for");
        std::thread::yield_now();
    }
    drop(sender);
    program.wait_for_ends(1);
}

#[test]
fn a_body_larger_than_request_body_allows_is_413_however_it_is_sent() {
    let program = echo();
    let server = serve_with(program.address, "", "request_body /up {\nmax_size 10B\n}");
    let ask = |path: &str, fields: &str, body: &str| {
        let mut client = server.connect();
        client.send(format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n{body}"));
        let answer = client.answer();
        (answer.status, answer.text())
    };
    let chunked = "Transfer-Encoding: chunked\r\n";
    assert_eq!(ask("/up", "Content-Length: 10\r\n", "0123456789"), (200, "0123456789".to_owned()));
    assert_eq!(ask("/up", chunked, "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n"), (200, "0123456789".to_owned()));
    let asked = program.heads().len();
    assert_eq!(ask("/up", "Content-Length: 11\r\n", "0123456789a").0, 413);
    assert_eq!(ask("/up", "Content-Length: 11\r\nExpect: 100-continue\r\n", "").0, 413);
    assert_eq!(program.heads().len(), asked, "what the head declares is refused before anybody is asked");
    assert_eq!(ask("/up", chunked, "5\r\n01234\r\n6\r\n56789a\r\n0\r\n\r\n").0, 413);
    assert_eq!(ask("/other", "Content-Length: 11\r\n", "0123456789a").0, 200);
    assert_eq!(server.metric("onehop_refused_total{cause=\"body_too_large\",status=\"413\"}"), 3);
}
