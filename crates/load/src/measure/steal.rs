//! Time that the machine below took away.
//!
//! Owns the reading of `/proc/stat`.

use super::process::read;

/// The share of time in which a core was ready and the machine below ran something else.
#[derive(Debug)]
pub struct StealMeter {
    begin: Option<Ticks>,
}

/// Ticks of all cores together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    all: u64,
    stolen: u64,
}

impl StealMeter {
    /// Begins to count.
    pub fn start() -> StealMeter {
        StealMeter { begin: now() }
    }

    /// The share since the begin, 0.01 for 1 %, over all cores; `None` where the kernel does not tell or no tick
    /// has passed.
    pub fn share(&self) -> Option<f64> {
        share(self.begin?, now()?)
    }
}

fn now() -> Option<Ticks> {
    ticks_in(&read("/proc/stat")?)
}

/// `cpu user nice system idle iowait irq softirq steal guest guest_nice` (proc(5)); guests' time is in user's.
fn ticks_in(text: &str) -> Option<Ticks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    Some(Ticks { all: ticks.iter().take(8).sum(), stolen: *ticks.get(7)? })
}

fn share(begin: Ticks, end: Ticks) -> Option<f64> {
    let all = end.all.checked_sub(begin.all).filter(|all| *all > 0)?;
    Some(end.stolen.saturating_sub(begin.stolen) as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stolen_share_is_of_all_time() {
        let begin = ticks_in("cpu  10 0 10 70 0 0 0 10 5 5\ncpu0 1 2 3\n").unwrap();
        assert_eq!(begin, Ticks { all: 100, stolen: 10 });
        let end = ticks_in("cpu  60 0 60 70 0 0 0 110 0 0\n").unwrap();
        assert_eq!(share(begin, end), Some(0.5));
        assert_eq!(share(begin, begin), None);
        assert_eq!(ticks_in("cpu  1 2 3"), None);
    }
}
