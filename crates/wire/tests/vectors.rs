//! The golden frames of sdk/vectors: read to their meaning, written again byte for byte.

mod again;

use onehop_wire::{
    Broken, ConnectionKind, Facts, Frame, HeadBlock, Hello, Payload, Pong, Ready, RequestLine, ResetCode,
    Sender, Transport, decode,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const FRAMES: &str = include_str!("../../../sdk/vectors/frames.json");
const BROKEN: &str = include_str!("../../../sdk/vectors/broken.json");

#[derive(Deserialize)]
struct Vector {
    name: String,
    from: String,
    #[serde(rename = "lane")]
    connection: String,
    bytes: String,
    #[serde(default = "canonical")]
    canonical: bool,
    #[serde(default)]
    frame: Value,
    #[serde(default)]
    error: String,
}

fn canonical() -> bool {
    true
}

impl Vector {
    fn all(text: &str) -> Vec<Vector> {
        serde_json::from_str(text).unwrap()
    }

    fn from(&self) -> Sender {
        match &*self.from {
            "server" => Sender::Server,
            "worker" => Sender::Worker,
            other => panic!("{}: nobody is called {other}", self.name),
        }
    }

    fn connection(&self) -> ConnectionKind {
        match &*self.connection {
            "control" => ConnectionKind::Control,
            "data" => ConnectionKind::Data,
            other => panic!("{}: no connection is called {other}", self.name),
        }
    }
}

fn bytes_of(text: &str) -> Vec<u8> {
    let chunk = |chunk: &str| {
        let (digits, times) = chunk.split_once('*').unwrap_or((chunk, "1"));
        let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        let bytes: Vec<u8> = pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
        bytes.repeat(times.parse().unwrap())
    };
    text.split_whitespace().flat_map(chunk).collect()
}

fn utf_8(text: &[u8]) -> Value {
    json!(std::str::from_utf8(text).unwrap())
}

fn latin_1(text: &[u8]) -> Value {
    json!(text.iter().map(|byte| char::from(*byte)).collect::<String>())
}

fn digits(number: u64) -> Value {
    json!(format!("{number:016x}"))
}

fn fields(block: HeadBlock<'_>) -> Value {
    let pair = |field: onehop_wire::Field<'_>| json!([latin_1(field.name.as_bytes()), latin_1(field.value)]);
    block.fields().map(|field| pair(field.unwrap())).collect()
}

fn facts(facts: Facts) -> Value {
    let named = [
        (Facts::ENCRYPTED, "encrypted"),
        (Facts::EXPECTS_CONTINUE, "expects_continue"),
        (Facts::UPGRADE, "upgrade"),
        (Facts::HTTP_10, "http_1_0"),
        (Facts::ODD_SPELLING, "odd_spelling"),
    ];
    named.iter().filter(|(fact, _)| facts.has(*fact)).map(|(_, name)| json!(name)).collect()
}

fn code_name(code: ResetCode) -> &'static str {
    match code {
        ResetCode::ClientGone => "client gone",
        ResetCode::Timeout => "timeout",
        ResetCode::Failed => "failed",
        ResetCode::Refused => "refused",
        ResetCode::NotNeeded => "not needed",
        ResetCode::Broken => "broken",
        ResetCode::HangUp => "hang up",
    }
}

/// The frame as the vectors write it, but for its body: that is compared as bytes.
fn meaning(frame: &Frame<'_>) -> (Value, Vec<u8>) {
    let mut body = Vec::new();
    let (kind, mut meaning) = match frame.payload {
        Payload::Hello(hello) => ("HELLO", hello_meaning(&hello)),
        Payload::Ready(ready) => ("READY", ready_meaning(&ready)),
        Payload::Failed(text) => ("FAILED", json!({"text": utf_8(text)})),
        Payload::Ping(token) => ("PING", json!({"token": digits(token)})),
        Payload::Pong(pong) => ("PONG", pong_meaning(&pong)),
        Payload::Blocked(blocked) => {
            ("BLOCKED", json!({"duration_us": blocked.duration_us, "ended_us_ago": blocked.ended_us_ago}))
        }
        Payload::Loaded(paths) => ("LOADED", json!({"text": utf_8(paths)})),
        Payload::Drain => ("DRAIN", json!({})),
        Payload::Retire => ("RETIRE", json!({})),
        Payload::Request(request) => {
            body = request.body.to_vec();
            let RequestLine { target, authority, tls, method, fields: block } = request.line().unwrap();
            let client = request.client.map(|it| json!({"address": it.ip().to_string(), "port": it.port()}));
            let meaning = json!({
                "method": request.method_code, "facts": facts(request.facts), "client": client,
                "id": digits(request.id), "length": request.length, "target": latin_1(target),
                "authority": latin_1(authority), "tls": latin_1(tls), "own_method": latin_1(method),
                "fields": fields(block),
            });
            ("REQUEST", meaning)
        }
        Payload::Response(response) => {
            body = response.body.to_vec();
            let (status, length) = (response.status, response.length);
            ("RESPONSE", json!({"status": status, "length": length, "fields": fields(response.head)}))
        }
        Payload::Informational(early) => {
            ("INFORMATIONAL", json!({"status": early.status, "fields": fields(early.head)}))
        }
        Payload::File(file) => {
            let meaning = json!({
                "status": file.status, "offset": file.offset, "length": file.length,
                "path": utf_8(file.path), "fields": fields(file.head),
            });
            ("FILE", meaning)
        }
        Payload::Data(bytes) => {
            body = bytes.to_vec();
            ("DATA", json!({}))
        }
        Payload::Trailers(block) => ("TRAILERS", json!({"fields": fields(block)})),
        Payload::Reset(code) => ("RESET", json!({"code": code.number(), "meaning": code_name(code)})),
        Payload::Credit(bytes) => ("CREDIT", json!({"bytes": bytes})),
        Payload::FilePart(part) => {
            let meaning = json!({
                "offset": part.offset, "length": part.length, "device": digits(part.device),
                "inode": digits(part.inode), "path": utf_8(part.path),
            });
            ("FILE_PART", meaning)
        }
        Payload::FileSent(bytes) => ("FILE_SENT", json!({"bytes": bytes})),
    };
    let object = meaning.as_object_mut().unwrap();
    object.extend(Map::from_iter([
        ("kind".to_owned(), json!(kind)),
        ("slot".to_owned(), json!(frame.slot)),
        ("generation".to_owned(), json!(frame.generation)),
        ("end".to_owned(), json!(frame.end)),
    ]));
    (meaning, body)
}

