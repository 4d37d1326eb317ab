//! One corpus of requests and answers through Caddy and through onehop: what the upstream gets, and what the client
//! gets, is the same but for the differences in [`super::differences`], each with its reason. An entry that explains
//! nothing any more fails too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Client, wait_for};

use super::differences::{DIFFERENCES, Difference, Side};
use crate::subject::Subject;

const PLAIN_REQUEST: &str = "GET /path?query HTTP/1.1\r\nHost: site.example\r\n\r\n";
const PLAIN_ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nwell";

/// A request, which gets [`PLAIN_ANSWER`]: its name, its method and target, its other lines and its body. Each gets a
/// Host field of its own where it has none.
// tidy: table, because it is one.
const REQUESTS: &[(&str, &str, &str, &str)] = &[
    ("get", "GET /", "", ""),
    ("head", "HEAD /", "", ""),
    ("options", "OPTIONS /", "", ""),
    ("delete", "DELETE /thing", "", ""),
    ("delete with a body", "DELETE /thing", "Content-Length: 4\r\n", "body"),
    ("a method of its own", "BREW /pot", "", ""),
    ("post", "POST /form", "Content-Type: text/plain\r\nContent-Length: 4\r\n", "body"),
    ("post without a length", "POST /form", "", ""),
    ("post of nothing", "POST /form", "Content-Length: 0\r\n", ""),
    ("put chunked", "PUT /file", "Transfer-Encoding: chunked\r\n", "4\r\nbody\r\n0\r\n\r\n"),
    ("patch", "PATCH /file", "Content-Length: 4\r\n", "body"),
    ("get with a body", "GET /search", "Content-Length: 4\r\n", "body"),
    (
        "trailers",
        "POST /sum",
        "TE: trailers\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n",
        "2\r\nab\r\n0\r\nX-Sum: 3\r\n\r\n",
    ),
    ("a query", "GET /a?b=c&d=%20e", "", ""),
    ("an empty query", "GET /a?", "", ""),
    ("an escaped slash", "GET /a%2Fb", "", ""),
    ("small and large escapes", "GET /%c3%A4", "", ""),
    ("needless escapes", "GET /%61", "", ""),
    ("parameters of a path", "GET /a;b=c", "", ""),
    ("marks in a path", "GET /a!$&'()*+,;=:@b", "", ""),
    ("two slashes", "GET /a//b//", "", ""),
    ("two slashes in front", "GET //a//b", "", ""),
    ("dots within", "GET /a/./b/../c", "", ""),
    ("a plus", "GET /a+b?c+d", "", ""),
    ("quotes in a query", "GET /?q=\"a\"", "", ""),
    ("bars in a query", "GET /?a|b", "", ""),
    ("an absolute target", "GET http://site.example/abs", "", ""),
    ("two of a kind", "GET /", "X-Two: a\r\nX-Two: b\r\n", ""),
    ("an empty value", "GET /", "X-Empty:\r\n", ""),
    ("white space around", "GET /", "X-Space:  \t a b \t\r\n", ""),
    ("small letters", "GET /", "x-small: s\r\n", ""),
    ("cookies", "GET /", "Cookie: a=1\r\nCookie: b=2\r\n", ""),
    ("a user agent", "GET /", "User-Agent: test/1\r\n", ""),
    ("codings", "GET /", "Accept-Encoding: gzip, br\r\n", ""),
    ("a range", "GET /", "Range: bytes=0-1\r\n", ""),
    (
        "conditions",
        "GET /",
        "If-None-Match: \"a\"\r\nIf-Modified-Since: Mon, 01 Jan 1990 00:00:00 GMT\r\n",
        "",
    ),
    ("credentials", "GET /", "Authorization: Basic c2VjcmV0\r\n", ""),
    ("for a proxy", "GET /", "Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\n", ""),
    (
        "forwarded",
        "GET /",
        "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.example\r\n",
        "",
    ),
    (
        "forwarded otherwise",
        "GET /",
        "Forwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nX-Forwarded-Port: 1\r\nX-Forwarded-Server: s\r\n",
        "",
    ),
    ("underscores", "GET /", "X_Forwarded_For: 6.6.6.6\r\nx_other: o\r\n", ""),
    ("hops named", "GET /", "Connection: X-Hop\r\nX-Hop: h\r\nX-Stay: s\r\n", ""),
    ("ours named", "GET /", "Connection: X-Forwarded-For\r\n", ""),
    ("close", "GET /", "Connection: close\r\n", ""),
    ("keep-alive", "GET /", "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n", ""),
    (
        "an upgrade nobody takes",
        "GET /",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGVzdHRlc3R0ZXN0dGVzdA==\r\n",
        "",
    ),
    ("an upgrade by half", "GET /", "Upgrade: websocket\r\n", ""),
    ("through another proxy", "GET /", "Via: 1.1 outer\r\nMax-Forwards: 3\r\n", ""),
    ("letters outside ascii", "GET /", "X-Latin: \u{e4}\r\n", ""),
    ("a host with a port", "GET /", "Host: site.example:8080\r\n", ""),
    ("a host in capitals", "GET /", "Host: SITE.Example\r\n", ""),
    (
        "a referer and an origin",
        "GET /",
        "Referer: http://other.example/\r\nOrigin: http://other.example\r\n",
        "",
    ),
    ("priority", "GET /", "Priority: u=1\r\nDNT: 1\r\nTE: trailers\r\n", ""),
];

