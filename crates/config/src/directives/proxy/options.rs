//! The block of `reverse_proxy`: which file reads which option, and what a word that none of them knows may mean.

use super::draft::Draft;
use super::{balance, fields, health, pool, streaming, transport};
use crate::check::Context;
use crate::directives::{some_arguments, trust, unknown_option};
use crate::limits::PROXY_LIST_MAX;
use crate::problem::Problem;
use crate::syntax::Line;

/// Options that work.
const OPTIONS: [&str; 37] = [
    "to",
    "pool",
    "lb_policy",
    "lb_retries",
    "lb_try_duration",
    "lb_try_interval",
    "lb_retry_match",
    "health_uri",
    "health_path",
    "health_port",
    "health_upstream",
    "health_interval",
    "health_timeout",
    "health_status",
    "health_body",
    "health_passes",
    "health_fails",
    "health_headers",
    "health_method",
    "health_request_body",
    "health_follow_redirects",
    "fail_duration",
    "max_fails",
    "unhealthy_status",
    "unhealthy_latency",
    "unhealthy_request_count",
    "header_up",
    "header_down",
    "ambiguous_headers",
    "flush_interval",
    "request_buffers",
    "response_buffers",
    "stream_timeout",
    "stream_close_delay",
    "trusted_proxies",
    "transport",
    "verbose_logs",
];

/// Those of Caddy that do not work yet.
const NOT_YET: [&str; 7] = [
    "copy_response",
    "copy_response_headers",
    "dynamic",
    "handle_response",
    "method",
    "replace_status",
    "rewrite",
];

/// Options that can stand in a block several times: each adds to the others.
const REPEATED: [&str; 6] =
    ["to", "header_up", "header_down", "lb_retry_match", "unhealthy_status", "trusted_proxies"];

/// Words of older Caddys and of other programs, with what to do about them.
const OTHERS_WORDS: [(&str, &str); 13] = [
    ("buffer_requests", "that is `request_buffers SIZE` here"),
    ("buffer_responses", "that is `response_buffers SIZE` here"),
    ("ignore_invalid_headers", "that is `ambiguous_headers` here; what is no field name is always refused"),
    ("insecure_skip_verify", "that is `tls_insecure_skip_verify` in `transport http { … }`"),
    ("max_buffer_size", "the size stands behind `request_buffers` and `response_buffers`"),
    ("max_conns", "that is `max_conns_per_host N` in `transport http { … }`, or `pool max N`"),
    ("policy", "that is `lb_policy` here"),
    ("proxy_buffering", "that is `flush_interval` here"),
    ("proxy_set_header", "that is `header_up` here"),
    ("transparent", "take it away: `Host` and `X-Forwarded-…` are always set"),
    ("underscores_in_headers", "that is `ambiguous_headers pass` here"),
    ("websocket", "take it away: WebSockets pass as they are"),
    ("without", "`handle_path` around the `reverse_proxy` takes a prefix off"),
];

/// Reads the block; every problem is kept.
pub(super) fn read<'l>(cx: &mut Context<'_>, draft: &mut Draft<'l>, line: &'l Line) {
    for option in line.block.as_deref().unwrap_or_default() {
        let name = option.name.text.as_str();
        let mut result = read_option(cx, draft, option);
        if result.is_ok() && !REPEATED.contains(&name) {
            result = once(draft, option);
        }
        draft.seen.push(&option.name);
        draft.is_broken |= cx.keep(result).is_none();
    }
}

/// That an option has not been there before.
pub(super) fn once(draft: &Draft<'_>, option: &Line) -> Result<(), Box<Problem>> {
    let Some(earlier) = draft.token(&option.name.text) else { return Ok(()) };
    let message =
        format!("`{}` is set twice; line {} has it already", option.name.text, earlier.place.line());
    Err(Problem::error("duplicate-option", &option.name.place, message))
}

fn read_option<'l>(
    cx: &mut Context<'_>,
    draft: &mut Draft<'l>,
    option: &'l Line,
) -> Result<(), Box<Problem>> {
    match option.name.text.as_str() {
        "to" => draft.targets.extend(some_arguments(option, "to <upstream>…")?),
        "pool" => draft.pool = pool::pool(option)?,
        name if name.starts_with("lb_") && OPTIONS.contains(&name) => {
            balance::option(cx, &mut draft.proxy.balance, option)?;
        }
        name if name.starts_with("health_") && OPTIONS.contains(&name) => {
            health::active(cx, &mut draft.active, option)?;
        }
        "fail_duration"
        | "max_fails"
        | "unhealthy_status"
        | "unhealthy_latency"
        | "unhealthy_request_count" => {
            health::passive(cx, &mut draft.proxy.passive_health, option)?;
        }
        "header_up" => fields::change(cx, &mut draft.proxy.request_fields, option)?,
        "header_down" => fields::change(cx, &mut draft.proxy.answer_fields, option)?,
        "ambiguous_headers" => draft.proxy.ambiguous_headers = fields::ambiguous(option)?,
        "flush_interval" | "request_buffers" | "response_buffers" | "stream_timeout"
        | "stream_close_delay" | "verbose_logs" => streaming::option(cx, &mut draft.proxy, option)?,
        "trusted_proxies" => trusted_proxies(cx, draft, option)?,
        "transport" => transport::transport(cx, draft, option)?,
        _ => return Err(unknown(option)),
    }
    Ok(())
}

fn trusted_proxies(cx: &mut Context<'_>, draft: &mut Draft<'_>, option: &Line) -> Result<(), Box<Problem>> {
    let known = &mut draft.proxy.trusted_proxies;
    known.extend(trust::trusted_proxies(cx, option)?);
    if known.len() <= PROXY_LIST_MAX {
        return Ok(());
    }
    let message = format!("`trusted_proxies` takes at most {PROXY_LIST_MAX} networks");
    Err(Problem::error("arguments", &option.name.place, message)
        .help("every request's peer is compared with them: name larger networks"))
}

/// An unknown option, of more than anybody would read in a line.
pub(super) fn unknown_among(
    option: &Line,
    owner: &str,
    known: &[&'static str],
    caddys: &[&'static str],
) -> Box<Problem> {
    let problem = unknown_option(owner, option, known, caddys);
    if problem.help.as_ref().is_some_and(|help| help.starts_with("there are")) {
        return problem.help("docs/proxy.md lists what there is");
    }
    problem
}

fn unknown(option: &Line) -> Box<Problem> {
    let (word, place) = (option.name.text.as_str(), &option.name.place);
    if word.starts_with('@') {
        let message =
            "a matcher of answers is a feature of Caddy's `reverse_proxy` that onehop does not have yet";
        return Problem::error("not-yet", place, message)
            .help(format!("a matcher of requests stands in the site: `reverse_proxy {word} …`"));
    }
    if transport::is_option(word) {
        let message = format!("`{word}` is an option of the transport");
        return Problem::error("unknown-option", place, message)
            .help(format!("write `transport http {{`, `{word}` on its own line, and `}}`"));
    }
    let problem = unknown_among(option, "reverse_proxy", &OPTIONS, &NOT_YET);
    if let Some((_, help)) = OTHERS_WORDS.iter().find(|(theirs, _)| *theirs == word) {
        return problem.help(*help);
    }
    match word {
        "rewrite" => problem.help("`rewrite` in the site, or `handle_path`, changes the path before it"),
        "dynamic" => problem.help("names of upstreams are resolved again when their time to live is over"),
        _ => problem,
    }
}
