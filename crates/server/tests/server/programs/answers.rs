//! Answers on their way from a program.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use onehop_server::Event;
use onehop_server::control::AppEvent;
use onehop_server::limits::Timeouts;

use super::program::Program;
use super::{serve, serve_with, text};
use crate::client::Client;
use crate::harness::{TestServer, Wishes, application, write};

#[test]
fn fields_about_the_programs_connection_stay_behind() {
    let program = Program::start(|talk, _| {
        talk.say(
            "HTTP/1.1 200 Fine\r\nX-Odd-CASE: One\r\nset-cookie: a\r\nset-cookie: b\r\nConnection: x-hop\r\n\
             X-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: x\r\nUpgrade: h2c\r\nServer: mine\r\n\
             Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok",
        )
    });
    let server = serve(&program);
    let answer = server.connect().get("/");
    let expected = "HTTP/1.1 200 OK\r\nX-Odd-CASE: One\r\nset-cookie: a\r\nset-cookie: b\r\nServer: mine\r\n\
         Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 2";
    assert_eq!(answer.head, expected);
}

#[test]
fn answers_without_a_body_have_none() {
    let program = Program::start(|talk, head| {
        let path = head.split(' ').nth(1).unwrap();
        talk.say(match path {
            "/204" => "HTTP/1.1 204 No Content\r\n\r\n",
            "/304" => "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\n",
            "/chunked" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "/unknown" => "HTTP/1.1 200 OK\r\n\r\n",
            _ => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        })
    });
    let server = serve(&program);
    let mut client = server.connect();
    let rows = [
        ("GET", "/204", 204, None),
        ("GET", "/304", 304, Some("5")),
        ("HEAD", "/", 200, Some("5")),
        ("HEAD", "/chunked", 200, None),
        ("HEAD", "/unknown", 200, None),
    ];
    for (method, path, status, length) in rows {
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let answer = client.answer_to_head();
        assert_eq!((answer.status, answer.field("Content-Length")), (status, length), "{method} {path}");
        assert_eq!(answer.field("Transfer-Encoding"), None);
    }
    assert_eq!(program.connections(), 1);
}

fn large() -> Vec<u8> {
    (0..1_000_000).map(|at: usize| (at % 251) as u8).collect()
}

/// A program with one answer in every framing.
fn framed() -> Program {
    Program::start(|talk, head| {
        let (path, body) = (head.split(' ').nth(1).unwrap(), large());
        match path {
            "/known" => talk.answer(body),
            "/chunked" => {
                talk.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                for piece in body.chunks(10_007) {
                    talk.say(format!("{:x};x=y\r\n", piece.len()));
                    talk.say(piece);
                    talk.say("\r\n");
                }
                talk.say("0\r\n\r\n")
            }
            _ => {
                talk.say("HTTP/1.1 200 OK\r\n\r\n");
                talk.say(body);
                false
            }
        }
    })
}

#[test]
fn an_answer_arrives_whole_in_every_framing() {
    let program = framed();
    let server = serve(&program);
    let mut client = server.connect();
    for path in ["/known", "/chunked", "/close", "/known"] {
        assert!(client.get(path).body == large(), "{path}");
    }
}

#[test]
fn a_client_of_http_1_0_gets_its_answer_up_to_the_connections_end() {
    let program = framed();
    let server = serve(&program);
    for path in ["/chunked", "/close"] {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"));
        let head = client.answer_to_head().head;
        assert!(!head.contains("Transfer-Encoding"), "{head}");
        assert!(client.rest() == (large(), true), "{path}");
    }
}

#[test]
fn an_answer_that_is_cut_off_looks_cut_off() {
    let program = Program::start(|talk, head| {
        talk.say(match head.split(' ').nth(1).unwrap() {
            "/known" => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            "/chunk" => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
            _ => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        });
        false
    });
    let server = serve(&program);
    for path in ["/known", "/chunk", "/chunks"] {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert!(client.try_answer(true).is_err(), "{path}");
    }
    let mut client = server.connect();
    client.send("GET /chunks HTTP/1.0\r\nHost: localhost\r\n\r\n");
    assert!(!client.rest().1, "only a reset tells a client that knows no chunks");
    assert_eq!(server.metric("onehop_refused_total{cause=\"worker_died\""), 4, "{}", server.metrics());
}

#[test]
fn what_is_no_answer_is_a_502_that_says_in_the_log_what_it_was() {
    let rows = [
        ("", "worker_died"),
        ("HTTP/1.1 200 OK\r\nContent-", "worker_died"),
        ("nonsense\r\n\r\n", "worker_broken"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc", "worker_broken"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", "worker_broken"),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "worker_broken"),
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "worker_broken"),
        ("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", "worker_broken"),
    ];
    for (bytes, cause) in rows {
        let program = Program::start(move |talk, _| {
            talk.say(bytes);
            false
        });
        let server = serve(&program);
        let answer = server.connect().get("/");
        assert_eq!((answer.status, answer.body.len()), (502, 0), "{bytes:?}");
        let counted = server.metric(&format!("onehop_refused_total{{cause=\"{cause}\""));
        assert_eq!(counted, 1, "{bytes:?}: {}", server.metrics());
    }
}

