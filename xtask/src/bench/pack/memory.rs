//! What a pack holds in memory of files that nobody has asked for.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use onehop_load::measure::{Server, memory_of};
use onehop_load::plan::Expect;
use serde_json::{Value, json};

use crate::Outcome;
use crate::steps::{command, quiet};

use super::Packer;
use crate::bench::probe;
use crate::bench::servers::{self, Cores, free_port};

/// Files of 100 KiB that no coding makes smaller: 50 MiB together.
const FILES: usize = 512;
const FILE_BYTES: usize = 100 * 1024;
/// More than this above a pack without files is too much, in KiB.
const MORE_KIB_MAX: u64 = 12 * 1024;
/// Memory counts as settled when it has not changed for this long.
const SETTLED_FOR: Duration = Duration::from_secs(1);
/// It is taken as it is after this long.
const SETTLE_DEADLINE: Duration = Duration::from_secs(10);

/// Weighs a pack with a page alone, one with 50 MiB beside it, and the latter when all of it was asked for.
pub(super) fn run(packer: &Packer) -> Outcome<Value> {
    let empty = weigh(packer, "assets-none", 0)?;
    let full = weigh(packer, "assets-50-mib", FILES)?;
    let more = full.at_rest.saturating_sub(empty.at_rest);
    let verdict = if more <= MORE_KIB_MAX { "met" } else { "MISSED" };
    println!("resident with a page alone:           {:>8} KiB", empty.at_rest);
    println!("with 50 MiB that nobody asked for:    {:>8} KiB, {more} KiB more  {verdict}", full.at_rest);
    println!("once all of it was asked for:         {:>8} KiB", full.asked);
    Ok(json!({
        "page_alone_kib": empty.at_rest, "with_50_mib_kib": full.at_rest, "asked_kib": full.asked, "files": FILES,
    }))
}

/// Resident KiB.
struct Weight {
    at_rest: u64,
    asked: u64,
}

fn weigh(packer: &Packer, name: &str, files: usize) -> Outcome<Weight> {
    let folder = packer.folder(name)?;
    std::fs::create_dir(folder.join("dist"))?;
    std::fs::write(folder.join("dist/index.html"), "<!doctype html><title>a page</title>")?;
    std::fs::write(folder.join("Onehopfile"), "http://localhost:8080 {\n\tspa ./dist\n}\n")?;
    let mut random = Random::new();
    for number in 0..files {
        std::fs::write(folder.join(format!("dist/asset-{number}.bin")), random.next_file())?;
    }
    let pack = folder.join("pack");
    packer.pack(&folder, &pack, &[])?;
    let port = free_port()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let words = [pack.display().to_string(), "--listen".to_owned(), address.to_string()];
    let mut server = servers::start(&words, &[], port, Cores::Apart)?;
    servers::wait_until_ready(&mut server, "/", Expect::Success)?;
    let at_rest = settled(&server);
    for number in 0..files {
        let answer = probe::get(address, &format!("/asset-{number}.bin"), &[])?;
        if answer.status != 200 || answer.body.len() != FILE_BYTES {
            return Err(format!("asset {number}: {}, {} bytes", answer.status, answer.body.len()).into());
        }
    }
    let asked = settled(&server);
    server.stop();
    remove(&folder)?;
    Ok(Weight { at_rest, asked })
}

/// Files that are all different, and the same in each run (xorshift64, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    fn next_file(&mut self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FILE_BYTES);
        while bytes.len() < FILE_BYTES {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            bytes.extend_from_slice(&self.0.to_le_bytes());
        }
        bytes.truncate(FILE_BYTES);
        bytes
    }
}

/// Resident KiB once it no longer changes.
fn settled(server: &Server) -> u64 {
    let resident = || memory_of(&server.tree().processes()).resident_bytes / 1024;
    let begun = Instant::now();
    let (mut last, mut since) = (resident(), Instant::now());
    while since.elapsed() < SETTLED_FOR && begun.elapsed() < SETTLE_DEADLINE {
        std::thread::sleep(Duration::from_millis(50));
        let now = resident();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    last
}

fn remove(folder: &Path) -> Outcome {
    quiet(&mut command("rm", &["-rf", &folder.display().to_string()]))
}
