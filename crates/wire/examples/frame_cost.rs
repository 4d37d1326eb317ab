//! What frames cost: `cargo run --release -p onehop-wire --example frame_cost`.
//!
//! Prints nanoseconds each, the least of several rounds. Not a benchmark of the server, only a way to see
//! what a change to the protocol's code did.

use std::hint::black_box;
use std::time::Instant;

use onehop_wire::{
    ConnectionKind, Facts, FieldName, Interned, Payload, RequestParts, ResponseParts, Sender, Slots, decode,
    encode,
};

const ROUNDS: usize = 7;
const TURNS: u32 = 200_000;

const SMALL: &[(&[u8], &[u8])] = &[(b"Host", b"127.0.0.1:8080")];

const BROWSER: &[(&[u8], &[u8])] = &[
    (b"Host", b"app.example.com"),
    (b"sec-ch-ua", b"\"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\""),
    (b"sec-ch-ua-mobile", b"?0"),
    (
        b"User-Agent",
        b"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    ),
    (b"sec-ch-ua-platform", b"\"Linux\""),
    (b"Origin", b"https://app.example.com"),
    (b"Accept", b"*/*"),
    (b"Sec-Fetch-Site", b"same-origin"),
    (b"Sec-Fetch-Mode", b"cors"),
    (b"Sec-Fetch-Dest", b"script"),
    (b"Referer", b"https://app.example.com/projects/17/settings"),
    (b"Accept-Encoding", b"gzip, deflate, br, zstd"),
    (b"Accept-Language", b"en-GB,en;q=0.9,de;q=0.8"),
    (b"Cookie", b"session=0123456789abcdef0123456789abcdef; theme=dark"),
    (b"If-None-Match", b"\"0123456789abcdef\""),
];

const ANSWER: &[(&[u8], &[u8])] = &[
    (b"content-type", b"application/json; charset=utf-8"),
    (b"etag", b"\"0123456789abcdef\""),
    (b"cache-control", b"no-cache"),
    (b"x-own", b"1"),
];

fn main() {
    let mut out = Vec::with_capacity(4096);
    for (name, fields) in [("small", SMALL), ("browser", BROWSER)] {
        let cost = least(|| {
            out.clear();
            request(&mut out, black_box(fields));
            black_box(&out);
        });
        println!("REQUEST  {name:8} {:4} bytes: written {cost:6.1} ns", out.len());
    }
    let mut answer = Vec::new();
    let parts = ResponseParts { status: 200, length: Some(64) };
    let head = |head: &mut onehop_wire::HeadWriter<'_>| {
        ANSWER.iter().for_each(|(name, value)| head.field(name, value));
    };
    encode::response(&mut answer, 1, 1, true, &parts, head, &[b'a'; 64]).expect("it is small");
    let read = least(|| {
        black_box(decode(black_box(&answer), Sender::Worker, ConnectionKind::Data).is_ok());
    });
    let lines = least(|| {
        out.clear();
        field_lines(black_box(&answer), &mut out);
        black_box(&out);
    });
    println!(
        "RESPONSE {:13} bytes: read {read:.1} ns; read and made field lines {lines:.1} ns",
        answer.len()
    );
    let names = least(|| {
        for (name, _) in BROWSER {
            black_box(Interned::of(black_box(name)));
        }
    });
    println!("a name looked up: {:.1} ns", names / BROWSER.len() as f64);
    let mut slots = Slots::new(256);
    let slot = least(|| {
        let (slot, generation) = slots.open().expect("one is free");
        black_box(slots.check(black_box(slot), generation));
        slots.close(slot);
    });
    println!("a slot opened, checked and closed: {slot:.1} ns");
}

fn request(out: &mut Vec<u8>, fields: &[(&[u8], &[u8])]) {
    let parts = RequestParts {
        method_code: 1,
        facts: Facts::NONE,
        client: Some(([127, 0, 0, 1], 50_000).into()),
        id: 0x0123_4567_89ab_cdef,
        length: Some(0),
    };
    let head = |head: &mut onehop_wire::HeadWriter<'_>| {
        head.target(b"/assets/index-4f3a9c1e.js");
        head.authority(b"app.example.com");
        fields.iter().for_each(|(name, value)| head.field(name, value));
    };
    encode::request(out, 1, 1, true, &parts, head, b"").expect("it is small");
}

/// What the server does with an answer: each field as a line of HTTP/1.
fn field_lines(frame: &[u8], out: &mut Vec<u8>) {
    let Ok(Some((frame, _))) = decode(frame, Sender::Worker, ConnectionKind::Data) else { return };
    let Payload::Response(response) = frame.payload else { return };
    for field in response.head.fields().flatten() {
        match field.name {
            FieldName::Interned(name) => out.extend_from_slice(name.line_start()),
            FieldName::Literal(name) => {
                out.extend_from_slice(name);
                out.extend_from_slice(b": ");
            }
        }
        out.extend_from_slice(field.value);
        out.extend_from_slice(b"\r\n");
    }
}

/// Nanoseconds of one call, the least of the rounds.
fn least(mut call: impl FnMut()) -> f64 {
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..TURNS {
                call();
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(TURNS)
        })
        .fold(f64::INFINITY, f64::min)
}
