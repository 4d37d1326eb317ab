//! A server whose requests cost what it is told: what a comparison finds can be compared with the truth.
//!
//! Owns its cost and its faults; speaks just enough HTTP/1.1 for a GET without a body. It is started with variables:
//! `PORT`, `COST` (turns of a loop for each request), `SLOW_MS` and `SLOW_REQUEST_US` (so long after its start each
//! request sleeps so long), `SLOW_REQUESTS` (the same for so many first requests, whenever they come), `SILENT_MS` (so long
//! it does not listen), `FAIL_AFTER` (after so many requests it answers 500), `SERIAL` (1: one request at a time, as a
//! handler that blocks its only thread).

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a head that are read; a longer one is none of ours.
const HEAD_BYTES_MAX: usize = 4096;

const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";
const BAD: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nbad\n";

static TURN: Mutex<()> = Mutex::new(());
static ANSWERED: AtomicU64 = AtomicU64::new(0);

/// Serves until it is ended.
pub fn main() {
    let begun = Instant::now();
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let Some(port) = number("PORT").and_then(|port| u16::try_from(port).ok()) else { return };
    let cost = number("COST").unwrap_or(0);
    let slow_until = begun + Duration::from_millis(number("SLOW_MS").unwrap_or(0));
    let slow_request = Duration::from_micros(number("SLOW_REQUEST_US").unwrap_or(0));
    let slow_first = number("SLOW_REQUESTS").unwrap_or(0);
    let fail_after = number("FAIL_AFTER").unwrap_or(u64::MAX);
    let is_serial = number("SERIAL") == Some(1);
    thread::sleep(Duration::from_millis(number("SILENT_MS").unwrap_or(0)));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port is free");
    for stream in listener.incoming().flatten() {
        thread::spawn(move || {
            let response = || {
                let _turn = is_serial.then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
                burn(cost);
                let earlier = ANSWERED.fetch_add(1, Ordering::Relaxed);
                if earlier < slow_first || Instant::now() < slow_until {
                    thread::sleep(slow_request);
                }
                if earlier < fail_after { GOOD } else { BAD }
            };
            // A client that goes away is no fault of ours.
            let _ = serve(stream, response);
        });
    }
}

fn serve(mut stream: TcpStream, response: impl Fn() -> &'static [u8]) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = [0; HEAD_BYTES_MAX];
    let mut held = 0;
    loop {
        let Some(free) = head.get_mut(held..).filter(|free| !free.is_empty()) else { return Ok(()) };
        let read = stream.read(free)?;
        if read == 0 {
            return Ok(());
        }
        held += read;
        if head.get(..held).is_some_and(|head| head.ends_with(b"\r\n\r\n")) {
            held = 0;
            stream.write_all(response())?;
        }
    }
}

/// Work that no compiler leaves out and no memory slows down.
fn burn(turns: u64) {
    let mut value = turns;
    for _ in 0..turns {
        value = black_box(value.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(7));
    }
    black_box(value);
}
