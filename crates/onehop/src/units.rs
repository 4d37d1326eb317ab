//! Numbers as a person reads them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

/// `1 file`, `3 files`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// RFC 3339 in UTC, with milliseconds.
pub(crate) fn rfc3339_milliseconds(time: SystemTime) -> String {
    let milliseconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).subsec_millis();
    rfc3339(time).replace('Z', &format!(".{milliseconds:03}Z"))
}

/// RFC 3339 in UTC, whole seconds.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date so many days after 1970-01-01, in eras of 400 years that begin on the 1st of March (the Gregorian
/// calendar repeats itself after one, and a leap day is then the last of its year).
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_ERA: u64 = 146_097;
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / DAYS_OF_ERA, shifted % DAYS_OF_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
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
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }
}
