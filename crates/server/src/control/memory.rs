//! `memory`: what files, connections, bodies and queues may take together, as a sum that is made when a configuration is
//! loaded.
//!
//! Decides how many bytes files may have, how many connections may be open, and how much of bodies may be on its way
//! between applications and slow clients; never looks at what is taken now. Where nothing is written, the lower of the
//! control group's limit and the machine's memory stands for it, and then nothing is an error. What the kernel keeps for
//! sockets is no part of the sum. Anything else that holds bytes for clients is a line in [`parts`].

use std::fmt::Write;
use std::num::NonZeroUsize;
use std::path::{Component, Path};
use std::sync::Arc;

use onehop_config::checked::limit::RateLimit;
use onehop_config::checked::{Checked, LogOutput, Step};
use onehop_limits::limits::RATE_KEY_BYTES;
use onehop_metrics::limits::{LOG_BATCH_BYTES, LOG_BATCHES_MAX};
use onehop_workers::Windows;
use onehop_workers::limits::{
    CONNECTION_WINDOW_BYTES, CONNECTION_WINDOW_BYTES_MIN, CONNECTION_WINDOW_HELD, STREAM_WINDOW_BYTES,
    STREAM_WINDOW_BYTES_MIN,
};

use crate::limits::{
    CONNECTIONS_WORTHWHILE, LEARNED_BYTES, PROCESS_BYTES, QUEUED_REQUEST_BYTES,
    WORKER_LINES_WAITING_BYTES_MAX,
};
use crate::request::route::configured_limits;
use onehop_connection::limits::{COMPRESSORS_BYTES_MAX, CONNECTION_BYTES};

/// What may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Bytes of files in memory.
    pub(super) files_bytes: u64,
    /// Connections that fit.
    pub(super) connections: usize,
    /// Bytes of bodies on the lanes of each worker.
    pub(super) windows: Windows,
    /// Bytes of the compressors of bodies on their way.
    pub(super) coders_bytes: u64,
}

/// One line of the sum, besides files and connections.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    what: String,
    bytes: u64,
    /// What makes it smaller.
    cure: Option<&'static str>,
}

/// Makes the sum of a configuration on so many cores. `descriptors` is how many connections there may be for want of
/// descriptors, `available` the memory of the control group or machine. The error shows the sum.
pub(super) fn share(
    checked: &Checked,
    cores: usize,
    descriptors: usize,
    available: Option<u64>,
) -> Result<Share, String> {
    let global = &checked.global;
    let lanes = lanes(checked, cores);
    let coders_bytes_max = coders_bytes_max(checked);
    let parts = parts(checked, lanes);
    let others: u64 = parts.iter().map(|part| part.bytes).sum();
    let fitting = |bytes: u64| usize::try_from(bytes / CONNECTION_BYTES).unwrap_or(usize::MAX);
    let Some(all) = global.memory else {
        let Some(available) = available else {
            let windows = windows(lanes, u64::MAX).0;
            return Ok(Share {
                files_bytes: global.memory_bytes,
                connections: descriptors,
                windows,
                coders_bytes: coders_bytes_max,
            });
        };
        // Applications' processes are in the same group, and so are the kernel's buffers of sockets.
        let ours = if checked.apps().is_empty() { available / 4 * 3 } else { available / 2 };
        let files_bytes = global.memory_bytes.min(ours / 2);
        let left = ours.saturating_sub(files_bytes).saturating_sub(others);
        let (windows, bodies) = windows(lanes, left / BODIES_PART);
        let left = left.saturating_sub(bodies);
        let coders_bytes = coders_bytes_max.min(left / CODERS_PART);
        let connections = fitting(left - coders_bytes);
        return Ok(Share {
            files_bytes,
            connections: connections.max(CONNECTIONS_WORTHWHILE).min(descriptors),
            windows,
            coders_bytes,
        });
    };
    let files = (global.memory_bytes < all).then_some(global.memory_bytes);
    let left = all.saturating_sub(others).saturating_sub(files.unwrap_or(0));
    let least = CONNECTIONS_WORTHWHILE as u64 * CONNECTION_BYTES * if files.is_some() { 1 } else { 2 };
    let (windows, bodies) = windows(lanes, left.saturating_sub(least) / BODIES_PART);
    let left = left.saturating_sub(bodies);
    // Without a word about files connections may take half of what is left, and files the rest.
    let connections_in = |left: u64| fitting(if files.is_some() { left } else { left / 2 }).min(descriptors);
    let is_enough = |left: u64| connections_in(left) >= CONNECTIONS_WORTHWHILE.min(descriptors);
    if !is_enough(left) {
        return Err(explain(all, files, &parts));
    }
    // Compressors get what is not needed for connections: a body can be sent without one.
    let coders_bytes = coders_bytes_max.min(left / CODERS_PART);
    let coders_bytes = if is_enough(left - coders_bytes) { coders_bytes } else { 0 };
    let left = left - coders_bytes;
    let connections = connections_in(left);
    let rest = left - connections as u64 * CONNECTION_BYTES;
    Ok(Share { files_bytes: files.unwrap_or(rest), connections, windows, coders_bytes })
}