/// Answers to [`PLAIN_REQUEST`] (to HEAD where the name says so).
// tidy: table, because it is one.
const ANSWERS: &[(&str, &str)] = &[
    ("of known length", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell"),
    ("chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwell\r\n0\r\n\r\n"),
    (
        "chunked with extensions",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;a=b\r\nwell\r\n0\r\n\r\n",
    ),
    (
        "trailers down",
        "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwell\r\n0\r\nX-Sum: 4\r\n\r\n",
    ),
    ("until the end", "HTTP/1.1 200 OK\r\n\r\nwell"),
    ("http 1.0", "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nwell"),
    ("empty", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ("head of a length", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
    ("head without a length", "HTTP/1.1 200 OK\r\n\r\n"),
    ("head of chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("201", "HTTP/1.1 201 Created\r\nLocation: /new\r\nContent-Length: 0\r\n\r\n"),
    ("204", "HTTP/1.1 204 No Content\r\n\r\n"),
    ("205", "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"),
    ("206", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/10\r\nContent-Length: 4\r\n\r\nwell"),
    ("301", "HTTP/1.1 301 Moved Permanently\r\nLocation: http://inner.example/\r\nContent-Length: 0\r\n\r\n"),
    ("304", "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"),
    ("304 with a length", "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 4\r\n\r\n"),
    ("404", "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone"),
    ("418 of its own reason", "HTTP/1.1 418 Short and stout\r\nContent-Length: 0\r\n\r\n"),
    ("500", "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops"),
    ("503", "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"),
    ("an unknown status", "HTTP/1.1 599 Whatever\r\nContent-Length: 0\r\n\r\n"),
    ("no reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"),
    (
        "its own server and date",
        "HTTP/1.1 200 OK\r\nServer: inner/1\r\nDate: Mon, 01 Jan 1990 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "cookies set",
        "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2; Path=/\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "two of a kind down",
        "HTTP/1.1 200 OK\r\nX-Two: a\r\nX-Two: b\r\nVary: A\r\nVary: B\r\nContent-Length: 0\r\n\r\n",
    ),
    ("an empty value down", "HTTP/1.1 200 OK\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n"),
    ("small letters down", "HTTP/1.1 200 OK\r\nx-small: s\r\ncontent-length: 4\r\n\r\nwell"),
    (
        "hops down",
        "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: h\r\nKeep-Alive: timeout=5\r\nProxy-Connection: close\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "asks for credentials",
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "a proxy asks for credentials",
        "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "through another proxy down",
        "HTTP/1.1 200 OK\r\nVia: 1.1 inner\r\nAge: 3\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "other services",
        "HTTP/1.1 200 OK\r\nAlt-Svc: h3=\":443\"\r\nStrict-Transport-Security: max-age=1\r\nX-Accel-Buffering: no\r\nContent-Length: 0\r\n\r\n",
    ),
    ("coded", "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\nwell"),
    ("no type", "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<!doctype html>"),
    (
        "events",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\n0\r\n\r\n",
    ),
    (
        "hints before",
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell",
    ),
];

/// What one side got: a line, fields by their lower-case names, and what follows the head.
#[derive(Debug, Default, Clone, PartialEq)]
struct Got {
    fields: BTreeMap<String, String>,
}

/// Takes a message apart. Names lose their case, which has no meaning (RFC 9110 section 5.1); values of one name are
/// joined in their order.
fn take_apart(bytes: &str) -> Got {
    let (head, body) = bytes.split_once("\r\n\r\n").unwrap_or((bytes, ""));
    let mut lines = head.split("\r\n");
    let mut got = Got::default();
    got.fields.insert(":line".to_owned(), lines.next().unwrap_or_default().to_owned());
    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let joined = got.fields.entry(name.to_ascii_lowercase()).or_default();
        if !joined.is_empty() {
            joined.push_str(" + ");
        }
        joined.push_str(value.trim());
    }
    // A server's own clock.
    if let Some(date) = got.fields.get_mut("date").filter(|date| !date.contains("1990")) {
        *date = "(now)".to_owned();
    }
    got.fields.insert(":body".to_owned(), body.to_owned());
    got
}

struct Exchange {
    name: String,
    request: String,
    answer: String,
}

fn exchanges() -> Vec<Exchange> {
    let requests = REQUESTS.iter().map(|(name, line, fields, body)| {
        let host = if fields.starts_with("Host:") { "" } else { "Host: site.example\r\n" };
        let request = format!("{line} HTTP/1.1\r\n{host}{fields}\r\n{body}");
        Exchange { name: format!("request: {name}"), request, answer: PLAIN_ANSWER.to_owned() }
    });
    let answers = ANSWERS.iter().map(|(name, answer)| {
        let method = if name.starts_with("head") { "HEAD" } else { "GET" };
        let request = PLAIN_REQUEST.replacen("GET", method, 1);
        Exchange { name: format!("answer: {name}"), request, answer: (*answer).to_owned() }
    });
    requests.chain(answers).collect()
}

/// Latin-1: one byte for each letter, so that those outside ASCII can be written in a table.
fn bytes_of(text: &str) -> Vec<u8> {
    text.chars().map(|letter| u8::try_from(letter).unwrap_or(b'?')).collect()
}

/// A proxy, and the upstream behind it, which gives the answer that was set.
struct Comparison {
    subject: Subject,
    upstream: Upstream,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl Comparison {
    fn start(start: impl Fn(&str) -> Subject) -> Comparison {
        let answer = Arc::new(Mutex::new(Vec::new()));
        let current = Arc::clone(&answer);
        let upstream = Upstream::start(move |connection| {
            while let Some(request) = connection.request() {
                let answer = current.lock().expect("one at a time").clone();
                let end = answer.windows(4).rposition(|window| window == b"\r\n\r\n").map_or(0, |at| at + 4);
                let is_head = request.method() == "HEAD";
                connection.send(if is_head { answer.get(..end).unwrap_or_default() } else { &answer });
                if ends_with_connection(&answer) {
                    connection.end_of_sending();
                    connection.wait_for_end();
                    return;
                }
            }
        });
        let subject = start(&format!("\treverse_proxy {}", upstream.address()));
        Comparison { subject, upstream, answer }
    }

    /// What the upstream and the client get of one exchange.
    fn play(&self, exchange: &Exchange) -> (Got, Got) {
        *self.answer.lock().expect("one at a time") = bytes_of(&exchange.answer);
        let before = self.upstream.requests();
        let mut client = self.subject.connect();
        client.send(bytes_of(&exchange.request));
        let down = read_answer(&mut client, exchange.request.starts_with("HEAD"));
        let Some(request) = self.upstream.seen().into_iter().nth(before) else {
            return (Got::default(), down);
        };
        if ends_with_connection(exchange.answer.as_bytes()) {
            // The next request must not meet its end.
            let end = || (!self.upstream.is_open(request.connection)).then_some(());
            wait_for("the connection's end", end);
        }
        let trailers = request.trailers.join("\r\n");
        (take_apart(&format!("{}\r\n\r\n{}{trailers}", request.head, request.text())), down)
    }
}

/// Whether nobody may keep a connection after this answer.
fn ends_with_connection(answer: &[u8]) -> bool {
    let answer = String::from_utf8_lossy(answer).to_ascii_lowercase();
    let is_framed = ["content-length:", "transfer-encoding:", " 204 ", " 304 "];
    !is_framed.iter().any(|text| answer.contains(text))
        || ["http/1.0", "connection: x-hop"].iter().any(|text| answer.contains(text))
}

/// All heads of an answer, informational ones too, and its body out of its framing.
fn read_answer(client: &mut Client, is_head: bool) -> Got {
    let method = if is_head { "HEAD" } else { "GET" };
    let mut before = String::new();
    loop {
        match client.try_read_for(method) {
            Ok(response) if response.status / 100 == 1 && response.status != 101 => {
                let _ = write!(before, "{} ", response.status);
            }
            Ok(response) => {
                let body: String = response.body.iter().map(|byte| char::from(*byte)).collect();
                let mut got = take_apart(&format!("{}\r\n\r\n{body}", response.head));
                if !before.is_empty() {
                    got.fields.insert(":before".to_owned(), before);
                }
                return got;
            }
            Err(error) => {
                let mut got = Got::default();
                got.fields.insert(":error".to_owned(), format!("{:?}", error.kind()));
                return got;
            }
        }
    }
}

/// A difference that was found.
#[derive(Debug)]
struct Found {
    case: String,
    side: Side,
    field: String,
    caddy: Option<String>,
    onehop: Option<String>,
}

fn compare(case: &str, side: Side, caddy: &Got, onehop: &Got, found: &mut Vec<Found>) {
    let names: BTreeSet<&String> = caddy.fields.keys().chain(onehop.fields.keys()).collect();
    for name in names {
        let [theirs, ours] = [caddy, onehop].map(|got| got.fields.get(name).cloned());
        if theirs != ours {
            found.push(Found {
                case: case.to_owned(),
                side,
                field: name.clone(),
                caddy: theirs,
                onehop: ours,
            });
        }
    }
}

fn explains(entry: &Difference, found: &Found) -> bool {
    entry.side == found.side
        && ["*", found.field.as_str()].contains(&entry.field)
        && (entry.cases.is_empty()
            || entry.cases.iter().any(|case| found.case.ends_with(&format!(": {case}"))))
        && entry.caddy.is_none_or(|wanted| found.caddy.as_deref() == wanted)
        && entry.onehop.is_none_or(|wanted| found.onehop.as_deref() == wanted)
}

#[test]
#[ignore = "needs Caddy: cargo xtask suites --ci runs it"]
fn caddy_and_onehop_pass_the_same_on_in_both_directions() {
    let mut found = Vec::new();
    let all = exchanges();
    let rival = Comparison::start(|directive| Subject::caddy("", directive).expect("Caddy"));
    // Caddy compared with itself shows what varies by itself.
    let own = Comparison::start(Subject::start);
    for exchange in &all {
        let (caddy, onehop) = (rival.play(exchange), own.play(exchange));
        compare(&exchange.name, Side::Upstream, &caddy.0, &onehop.0, &mut found);
        compare(&exchange.name, Side::Client, &caddy.1, &onehop.1, &mut found);
    }
    let unexplained: Vec<String> = found
        .iter()
        .filter(|found| !DIFFERENCES.iter().any(|entry| explains(entry, found)))
        .map(|Found { case, side, field, caddy, onehop }| {
            format!("{case}: to the {side:?}: {field}: Caddy {caddy:?}, onehop {onehop:?}")
        })
        .collect();
    let idle: Vec<&str> = DIFFERENCES
        .iter()
        .filter(|_| own.subject.is_onehop())
        .filter(|entry| !found.iter().any(|found| explains(entry, found)))
        .map(|entry| entry.reason)
        .collect();
    println!("{} exchanges, {} differences", all.len(), found.len());
    assert!(unexplained.is_empty(), "not explained:\n{}", unexplained.join("\n"));
    assert!(idle.is_empty(), "explains nothing any more: {idle:#?}");
}
