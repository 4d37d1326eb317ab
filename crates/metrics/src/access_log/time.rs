//! The time of a line.

use std::cell::RefCell;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use onehop_config::checked::LogTime;
use onehop_message::calendar::Moment;

use crate::json_string::{push_filled, push_number};

/// Adds a time; as JSON, where it is no number, in quotation marks.
pub(super) fn push(out: &mut Vec<u8>, at: SystemTime, form: LogTime, quotes: &str) {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, microseconds) = (since.as_secs(), since.subsec_micros());
    match form {
        LogTime::UnixSeconds => {
            push_number(out, seconds);
            out.push(b'.');
            push_filled(out, microseconds, 6);
        }
        LogTime::UnixMilliseconds => {
            let (whole, part) = (since.as_millis(), microseconds % 1000);
            let _ = write!(out, "{whole}.{part:03}");
        }
        LogTime::UnixNanoseconds => _ = write!(out, "{}", since.as_nanos()),
        _ => {
            out.extend_from_slice(quotes.as_bytes());
            push_date(out, at, form);
            out.extend_from_slice(quotes.as_bytes());
        }
    }
}

/// Adds a time as Apache writes it. Many requests come in one second: its text is kept.
pub(super) fn push_common_log(out: &mut Vec<u8>, at: SystemTime) {
    thread_local! {
        static LAST: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
    }
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    LAST.with_borrow_mut(|(second, text)| {
        if *second != seconds || text.is_empty() {
            (*second, *text) = (seconds, Moment::of(at).common_log());
        }
        out.extend_from_slice(text.as_bytes());
    });
}

fn push_date(out: &mut Vec<u8>, at: SystemTime, form: LogTime) {
    let microseconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().subsec_micros();
    let moment = Moment::of(at);
    let text = moment.rfc3339();
    let seconds = text.trim_end_matches('Z');
    match form {
        LogTime::CommonLog => push_common_log(out, at),
        LogTime::Iso8601 => _ = write!(out, "{seconds}.{:03}Z", microseconds / 1000),
        LogTime::Rfc3339Fraction => _ = write!(out, "{seconds}.{microseconds:06}Z"),
        LogTime::Wall => out.extend_from_slice(wall(seconds).as_bytes()),
        LogTime::WallMilliseconds => _ = write!(out, "{}.{:03}", wall(seconds), microseconds / 1000),
        _ => out.extend_from_slice(text.as_bytes()),
    }
}

fn wall(seconds: &str) -> String {
    seconds.replace('-', "/").replace('T', " ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_form_of_a_time_is_as_caddy_writes_it() {
        let at = UNIX_EPOCH + Duration::from_micros(1_767_225_600_012_345);
        for (form, text) in [
            (LogTime::UnixSeconds, "1767225600.012345"),
            (LogTime::UnixMilliseconds, "1767225600012.345"),
            (LogTime::UnixNanoseconds, "1767225600012345000"),
            (LogTime::Iso8601, "\"2026-01-01T00:00:00.012Z\""),
            (LogTime::Rfc3339, "\"2026-01-01T00:00:00Z\""),
            (LogTime::Rfc3339Fraction, "\"2026-01-01T00:00:00.012345Z\""),
            (LogTime::Wall, "\"2026/01/01 00:00:00\""),
            (LogTime::WallMilliseconds, "\"2026/01/01 00:00:00.012\""),
            (LogTime::CommonLog, "\"01/Jan/2026:00:00:00 +0000\""),
        ] {
            let mut out = Vec::new();
            push(&mut out, at, form, "\"");
            assert_eq!(out, text.as_bytes());
        }
    }
}