/// Whether `memory` is enough for what else the configuration names, on a machine with descriptors for everybody; the
/// error shows the sum.
pub fn check_memory(checked: &Checked) -> Result<(), String> {
    let cores = checked.global.threads.map_or_else(super::cores::cores_allowed, NonZeroUsize::get);
    share(checked, cores, usize::MAX, None).map(drop)
}

/// Bodies on their way may take so much of what is left beside files and queues: a fourth.
const BODIES_PART: u64 = 4;

/// Compressors of bodies on their way may take so much of it: an eighth.
const CODERS_PART: u64 = 8;

/// What `encode` may take at most for bodies of applications and upstreams that it compresses on their way.
fn coders_bytes_max(checked: &Checked) -> u64 {
    let (mut encodes, mut calls) = (false, false);
    checked.each_step(|step| {
        encodes |= matches!(step, Step::Encode(_));
        calls |= matches!(step, Step::App(_) | Step::Proxy(_));
    });
    if encodes && calls { COMPRESSORS_BYTES_MAX } else { 0 }
}

/// Lanes of all workers.
fn lanes(checked: &Checked, cores: usize) -> u64 {
    checked.apps().iter().map(|app| onehop_supervisor::worker_connections(app, cores) as u64).sum()
}

/// What bodies hold where the windows of so many lanes are this wide.
fn held(lanes: u64, connection_window: u32) -> u64 {
    let (times, of) = CONNECTION_WINDOW_HELD;
    lanes * (u64::from(connection_window) * times / of)
}

/// The widest windows for which so many bytes are enough besides those of the narrowest, and the bytes that they take
/// besides.
fn windows(lanes: u64, bytes: u64) -> (Windows, u64) {
    let (times, of) = CONNECTION_WINDOW_HELD;
    let more = bytes.checked_div(lanes).map_or(u64::MAX, |each| each / times * of);
    let connection =
        u64::from(CONNECTION_WINDOW_BYTES_MIN).saturating_add(more).min(u64::from(CONNECTION_WINDOW_BYTES));
    let connection = u32::try_from(connection).unwrap_or(CONNECTION_WINDOW_BYTES);
    // As many slow clients fit into each connection as into the widest.
    let stream = connection / (CONNECTION_WINDOW_BYTES / STREAM_WINDOW_BYTES);
    let stream = stream.clamp(STREAM_WINDOW_BYTES_MIN, STREAM_WINDOW_BYTES);
    (Windows { stream, connection }, held(lanes, connection) - held(lanes, CONNECTION_WINDOW_BYTES_MIN))
}

/// What is taken besides files and connections, the server itself among it.
fn parts(checked: &Checked, lanes: u64) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |count: u64, one: &str, several: &str, bytes: u64, cure: Option<&'static str>| {
        if count > 0 && bytes > 0 {
            let what = if count == 1 { one.to_owned() } else { format!("{count} {several}") };
            parts.push(Part { what, bytes, cure });
        }
    };
    let mut limits: Vec<_> = checked.global.limit.iter().cloned().collect();
    for site in &checked.sites {
        configured_limits(&site.routes, &mut limits);
        site.errors.iter().for_each(|errors| configured_limits(&errors.routes, &mut limits));
    }
    let apps = checked.apps();
    limits.extend(apps.iter().filter_map(|app| app.limit.clone()));
    let waiting: u64 = limits.iter().map(|limit| u64::from(limit.queue)).sum();
    add(
        waiting,
        "a request that waits for its limit",
        "requests that wait for their limits",
        waiting * QUEUED_REQUEST_BYTES,
        Some("the `queue` of limits"),
    );
    let waiting: u64 = apps.iter().map(|app| u64::from(app.queue)).sum();
    add(
        waiting,
        "a request that waits for its application",
        "requests that wait for applications",
        waiting * QUEUED_REQUEST_BYTES,
        Some("the `queue` of applications"),
    );
    let keys = rate_keys(checked);
    add(
        keys,
        "a key of `rate_limit`",
        "keys of `rate_limit`",
        keys * RATE_KEY_BYTES,
        Some("`keys` of `rate_limit`"),
    );
    let learning = learning_hints(checked);
    add(
        learning,
        "links that an `early_hints` learns",
        "`early_hints`, links that they learn",
        learning * LEARNED_BYTES,
        Some("the number of `early_hints` with `learn`"),
    );
    let logs = log_outputs(checked) as u64;
    let log_bytes = (LOG_BATCHES_MAX * LOG_BATCH_BYTES) as u64;
    add(logs, "lines for an access log", "access logs, lines that wait", logs * log_bytes, None);
    let lines = if apps.is_empty() { 0 } else { WORKER_LINES_WAITING_BYTES_MAX as u64 };
    add(1, "lines that applications write", "", lines, None);
    add(
        1,
        "bodies between clients and applications, at least",
        "",
        held(lanes, CONNECTION_WINDOW_BYTES_MIN),
        Some("`workers` of applications"),
    );
    add(1, "the server itself", "", PROCESS_BYTES, None);
    parts
}

