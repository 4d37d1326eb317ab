//! `flush_interval`, the two buffers, `stream_timeout` and `stream_close_delay`: how bodies and tunnels pass.

use super::quantities::{is_negative, time_or_none, time_or_zero, value};
use crate::check::Context;
use crate::check::value::{duration, size, within};
use crate::checked::proxy::{Proxy, ProxyFlush};
use crate::directives::no_arguments;
use crate::limits::{PROXY_BUFFER_BYTES_MAX, PROXY_TIME_MAX, PROXY_TIME_MIN};
use crate::problem::Problem;
use crate::syntax::Line;

/// One of these options.
pub(super) fn option(cx: &mut Context<'_>, proxy: &mut Proxy, option: &Line) -> Result<(), Box<Problem>> {
    match option.name.text.as_str() {
        "flush_interval" => proxy.flush = flush(option)?,
        "request_buffers" => proxy.request_buffer_bytes = buffer(cx, option)?,
        "response_buffers" => proxy.answer_buffer_bytes = buffer(cx, option)?,
        "stream_timeout" => proxy.stream_timeout = time_or_none(option)?,
        "stream_close_delay" => proxy.stream_close_delay = Some(time_or_zero(option)?),
        _ => {
            no_arguments(option)?;
            let message =
                "`verbose_logs` changes nothing: the access log names the upstream and what went wrong";
            cx.problems.push(Problem::warning("no-effect", &option.name.place, message));
        }
    }
    Ok(())
}

/// A time; below the clock's grain, or with a minus, at once.
fn flush(option: &Line) -> Result<ProxyFlush, Box<Problem>> {
    let token = value(option, "-1")?;
    if is_negative(token) {
        return Ok(ProxyFlush::Immediately);
    }
    let time = duration(token)?;
    if time.is_zero() {
        return Ok(ProxyFlush::AsItComes);
    }
    if time < PROXY_TIME_MIN {
        return Ok(ProxyFlush::Immediately);
    }
    within(token, "`flush_interval`", PROXY_TIME_MIN, PROXY_TIME_MAX).map(ProxyFlush::Every)
}

pub(in crate::directives) fn buffer(cx: &mut Context<'_>, option: &Line) -> Result<u64, Box<Problem>> {
    let token = value(option, "64KiB")?;
    let bytes = if token.text == "unlimited" { u64::MAX } else { size(token)? };
    if bytes <= PROXY_BUFFER_BYTES_MAX {
        return Ok(bytes);
    }
    let most = PROXY_BUFFER_BYTES_MAX >> 20;
    let message = format!("`{}` holds back at most {most}MiB of a body", option.name.text);
    let help = format!("what is longer is sent on as it comes; `{most}MiB` says it without this warning");
    cx.problems.push(Problem::warning("bounded", &token.place, message).help(help));
    Ok(PROXY_BUFFER_BYTES_MAX)
}
