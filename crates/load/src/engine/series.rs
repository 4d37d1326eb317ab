//! The series over time: the pieces of all threads, put together.
//!
//! Owns the slices and their lengths: as many as [`SLICES_MAX`], at least as long as [`PIECE`]; a run whose length is
//! not known before has its slices joined in pairs as it grows.

use std::time::Duration;

use super::limits::{NARROW_SLICES_MIN, PIECE, SLICES_MAX};
use super::record::Piece;
use super::thread::nanoseconds;
use crate::outcome::Slice;
use crate::plan::Until;

/// How a run's time is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// The length of a piece that threads hand over, nanoseconds.
    pub piece: u64,
    /// Pieces in a slice.
    pub pieces_in_slice: u64,
    /// Pieces in the whole time, where its length is known.
    pub pieces: Option<u64>,
}

impl Cut {
    /// For a run of this length, where it is known. One that is to end when its rate is known has a time as its bound
    /// only: with slices for that it would have to wait for many of them, each of a second or more.
    pub(super) fn of(until: Until) -> Cut {
        let piece = nanoseconds(PIECE);
        let Some(time) = until.time.filter(|_| until.narrow.is_none()) else {
            return Cut { piece, pieces_in_slice: 1, pieces: None };
        };
        let pieces = (nanoseconds(time) / piece).max(1);
        let pieces_in_slice = pieces.div_ceil(SLICES_MAX as u64);
        let pieces = (pieces / pieces_in_slice).max(1) * pieces_in_slice;
        Cut { piece: (nanoseconds(time) / pieces).max(1), pieces_in_slice, pieces: Some(pieces) }
    }
}

/// The slices of a run, growing.
#[derive(Debug)]
pub(super) struct Series {
    cut: Cut,
    slices: Vec<Building>,
    /// Pieces of each thread that have come.
    pieces_of: Vec<u64>,
}

#[derive(Debug, Default, Clone)]
struct Building {
    good: u64,
    bad: u64,
    /// Latencies of the good, value and count, in rising order.
    steps: Vec<(Duration, u64)>,
}

impl Series {
    pub(super) fn new(cut: Cut, threads: usize) -> Series {
        Series { cut, slices: Vec::new(), pieces_of: vec![0; threads] }
    }

    /// Takes a thread's piece.
    pub(super) fn add(&mut self, piece: &Piece) {
        // Beyond the end of the time are answers that were owed at it.
        if piece.is_warm_up || self.cut.pieces.is_some_and(|pieces| piece.index >= pieces) {
            return;
        }
        if let Some(pieces) = self.pieces_of.get_mut(piece.thread) {
            *pieces = piece.index + 1;
        }
        let place = loop {
            let place = piece.index / self.cut.pieces_in_slice;
            match usize::try_from(place) {
                Ok(place) if place < SLICES_MAX => break place,
                _ => self.join_pairs(),
            }
        };
        if self.slices.len() <= place {
            self.slices.resize(place + 1, Building::default());
        }
        let Some(slice) = self.slices.get_mut(place) else { return };
        slice.good += piece.good;
        slice.bad += piece.unexpected + piece.failures;
        slice.steps = merged(&slice.steps, &piece.steps);
    }

    fn join_pairs(&mut self) {
        self.cut.pieces_in_slice *= 2;
        self.slices = self
            .slices
            .chunks(2)
            .map(|pair| {
                pair.iter().skip(1).fold(pair.first().cloned().unwrap_or_default(), |mut one, other| {
                    one.good += other.good;
                    one.bad += other.bad;
                    one.steps = merged(&one.steps, &other.steps);
                    one
                })
            })
            .collect();
    }

    /// The length of a slice.
    pub(super) fn slice_length(&self) -> Duration {
        Duration::from_nanos(self.cut.piece.saturating_mul(self.cut.pieces_in_slice))
    }

    /// The width of the 95 % interval of the mean rate, as a share of that; `None` while there is too little.
    pub(super) fn width(&self) -> Option<f64> {
        let whole = self.pieces_of.iter().min()? / self.cut.pieces_in_slice;
        let whole = usize::try_from(whole).ok()?.min(self.slices.len());
        let goods: Vec<f64> = self.slices.get(..whole)?.iter().map(|slice| slice.good as f64).collect();
        if goods.len() < NARROW_SLICES_MIN {
            return None;
        }
        let count = goods.len() as f64;
        let mean = goods.iter().sum::<f64>() / count;
        let variance = goods.iter().map(|good| (good - mean).powi(2)).sum::<f64>() / (count - 1.0);
        // 30 slices and more: the normal quantile is near enough to Student's.
        (mean > 0.0).then(|| 2.0 * 1.96 * (variance / count).sqrt() / mean)
    }

