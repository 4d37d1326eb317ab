//! Dates as logs, reports and directory pages write them, in UTC. Pure.

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment of the proleptic Gregorian calendar, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    year: i64,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

impl Moment {
    /// The moment of a system time.
    pub fn of(time: SystemTime) -> Self {
        let seconds = match time.duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX),
        };
        let (day_number, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = date(day_number);
        let part = |value: i64| u32::try_from(value).unwrap_or(0);
        Self {
            year,
            month,
            day,
            hour: part(second / 3600),
            minute: part(second / 60 % 60),
            second: part(second % 60),
        }
    }

    /// `2026-05-12T10:15:00Z` (RFC 3339).
    pub fn rfc3339(self) -> String {
        let Self { year, month, day, hour, minute, second } = self;
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// `12/May/2026:10:15:00 +0000`, as Apache's access logs have it.
    pub fn common_log(self) -> String {
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let Self { year, month, day, hour, minute, second } = self;
        let name = usize::try_from(month).ok().and_then(|month| MONTHS.get(month.checked_sub(1)?));
        let name = name.copied().unwrap_or_default();
        format!("{day:02}/{name}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000")
    }

    /// `2026-05-12 10:15`
    pub fn short(self) -> String {
        let Self { year, month, day, hour, minute, .. } = self;
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
    }
}

/// The date of a day counted from 1 January 1970. Years are taken to begin in March, so that the leap
/// day is their last; an era is the 400 years after which the calendar repeats.
fn date(day_number: i64) -> (i64, u32, u32) {
    /// Days from 1 March of the year 0 to 1 January 1970.
    const EPOCH: i64 = 719_468;
    /// Days of an era.
    const ERA: i64 = 146_097;
    let days = day_number + EPOCH;
    let (era, day_of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    // tidy: not a bound, because these are the days of 4, 100 and 400 years
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let part = |value: i64| u32::try_from(value).unwrap_or(0);
    (year, part(month), part(day))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (784_111_777, "1994-11-06T08:49:37Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(Moment::of(UNIX_EPOCH + Duration::from_secs(seconds)).rfc3339(), expected);
        }
        assert_eq!(Moment::of(UNIX_EPOCH - Duration::from_secs(1)).rfc3339(), "1969-12-31T23:59:59Z");
        assert_eq!(Moment::of(UNIX_EPOCH).short(), "1970-01-01 00:00");
    }
}
