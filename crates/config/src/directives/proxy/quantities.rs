//! Times, counts, sizes and statuses as the options of `reverse_proxy` take them.
//!
//! Where Caddy reads a zero as "the default", so is it here, with a warning: few mean that who write it.

use std::time::Duration;

use crate::check::Context;
use crate::check::value::{duration, in_words, number, within};
use crate::checked::proxy::StatusTest;
use crate::directives::one_argument;
use crate::limits::{PROXY_TIME_MAX, PROXY_TIME_MIN};
use crate::problem::Problem;
use crate::syntax::{Line, Token};

/// The value of an option that takes a time; zero means its default.
pub(super) fn time(cx: &mut Context<'_>, option: &Line, default: Duration) -> Result<Duration, Box<Problem>> {
    let token = value(option, "10s")?;
    if duration(token)?.is_zero() {
        warn_of_zero(cx, option, token, &in_words(default));
        return Ok(default);
    }
    bounded(option, token)
}

/// The value of an option that takes a time; zero means none.
pub(super) fn time_or_none(option: &Line) -> Result<Option<Duration>, Box<Problem>> {
    let token = value(option, "10s")?;
    if duration(token)?.is_zero() { Ok(None) } else { bounded(option, token).map(Some) }
}

/// The value of an option that takes a time; zero means zero.
pub(super) fn time_or_zero(option: &Line) -> Result<Duration, Box<Problem>> {
    time_or_none(option).map(Option::unwrap_or_default)
}

/// Whether a time is written with a minus, which switches some things off in Caddy.
pub(super) fn is_negative(token: &Token) -> bool {
    let Some(rest) = token.text.strip_prefix('-') else { return false };
    let positive = Token { text: rest.to_owned(), ..token.clone() };
    rest.parse::<u64>().is_ok() || duration(&positive).is_ok()
}

/// The value of an option that counts from one; zero means its default.
pub(super) fn count(
    cx: &mut Context<'_>,
    option: &Line,
    default: u32,
    most: u64,
) -> Result<u32, Box<Problem>> {
    let token = value(option, "10")?;
    if token.text == "0" {
        warn_of_zero(cx, option, token, &default.to_string());
        return Ok(default);
    }
    small(option, token, 1, most)
}

/// The value of an option that counts; zero means no bound.
pub(super) fn count_or_none(option: &Line, most: u64) -> Result<Option<u32>, Box<Problem>> {
    small(option, value(option, "100")?, 0, most).map(|count| (count > 0).then_some(count))
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

/// What an option that has one value is given.
pub(super) fn value<'l>(option: &'l Line, example: &str) -> Result<&'l Token, Box<Problem>> {
    one_argument(option, &format!("{} {example}", option.name.text))
}

fn bounded(option: &Line, token: &Token) -> Result<Duration, Box<Problem>> {
    within(token, &format!("`{}`", option.name.text), PROXY_TIME_MIN, PROXY_TIME_MAX)
}

fn small(option: &Line, token: &Token, least: u64, most: u64) -> Result<u32, Box<Problem>> {
    number(token, &format!("`{}`", option.name.text), least, most)
        .map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn warn_of_zero(cx: &mut Context<'_>, option: &Line, token: &Token, default: &str) {
    let name = &option.name.text;
    let message = format!("`{name} {}` means the default, `{name} {default}`, as in Caddy", token.text);
    let help = match name.as_str() {
        "keepalive" => "`keepalive off` keeps no connection",
        _ => "leave it out, or write what is meant",
    };
    cx.problems.push(Problem::warning("zero", &token.place, message).help(help));
}
