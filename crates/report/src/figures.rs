//! Figures written for people: durations, rates, counts, bytes, shares, ratios.
//!
//! Owns how many digits are shown: three that count, since no figure here is surer than that. Never rounds a
//! failure away: a share that is not zero is not written as zero.

use std::time::Duration;

use onehop_statistics::{Interval, Verdict};

/// What stands where there is no figure.
pub(crate) const NOTHING: &str = "\u{2013}";

/// Names of programs that are written small at the begin of a sentence too.
const SMALL_NAMES: [&str; 8] = ["onehop", "nginx", "node", "npm", "curl", "wrk", "ab", "autocannon"];

/// Letters of a name that tables show: enough to tell requests apart.
const NAME_LETTERS_MAX: usize = 80;

/// Microseconds of a second.
const MICROS: f64 = 1_000_000.0;

/// A measured duration with three digits that count: `412 µs`, `1.24 ms`, `3.20 s`, `2 min 5 s`.
pub(crate) fn duration(took: Duration) -> String {
    let nanos = took.as_nanos() as f64;
    let units = [(1.0, "ns"), (1e3, "\u{b5}s"), (1e6, "ms"), (1e9, "s")];
    if took.is_zero() {
        return "0 s".to_owned();
    }
    if took >= Duration::from_secs(60) {
        return long(took);
    }
    for (unit, name) in units {
        // 999.6 has to become 1.00 of the next unit, and seconds go up to a minute.
        if nanos / unit < 999.5 {
            let digits = if unit == 1.0 { format!("{:.0}", nanos) } else { significant(nanos / unit) };
            return format!("{digits} {name}");
        }
    }
    long(took)
}

/// A duration that somebody set, without zeros that say nothing: `10 s`, `1.5 s`, `250 ms`.
pub(crate) fn length(set: Duration) -> String {
    let text = duration(set);
    match text.split_once(' ') {
        Some((digits, unit)) if digits.contains('.') => {
            format!("{} {unit}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Microseconds as [`duration`] writes them.
pub(crate) fn micros(value: f64) -> String {
    if value.is_finite() && (0.0..1e15).contains(&value) {
        duration(Duration::from_secs_f64(value / MICROS))
    } else {
        NOTHING.to_owned()
    }
}

/// A duration in microseconds, for arithmetic and plots.
pub(crate) fn as_micros(took: Duration) -> f64 {
    took.as_nanos() as f64 / 1e3
}

/// A whole number in groups of three digits.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun, which takes an `s` where it is not one.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let plural = match noun.strip_suffix('y') {
        _ if number == 1 => noun.to_owned(),
        Some(stem) if !noun.ends_with("ay") => format!("{stem}ies"),
        _ => format!("{noun}s"),
    };
    format!("{} {plural}", count(number))
}

/// A number with at least three digits that count and no more than make sense.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    if value.abs() >= 99.5 {
        let whole = count(value.abs().round() as u64);
        return if value < 0.0 { format!("-{whole}") } else { whole };
    }
    significant(value)
}

/// A number of which whole ones are exact: connections, round values at an axis.
pub(crate) fn amount(value: f64) -> String {
    if value.fract() == 0.0 && value >= 0.0 { count(value as u64) } else { number(value) }
}

/// Requests per second.
pub(crate) fn rate(per_second: f64) -> String {
    format!("{}/s", number(per_second))
}

/// Bytes in powers of 1024.
pub(crate) fn bytes(size: f64) -> String {
    if !size.is_finite() || size < 0.0 {
        return NOTHING.to_owned();
    }
    let mut value = size;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 999.5 {
            return match unit {
                "B" if value.fract() == 0.0 => format!("{value:.0} B"),
                unit => format!("{} {unit}", significant(value)),
            };
        }
        value /= 1024.0;
    }
    format!("{} TiB", number(value))
}

/// A share as percent: `12 %`, `0.41 %`, and `< 0.01 %` for what is not zero.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value.abs() {
        _ if !value.is_finite() => NOTHING.to_owned(),
        0.0 => "0 %".to_owned(),
        size if size < 0.01 => "< 0.01 %".to_owned(),
        size if size < 0.995 => format!("{} %", format!("{value:.2}").trim_end_matches('0')),
        size if size < 9.95 => format!("{} %", format!("{value:.1}").trim_end_matches(".0")),
        size if size < 99.5 => format!("{value:.0} %"),
        _ => format!("{} %", number(value)),
    }
}

