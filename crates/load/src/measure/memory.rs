//! Memory of processes at one moment.
//!
//! Owns the sums. Pages that processes share count for each in [`Memory::resident_bytes`], and once in
//! [`Memory::proportional_bytes`].

use super::process::{number_behind, read};

/// Memory of some processes together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Resident pages; shared ones count for each process.
    pub resident_bytes: u64,
    /// Proportional shares; `None` where the kernel does not tell them of each.
    pub proportional_bytes: Option<u64>,
    /// The highest resident size of each so far, summed: they need not have had it at the same time.
    pub peak_bytes: u64,
}

/// Memory of these processes now. Those that have ended have none.
pub fn memory_of(processes: &[u32]) -> Memory {
    let none = Memory { proportional_bytes: Some(0), ..Memory::default() };
    processes.iter().filter_map(|process| of_one(*process)).fold(none, Memory::and)
}

/// Starts the count of the highest resident size anew (proc(5), `/proc/PID/clear_refs`). Whether that was possible
/// for all.
pub fn forget_peak(processes: &[u32]) -> bool {
    let forget = |process: &u32| std::fs::write(format!("/proc/{process}/clear_refs"), "5").is_ok();
    let failed = processes.iter().filter(|process| !forget(process)).count();
    failed == 0
}

/// The bytes that a process is weighed by, and whether they are its proportional share.
pub(crate) fn weight_of(process: u32) -> Option<(u64, bool)> {
    if let Some(share) = proportional(process) {
        return Some((share, true));
    }
    let status = read(&format!("/proc/{process}/status"))?;
    Some((bytes_behind(&status, "VmRSS:")?, false))
}

/// Bytes that are a process's own: its share of anonymous and of shared memory. Pages of files are not in it: their share
/// changes with every other program that maps them.
pub(crate) fn own_of(process: u32) -> Option<u64> {
    let sum = |text: &str, names: [&str; 2]| {
        let [anonymous, shared] = names.map(|name| bytes_behind(text, name));
        Some(anonymous?.saturating_add(shared?))
    };
    read(&format!("/proc/{process}/smaps_rollup"))
        .and_then(|text| sum(&text, ["Pss_Anon:", "Pss_Shmem:"]))
        .or_else(|| sum(&read(&format!("/proc/{process}/status"))?, ["RssAnon:", "RssShmem:"]))
}

impl Memory {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Memory) -> Memory {
        let shares = self.proportional_bytes.zip(other.proportional_bytes);
        Memory {
            resident_bytes: self.resident_bytes.saturating_add(other.resident_bytes),
            proportional_bytes: shares.map(|(one, other)| one.saturating_add(other)),
            peak_bytes: self.peak_bytes.saturating_add(other.peak_bytes),
        }
    }
}

fn of_one(process: u32) -> Option<Memory> {
    let status = read(&format!("/proc/{process}/status"))?;
    // One that has ended and is waited for has no such line.
    let resident_bytes = bytes_behind(&status, "VmRSS:")?;
    let peak_bytes = bytes_behind(&status, "VmHWM:").unwrap_or(resident_bytes);
    Some(Memory { resident_bytes, proportional_bytes: proportional(process), peak_bytes })
}

fn proportional(process: u32) -> Option<u64> {
    bytes_behind(&read(&format!("/proc/{process}/smaps_rollup"))?, "Pss:")
}

fn bytes_behind(text: &str, name: &str) -> Option<u64> {
    Some(number_behind(text, name)?.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_without_the_pages_of_files() {
        let kept = vec![1_u8; 8 << 20];
        let (own, resident) =
            (own_of(std::process::id()).unwrap(), memory_of(&[std::process::id()]).resident_bytes);
        assert!((kept.len() as u64..resident).contains(&own), "{own} of {resident}");
        assert_eq!(own_of(0), None);
    }

    #[test]
    fn memory_of_two_is_that_of_both() {
        let own = memory_of(&[std::process::id()]);
        assert!(own.resident_bytes > 100_000 && own.peak_bytes >= own.resident_bytes, "{own:?}");
        assert_eq!(memory_of(&[0]), Memory { proportional_bytes: Some(0), ..Memory::default() });
        let unknown = Memory { resident_bytes: 1, proportional_bytes: None, peak_bytes: 2 };
        let both = own.and(unknown);
        assert_eq!(both.resident_bytes, own.resident_bytes + 1);
        assert_eq!((both.proportional_bytes, both.peak_bytes), (None, own.peak_bytes + 2));
    }
}
