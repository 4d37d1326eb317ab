//! `memory`: what files, connections and queues may take together, as a sum that is made when a configuration is loaded.
//!
//! Decides how many bytes files may have and how many connections may be open; never looks at what is taken now. Where
//! nothing is written, the control group's limit stands for it, and then nothing is an error. What is on its way between
//! applications and slow clients is bounded elsewhere (`STREAM_WINDOW_BYTES`) and is no part of the sum, nor is what the
//! kernel keeps for sockets.

use std::fmt::Write;
use std::path::{Component, Path};
use std::sync::Arc;

use onehop_config::checked::limit::RateLimit;
use onehop_config::checked::{Checked, LogOutput, Step};

use crate::limits::{
    CONNECTION_BYTES, CONNECTIONS_WORTHWHILE, LOG_BATCH_BYTES, LOG_BATCHES_MAX, PROCESS_BYTES,
    QUEUED_REQUEST_BYTES, RATE_KEY_BYTES, WORKER_LINES_WAITING_BYTES_MAX,
};
use crate::request::route::limit_wishes;

/// What may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Bytes of files in memory.
    pub(super) files_bytes: u64,
    /// Connections that fit.
    pub(super) connections: usize,
}

/// One line of the sum, besides files and connections.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    what: String,
    bytes: u64,
    /// What makes it smaller.
    cure: Option<&'static str>,
}

/// Makes the sum of a configuration. `descriptors` is how many connections there may be for want of descriptors, `group`
/// the limit of the control group. The error shows the sum.
pub(super) fn share(checked: &Checked, descriptors: usize, group: Option<u64>) -> Result<Share, String> {
    let global = &checked.global;
    let parts = parts(checked);
    let others: u64 = parts.iter().map(|part| part.bytes).sum();
    let fitting = |bytes: u64| usize::try_from(bytes / CONNECTION_BYTES).unwrap_or(usize::MAX);
    let Some(all) = global.memory else {
        let Some(group) = group else {
            return Ok(Share { files_bytes: global.memory_bytes, connections: descriptors });
        };
        // Applications' processes are in the same group, and so are the kernel's buffers of sockets.
        let ours = if checked.apps().is_empty() { group / 4 * 3 } else { group / 2 };
        let files_bytes = global.memory_bytes.min(ours / 2);
        let connections = fitting(ours.saturating_sub(files_bytes).saturating_sub(others));
        return Ok(Share {
            files_bytes,
            connections: connections.max(CONNECTIONS_WORTHWHILE).min(descriptors),
        });
    };
    let files = (global.memory_bytes < all).then_some(global.memory_bytes);
    let left = all.saturating_sub(others).saturating_sub(files.unwrap_or(0));
    // Without a word about files connections may take half of what is left, and files the rest.
    let for_connections = if files.is_some() { left } else { left / 2 };
    let connections = fitting(for_connections).min(descriptors);
    if connections < CONNECTIONS_WORTHWHILE.min(descriptors) {
        return Err(explain(all, files, &parts));
    }
    Ok(Share { files_bytes: files.unwrap_or(left - connections as u64 * CONNECTION_BYTES), connections })
}

/// Whether `memory` is enough for what else the configuration names, on a machine with descriptors for everybody; the
/// error shows the sum.
pub fn check_memory(checked: &Checked) -> Result<(), String> {
    share(checked, usize::MAX, None).map(drop)
}

/// What is taken besides files and connections, the server itself among it.
fn parts(checked: &Checked) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |count: u64, one: &str, several: &str, bytes: u64, cure: Option<&'static str>| {
        if count > 0 && bytes > 0 {
            let what = if count == 1 { one.to_owned() } else { format!("{count} {several}") };
            parts.push(Part { what, bytes, cure });
        }
    };
    let mut limits: Vec<_> = checked.global.limit.iter().cloned().collect();
    for site in &checked.sites {
        limit_wishes(&site.routes, &mut limits);
        site.errors.iter().for_each(|errors| limit_wishes(&errors.routes, &mut limits));
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
    let logs = log_outputs(checked);
    let log_bytes = (LOG_BATCHES_MAX * LOG_BATCH_BYTES) as u64;
    add(logs, "lines for an access log", "access logs, lines that wait", logs * log_bytes, None);
    let lines = if apps.is_empty() { 0 } else { WORKER_LINES_WAITING_BYTES_MAX as u64 };
    add(1, "lines that applications write", "", lines, None);
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

fn log_outputs(checked: &Checked) -> u64 {
    let mut outputs: Vec<&LogOutput> = Vec::new();
    for log in checked.sites.iter().flat_map(|site| &site.logs) {
        if !outputs.contains(&&log.output) {
            outputs.push(&log.output);
        }
    }
    outputs.len() as u64
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

/// The memory that this process's control group may have (cgroup v2, `memory.max`): the lowest of its own limit and of
/// those above it.
pub(super) fn group_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    group_limit_below(&groups, Path::new("/sys/fs/cgroup"))
}

/// cgroups(7): version 2 is the line with the number 0 and no controllers.
fn group_limit_below(groups: &str, mounted: &Path) -> Option<u64> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut below = Path::new(own.trim_start_matches('/'));
    // A group above the namespace's root is named with `..`, and cannot be looked at.
    if below.components().any(|part| !matches!(part, Component::Normal(_))) {
        below = Path::new("");
    }
    let limits = below.ancestors().filter_map(|group| {
        let text = std::fs::read_to_string(mounted.join(group).join("memory.max")).ok()?;
        // `max` where there is none.
        text.trim().parse::<u64>().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests;