    /// The slices that lie within `length` as a whole; of a run that is shorter than one, that one.
    pub(super) fn finish(mut self, length: Duration) -> (Vec<Slice>, Duration) {
        let slice_length = self.slice_length();
        let whole = nanoseconds(length) / nanoseconds(slice_length).max(1);
        // A slice in which nothing ended has no piece that says so.
        self.slices
            .resize(usize::try_from(whole).unwrap_or(SLICES_MAX).clamp(1, SLICES_MAX), Building::default());
        let slices = (0_u32..).zip(&self.slices).map(|(place, slice)| Slice {
            at: slice_length.saturating_mul(place),
            good: slice.good,
            bad: slice.bad,
            p50: quantile(&slice.steps, 0.5),
            p99: quantile(&slice.steps, 0.99),
            max: slice.steps.last().map_or(Duration::ZERO, |(value, _)| *value),
        });
        (slices.collect(), slice_length)
    }
}

/// Two rising lists in one.
pub(super) fn merged(one: &[(Duration, u64)], other: &[(Duration, u64)]) -> Vec<(Duration, u64)> {
    let mut all = Vec::with_capacity(one.len() + other.len());
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    loop {
        match (one.peek(), other.peek()) {
            (Some(left), Some(right)) if left.0 == right.0 => {
                all.push((left.0, left.1 + right.1));
                one.next();
                other.next();
            }
            (Some(left), Some(right)) if left.0 > right.0 => all.extend(other.next()),
            (Some(_), _) => all.extend(one.next()),
            (None, Some(_)) => all.extend(other.next()),
            (None, None) => return all,
        }
    }
}

/// The value that this share of all do not exceed.
pub(super) fn quantile(steps: &[(Duration, u64)], share: f64) -> Duration {
    let total: u64 = steps.iter().map(|(_, count)| count).sum();
    let wanted = ((total as f64 * share).ceil() as u64).max(1);
    let mut seen = 0;
    for (value, count) in steps {
        seen += count;
        if seen >= wanted {
            return *value;
        }
    }
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(thread: usize, index: u64, good: u64) -> Piece {
        Piece {
            thread,
            index,
            good,
            steps: vec![(Duration::from_millis(index + 1), good)],
            ..Piece::default()
        }
    }

    #[test]
    fn a_rate_that_is_to_be_known_well_is_looked_at_in_short_slices_whatever_the_time_allows() {
        let hour = Until { time: Some(Duration::from_secs(3600)), ..Until::default() };
        assert_eq!(Cut::of(Until { narrow: Some(0.02), ..hour }), Cut::of(Until::default()));
        assert!(Cut::of(hour).pieces_in_slice > 100);
    }

    #[test]
    fn slices_are_at_most_so_many_and_at_least_so_long_and_fill_the_time() {
        for millis in [1, 99, 100, 250, 1000, 10_000, 30_000, 30_100, 100_000, 3_600_000] {
            let time = Duration::from_millis(millis);
            let cut = Cut::of(Until { time: Some(time), ..Until::default() });
            let slice = Duration::from_nanos(cut.piece * cut.pieces_in_slice);
            let count = (time.as_secs_f64() / slice.as_secs_f64()).round();
            assert!(count <= 300.0 && (slice >= PIECE || count == 1.0), "{millis}: {count} of {slice:?}");
            let filled = slice.as_secs_f64() * count;
            assert!((filled / time.as_secs_f64() - 1.0).abs() < 1e-6, "{millis}: {filled}");
        }
    }

    #[test]
    fn a_series_that_grows_joins_its_slices_and_loses_nothing() {
        let mut series = Series::new(Cut::of(Until::default()), 2);
        for index in 0..1000 {
            series.add(&piece(0, index, 3));
            series.add(&piece(1, index, 4));
        }
        let (slices, length) = series.finish(Duration::from_secs(100));
        assert_eq!((slices.len(), length), (250, Duration::from_millis(400)));
        assert!(slices.iter().all(|slice| slice.good == 28), "{slices:?}");
        assert_eq!(slices[1].max, Duration::from_millis(8));
        assert_eq!(slices[1].at, Duration::from_millis(400));
    }

    #[test]
    fn the_interval_of_the_rate_narrows_with_the_slices_and_not_before_there_are_some() {
        let mut series = Series::new(Cut::of(Until::default()), 1);
        let mut widths = Vec::new();
        for index in 0..200 {
            series.add(&piece(0, index, 100 + index % 2 * 10));
            widths.push(series.width());
        }
        assert_eq!(widths[NARROW_SLICES_MIN - 2], None);
        let (early, late) = (widths[NARROW_SLICES_MIN - 1].unwrap(), widths[199].unwrap());
        // A deviation of 5 in 105, over the root of 200, twice 1.96.
        assert!(late < early && (late - 0.0132).abs() < 0.001, "{early} {late}");
    }

    #[test]
    fn quantiles_of_steps_are_those_of_what_they_stand_for() {
        let steps = merged(
            &[(Duration::from_millis(1), 98), (Duration::from_millis(9), 1)],
            &[(Duration::from_millis(1), 1)],
        );
        assert_eq!(steps.len(), 2);
        assert_eq!(quantile(&steps, 0.99), Duration::from_millis(1));
        assert_eq!(quantile(&steps, 0.999), Duration::from_millis(9));
        assert_eq!(quantile(&[], 0.5), Duration::ZERO);
    }
}
