//! Numbers, sizes, durations, statuses and field names as a person writes them.

use std::time::Duration;

use crate::checked::{Encoding, Part, Template};
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::Token;

/// A number within bounds.
pub(crate) fn number(token: &Token, what: &str, from: u64, to: u64) -> Result<u64, Box<Problem>> {
    let bounds = if to == u64::MAX { format!("of at least {from}") } else { format!("from {from} to {to}") };
    match token.text.parse::<u64>() {
        Ok(number) if (from..=to).contains(&number) => Ok(number),
        _ => Err(Problem::error("number", &token.place, format!("{what} must be a number {bounds}"))),
    }
}

/// A port.
pub(crate) fn port(token: &Token, what: &str) -> Result<u16, Box<Problem>> {
    number(token, what, 1, u64::from(u16::MAX)).map(|port| u16::try_from(port).unwrap_or(u16::MAX))
}

/// The status of a final answer.
pub(crate) fn status(token: &Token) -> Result<u16, Box<Problem>> {
    if token.text.starts_with('{') {
        let message = "a status from a placeholder is a feature of Caddy that onehop does not have yet";
        return Err(Problem::error("not-yet", &token.place, message).help("write the status as a number"));
    }
    number(token, "a status", 200, 999).map(|status| u16::try_from(status).unwrap_or(500))
}

/// Bytes: `512MiB`, `10MB`, `4096`.
pub(crate) fn size(token: &Token) -> Result<u64, Box<Problem>> {
    let text = token.text.as_str();
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        "ti" | "tib" => 1 << 40,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        _ => return Err(not_a_size(token)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().map_err(|_| not_a_size(token))?;
    let digits =
        u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 6).ok_or_else(|| not_a_size(token))?;
    let fraction: u64 = fraction.parse().map_err(|_| not_a_size(token))?;
    let part = u128::from(factor) * u128::from(fraction) / u128::from(10_u64.pow(digits));
    let bytes = u128::from(whole) * u128::from(factor) + part;
    u64::try_from(bytes).map_err(|_| not_a_size(token))
}

fn not_a_size(token: &Token) -> Box<Problem> {
    Problem::error("size", &token.place, format!("`{}` is no size", token.text))
        .help("write a number with a unit: `512MiB`, `1GiB`, `100MB`")
}

/// A duration as Caddy writes it: `10s`, `1m30s`, `250ms`, `2d`.
pub(crate) fn duration(token: &Token) -> Result<Duration, Box<Problem>> {
    let wrong = || {
        Problem::error("duration", &token.place, format!("`{}` is no duration", token.text))
            .help("write a number with a unit: `250ms`, `10s`, `1m30s`, `2h`, `1d`")
    };
    let mut rest = token.text.as_str();
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, after) = rest.split_at(digits);
        let letters = after.bytes().take_while(|byte| !byte.is_ascii_digit() && *byte != b'.').count();
        let (unit, after) = after.split_at(letters);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return Err(wrong()),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = after;
    }
    if token.text.is_empty() { Err(wrong()) } else { Ok(total) }
}

/// A duration within bounds.
pub(crate) fn within(
    token: &Token,
    what: &str,
    from: Duration,
    to: Duration,
) -> Result<Duration, Box<Problem>> {
    let time = duration(token)?;
    if (from..=to).contains(&time) {
        return Ok(time);
    }
    let message = format!("{what} must be from {} to {}", in_words(from), in_words(to));
    Err(Problem::error("duration", &token.place, message))
}

/// A bound or a default as it would be written; those are whole numbers of a unit.
pub(crate) fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{}ms", time.as_millis()),
        _ if seconds.is_multiple_of(86_400) => format!("{}d", seconds / 86_400),
        _ if seconds.is_multiple_of(3_600) => format!("{}h", seconds / 3_600),
        _ if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// Whether a text is a token (RFC 9110 section 5.6.2), as names of fields, methods and cookies are.
pub(crate) fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

/// A field name (RFC 9110 section 5.1), as written.
pub(crate) fn field_name<'a>(token: &Token, name: &'a str) -> Result<&'a str, Box<Problem>> {
    if name.contains('{') && name.contains('}') {
        let message = "a placeholder in a field name is a feature of Caddy that onehop does not have yet";
        return Err(Problem::error("not-yet", &token.place, message));
    }
    if is_token(name) {
        return Ok(name);
    }
    let problem =
        Problem::error("field-name", &token.place, format!("`{name}` is no name of a header field"));
    Err(problem.help("letters, digits and `-` make a name, as in `Cache-Control`"))
}

/// Text that becomes the value of a field: it must not break the line (RFC 9110 section 5.5).
pub(crate) fn field_value(token: &Token, value: Template) -> Result<Template, Box<Problem>> {
    let breaks = |part: &Part| matches!(part, Part::Text(text) if text.contains(['\r', '\n', '\0']));
    if value.parts.iter().any(breaks) {
        return Err(Problem::error(
            "field-value",
            &token.place,
            "the value of a header field has a line end",
        )
        .help("write it on one line"));
    }
    Ok(value)
}

/// A content coding by Caddy's name.
pub(crate) fn encoding(token: &Token) -> Result<Encoding, Box<Problem>> {
    match token.text.as_str() {
        "gzip" => Ok(Encoding::Gzip),
        "br" => Ok(Encoding::Brotli),
        "zstd" => Ok(Encoding::Zstd),
        other => {
            let problem = Problem::error("encoding", &token.place, format!("`{other}` is no encoding"));
            let near = match other {
                "brotli" => Some("br"),
                _ => nearest(other, ["gzip", "br", "zstd"]),
            };
            Err(match near {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help("there are `gzip`, `br` and `zstd`"),
            })
        }
    }
}
