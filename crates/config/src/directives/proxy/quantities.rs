//! Times, counts, sizes and statuses as the options of `reverse_proxy` take them.
//!
//! Where Caddy reads a zero as "the default", so is it here, with a warning: few mean that who write it.

use std::time::Duration;

use crate::check::Context;
use crate::check::value::{duration, in_words};
use crate::checked::proxy::StatusTest;
use crate::limits::{PROXY_TIME_MAX, PROXY_TIME_MIN};
use crate::option_table::Value;
use crate::problem::Problem;
use crate::syntax::Token;

/// A time; zero means the default.
pub(super) fn time(
    cx: &mut Context<'_>,
    value: Value<'_>,
    default: Duration,
) -> Result<Duration, Box<Problem>> {
    if duration(value.token)?.is_zero() {
        warn_of_zero(cx, value, &in_words(default));
        return Ok(default);
    }
    value.within(PROXY_TIME_MIN, PROXY_TIME_MAX)
}

/// A time; zero means none.
pub(super) fn time_or_none(value: Value<'_>) -> Result<Option<Duration>, Box<Problem>> {
    if duration(value.token)?.is_zero() {
        return Ok(None);
    }
    value.within(PROXY_TIME_MIN, PROXY_TIME_MAX).map(Some)
}

/// A time; zero means zero.
pub(super) fn time_or_zero(value: Value<'_>) -> Result<Duration, Box<Problem>> {
    time_or_none(value).map(Option::unwrap_or_default)
}

/// Whether a time is written with a minus, which switches some things off in Caddy.
pub(super) fn is_negative(token: &Token) -> bool {
    let Some(rest) = token.text.strip_prefix('-') else { return false };
    let positive = Token { text: rest.to_owned(), ..token.clone() };
    rest.parse::<u64>().is_ok() || duration(&positive).is_ok()
}

/// A count from one; zero means the default.
pub(super) fn count(
    cx: &mut Context<'_>,
    value: Value<'_>,
    default: u32,
    most: u64,
) -> Result<u32, Box<Problem>> {
    if value.token.text == "0" {
        warn_of_zero(cx, value, &default.to_string());
        return Ok(default);
    }
    value.count(1, most)
}

/// A count; zero means no bound.
pub(super) fn count_or_none(value: Value<'_>, most: u64) -> Result<Option<u32>, Box<Problem>> {
    value.count(0, most).map(|count| (count > 0).then_some(count))
}

/// `200`, `2xx` or, as Caddy has it, `2`.
pub(super) fn status_test(token: &Token) -> Result<StatusTest, Box<Problem>> {
    let text = token.text.as_str();
    let class = match text.as_bytes() {
        [digit] => Some(*digit),
        [digit, b'x' | b'X', b'x' | b'X'] => Some(*digit),
        _ => None,
    };
    if let Some(digit @ b'2'..=b'5') = class {
        return Ok(StatusTest::Class(digit - b'0'));
    }
    match text.parse::<u16>() {
        Ok(status) if class.is_none() && text.len() == 3 && (200..600).contains(&status) => {
            Ok(StatusTest::Exactly(status))
        }
        _ => Err(Problem::error("status", &token.place, format!("`{text}` is no status of an answer"))
            .help("write a number from 200 to 599, or a class: `2xx`")),
    }
}

fn warn_of_zero(cx: &mut Context<'_>, Value { name, token }: Value<'_>, default: &str) {
    let name = &name.text;
    let message = format!("`{name} {}` means the default, `{name} {default}`, as in Caddy", token.text);
    let help = match name.as_str() {
        "keepalive" => "`keepalive off` keeps no connection",
        _ => "leave it out, or write what is meant",
    };
    cx.problems.push(Problem::warning("zero", &token.place, message).help(help));
}
