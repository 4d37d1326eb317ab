//! Everything at once: many clients that behave and that do not, one program that does and does not.
//!
//! Every answer carries the token of its own request, nothing that means something else twice is seen
//! twice, and nothing that a client sent as a body is ever seen as a request.

use std::collections::HashMap;

use super::program::{Program, Talk, field};
use super::text;
use crate::client::Client;
use crate::harness::{TestServer, Wishes, application};

const CLIENTS: u64 = 16;
const REQUESTS: u64 = 60;

/// What a client does and asks the program to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Body there, answer back.
    Plain,
    /// The answer comes in pieces.
    Pieces,
    /// The program asks for the body.
    Expect,
    /// The program refuses the body.
    Refused,
    /// The program answers before it has the body.
    Early,
    /// An upgrade that is answered with 200.
    Upgrade,
    /// The answer is cut off.
    Cut,
    /// There is none.
    Silent,
    /// The client leaves in the middle of its request.
    LeaveAsking,
    /// The client leaves before the answer.
    LeaveAsked,
}

const KINDS: [Kind; 10] = [
    Kind::Plain,
    Kind::Pieces,
    Kind::Expect,
    Kind::Refused,
    Kind::Early,
    Kind::Upgrade,
    Kind::Cut,
    Kind::Silent,
    Kind::LeaveAsking,
    Kind::LeaveAsked,
];

/// A body that would be a request, were it read as one.
const BODY: &str = "GET /evil HTTP/1.1\r\nHost: evil\r\n\r\n";

fn script(talk: &mut Talk, head: &str) -> bool {
    let path = head.split(' ').nth(1).unwrap();
    let mut parts = path.split('/').skip(1);
    let (token, kind) = (parts.next().unwrap().to_owned(), parts.next().unwrap_or_default());
    let has_body =
        |talk: &mut Talk| talk.body(head).is_some_and(|body| body.is_empty() || body == BODY.as_bytes());
    match kind {
        "Pieces" => {
            if !has_body(talk) {
                return false;
            }
            talk.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for byte in token.bytes() {
                talk.say([b"1\r\n", &[byte][..], b"\r\n"].concat());
            }
            talk.say("0\r\n\r\n")
        }
        "Refused" => {
            let length = token.len();
            talk.say(format!("HTTP/1.1 417 No\r\nContent-Length: {length}\r\n\r\n{token}"))
        }
        "Early" => {
            talk.answer(&token);
            has_body(talk)
        }
        "Cut" => {
            talk.say(format!("HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{token}"));
            false
        }
        "Silent" => false,
        _ => {
            if field(head, "Expect").is_some() {
                talk.say("HTTP/1.1 100 Continue\r\n\r\n");
            }
            has_body(talk) && talk.answer(&token)
        }
    }
}

/// One request and what comes of it; `false` where the connection is of no more use.
fn ask(client: &mut Client, token: &str, kind: Kind, method: &str) -> bool {
    let expect = if matches!(kind, Kind::Expect | Kind::Refused) { "Expect: 100-continue\r\n" } else { "" };
    let upgrade = if kind == Kind::Upgrade { "Connection: upgrade\r\nUpgrade: x\r\n" } else { "" };
    let body = if kind == Kind::Upgrade || method == "GET" { "" } else { BODY };
    let length = body.len();
    client.send(format!(
        "{method} /{token}/{kind:?} HTTP/1.1\r\nHost: localhost\r\n{expect}{upgrade}\
         Content-Length: {length}\r\n\r\n"
    ));
    match kind {
        Kind::LeaveAsking => {
            client.send(&body[..length / 2]);
            return false;
        }
        Kind::Expect | Kind::Refused if !body.is_empty() => {
            let Ok(first) = client.try_answer(false) else { return false };
            if first.status != 100 {
                assert_eq!(client.bytes(token.len()), token.as_bytes());
                return false;
            }
            client.send(body);
        }
        _ => drop(client.send(body)),
    }
    if kind == Kind::LeaveAsked {
        return false;
    }
    let Ok(answer) = client.try_answer(true) else {
        assert_eq!(kind, Kind::Cut, "{token} is not answered");
        return false;
    };
    match answer.status {
        200 | 417 => assert_eq!(answer.text(), token, "{kind:?}"),
        502 => assert_eq!(kind, Kind::Silent, "{token}"),
        status => panic!("{token} {kind:?}: {status}"),
    }
    answer.field("Connection") != Some("close")
}

#[test]
fn every_answer_is_its_own_requests_and_nothing_runs_twice() {
    let program = Program::start(script);
    let text = text(&program.address.to_string(), "concurrency 64", "");
    let server = TestServer::start(application(), &text, Wishes { threads: 2, ..Wishes::default() });
    let address = server.address();
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let address = &address;
            scope.spawn(move || {
                let mut client = Client::connect(address);
                // Any order, but the same one each time.
                let mut state = number * 2_654_435_761 + 1;
                for request in 0..REQUESTS {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let kind = KINDS[(state >> 33) as usize % KINDS.len()];
                    let method = ["GET", "POST"][(state >> 40) as usize % 2];
                    let token = format!("{method}-{number}-{request}");
                    if !ask(&mut client, &token, kind, method) {
                        client = Client::connect(address);
                    }
                }
            });
        }
    });
    let mut seen = HashMap::new();
    for head in program.heads() {
        let line = head.lines().next().unwrap().to_owned();
        let (method, rest) = line.split_once(" /").unwrap();
        assert!(rest.starts_with(method), "{line} was no request");
        *seen.entry(line).or_insert(0) += 1;
    }
    let twice: Vec<_> = seen.iter().filter(|(line, count)| line.starts_with("POST") && **count > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert!(program.connections() < (CLIENTS * REQUESTS) as usize, "connections are used again");
}
