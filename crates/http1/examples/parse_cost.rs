//! What a head and an answer cost: `cargo run --release -p onehop-http1 --example parse_cost`.
//!
//! Prints nanoseconds each, the least of several rounds. Not a benchmark of the server, only a way to see
//! what a change to the codec did.

use std::hint::black_box;
use std::time::Instant;

use onehop_http1::{AnswerHead, BodyLength, Limits, RequestHead, ServerCodec};

const ROUNDS: usize = 7;
const TURNS: u32 = 200_000;

const SMALL: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

const BROWSER: &[u8] = b"GET /assets/index-4f3a9c1e.js HTTP/1.1\r\n\
Host: app.example.com\r\n\
Connection: keep-alive\r\n\
sec-ch-ua: \"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\"\r\n\
sec-ch-ua-mobile: ?0\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\n\
sec-ch-ua-platform: \"Linux\"\r\n\
Origin: https://app.example.com\r\n\
Accept: */*\r\n\
Sec-Fetch-Site: same-origin\r\n\
Sec-Fetch-Mode: cors\r\n\
Sec-Fetch-Dest: script\r\n\
Referer: https://app.example.com/projects/17/settings\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\n\
Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n\
Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n\
If-None-Match: \"0123456789abcdef\"\r\n\r\n";

fn main() {
    let mut codec = ServerCodec::new(Limits::default());
    let mut head = RequestHead::new();
    let mut out = Vec::with_capacity(1024);
    for (name, request) in [("small", SMALL), ("browser", BROWSER)] {
        let whole = least(|| turn(&mut codec, request, &mut head, &mut out));
        let tokens = least(|| tokenise(request));
        println!(
            "{name:8} {:4} bytes: head, answer and reset {whole:6.1} ns; httparse alone {tokens:6.1} ns",
            request.len()
        );
    }
    let read_only = least(|| {
        let mut codec = ServerCodec::new(Limits::default());
        black_box(codec.read_head(black_box(SMALL), &mut head).is_ok());
    });
    println!("small head alone, with a new codec {read_only:6.1} ns");
}

fn turn(codec: &mut ServerCodec, request: &[u8], head: &mut RequestHead, out: &mut Vec<u8>) {
    black_box(codec.read_head(black_box(request), head).is_ok());
    out.clear();
    codec.write_head(
        out,
        AnswerHead {
            status: 200,
            fields: b"Content-Type: text/html; charset=utf-8\r\nETag: \"0123456789abcdef\"\r\nCache-Control: no-cache\r\n",
            date: b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n",
            body: BodyLength::Known(788),
            upgrade: false,
        },
    );
    codec.note_data_written_elsewhere(788);
    black_box(codec.finish(out, b""));
    black_box(&out);
}

fn tokenise(request: &[u8]) {
    let mut room = [httparse::EMPTY_HEADER; 32];
    let mut parsed = httparse::Request::new(&mut room);
    black_box(parsed.parse(black_box(request)).is_ok());
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
