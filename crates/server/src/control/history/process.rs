//! What a process takes, from /proc (proc(5)); nothing where it is gone or /proc is not mounted.

use std::fs;

/// Microseconds that it was on a CPU.
pub(super) fn cpu_micros(process: &str) -> u64 {
    let ticks = || {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // Its name, which stands in parentheses, may hold anything. `utime` and `stime` are the 14th and 15th field.
        let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().skip(11);
        let mut field = || fields.next()?.parse::<u64>().ok();
        Some(field()?.saturating_add(field()?))
    };
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    ticks().unwrap_or_default().saturating_mul(1_000_000) / per_second
}

/// Resident bytes.
pub(super) fn resident_bytes(process: &str) -> u64 {
    let pages = || {
        let text = fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
    };
    pages().unwrap_or_default().saturating_mul(rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_gone_takes_nothing() {
        assert!(resident_bytes("self") > 0);
        assert_eq!((cpu_micros("0"), resident_bytes("0")), (0, 0));
    }
}
