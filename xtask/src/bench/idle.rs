//! `cargo xtask bench idle`: what a server at rest holds, and what each idle kept connection adds.
//!
//! The connections are ours, in this process; the server runs in its own. Every connection has had one
//! answer and stays open.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use onehop_load::measure::{Memory, Server, memory_of};
use serde_json::{Value, json};

use crate::ground::Options;
use crate::{Outcome, ground, install};

use super::report::write_result;
use super::servers;
use super::{probe, rivals};

const ARMS: &[&str] = &["onehop", "nginx", "caddy"];

/// Descriptors of ours that are no connections.
const DESCRIPTORS_RESERVED: u64 = 200;

/// Bytes.
const KIBIBYTE: u64 = 1024;

/// Memory counts as settled when it has not changed for this long.
const SETTLED_FOR: Duration = Duration::from_secs(2);
/// It is taken as it is after this long.
const SETTLE_DEADLINE: Duration = Duration::from_secs(15);

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let smoke = options.flag("--smoke");
    let wanted = options.number("--connections", if smoke { 500 } else { 10_000 })?.max(1);
    let names = options.names("--arms", ARMS, if smoke { &["onehop"] } else { ARMS })?;
    options.finish()?;
    let room = install::raise_descriptor_limit().saturating_sub(DESCRIPTORS_RESERVED);
    if room < wanted {
        return Err(format!("only {room} descriptors are allowed here: raise `ulimit -n`").into());
    }
    let site = rivals::make_site()?;
    servers::move_to_load_core();

    println!(
        "{:<18} {:>14} {:>14} {:>16} {:>12}",
        "arm", "at rest KiB", "with them KiB", "KiB/connection", "connections"
    );
    let mut rows = Vec::new();
    for name in &names {
        let row = measure(name, &site, wanted)?;
        println!(
            "{name:<18} {:>14} {:>14} {:>16.2} {wanted:>12}",
            row["at_rest_kib"],
            row["with_connections_kib"],
            row["kib_per_connection"].as_f64().unwrap_or(f64::NAN)
        );
        rows.push(row);
    }
    let value = json!({ "what": "idle", "date": ground::date(), "machine": ground::machine(), "connections": wanted, "rows": rows });
    println!("written to {}", write_result("idle", smoke, &value)?.display());
    Ok(())
}

fn measure(name: &str, site: &Path, wanted: u64) -> Outcome<Value> {
    let mut running = rivals::start(name, &[])?;
    running.wait_until_ready("/")?;
    let address = running.address();
    let rest = settled(&running.server);
    let expected = probe::get(address, "/", &[])?.bytes.len();
    let mut connections = Vec::new();
    for _ in 0..wanted {
        connections.push(one_answer(address, expected).map_err(|error| {
            format!("{}: connection {} of {wanted}: {error}", name, connections.len() + 1)
        })?);
    }
    let with = settled(&running.server);
    // They must all be alive still: a server that closed them would look frugal.
    for connection in &mut connections {
        connection.set_nonblocking(true)?;
        if connection.read(&mut [0]).map_err(|error| error.kind()) != Err(std::io::ErrorKind::WouldBlock) {
            return Err(format!("{} closed idle connections during the measurement", name).into());
        }
    }
    let stored = running.control.as_deref().and_then(stored_bytes);
    if let Some(bytes) = stored {
        println!(
            "{:<18} {:>14.0} KiB at rest beyond {bytes} stored bytes",
            "",
            rest.resident_bytes.saturating_sub(bytes) as f64 / 1024.0
        );
    }
    let added = with.resident_bytes.saturating_sub(rest.resident_bytes);
    Ok(json!({
        "arm": name,
        "version": running.version(),
        "at_rest_kib": rest.resident_bytes / KIBIBYTE,
        "at_rest_proportional_kib": rest.proportional_bytes.map(|bytes| bytes / KIBIBYTE),
        "with_connections_kib": with.resident_bytes / KIBIBYTE,
        "peak_kib": with.peak_bytes / KIBIBYTE,
        "kib_per_connection": added as f64 / KIBIBYTE as f64 / wanted as f64,
        "site_bytes": bytes_below(site),
        "stored_bytes": stored,
    }))
}

fn one_answer(address: SocketAddr, expected: usize) -> Outcome<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = vec![0; expected];
    stream.read_exact(&mut answer)?;
    if !answer.starts_with(b"HTTP/1.1 200") {
        return Err("no 200".into());
    }
    Ok(stream)
}

/// Memory once it has stopped changing.
fn settled(server: &Server) -> Memory {
    let begun = Instant::now();
    let weigh = || memory_of(&server.tree().processes());
    let mut last = weigh();
    let mut since = Instant::now();
    while since.elapsed() < SETTLED_FOR && begun.elapsed() < SETTLE_DEADLINE {
        std::thread::sleep(Duration::from_millis(100));
        let now = weigh();
        if now.resident_bytes != last.resident_bytes {
            since = Instant::now();
        }
        last = now;
    }
    last
}

/// Bytes that onehop says it holds, in all forms together; `None` for the others.
fn stored_bytes(control: &str) -> Option<u64> {
    let words = ["status", "--json", "--control", control];
    let status: Value = serde_json::from_str(&ground::output_of(ground::program(), &words)?).ok()?;
    let stores = status.get("stores")?.as_array()?;
    let forms = stores.iter().flat_map(|store| [&store["stored_bytes"], &store["compressed_bytes"]]);
    Some(forms.filter_map(Value::as_u64).sum())
}

fn bytes_below(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => bytes_below(&entry.path()),
        Ok(facts) => facts.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
