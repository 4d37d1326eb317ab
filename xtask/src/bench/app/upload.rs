//! Large bodies, sent one after the other on each connection: wrk would need each of them in its memory
//! for every request that it writes.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::Outcome;

use super::super::load::Seen;
use super::super::probe;
use super::super::process;
use super::questions::{Asked, UPLOAD_BYTES};

/// Bytes of one write.
const PIECE_BYTES: usize = 64 * 1024;
/// A server that takes or gives nothing for so long has hung.
const SILENCE_DEADLINE: Duration = Duration::from_secs(30);

/// Sends bodies on so many connections until the time is over, at least one on each.
pub(super) fn run(address: SocketAddr, connections: u64, length: Duration, expected: &[u8]) -> Outcome<Seen> {
    let before = process::seconds_of_self();
    let begun = Instant::now();
    let results: Vec<Result<Vec<Duration>, String>> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..connections)
            .map(|_| {
                scope.spawn(move || {
                    send_until(address, begun + length, expected).map_err(|error| error.to_string())
                })
            })
            .collect();
        let ends = senders.into_iter().map(|sender| sender.join());
        ends.map(|end| end.unwrap_or_else(|_| Err("a sender panicked".to_owned()))).collect()
    });
    let elapsed = begun.elapsed();
    let mut times: Vec<Duration> = Vec::new();
    for result in results {
        times.extend(result?);
    }
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_micros() as u64;
    Ok(Seen {
        requests: times.len() as u64,
        rate: times.len() as f64 / elapsed.as_secs_f64(),
        p50_us: at(50),
        p99_us: at(99),
        load_cpu_seconds: process::seconds_of_self() - before,
        errors: 0,
    })
}

/// Uploads on one connection; how long each took.
fn send_until(address: SocketAddr, end: Instant, expected: &[u8]) -> Outcome<Vec<Duration>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE_DEADLINE))?;
    stream.set_write_timeout(Some(SILENCE_DEADLINE))?;
    let mut head = format!("POST {} HTTP/1.1\r\nHost: {address}\r\n", Asked::Upload.path());
    for (name, value) in Asked::Upload.fields() {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {UPLOAD_BYTES}\r\n\r\n"));
    let piece = vec![b'u'; PIECE_BYTES];
    let mut times = Vec::new();
    while times.is_empty() || Instant::now() < end {
        let begun = Instant::now();
        stream.write_all(head.as_bytes())?;
        for _ in 0..UPLOAD_BYTES / PIECE_BYTES {
            stream.write_all(&piece)?;
        }
        let answer = probe::answer_from(&mut stream, Asked::Upload.path())?;
        if answer.status != 200 || answer.body != expected {
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            return Err(format!("an upload was answered {} {text}", answer.status).into());
        }
        times.push(begun.elapsed());
        if answer.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            return Err("the connection is closed after an upload".into());
        }
    }
    Ok(times)
}