#[test]
fn a_program_that_is_not_there_is_not_asked_until_it_is_back() {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let server = serve_with(address, "", "");
    let mut client = server.connect();
    let first = client.get("/");
    // It is looked at by itself too, whichever comes first.
    assert!(matches!(first.status, 502 | 503), "{}", first.head);
    server.wait_for(|event| matches!(event, Event::App(AppEvent::Failing { .. })).then_some(()));
    let second = client.get("/");
    assert_eq!((second.status, second.field("Retry-After").is_some()), (503, true));
    let listener = std::net::TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut program = Client::over(stream.unwrap());
            if program.try_head().is_ok() {
                program.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nback");
            }
        }
    });
    server.wait_for(|event| matches!(event, Event::App(AppEvent::Ready { .. })).then_some(()));
    assert_eq!(client.get("/").text(), "back");
}

#[test]
fn a_program_that_is_not_there_is_not_said_to_answer_and_holds_up_no_reload() {
    let free = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let server = serve_with(free(), "", "");
    let first = |event: &Event| match event {
        Event::App(AppEvent::Ready { .. }) => Some(true),
        Event::App(AppEvent::Failing { .. }) => Some(false),
        _ => None,
    };
    assert!(!server.wait_for(first), "it is said to answer");
    write(server.folder.path(), "Onehopfile", text(&free().to_string(), "", "").as_bytes());
    server.running().reload().unwrap();
    assert!(!server.wait_for(first), "it is said to answer");
    assert_eq!(server.connect().get("/").status, 503);
}

#[test]
fn a_program_that_is_late_costs_a_504_and_its_connection() {
    let program = Program::start(|talk, _| {
        talk.rest();
        false
    });
    let server = serve_with(program.address, "timeout 1s", "");
    assert_eq!(server.connect().get("/").status, 504);
    program.wait_for_ends(1);
}

