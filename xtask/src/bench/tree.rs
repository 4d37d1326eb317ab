//! `cargo xtask bench tree`: how soon a site of 200 files answers, and how much memory it takes at its
//! peak to replace some of a tree of 200 MiB.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use onehop_load::measure::{forget_peak, memory_of};
use onehop_statistics::median;
use serde_json::json;

use crate::workspace::Options;
use crate::{Outcome, workspace};

use super::report::write_result;
use super::rivals::{self, Running};
use super::{probe, servers};

const FILES: usize = 200;
const MEBIBYTE: usize = 1024 * 1024;
/// Bytes.
const KIBIBYTE: u64 = 1024;
/// Files of the large tree that are replaced.
const CHANGED: usize = 5;
/// A change is visible within the watcher's quiet time and the reading; this long means never.
const SWAP_DEADLINE: Duration = Duration::from_secs(30);

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let smoke = options.flag("--smoke");
    let large = options.number("--mebibytes", if smoke { 20 } else { 200 })?;
    options.finish()?;
    servers::move_to_load_core();
    let folder = workspace::target_folder("bench")?.join("tree");

    make_tree(&folder, MEBIBYTE / FILES, "js")?;
    let ready: Vec<f64> =
        (0..if smoke { 2 } else { 10 }).map(|_| time_to_ready(&folder)).collect::<Outcome<_>>()?;
    let slowest = ready.iter().copied().fold(0.0, f64::max);
    println!(
        "{FILES} files of 1 MiB together: first 200 after {:.1} ms (median), {slowest:.1} ms (slowest)",
        median(&ready)
    );

    make_tree(&folder, usize::try_from(large)? * MEBIBYTE / FILES, "jpg")?;
    let swap = swap(&folder)?;
    println!("{large} MiB: {swap:#}");
    let value = json!({
        "what": "tree", "date": workspace::date(), "machine": workspace::machine(), "version": workspace::output_of(workspace::program(), &["--version"]),
        "ready_ms": ready, "ready_ms_median": median(&ready), "tree_mebibytes": large, "swap": swap,
    });
    println!("written to {}", write_result("tree", smoke, &value)?.display());
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// 200 files of equal size beside a small index page.
fn make_tree(folder: &Path, size: usize, extension: &str) -> Outcome {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder.join("assets"))?;
    std::fs::write(folder.join("index.html"), "<!doctype html><title>A tree</title>\n")?;
    for index in 0..FILES {
        std::fs::write(tree_file(folder, index, extension), content(index as u64, size, extension))?;
    }
    Ok(())
}

fn tree_file(folder: &Path, index: usize, extension: &str) -> PathBuf {
    folder.join(format!("assets/part-{index:03}.{extension}"))
}

/// Text that compresses for scripts, noise that does not for images.
fn content(seed: u64, size: usize, extension: &str) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(size + 16);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match extension {
            "js" => bytes.extend(format!("export const v{}=f({});\n", state % 4096, state % 97).bytes()),
            _ => bytes.extend(state.to_le_bytes()),
        }
    }
    bytes.truncate(size);
    bytes
}

fn serving(folder: &Path) -> Outcome<Running> {
    rivals::start("onehop", &[("SITE", &folder.display().to_string())])
}

fn time_to_ready(folder: &Path) -> Outcome<f64> {
    Ok(serving(folder)?.wait_until_ready("/assets/part-199.js")?.as_secs_f64() * 1e3)
}

fn swap(folder: &Path) -> Outcome<serde_json::Value> {
    let mut running = serving(folder)?;
    running.wait_until_ready("/")?;
    let address = running.address();
    let path = format!("/assets/part-{:03}.jpg", CHANGED - 1);
    let old = probe::get(address, &path, &[])?;
    let processes = running.server.tree().processes();
    let before = memory_of(&processes).resident_bytes / KIBIBYTE;
    forget_peak(&processes);

    let size = old.body.len();
    for index in 0..CHANGED {
        std::fs::write(tree_file(folder, index, "jpg"), content(1_000 + index as u64, size, "jpg"))?;
    }
    let expected = content(1_000 + CHANGED as u64 - 1, size, "jpg");
    let begun = Instant::now();
    loop {
        let answer = probe::get(address, &path, &[])?;
        if answer.body == expected {
            break;
        }
        if answer.body != old.body {
            return Err("a torn file was served during the swap".into());
        }
        if begun.elapsed() > SWAP_DEADLINE {
            return Err("the change never showed".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let seen_after = begun.elapsed();
    let after = memory_of(&running.server.tree().processes());
    let (after, peak) = (after.resident_bytes / KIBIBYTE, after.peak_bytes / KIBIBYTE);
    Ok(json!({
        "resident_before_kib": before,
        "peak_kib": peak,
        "resident_after_kib": after,
        "changed_kib": size * CHANGED / 1024,
        "peak_beyond_store_and_change_kib":
            i64::try_from(peak)? - i64::try_from(before + (size * CHANGED / 1024) as u64)?,
        "seen_after_ms": seen_after.as_millis() as u64,
    }))
}
