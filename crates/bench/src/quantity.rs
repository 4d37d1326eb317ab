//! Amounts as people type them: durations, counts, rates, shares.
//!
//! Pure: text in, a checked value or a sentence for a person out. Knows no option's name; whoever asks says that.

use std::time::Duration;

use onehop_load::plan::{Phase, Spacing};

/// No run is meant to take longer than a day; a slip in the unit is found.
const DURATION_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// More requests per second than any machine answers, so that a slip is found.
const RATE_MAX: f64 = 100_000_000.0;
/// Pieces of a rate that changes: more than anybody types.
const PHASES_MAX: usize = 1000;
/// A piece with its unit, the longest units first where one begins another.
const UNITS: &[(&str, f64)] = &[("ms", 0.001), ("us", 0.000_001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// The rates of an open loop, before their length is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// Each piece from one rate to another; all are equally long.
    pub pieces: Vec<(f64, f64)>,
}

/// `10` (seconds), `10s`, `1.5s`, `1m30s`, `500ms`, `2h`.
///
/// # Errors
/// For everything else, for zero, and for more than a day.
pub fn duration(text: &str) -> Result<Duration, String> {
    match span(text)? {
        Duration::ZERO => Err("it has to be longer than nothing".to_owned()),
        time => Ok(time),
    }
}

/// The same, and `0` too.
///
/// # Errors
/// For everything else, and for more than a day.
pub fn span(text: &str) -> Result<Duration, String> {
    let wrong = || "write a time: 10s, 1m30s, 500ms; a bare number counts seconds".to_owned();
    if let Ok(seconds) = number(text) {
        return seconds_to_duration(seconds).ok_or_else(wrong);
    }
    let (mut rest, mut seconds) = (text.trim(), 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').ok_or_else(wrong)?;
        let (amount, after) = rest.split_at(digits);
        let amount = number(amount).map_err(|_| wrong())?;
        let unit = UNITS.iter().find(|(unit, _)| after.starts_with(unit));
        let (unit, factor) = unit.copied().ok_or_else(wrong)?;
        rest = after.strip_prefix(unit).unwrap_or_default();
        seconds += amount * factor;
    }
    match seconds_to_duration(seconds) {
        Some(time) if !text.trim().is_empty() => Ok(time),
        _ => Err(wrong()),
    }
}

/// `1000`, `10k`, `1.5M`: from 1.
///
/// # Errors
/// For everything else.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || "write a number from 1, 10k and 2M count thousands and millions".to_owned();
    let (digits, factor) = match text.trim() {
        text if text.ends_with(['k', 'K']) => (text.trim_end_matches(['k', 'K']), 1e3),
        text if text.ends_with(['m', 'M']) => (text.trim_end_matches(['m', 'M']), 1e6),
        text if text.ends_with(['g', 'G']) => (text.trim_end_matches(['g', 'G']), 1e9),
        text => (text, 1.0),
    };
    let counted = number(digits).map_err(|_| wrong())? * factor;
    // Below 2^53 every whole number has its own place in an f64.
    if (1.0..=9e15).contains(&counted) && counted.fract() == 0.0 { Ok(counted as u64) } else { Err(wrong()) }
}

/// `500`, `100..1000` (a ramp), `100,200,400` (steps), or both.
///
/// # Errors
/// For everything else.
pub fn rates(text: &str) -> Result<Rates, String> {
    let wrong = || {
        "write requests per second: 500, a ramp 100..1000, or steps 100,200,400 of equal length".to_owned()
    };
    let rate = |text: &str| {
        let text = text.trim();
        let (digits, factor) = text.strip_suffix(['k', 'K']).map_or((text, 1.0), |digits| (digits, 1000.0));
        let rate = number(digits).map_err(|_| wrong())? * factor;
        if rate > 0.0 && rate <= RATE_MAX { Ok(rate) } else { Err(wrong()) }
    };
    let mut pieces = Vec::new();
    for piece in text.split(',') {
        let (from, to) = piece.split_once("..").unwrap_or((piece, piece));
        pieces.push((rate(from)?, rate(to)?));
    }
    if pieces.len() > PHASES_MAX {
        return Err(format!("at most {PHASES_MAX} steps"));
    }
    Ok(Rates { pieces })
}

/// `2%` or `0.02`: above 0 and below 1.
///
/// # Errors
/// For everything else.
pub fn share(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    match share {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("write a share: 2% or 0.02".to_owned()),
    }
}

/// `constant` or `poisson`.
///
/// # Errors
/// For everything else.
pub fn spacing(text: &str) -> Result<Spacing, String> {
    match text {
        "constant" => Ok(Spacing::Constant),
        "poisson" => Ok(Spacing::Poisson),
        _ => Err("write constant, or poisson for arrivals as those of many people".to_owned()),
    }
}

impl Rates {
    /// A rate that stays.
    pub fn constant(rate: f64) -> Rates {
        Rates { pieces: vec![(rate, rate)] }
    }

    /// Whether it changes on the way.
    pub fn changes(&self) -> bool {
        self.pieces.len() > 1 || self.pieces.iter().any(|(from, to)| from != to)
    }

    /// The pieces, spread over this time.
    pub fn over(&self, length: Duration) -> Vec<Phase> {
        let each = length / u32::try_from(self.pieces.len()).unwrap_or(u32::MAX).max(1);
        self.pieces.iter().map(|&(from, to)| Phase { from, to, length: each }).collect()
    }
}

/// Digits with at most one point: no sign, no exponent, no `inf`.
fn number(text: &str) -> Result<f64, ()> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain { text.parse().map_err(|_| ()) } else { Err(()) }
}

fn seconds_to_duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|time| *time <= DURATION_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, milliseconds) in [
            ("10", 10_000),
            ("10s", 10_000),
            ("1.5s", 1500),
            ("0.25", 250),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("2h", 7_200_000),
            ("1m", 60_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "10x", "-1", "1e9", "inf", "25h", "0", "0s", "10 s x", "1s30", "."] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(span("0"), Ok(Duration::ZERO));
        assert!(span("").is_err() && span(" ").is_err());
    }

    #[test]
    fn counts_have_the_suffixes_of_wrk() {
        for (text, expected) in
            [("1", 1), ("1000", 1000), ("10k", 10_000), ("1.5M", 1_500_000), ("2G", 2_000_000_000)]
        {
            assert_eq!(count(text), Ok(expected), "{text}");
        }
        for text in ["0", "", "k", "1.5", "-1", "1e3", "99999999999999999999", "10kk k"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_rate_may_stay_rise_or_step() {
        assert_eq!(rates("500"), Ok(Rates::constant(500.0)));
        let ramp = rates("100..1k").unwrap();
        assert_eq!((ramp.changes(), ramp.pieces.clone()), (true, vec![(100.0, 1000.0)]));
        let steps = rates("100,200,400").unwrap().over(Duration::from_secs(9));
        assert!(steps.iter().all(|phase| phase.length == Duration::from_secs(3)), "{steps:?}");
        assert_eq!(steps.iter().map(|phase| phase.to).collect::<Vec<_>>(), [100.0, 200.0, 400.0]);
        for text in ["", "0", "1..", "..1", "a", "1,,2", "-5", "1e99", "999999999999"] {
            assert!(rates(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_percent_or_parts() {
        assert_eq!(share("2%"), Ok(0.02));
        assert_eq!(share("0.5"), Ok(0.5));
        for text in ["0", "100%", "1", "", "%", "-1%", "2 %x"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