/// Keys that all zones remember; equal ones are one.
fn rate_keys(checked: &Checked) -> u64 {
    let mut zones: Vec<&Arc<RateLimit>> = Vec::new();
    checked.each_step(|step| {
        if let Step::RateLimit(zone) = step
            && !zones.contains(&zone)
        {
            zones.push(zone);
        }
    });
    zones.iter().map(|zone| u64::from(zone.keys_max)).sum()
}

/// Every `early_hints` that learns.
fn learning_hints(checked: &Checked) -> u64 {
    let mut count = 0;
    checked.each_step(|step| count += u64::from(matches!(step, Step::EarlyHints(hints) if hints.learn)));
    count
}

/// Access logs, each file once.
pub(super) fn log_outputs(checked: &Checked) -> usize {
    let mut outputs: Vec<&LogOutput> = Vec::new();
    for log in checked.sites.iter().flat_map(|site| &site.logs) {
        if !outputs.contains(&&log.output) {
            outputs.push(&log.output);
        }
    }
    outputs.len()
}

/// The sum, line by line, and what to do.
fn explain(all: u64, files: Option<u64>, parts: &[Part]) -> String {
    let connections = CONNECTIONS_WORTHWHILE as u64 * CONNECTION_BYTES;
    let mut sum: u64 = connections + parts.iter().map(|part| part.bytes).sum::<u64>();
    let mut text = format!("`memory` allows {}, and what the configuration asks for is more:\n", size(all));
    let mut line = |bytes: u64, what: &str| {
        let _ = writeln!(text, "  {:>9}  {what}", size(bytes));
    };
    // Files take what is left, but not nothing: as much as connections.
    match files {
        Some(files) => line(files, "files in memory"),
        None => line(connections, "files in memory, at least"),
    }
    sum += files.unwrap_or(connections);
    let what = format!("{CONNECTIONS_WORTHWHILE} connections of {}, at least", size(CONNECTION_BYTES));
    line(connections, &what);
    for part in parts {
        line(part.bytes, &part.what);
    }
    line(sum, "together");
    let largest = parts.iter().filter(|part| part.cure.is_some()).max_by_key(|part| part.bytes);
    let largest = largest.filter(|part| files.is_none_or(|files| part.bytes > files));
    let cure = match (largest.and_then(|part| part.cure), files) {
        (Some(cure), _) => format!(", or lower {cure}"),
        (None, Some(_)) => ", or lower `files`".to_owned(),
        (None, None) => String::new(),
    };
    let enough = sum.div_ceil(MEBIBYTE);
    let _ = write!(text, "raise `memory` to {enough}MiB or more{cure}");
    text
}

const MEBIBYTE: u64 = 1024 * 1024;

/// As it is written in a configuration, rounded up to a tenth.
fn size(bytes: u64) -> String {
    let (unit, name) = if bytes >= MEBIBYTE { (MEBIBYTE, "MiB") } else { (1024, "KiB") };
    let tenths = (u128::from(bytes) * 10).div_ceil(u128::from(unit));
    match tenths % 10 {
        0 => format!("{}{name}", tenths / 10),
        rest => format!("{}.{rest}{name}", tenths / 10),
    }
}

/// The memory that this process may have: the lower of its control group's limit and the machine's memory.
pub(super) fn available() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_limit_below(&groups, Path::new("/sys/fs/cgroup"));
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| machine_memory(&text));
    group.into_iter().chain(machine).min()
}

/// proc_meminfo(5).
fn machine_memory(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The lowest limit of the process's own group and of those above it. cgroups(7): of version 2, whose line has the number
/// 0 and no controllers, `memory.max`; of version 1, whose line names the controller, `memory.limit_in_bytes`.
fn group_limit_below(groups: &str, mounted: &Path) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?);
        if controllers.is_empty() {
            lowest(mounted, group, "memory.max")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            lowest(&mounted.join("memory"), group, "memory.limit_in_bytes")
        } else {
            None
        }
    });
    limits.min()
}

fn lowest(mounted: &Path, group: &str, file: &str) -> Option<u64> {
    let mut below = Path::new(group.trim_start_matches('/'));
    // A group above the namespace's root is named with `..`, and cannot be looked at.
    if below.components().any(|part| !matches!(part, Component::Normal(_))) {
        below = Path::new("");
    }
    let limits = below.ancestors().filter_map(|group| {
        let text = std::fs::read_to_string(mounted.join(group).join(file)).ok()?;
        // `max` where there is none; version 1 has a number near 2^63 for it, which is more than any machine's memory.
        text.trim().parse::<u64>().ok().filter(|bytes| *bytes < 1 << 60)
    });
    limits.min()
}

#[cfg(test)]
mod tests;