#[test]
fn hints_pass_before_the_answer() {
    let program = Program::start(|talk, _| {
        talk.say("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: close\r\n\r\n");
        talk.answer("page")
    });
    let server = serve(&program);
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let hints = client.answer_to_head();
    assert_eq!(hints.head, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload");
    assert_eq!(client.answer().text(), "page");
    client.send("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer().text(), "page", "HTTP/1.0 knows no hints");
}

const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";

#[test]
fn an_upgraded_connection_is_a_tunnel_both_ways() {
    let program = Program::start(|talk, head| {
        assert!(head.contains("Upgrade: x\r\n") && head.contains("Connection: upgrade"), "{head}");
        talk.say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nfirst");
        let ping = talk.bytes(4).unwrap();
        talk.say([b"echo ", &ping[..]].concat());
        let large = talk.bytes(1_000_000).unwrap();
        talk.say(large);
        // The client closes its side; this one goes on.
        assert!(talk.rest().is_empty());
        talk.say("last");
        false
    });
    let server = serve(&program);
    let mut client = server.connect();
    client.send(UPGRADE);
    let answer = client.answer_to_head();
    assert_eq!((answer.status, answer.field("Upgrade")), (101, Some("x")));
    assert_eq!(client.bytes(5), b"first");
    assert_eq!(client.send("ping").bytes(9), b"echo ping");
    assert!(client.send(vec![b'x'; 1_000_000]).bytes(1_000_000).iter().all(|byte| *byte == b'x'));
    client.finish_sending();
    assert_eq!(client.rest(), (b"last".to_vec(), true));
}

#[test]
fn a_tunnel_ends_when_its_client_has_gone_and_the_program_says_nothing() {
    let (sender, ended) = channel();
    let (_held, end) = channel::<()>();
    let end = Mutex::new(end);
    let program = Program::start(move |talk, _| {
        talk.say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
        talk.rest();
        sender.send(()).unwrap();
        // Not every program closes because its client does.
        end.lock().unwrap().recv().is_ok()
    });
    let timeouts = Timeouts { body_progress: Duration::from_millis(50), ..Timeouts::default() };
    let text = text(&program.address.to_string(), "", "");
    let server = TestServer::start(application(), &text, Wishes { timeouts, ..Wishes::default() });
    let mut client = server.connect();
    client.send(UPGRADE);
    assert_eq!(client.answer_to_head().status, 101);
    client.finish_sending();
    ended.recv().unwrap();
    assert_eq!(client.rest(), (Vec::new(), true));
}

#[test]
fn an_upgrade_that_is_not_granted_is_an_answer_and_ends_the_programs_connection() {
    let program = Program::start(|talk, _| talk.answer("no"));
    let server = serve(&program);
    let mut client = server.connect();
    for (round, upgrade) in
        [UPGRADE, &UPGRADE.replace("\r\n\r\n", "\r\nContent-Length: 0\r\n\r\n")].into_iter().enumerate()
    {
        // What may be the other protocol comes before anybody agreed to it: it is not for that connection.
        client.send(upgrade).send("GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(client.answer().text(), "no");
        assert_eq!(client.answer().text(), "no");
        program.wait_for_ends(round + 1);
    }
    assert_eq!(program.heads().iter().filter(|head| head.contains("Upgrade: x")).count(), 2);
    assert_eq!(program.connections(), 3);
}

#[test]
fn events_go_out_at_once_and_leave_room_for_other_requests() {
    let (sender, next) = channel::<()>();
    let next = Mutex::new(next);
    let program = Program::start(move |talk, head| {
        if !head.starts_with("GET /events") {
            return talk.answer("other");
        }
        talk.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
        next.lock().unwrap().recv().unwrap();
        talk.say("data: 2\n\n");
        false
    });
    let server = serve_with(program.address, "concurrency 1", "");
    let mut client = server.connect();
    client.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer_to_head().status, 200);
    assert_eq!(client.bytes(14), b"9\r\ndata: 1\n\n\r\n");
    assert_eq!(server.connect().get("/").text(), "other");
    sender.send(()).unwrap();
    assert_eq!(client.bytes(19), b"9\r\ndata: 2\n\n\r\n0\r\n\r\n");
}

#[test]
fn a_file_that_the_program_names_is_sent_instead() {
    let program = Program::start(|talk, head| {
        let name = head.split(' ').nth(1).unwrap().to_owned();
        talk.say(format!(
            "HTTP/1.1 200 OK\r\nX-Accel-Redirect: {name}\r\nX-Mine: 1\r\nContent-Length: 2\r\n\r\nno"
        ))
    });
    let server = serve_with(program.address, "files ./dist", "");
    write(server.folder.path(), "dist/report.txt", b"the report");
    let mut client = server.connect();
    let answer = client.get("/report.txt");
    assert_eq!((answer.text().as_str(), answer.field("X-Mine")), ("the report", Some("1")));
    assert_eq!(answer.field("X-Accel-Redirect"), None);
    assert_eq!(client.get("/missing.txt").status, 404);
    assert_eq!(program.connections(), 1);
}

#[test]
fn a_whole_small_answer_is_compressed_and_fields_are_changed() {
    let program = Program::start(|talk, _| {
        let body = "{\"key\": \"value\"}".repeat(3_000);
        talk.say(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    });
    let server = serve_with(program.address, "", "encode gzip\n\theader X-Ours yes");
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.field("X-Ours"), Some("yes"));
    assert_eq!(answer.field("Content-Encoding"), Some("gzip"), "{}", answer.head);
    assert!(answer.body.len() < 1_000);
}

#[test]
fn a_slow_client_slows_the_program_down() {
    let (sender, written) = channel();
    let program = Program::start(move |talk, _| {
        talk.say("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        let piece = vec![b'x'; 1_000_000];
        talk.stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut count = 0;
        while talk.say(&piece) {
            count += 1;
        }
        sender.send(count).unwrap();
        false
    });
    let server = serve(&program);
    let mut client: Client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // What two pairs of socket buffers hold, and no more.
    let written = written.recv().unwrap();
    assert!(written < 40, "{written} MB were taken from the program");
}

/// A program that answers without end, whatever it is sent, and says when nobody takes more of it.
fn endless() -> (Program, std::sync::mpsc::Receiver<()>) {
    let (sender, is_stuck) = channel();
    let program = Program::start(move |talk, _| {
        talk.say("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        let piece: Vec<u8> = (0..251 * 1_000).map(|at: usize| (at % 251) as u8).collect();
        talk.stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        while talk.say(&piece) {}
        sender.send(()).unwrap();
        talk.rest();
        false
    });
    (program, is_stuck)
}

/// Reads an answer of [`endless`] to its end.
fn assert_nothing_comes_twice(client: &mut Client) {
    client.try_head().unwrap();
    let (body, _) = client.rest();
    assert!(body.len() > 100_000);
    let wrong = body.iter().enumerate().find(|(at, byte)| usize::from(**byte) != at % 251);
    assert_eq!(wrong, None, "of {} bytes", body.len());
}

#[test]
fn an_answer_that_breaks_off_while_its_client_takes_nothing_repeats_nothing() {
    let (program, is_stuck) = endless();
    let server = serve(&program);
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    is_stuck.recv().unwrap();
    client.send("no chunk\r\n");
    assert_nothing_comes_twice(&mut client);
    assert_eq!(server.metric("onehop_refused_total{cause=\"bad_chunk_size\""), 1, "{}", server.metrics());
}

#[test]
fn a_client_that_takes_nothing_loses_its_answer_and_is_counted() {
    let (program, is_stuck) = endless();
    let timeouts = Timeouts { write_progress: Duration::from_secs(1), ..Timeouts::default() };
    let text = text(&program.address.to_string(), "", "");
    let server = TestServer::start(application(), &text, Wishes { timeouts, ..Wishes::default() });
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    is_stuck.recv().unwrap();
    program.wait_for_ends(1);
    assert_nothing_comes_twice(&mut client);
    assert_eq!(server.metric("onehop_refused_total{cause=\"client_stalled\""), 1, "{}", server.metrics());
}
