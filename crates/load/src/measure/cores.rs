//! Which cores the servers get and which the load.
//!
//! Owns the split. Never uses a core that this process may not use.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::process::read;
use crate::caveat::{Caveat, CaveatCode};

/// The load gets a core of so many: it costs less for a request than any server.
const CORES_PER_LOAD_CORE: usize = 4;

/// The servers' cores and the load's, of those that this process may use; two empty lists with one core.
pub fn split_cores() -> (Vec<usize>, Vec<usize>) {
    split(&allowed())
}

/// Binds the calling thread, and what it starts from now on, to these cores; an empty list changes nothing. Whether
/// it was possible.
pub fn bind_to(cores: &[usize]) -> bool {
    // Before the first thread is bound.
    allowed();
    if cores.is_empty() {
        return true;
    }
    let mut set = CpuSet::new();
    for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
        set.set(*core);
    }
    sched_setaffinity(None, &set).is_ok()
}

/// What is to be known about this choice of cores, for people.
pub fn core_caveats(server: &[usize], load: &[usize]) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if server.is_empty() || load.is_empty() {
        caveats.push(
            CaveatCode::SharedCores.says("server and load share their cores: each takes time from the other"),
        );
    }
    let shared = server.iter().find_map(|core| {
        let siblings = siblings_of(*core);
        load.iter().find(|other| siblings.contains(other)).map(|other| (*core, *other))
    });
    match shared {
        Some((one, other)) if one != other => caveats.push(CaveatCode::SharedCores.says(format!(
            "core {one} (server) and core {other} (load) are threads of one physical core: each slows the other"
        ))),
        Some((one, _)) => {
            caveats.push(CaveatCode::SharedCores.says(format!("server and load share core {one}")));
        }
        None => {}
    }
    if let Some(quota) = quota()
        && quota < allowed().len() as f64
    {
        caveats.push(CaveatCode::CoreQuota.says(format!(
            "the control group may use {quota:.1} cores of {}: what is above is taken away in turns",
            allowed().len()
        )));
    }
    caveats
}

/// The cores that this process may use: those of the first thread that asked, before any was bound.
pub(crate) fn allowed() -> Vec<usize> {
    static ALLOWED: OnceLock<Vec<usize>> = OnceLock::new();
    ALLOWED.get_or_init(of_this_thread).clone()
}

fn of_this_thread() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

fn split(allowed: &[usize]) -> (Vec<usize>, Vec<usize>) {
    if allowed.len() < 2 {
        return (Vec::new(), Vec::new());
    }
    let load = (allowed.len() / CORES_PER_LOAD_CORE).max(1);
    let (server, load) = allowed.split_at(allowed.len() - load);
    (server.to_vec(), load.to_vec())
}

/// The cores that are threads of the same physical core.
fn siblings_of(core: usize) -> BTreeSet<usize> {
    let text = read(&format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"));
    let mut siblings = cores_in(text.unwrap_or_default().trim());
    siblings.insert(core);
    siblings
}

/// `0-1,4` as numbers.
fn cores_in(list: &str) -> BTreeSet<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<usize>().ok()?, last.trim().parse::<usize>().ok()?);
        Some(first..=last.min(CpuSet::MAX_CPU))
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// The cores that the control group may use at most (cgroup v2, `cpu.max`; v1, `cpu.cfs_quota_us`): the narrowest of
/// it and of those above it.
fn quota() -> Option<f64> {
    let own = read("/proc/self/cgroup")?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let mut quotas = Vec::new();
    let mut folder = path.trim_end_matches('/');
    loop {
        quotas.extend(read(&format!("/sys/fs/cgroup{folder}/cpu.max")).and_then(|text| quota_in(&text)));
        let Some((above, _)) = folder.rsplit_once('/') else { break };
        folder = above;
    }
    let old = |name: &str| read(&format!("/sys/fs/cgroup/cpu/{name}"));
    if let (Some(quota), Some(period)) = (old("cpu.cfs_quota_us"), old("cpu.cfs_period_us")) {
        quotas.extend(quota_in(&format!("{} {}", quota.trim(), period.trim())));
    }
    quotas.into_iter().reduce(f64::min)
}

/// `150000 100000` or `max 100000`.
fn quota_in(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_gets_the_last_core_or_a_quarter_of_them() {
        assert_eq!(split(&[3]), (vec![], vec![]));
        assert_eq!(split(&[0, 1]), (vec![0], vec![1]));
        assert_eq!(split(&[1, 2, 5]), (vec![1, 2], vec![5]));
        let eight: Vec<usize> = (0..8).collect();
        assert_eq!(split(&eight), (vec![0, 1, 2, 3, 4, 5], vec![6, 7]));
        let (server, load) = split_cores();
        assert!(server.iter().all(|core| !load.contains(core)));
    }

    #[test]
    fn lists_of_cores_and_quotas_are_read() {
        assert_eq!(cores_in("0-2,7"), BTreeSet::from([0, 1, 2, 7]));
        assert_eq!(cores_in(""), BTreeSet::new());
        assert_eq!(quota_in("150000 100000\n"), Some(1.5));
        assert_eq!(quota_in("max 100000\n"), None);
        assert_eq!(quota_in("-1 100000"), None);
    }

    #[test]
    fn sharing_a_core_is_said() {
        assert!(core_caveats(&[0], &[0]).iter().any(|caveat| caveat.text.contains("share core 0")));
        assert!(core_caveats(&[], &[]).iter().any(|caveat| caveat.text.contains("share their cores")));
    }

    #[test]
    fn a_thread_is_bound_where_it_was_reported() {
        let bound = std::thread::spawn(|| {
            let last = *allowed().last().unwrap();
            (bind_to(&[last]), of_this_thread() == [last], bind_to(&[]), allowed().len() > 1)
        });
        assert_eq!(bound.join().unwrap(), (true, true, true, of_this_thread().len() > 1));
    }
}
