//! What the file handlers cost on their own: nanoseconds for one request of a file in memory, from a
//! read head to a finished answer. Run it optimised:
//! `cargo run --release -p onehop-server --example file_cost`.

#[path = "../tests/sample/mod.rs"]
mod sample;

use std::hint::black_box;
use std::time::{Duration, Instant};

use onehop_files as files;
use onehop_message::response::Response;

use sample::{CODINGS, file_server, head, request, spa, store};

const ROUNDS: u32 = 2_000_000;

fn main() {
    let store = store();
    let browser = "Accept: */*\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nUser-Agent: x\r\n";
    let navigation = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";
    let Some(tag) = store.file(0).and_then(|file| file.identity.as_ref()).map(|form| form.etag.clone())
    else {
        return;
    };
    let none_match = format!("If-None-Match: {tag}\r\n");
    for (name, target, lines, codings) in [
        ("index page, no coding", "/", "", CODINGS),
        ("index page by its name", "/index.html", "", CODINGS),
        ("index page, 304", "/", none_match.as_str(), CODINGS),
        ("hashed asset, brotli", "/assets/index-B3xKq9aZ.js", browser, CODINGS),
        ("navigation to a place in the app", "/users/7/settings", navigation, CODINGS),
        ("range of an asset", "/assets/index-B3xKq9aZ.js", "Range: bytes=0-99\r\n", &[]),
    ] {
        let head = head("GET", target, lines);
        let mut answer = Response::default();
        let request = request(&head, &store, codings);
        let settings = spa();
        let spa_cost = cost(|| {
            answer.clear();
            let _ = black_box(files::spa(black_box(&settings), black_box(&request), &mut answer));
        });
        println!("{name:<36} spa {:>4} ns, status {}", spa_cost.as_nanos(), answer.status);
    }
    let head = head("GET", "/", "");
    let (settings, request, mut answer) = (file_server(), request(&head, &store, &[]), Response::default());
    let each = cost(|| {
        answer.clear();
        let _ = black_box(files::file_server(black_box(&settings), black_box(&request), &mut answer));
    });
    println!("{:<36} file_server {:>4} ns, status {}", "index page", each.as_nanos(), answer.status);
}

fn cost(mut once: impl FnMut()) -> Duration {
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        once();
    }
    begun.elapsed() / ROUNDS
}