/// The name of a percentile: `p50`, `p99.9`.
pub(crate) fn percentile(share: f64) -> String {
    let text = format!("{:.4}", share * 100.0);
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// An interval of a ratio: `0.62, 99 % interval 0.58 to 0.66`.
pub(crate) fn ratio(interval: &Interval) -> String {
    ratio_and_interval(interval).join(", ")
}

/// A ratio, and its interval in words: `0.62` and `99 % interval 0.58 to 0.66`.
pub(crate) fn ratio_and_interval(interval: &Interval) -> [String; 2] {
    let [middle, low, high] = ratio_digits(interval);
    [middle, format!("{} interval {low} to {high}", percent(interval.confidence))]
}

/// A ratio as a difference, with its interval: `-12 % (-15 to -9)`, or `2.50 times (2.20 to 2.91)`.
pub(crate) fn difference(interval: &Interval) -> String {
    if !(interval.low.is_finite() && interval.high.is_finite()) || interval.middle <= 0.0 {
        return NOTHING.to_owned();
    }
    if interval.high >= 2.0 {
        let [middle, low, high] = ratio_digits(interval);
        return format!("{middle} times ({low} to {high})");
    }
    let signed = |ratio: f64| {
        let value = (ratio - 1.0) * 100.0;
        let digits =
            if interval.high - interval.low < 0.1 { format!("{value:+.1}") } else { format!("{value:+.0}") };
        match digits.as_str() {
            "-0" | "+0" | "-0.0" | "+0.0" => "0".to_owned(),
            digits => digits.replace('-', "\u{2212}"),
        }
    };
    let [middle, low, high] = [interval.middle, interval.low, interval.high].map(signed);
    format!("{middle} % ({low} to {high})")
}

/// The words of a verdict, with the size of the difference where one is shown.
pub(crate) fn verdict(verdict: Verdict, interval: &Interval) -> String {
    match verdict {
        Verdict::NotShown => "no difference shown".to_owned(),
        Verdict::Unknown => "unknown".to_owned(),
        Verdict::Less => format!("{} less", percent(1.0 - interval.middle)),
        Verdict::More if interval.middle >= 2.0 => format!("{} times as much", significant(interval.middle)),
        Verdict::More => format!("{} more", percent(interval.middle - 1.0)),
    }
}

/// Things in a row: `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(things: &[String]) -> String {
    match things {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Something from outside (a name, a URL, a header) within a sentence: in backticks, which each form of the report
/// shows in its own way. Control characters become visible, so that none of them reaches a terminal.
pub(crate) fn quoted(outside: &str) -> String {
    format!("`{}`", visible(outside).replace('`', "'"))
}

/// The same for tables and lists, where a name must not take all the room; programs find it whole in the JSON.
pub(crate) fn named(outside: &str) -> String {
    match outside.chars().count() {
        0 => "(no name)".to_owned(),
        letters if letters > NAME_LETTERS_MAX => {
            quoted(&outside.chars().take(NAME_LETTERS_MAX).chain(['\u{2026}']).collect::<String>())
        }
        _ => quoted(outside),
    }
}

/// The text without control characters and without those that turn the direction of writing.
pub(crate) fn visible(outside: &str) -> String {
    let is_turning = |letter: char| matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut text = String::with_capacity(outside.len());
    for letter in outside.chars() {
        match letter {
            '\n' | '\r' | '\t' => text.push(' '),
            letter if letter.is_control() || is_turning(letter) => text.extend(letter.escape_unicode()),
            letter => text.push(letter),
        }
    }
    text
}

/// The parts within backticks and those between. A backtick without its partner is a letter.
pub(crate) fn parts(text: &str) -> Vec<(bool, String)> {
    let text = visible(text);
    let mut parts = Vec::new();
    let mut rest = text.as_str();
    while let Some((before, behind)) = rest.split_once('`') {
        let Some((code, after)) = behind.split_once('`') else { break };
        parts.push((false, before.to_owned()));
        parts.push((!code.trim().is_empty(), code.to_owned()));
        rest = after;
    }
    parts.push((false, rest.to_owned()));
    parts.retain(|(_, part)| !part.is_empty());
    parts
}

/// The space that no line is broken at.
pub(crate) const BOUND: char = '\u{a0}';

/// The text with figures bound to their units, so that no line ends between them.
pub(crate) fn bound(text: &str) -> String {
    const UNITS: [&str; 11] = ["%", "ns", "\u{b5}s", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB"];
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(' ') {
        let bare = word.trim_end_matches(|letter: char| !letter.is_alphanumeric() && letter != '%');
        let is_bound = out.ends_with(' ')
            && out.trim_end_matches(' ').ends_with(|letter: char| letter.is_ascii_digit())
            && UNITS.contains(&bare);
        if is_bound {
            out.pop();
            out.push(BOUND);
        }
        out.push_str(word);
    }
    out
}

/// Words of others as a sentence: with a capital letter, except for names that have none, and a period.
pub(crate) fn sentence(text: &str) -> String {
    let first = text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    let mut sentence = if SMALL_NAMES.contains(&first) { text.to_owned() } else { capital(text) };
    if sentence.ends_with(|letter: char| letter.is_alphanumeric() || ")`%\"'".contains(letter)) {
        sentence.push('.');
    }
    sentence
}

/// A sentence begins with a capital letter.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn ratio_digits(interval: &Interval) -> [String; 3] {
    let decimals = if interval.high - interval.low < 0.02 { 3 } else { 2 };
    [interval.middle, interval.low, interval.high].map(|value| match value {
        value if !value.is_finite() => NOTHING.to_owned(),
        value if value >= 10.0 => number(value),
        value => format!("{value:.decimals$}"),
    })
}

/// Three digits that count.
fn significant(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 0.0995 => format!("{value:.3}"),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn long(took: Duration) -> String {
    let seconds = took.as_secs_f64().round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{} h {minutes} min", count(hours)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(middle: f64, low: f64, high: f64) -> Interval {
        Interval { middle, low, high, confidence: 0.99 }
    }

    #[test]
    fn durations_show_three_digits_that_count() {
        for (nanos, text, set) in [
            (0, "0 s", "0 s"),
            (850, "850 ns", "850 ns"),
            (1_000, "1.00 \u{b5}s", "1 \u{b5}s"),
            (412_345, "412 \u{b5}s", "412 \u{b5}s"),
            (999_600, "1.00 ms", "1 ms"),
            (12_340_000, "12.3 ms", "12.3 ms"),
            (1_500_000_000, "1.50 s", "1.5 s"),
            (10_000_000_000, "10.0 s", "10 s"),
            (59_990_000_000, "60.0 s", "60 s"),
            (125_000_000_000, "2 min 5 s", "2 min 5 s"),
            (120_000_000_000, "2 min", "2 min"),
            (7_260_000_000_000, "2 h 1 min", "2 h 1 min"),
        ] {
            assert_eq!(duration(Duration::from_nanos(nanos)), text);
            assert_eq!(length(Duration::from_nanos(nanos)), set);
        }
        assert_eq!(micros(f64::NAN), NOTHING);
        assert_eq!(micros(-1.0), NOTHING);
    }

    #[test]
    fn counts_rates_and_bytes_are_grouped_and_short() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
        for (value, text) in [(48_210.4, "48,210/s"), (99.6, "100/s"), (12.34, "12.3/s"), (0.05, "0.050/s")] {
            assert_eq!(rate(value), text);
        }
        for (size, text) in [
            (0.0, "0 B"),
            (512.0, "512 B"),
            (12.5, "12.5 B"),
            (1023.0, "1.00 KiB"),
            (1_536.0, "1.50 KiB"),
            (52_428_800.0, "50.0 MiB"),
            (f64::NAN, NOTHING),
        ] {
            assert_eq!(bytes(size), text, "{size}");
        }
        assert_eq!(
            [counted(1, "request"), counted(2, "reply"), counted(0, "day")],
            ["1 request", "2 replies", "0 days"]
        );
    }

    #[test]
    fn a_share_that_is_not_zero_is_never_written_as_zero() {
        for (share, text) in [
            (0.0, "0 %"),
            (0.000_001, "< 0.01 %"),
            (0.0041, "0.41 %"),
            (0.0567, "5.7 %"),
            (0.12, "12 %"),
            (0.99, "99 %"),
            (25.0, "2,500 %"),
        ] {
            assert_eq!(percent(share), text);
        }
        assert_eq!([percentile(0.5), percentile(0.999)], ["p50", "p99.9"]);
    }

    #[test]
    fn a_difference_is_reported_with_its_interval_and_only_as_large_as_it_is() {
        let less = interval(0.62, 0.58, 0.66);
        assert_eq!(ratio(&less), "0.62, 99 % interval 0.58 to 0.66");
        assert_eq!(difference(&less), "\u{2212}38.0 % (\u{2212}42.0 to \u{2212}34.0)");
        assert_eq!(verdict(Verdict::Less, &less), "38 % less");
        let same = interval(1.0, 0.995, 1.004);
        assert_eq!(difference(&same), "0 % (\u{2212}0.5 to +0.4)");
        assert_eq!(verdict(Verdict::NotShown, &same), "no difference shown");
        let more = interval(2.5, 2.2, 2.9);
        assert_eq!(difference(&more), "2.50 times (2.20 to 2.90)");
        assert_eq!(verdict(Verdict::More, &more), "2.50 times as much");
        let nothing = interval(f64::NAN, f64::NAN, f64::NAN);
        assert_eq!(difference(&nothing), NOTHING);
        assert_eq!(verdict(Verdict::Unknown, &nothing), "unknown");
    }

    #[test]
    fn words_of_others_become_sentences() {
        for (text, shown) in [
            ("the runs differ by 7 %", "The runs differ by 7 %."),
            ("nginx counted more", "nginx counted more."),
            ("`/time` differs.", "`/time` differs."),
            ("", ""),
        ] {
            assert_eq!(sentence(text), shown);
        }
    }

    #[test]
    fn nothing_from_outside_reaches_the_terminal_as_control() {
        assert_eq!(quoted("a\u{1b}[31m`b`\nc\u{202e}"), "`a\\u{1b}[31m'b' c\\u{202e}`");
    }
}
