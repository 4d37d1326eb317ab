//! Which lines are left out where there are many, as Caddy counts them: by log and level, anew in each interval.

use std::time::SystemTime;

use onehop_config::checked::LogSampling;

/// The lines that one core has counted, by log and level. One entry for each pair that the configuration allows.
#[derive(Debug, Default)]
pub(super) struct Samples {
    counts: Vec<Count>,
}

#[derive(Debug)]
struct Count {
    /// The number of the log, and whether its lines are errors.
    key: (u32, bool),
    began: SystemTime,
    lines: u64,
}

impl Samples {
    /// Counts a line; whether it is written.
    pub(super) fn takes(&mut self, sampling: &LogSampling, key: (u32, bool), at: SystemTime) -> bool {
        let number = self.counts.iter().position(|count| count.key == key).unwrap_or_else(|| {
            self.counts.push(Count { key, began: at, lines: 0 });
            self.counts.len() - 1
        });
        let Some(count) = self.counts.get_mut(number) else { return true };
        // A clock that was set back begins a new interval, too.
        if at.duration_since(count.began).is_ok_and(|age| age < sampling.interval) {
            count.lines += 1;
        } else {
            (count.began, count.lines) = (at, 1);
        }
        let later = count.lines.saturating_sub(sampling.first);
        later == 0 || (sampling.thereafter > 0 && later.is_multiple_of(sampling.thereafter))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_first_lines_of_an_interval_are_written_and_then_each_one_of_some() {
        let sampling = LogSampling { interval: Duration::from_secs(1), first: 2, thereafter: 3 };
        let mut samples = Samples::default();
        let begin = SystemTime::UNIX_EPOCH;
        let mut taken = |key, at| samples.takes(&sampling, key, begin + Duration::from_millis(at));
        let first: Vec<bool> = (0..8).map(|number| taken((0, false), number)).collect();
        assert_eq!(first, [true, true, false, false, true, false, false, true]);
        assert!(taken((0, true), 9), "levels are counted apart");
        assert!(taken((1, false), 9), "logs are counted apart");
        assert!(!taken((0, false), 999));
        assert!(taken((0, false), 1000), "a new interval");
    }

    #[test]
    fn without_a_number_thereafter_only_the_first_lines_are_written() {
        let sampling = LogSampling { interval: Duration::from_secs(1), first: 1, thereafter: 0 };
        let mut samples = Samples::default();
        let taken = (0..100).filter(|_| samples.takes(&sampling, (0, false), SystemTime::UNIX_EPOCH)).count();
        assert_eq!(taken, 1);
    }
}
