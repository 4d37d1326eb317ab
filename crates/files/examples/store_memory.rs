//! Measures the memory of stores: at rest, at a swap, while and after compressing.
//!
//! `cargo run --release -p onehop-files --example store_memory [MEBIBYTES]` reads a tree of that size
//! (200 if it is not named), changes a tenth of it under a keeper, and compares the peak with the store
//! and what changed. Then it compresses a site with large scripts. Linux only: it reads
//! /proc/self/status, and resets the peak through /proc/self/clear_refs.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use onehop_config::checked::Encoding;
use onehop_files::limits::HOLD_BACK_MAX;
use onehop_files::tree::{
    CompressorProgram, Keeper, KeeperEvent, MemoryBudget, Silent, StoreSpec, prepare_forms_for_server, read,
};

const FILE_BYTES: usize = 100 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some(PREPARE_FORMS) {
        return Ok(prepare_forms_for_server()?);
    }
    let mebibytes: usize = std::env::args().nth(1).map_or(Ok(200), |argument| argument.parse())?;
    let folder = std::env::temp_dir().join(format!("onehop-store-memory-{}", std::process::id()));
    let result = swap(&folder.join("tree"), mebibytes).and_then(|()| compression(&folder.join("site")));
    fs::remove_dir_all(&folder)?;
    result
}

/// A tenth of a large tree changes.
fn swap(root: &Path, mebibytes: usize) -> Result<(), Box<dyn Error>> {
    let files = mebibytes * 1024 * 1024 / FILE_BYTES;
    for number in 0..files {
        fs::create_dir_all(root.join(format!("{}", number % 50)))?;
        fs::write(root.join(format!("{}/{number}.bin", number % 50)), noise(FILE_BYTES, number as u64))?;
    }
    let spec = spec(root, vec![]);
    let budget = MemoryBudget::new(1 << 32);
    let before = kibibytes("VmRSS")?;
    let begun = Instant::now();
    let mut latest = Arc::new(read(&spec, None, &budget, &Silent)?);
    println!("read {files} files in {:?}", begun.elapsed());
    report("resident beyond the stored bytes", kibibytes("VmRSS")? - before - stored(&latest));
    let (publish, published) = channel();
    let (say, events) = channel();
    let keeper = Keeper::start(
        spec,
        Arc::clone(&latest),
        budget,
        Some(compressor()),
        Arc::new(move |store| drop(publish.send(store))),
        Arc::new(move |event| drop(say.send(event))),
    );
    for round in 1..=3_u64 {
        fs::write("/proc/self/clear_refs", "5")?;
        let resting = kibibytes("VmRSS")?;
        let changed = files / 10;
        for number in 0..changed {
            let seed = round << 32 | number as u64;
            fs::write(root.join(format!("{}/{number}.bin", number % 50)), noise(FILE_BYTES, seed))?;
        }
        while !matches!(events.recv_timeout(TIMEOUT)?, KeeperEvent::Published { .. }) {}
        while let Ok(store) = published.try_recv() {
            latest = store;
        }
        let changed = (changed * FILE_BYTES / 1024) as i64;
        println!("swap {round}: {} MiB changed", changed / 1024);
        report("peak beyond the store and what changed", kibibytes("VmHWM")? - resting - changed);
        report("resident beyond before", kibibytes("VmRSS")? - resting);
    }
    drop((keeper, latest, published));
    Ok(())
}

/// A site of small scripts and some large ones.
fn compression(root: &Path) -> Result<(), Box<dyn Error>> {
    for number in 0..200_usize {
        fs::create_dir_all(root.join("assets"))?;
        fs::write(root.join(format!("assets/{number}.js")), text(5 * 1024, number as u64))?;
    }
    for (number, bytes) in [400 << 10, 1 << 20, 3 << 20].into_iter().enumerate() {
        fs::write(root.join(format!("large{number}.js")), text(bytes, number as u64))?;
    }
    let spec = spec(root, vec![Encoding::Zstd, Encoding::Brotli, Encoding::Gzip]);
    let budget = MemoryBudget::new(1 << 32);
    let begun = Instant::now();
    let mut latest = Arc::new(read(&spec, None, &budget, &Silent)?);
    println!("read {} files in {:?}", latest.totals.files, begun.elapsed());
    fs::write("/proc/self/clear_refs", "5")?;
    let resting = kibibytes("VmRSS")? - stored(&latest);
    let (publish, published) = channel();
    let (say, events) = channel();
    let keeper = Keeper::start(
        spec,
        Arc::clone(&latest),
        budget,
        Some(compressor()),
        Arc::new(move |store| drop(publish.send(store))),
        Arc::new(move |event| drop(say.send(event))),
    );
    let took = loop {
        if let KeeperEvent::Compressed { took, .. } = events.recv_timeout(TIMEOUT)? {
            break took;
        }
    };
    while let Ok(store) = published.try_recv() {
        latest = store;
    }
    let totals = latest.totals;
    println!("compressed {} KiB to {} KiB in {took:?}", totals.bytes / 1024, totals.compressed_bytes / 1024);
    report("peak beyond all bytes", kibibytes("VmHWM")? - resting - stored(&latest));
    report("resident beyond all bytes", kibibytes("VmRSS")? - resting - stored(&latest));
    drop(keeper);
    Ok(())
}

/// As the program does it: the memory of compression is another process's.
fn compressor() -> CompressorProgram {
    CompressorProgram { path: "/proc/self/exe".into(), arguments: vec![PREPARE_FORMS.into()] }
}

const PREPARE_FORMS: &str = "prepare-forms";

const TIMEOUT: Duration = Duration::from_secs(60);

fn spec(root: &Path, compress: Vec<Encoding>) -> StoreSpec {
    StoreSpec {
        root: root.to_path_buf(),
        dotfiles: false,
        follow_outside: false,
        absent: vec![],
        compress,
        index: None,
        keep_releases: 0,
        hold_back: HOLD_BACK_MAX,
    }
}

fn stored(store: &onehop_files::store::Store) -> i64 {
    ((store.totals.stored_bytes + store.totals.compressed_bytes) / 1024) as i64
}

fn report(what: &str, kibibytes: i64) {
    println!("  {what}: {kibibytes} KiB");
}

fn kibibytes(field: &str) -> Result<i64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(field)).ok_or("no such field")?;
    Ok(line.split_whitespace().nth(1).ok_or("no value")?.parse()?)
}

fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut noise = Vec::with_capacity(length);
    while noise.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend_from_slice(&state.to_le_bytes());
    }
    noise.truncate(length);
    noise
}

fn text(length: usize, seed: u64) -> Vec<u8> {
    let words = ["function", "return", "const", "value", "=>", "(", ");\n", "export", "props", ".map"];
    let mut text = Vec::with_capacity(length + 16);
    for byte in noise(length, seed) {
        text.extend_from_slice(words[usize::from(byte) % words.len()].as_bytes());
        text.extend_from_slice(&[b' ', b'a' + byte % 26]);
        if text.len() >= length {
            break;
        }
    }
    text.truncate(length);
    text
}
