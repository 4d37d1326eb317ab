//! `flush_interval`, `request_buffers` and `response_buffers`: how bodies pass.

use super::quantities::is_negative;
use crate::check::Context;
use crate::check::value::{duration, size};
use crate::checked::proxy::ProxyFlush;
use crate::limits::{PROXY_BUFFER_BYTES_MAX, PROXY_TIME_MAX, PROXY_TIME_MIN};
use crate::option_table::Value;
use crate::problem::Problem;

/// A time; below the clock's grain, or with a minus, at once.
pub(super) fn flush(value: Value<'_>) -> Result<ProxyFlush, Box<Problem>> {
    if is_negative(value.token) {
        return Ok(ProxyFlush::Immediately);
    }
    let time = duration(value.token)?;
    if time.is_zero() {
        return Ok(ProxyFlush::AsItComes);
    }
    if time < PROXY_TIME_MIN {
        return Ok(ProxyFlush::Immediately);
    }
    value.within(PROXY_TIME_MIN, PROXY_TIME_MAX).map(ProxyFlush::Every)
}

/// Bytes of a body that are held back; `unlimited` is as many as there may be.
pub(in crate::directives) fn buffer(
    cx: &mut Context<'_>,
    Value { name, token }: Value<'_>,
) -> Result<u64, Box<Problem>> {
    let bytes = if token.text == "unlimited" { u64::MAX } else { size(token)? };
    if bytes <= PROXY_BUFFER_BYTES_MAX {
        return Ok(bytes);
    }
    let most = PROXY_BUFFER_BYTES_MAX >> 20;
    let message = format!("`{}` holds back at most {most}MiB of a body", name.text);
    let help = format!("what is longer is sent on as it comes; `{most}MiB` says it without this warning");
    cx.problems.push(Problem::warning("bounded", &token.place, message).help(help));
    Ok(PROXY_BUFFER_BYTES_MAX)
}
