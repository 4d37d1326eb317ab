//! Numbers as a person reads them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onehop_message::calendar::Moment;

/// `788 bytes`, `1.2 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    const STEP: f64 = 1024.0;
    if count < 1024 {
        return format!("{count} bytes");
    }
    // Rounding is what is wanted here.
    let mut value = count as f64 / STEP;
    for unit in ["KiB", "MiB", "GiB"] {
        if value < STEP {
            return format!("{value:.1} {unit}");
        }
        value /= STEP;
    }
    format!("{value:.1} TiB")
}

/// `14 ms`, `2.3 s`, `3 min 20 s`, `5 h 3 min`, `12 d 4 h`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// A latency in milliseconds with three digits, as the middles of a histogram's buckets have: `42.5 µs`, `1.05 ms`, `105 ms`.
pub(crate) fn latency(milliseconds: f64) -> String {
    let (value, unit) = match milliseconds {
        ..=0.0 => return "0 ms".to_owned(),
        ..1.0 => (milliseconds * 1_000.0, "\u{b5}s"),
        ..1_000.0 => (milliseconds, "ms"),
        _ => (milliseconds / 1_000.0, "s"),
    };
    let decimals = match value {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// `1 file`, `3 files`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// RFC 3339 in UTC, with milliseconds.
pub(crate) fn rfc3339_milliseconds(time: SystemTime) -> String {
    let milliseconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).subsec_millis();
    Moment::of(time).rfc3339().replace('Z', &format!(".{milliseconds:03}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_short() {
        for (count, expected) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (3 << 20, "3.0 MiB"),
            (1 << 40, "1.0 TiB"),
        ] {
            assert_eq!(bytes(count), expected);
        }
        for (ms, expected) in [
            (14, "14 ms"),
            (2300, "2.3 s"),
            (200_000, "3 min 20 s"),
            (18_180_000, "5 h 3 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(Duration::from_millis(ms)), expected);
        }
        for (ms, expected) in [
            (0.0, "0 ms"),
            (0.0105, "10.5 \u{b5}s"),
            (1.05, "1.05 ms"),
            (105.0, "105 ms"),
            (2350.0, "2.35 s"),
            (120_000.0, "120 s"),
        ] {
            assert_eq!(latency(ms), expected);
        }
    }
}