fn hello_meaning(hello: &Hello<'_>) -> Value {
    json!({
        "version_min": hello.version_min, "version_max": hello.version_max, "lanes": hello.connections,
        "slots": hello.slots, "stream_window": hello.stream_window, "lane_window": hello.connection_window,
        "begins_per_turn": hello.begins_per_turn, "server": utf_8(hello.server),
        "application": utf_8(hello.application),
    })
}

fn ready_meaning(ready: &Ready<'_>) -> Value {
    let transport = match ready.transport {
        Transport::Frames => "frames",
        Transport::Http => "http",
        Transport::FramesForServer => "frames for a server",
    };
    json!({
        "version": ready.version, "transport": transport, "runtime": utf_8(ready.runtime),
        "runtime_version": utf_8(ready.runtime_version), "library_version": utf_8(ready.library_version),
    })
}

fn pong_meaning(pong: &Pong) -> Value {
    json!({
        "token": digits(pong.token), "delay_us": pong.delay_us, "in_flight": pong.in_flight,
        "begun": pong.begun, "heap_bytes": pong.heap_bytes, "resident_bytes": pong.resident_bytes,
    })
}

#[test]
fn every_golden_frame_means_what_it_says_and_is_written_byte_for_byte() {
    let mut kinds = std::collections::BTreeSet::new();
    for vector in Vector::all(FRAMES) {
        let (name, bytes) = (&vector.name, bytes_of(&vector.bytes));
        let decoded = decode(&bytes, vector.from(), vector.connection());
        let (frame, taken) = decoded.unwrap_or_else(|broken| panic!("{name}: {broken}")).expect(name);
        assert_eq!(taken, bytes.len(), "{name}");
        let (meaning, body) = meaning(&frame);
        let mut expected = vector.frame.clone();
        let expected_body = expected.as_object_mut().unwrap().remove("body");
        let expected_body = expected_body.map(|body| bytes_of(body.as_str().unwrap())).unwrap_or_default();
        assert_eq!(meaning, expected, "{name}");
        assert_eq!(body, expected_body, "{name}");
        assert_eq!(again::is_canonical(&frame, &bytes, vector.from()), vector.canonical, "{name}");
        let written = again::write(&frame).unwrap();
        assert_eq!(written == bytes, vector.canonical, "{name}");
        assert!(
            decode(&written, vector.from(), vector.connection()).is_ok_and(|frame| frame.is_some()),
            "{name}"
        );
        kinds.insert(meaning["kind"].to_string());
    }
    assert_eq!(kinds.len(), 19, "{kinds:?}");
}

#[test]
fn every_beginning_of_a_golden_frame_asks_for_more() {
    for vector in Vector::all(FRAMES) {
        let bytes = bytes_of(&vector.bytes);
        // All cuts near both ends; a few in the bodies that are there for their length.
        for cut in (0..bytes.len()).filter(|cut| *cut < 512 || bytes.len() - cut < 64 || cut % 4099 == 0) {
            let decoded = decode(&bytes[..cut], vector.from(), vector.connection());
            assert_eq!(decoded, Ok(None), "{} cut at {cut}", vector.name);
        }
    }
}

#[test]
fn every_broken_frame_is_refused_for_what_is_wrong_with_it() {
    let mut seen = std::collections::BTreeSet::new();
    for vector in Vector::all(BROKEN) {
        let bytes = bytes_of(&vector.bytes);
        let broken = match decode(&bytes, vector.from(), vector.connection()) {
            Err(broken) => broken,
            Ok(Some((frame, _))) => again::write(&frame).expect_err(&vector.name),
            Ok(None) => panic!("{}: more bytes are asked for", vector.name),
        };
        assert_eq!(broken.name(), vector.error, "{}: {broken}", vector.name);
        seen.insert(broken.name());
    }
    let not_a_frame = [Broken::CreditExceeded.name(), Broken::CreditOverflow.name()];
    assert!(!seen.iter().any(|name| not_a_frame.contains(name)));
    assert_eq!(seen.len(), 28, "each fault of a frame has a vector: {seen:?}");
}
