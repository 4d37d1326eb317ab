//! The block of `reverse_proxy`: the table of its options, and what an unknown word may mean.

use std::time::Duration;

use super::draft::Draft;
use super::quantities::{count, count_or_none, status_test, time, time_or_none, time_or_zero};
use super::{balance, fields, health, pool, streaming, transport};
use crate::arguments::no_arguments;
use crate::check::Context;
use crate::check::value::port;
use crate::directives::trust;
use crate::limits::{PROXY_CONNECTIONS_MAX, PROXY_COUNT_MAX, PROXY_LIST_MAX};
use crate::option_table::{OptionTable, flag, line, not_yet, not_yet_but, repeated, value, values};
use crate::problem::Problem;
use crate::syntax::Directive;

/// Where the file says 0, which Caddy reads as its default.
const HEALTH_INTERVAL: Duration = Duration::from_secs(30);
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);
const HEALTH_IN_A_ROW: u32 = 1;
const MAX_FAILS: u32 = 1;

pub(super) const OPTIONS: OptionTable<Draft> = OptionTable {
    once: true,
    others: &OTHERS_WORDS,
    too_many: Some("docs/proxy.md lists what there is"),
    ..OptionTable::new(
        "reverse_proxy",
        &[
            repeated(values("to", "<upstream>…", |_, draft, upstreams| {
                draft.targets.extend_from_slice(upstreams);
                Ok(())
            })),
            line("pool", "min 4 max 64 idle 30m", |cx, draft, option| {
                pool::pool(cx, option).map(|pool| draft.pool = pool)
            }),
            line("lb_policy", "<policy>", |cx, draft, option| {
                balance::policy(cx, option).map(|policy| draft.proxy.balance.policy = policy)
            }),
            value("lb_retries", "100", |_, draft, value| {
                count_or_none(value, PROXY_COUNT_MAX).map(|count| draft.proxy.balance.retries = count)
            }),
            value("lb_try_duration", "10s", |_, draft, value| {
                time_or_zero(value).map(|time| draft.proxy.balance.try_duration = time)
            }),
            value("lb_try_interval", "10s", |_, draft, value| {
                time_or_zero(value).map(|time| draft.proxy.balance.try_interval = time)
            }),
            repeated(line("lb_retry_match", "<condition>", |cx, draft, option| {
                let known = &mut draft.proxy.balance.retry_match;
                balance::retry_match(cx, option, known.len()).map(|matcher| known.push(matcher))
            })),
            value("health_uri", "/health", |cx, draft, value| {
                health::uri(cx, value.token).map(|uri| draft.active.uri = uri)
            }),
            value("health_path", "/health", |cx, draft, value| {
                draft.active.uri = health::uri(cx, value.token)?;
                let message = "`health_path` is Caddy's old word for `health_uri`";
                cx.problems.push(
                    Problem::warning("old-word", &value.name.place, message).help("write `health_uri`"),
                );
                Ok(())
            }),
            value("health_port", "8081", |_, draft, value| {
                port(value.token, "`health_port`").map(|port| draft.active.port = Some(port))
            }),
            value("health_upstream", "127.0.0.1:8081", |cx, draft, value| {
                health::target(cx, value.token).map(|target| draft.active.target = Some(target))
            }),
            value("health_interval", "10s", |cx, draft, value| {
                time(cx, value, HEALTH_INTERVAL).map(|time| draft.active.interval = time)
            }),
            value("health_timeout", "10s", |cx, draft, value| {
                time(cx, value, HEALTH_TIMEOUT).map(|time| draft.active.timeout = time)
            }),
            value("health_status", "2xx", |_, draft, value| {
                status_test(value.token).map(|status| draft.active.status = status)
            }),
            value("health_body", "`ok`", |_, draft, value| {
                health::expression(value.token).map(|body| draft.active.body = Some(body))
            }),
            value("health_passes", "10", |cx, draft, value| {
                count(cx, value, HEALTH_IN_A_ROW, PROXY_COUNT_MAX).map(|passes| draft.active.passes = passes)
            }),
            value("health_fails", "10", |cx, draft, value| {
                count(cx, value, HEALTH_IN_A_ROW, PROXY_COUNT_MAX).map(|fails| draft.active.fails = fails)
            }),
            line("health_headers", "{ <field> <value>… }", |cx, draft, option| {
                health::fields(cx, option).map(|fields| draft.active.fields = fields)
            }),
            value("health_method", "HEAD", |cx, draft, value| {
                health::method(cx, value.token).map(|method| draft.active.method = method)
            }),
            value("health_request_body", "<text>", |cx, draft, value| {
                health::text(cx, value.token, "a body").map(|body| draft.active.request_body = body)
            }),
            flag("health_follow_redirects", |draft| draft.active.follow_redirects = true),
            value("fail_duration", "10s", |_, draft, value| {
                time_or_none(value).map(|time| draft.proxy.passive_health.fail_duration = time)
            }),
            value("max_fails", "10", |cx, draft, value| {
                let fails = count(cx, value, MAX_FAILS, PROXY_COUNT_MAX);
                fails.map(|fails| draft.proxy.passive_health.max_fails = fails)
            }),
            repeated(line("unhealthy_status", "5xx", |_, draft, option| {
                health::unhealthy_status(&mut draft.proxy.passive_health, option)
            })),
            value("unhealthy_latency", "10s", |_, draft, value| {
                time_or_none(value).map(|time| draft.proxy.passive_health.unhealthy_latency = time)
            }),
            value("unhealthy_request_count", "100", |_, draft, value| {
                let most = count_or_none(value, PROXY_CONNECTIONS_MAX);
                most.map(|most| draft.proxy.passive_health.unhealthy_request_count = most)
            }),
            repeated(line("header_up", "[+|-]<field> [<value>|<find> <replace>]", |cx, draft, option| {
                fields::change(cx, &mut draft.proxy.request_fields, option)
            })),
            repeated(line("header_down", "[+|-]<field> [<value>|<find> <replace>]", |cx, draft, option| {
                fields::change(cx, &mut draft.proxy.answer_fields, option)
            })),
            value("ambiguous_headers", "pass", |_, draft, value| {
                fields::ambiguous(value.token).map(|choice| draft.proxy.ambiguous_headers = choice)
            }),
            value("flush_interval", "-1", |_, draft, value| {
                streaming::flush(value).map(|flush| draft.proxy.flush = flush)
            }),
            value("request_buffers", "64KiB", |cx, draft, value| {
                streaming::buffer(cx, value).map(|bytes| draft.proxy.request_buffer_bytes = bytes)
            }),
            value("response_buffers", "64KiB", |cx, draft, value| {
                streaming::buffer(cx, value).map(|bytes| draft.proxy.answer_buffer_bytes = bytes)
            }),
            value("stream_timeout", "10s", |_, draft, value| {
                time_or_none(value).map(|time| draft.proxy.stream_timeout = time)
            }),
            value("stream_close_delay", "10s", |_, draft, value| {
                time_or_zero(value).map(|time| draft.proxy.stream_close_delay = Some(time))
            }),
            repeated(line("trusted_proxies", trust::NETWORKS, trusted_proxies)),
            line("transport", "http { … }", transport::transport),
            line("verbose_logs", "", |cx, _, option| {
                no_arguments(option)?;
                let message =
                    "`verbose_logs` changes nothing: the access log names the upstream and what went wrong";
                cx.problems.push(Problem::warning("no-effect", &option.name.place, message));
                Ok(())
            }),
            not_yet("copy_response"),
            not_yet("copy_response_headers"),
            not_yet_but("dynamic", "names of upstreams are resolved again when their time to live is over"),
            not_yet("handle_response"),
            not_yet("method"),
            not_yet("replace_status"),
            not_yet_but("rewrite", "`rewrite` in the site, or `handle_path`, changes the path before it"),
        ],
    )
};

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
pub(super) fn read(cx: &mut Context<'_>, draft: &mut Draft, line: &Directive) {
    draft.seen = OPTIONS.read_or(cx, draft, line.block.as_deref(), |_, _, option| Err(unknown(option)));
}

fn trusted_proxies(cx: &mut Context<'_>, draft: &mut Draft, option: &Directive) -> Result<(), Box<Problem>> {
    let known = &mut draft.proxy.trusted_proxies;
    known.extend(trust::trusted_proxies(cx, option)?);
    if known.len() <= PROXY_LIST_MAX {
        return Ok(());
    }
    let message = format!("`trusted_proxies` takes at most {PROXY_LIST_MAX} networks");
    Err(Problem::error("arguments", &option.name.place, message)
        .help("every request's peer is compared with them: name larger networks"))
}

fn unknown(option: &Directive) -> Box<Problem> {
    let (word, place) = (option.name.text.as_str(), &option.name.place);
    if word.starts_with('@') {
        let message =
            "a matcher of answers is a feature of Caddy's `reverse_proxy` that onehop does not have yet";
        return Problem::error("not-yet", place, message)
            .help(format!("a matcher of requests stands in the site: `reverse_proxy {word} …`"));
    }
    if transport::OPTIONS.row(word).is_some() {
        let message = format!("`{word}` is an option of the transport");
        return Problem::error("unknown-option", place, message)
            .help(format!("write `transport http {{`, `{word}` on its own line, and `}}`"));
    }
    OPTIONS.unknown(option)
}
