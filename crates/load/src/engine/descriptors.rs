//! Whether there are descriptors enough.
//!
//! Owns the raising of this process's soft limit up to the hard one. Nobody asks for more than that.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::LoadError;
use super::limits::DESCRIPTORS_BESIDE;

/// Descriptors beside the connections of a comparison: those of the load, and the logs of servers.
const COMPARISON_BESIDE: u64 = 256;

/// Makes room for so many connections before a server is started. Servers inherit the limit: raised by the first load
/// it would be another one for the first server than for all that follow. Gives the new limit where it was raised; a
/// hard limit that is too low is told by the load.
pub fn make_room_early(connections: usize) -> Option<u64> {
    let needed = COMPARISON_BESIDE + connections as u64;
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(needed, |most| most.min(needed));
    if limit.current.is_none_or(|current| current >= wanted) {
        return None;
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).ok().map(|()| wanted)
}

/// Makes room for so many connections and threads.
pub(crate) fn make_room(connections: usize, threads: usize) -> Result<(), LoadError> {
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
