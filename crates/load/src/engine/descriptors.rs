//! Whether there are descriptors enough.
//!
//! Owns the raising of this process's soft limit up to the hard one. Nobody asks for more than that.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::LoadError;
use super::limits::DESCRIPTORS_BESIDE;

/// Makes room for so many connections and threads.
pub(super) fn make_room(connections: usize, threads: usize) -> Result<(), LoadError> {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    let beside = open + threads as u64 + DESCRIPTORS_BESIDE;
    let needed = beside.saturating_add(connections as u64);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if let Some(allowed) = limit.maximum.filter(|most| *most < needed) {
        return Err(LoadError::Descriptors { needed, allowed });
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .map_err(|error| LoadError::System { what: "raising the limit of descriptors", why: error.into() })
}
