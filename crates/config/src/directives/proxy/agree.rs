//! What the options of a `reverse_proxy` say together: contradictions, words without effect, and values that follow from
//! several options.
//!
//! Sees only what each of them means by itself.

use std::time::Duration;

use super::balance::weights_fit;
use super::draft::{Draft, Scheme};
use crate::check::Context;
use crate::checked::proxy::{EncryptedVersions, ProxyAddress, ProxyTransport, ProxyUpstream};
use crate::problem::Problem;
use crate::syntax::Token;

/// The pause between two attempts where `lb_try_duration` is written and no pause is, as in Caddy: without one an upstream
/// that refuses at once would be tried as fast as the machine can for all that time.
const TRY_INTERVAL: Duration = Duration::from_millis(250);

/// Settles what depends on several options; `false` where they contradict each other, of which every problem is kept.
pub(super) fn agrees(cx: &mut Context<'_>, draft: &mut Draft) -> bool {
    let mut found = Vec::new();
    settle_tls(cx, draft, &mut found);
    settle_versions(cx, draft, &mut found);
    settle_pool(draft, &mut found);
    settle_active_health(cx, draft, &mut found);
    warn_of_passive_health(cx, draft);
    settle_balance(cx, draft, &mut found);
    let agrees = found.is_empty();
    found.into_iter().for_each(|problem| cx.problems.push(Box::new(problem)));
    agrees
}

fn contradiction(token: &Token, message: impl Into<String>, help: impl Into<String>) -> Problem {
    *Problem::error("contradiction", &token.place, message).help(help)
}

fn warn_of_no_effect(cx: &mut Context<'_>, token: &Token, message: String, help: &str) {
    cx.problems.push(Problem::warning("no-effect", &token.place, message).help(help));
}

fn is_of_request(upstream: &ProxyUpstream) -> bool {
    matches!(upstream.address, ProxyAddress::OfRequest(_))
}

/// Whether the name that is asked for is only known with the request.
fn is_named_later(transport: &ProxyTransport) -> bool {
    let name = transport.tls.as_ref().and_then(|tls| tls.server_name.as_ref());
    name.is_some_and(|name| name.as_text().is_none())
}

fn settle_tls(cx: &mut Context<'_>, draft: &mut Draft, found: &mut Vec<Problem>) {
    let option = draft.token_where(|name| name == "tls" || name.starts_with("tls_"));
    if let (Some(token), Some(scheme @ (Scheme::Http | Scheme::H2c))) = (option, draft.scheme) {
        let scheme = if scheme == Scheme::H2c { "h2c" } else { "http" };
        let message = format!("`{}` means TLS, and the upstreams are written with `{scheme}://`", token.text);
        found.push(contradiction(token, message, "write `https://` before them, or take this option away"));
        return;
    }
    if let (Some(_), Some(token)) = (draft.token("tls_trust_pool"), draft.token("tls_trusted_ca_certs")) {
        let message = "`tls_trusted_ca_certs` and `tls_trust_pool` say the same thing in two ways";
        found.push(contradiction(token, message, "write all files behind `tls_trust_pool file`"));
    }
    if option.is_none() && draft.scheme != Some(Scheme::Https) {
        warn_of_plain(cx, draft);
        return;
    }
    let tls = draft.tls.clone();
    if let (true, Some(token)) = (tls.insecure_skip_verify, draft.token_where(is_trust)) {
        let message = format!("`{}` has no effect beside `tls_insecure_skip_verify`", token.text);
        warn_of_no_effect(cx, token, message, "take one of the two away");
    }
    let is_unix = |upstream: &&ProxyUpstream| matches!(upstream.address, ProxyAddress::Unix(_));
    let knows_name = tls.server_name.is_some() || tls.insecure_skip_verify;
    if let (false, Some(upstream), Some(token)) =
        (knows_name, draft.proxy.upstreams.iter().find(is_unix), option)
    {
        let message = format!("`{}` has no name that its certificate could be verified for", upstream.label);
        found.push(contradiction(token, message, "`tls_server_name` gives it one"));
    }
    draft.proxy.transport.tls = Some(tls);
    if let (true, Some(upstream), Some(token)) = (
        is_named_later(&draft.proxy.transport),
        draft.proxy.upstreams.iter().find(is_unix),
        draft.token("tls_server_name"),
    ) {
        let message = format!(
            "`{}` is a Unix socket, for which `tls_server_name` takes no placeholders",
            upstream.label
        );
        found.push(contradiction(token, message, "write the name that its certificate has"));
    }
}

/// `h2c://` means HTTP/2 in the clear, and so does `versions h2c`.
fn settle_versions(cx: &mut Context<'_>, draft: &mut Draft, found: &mut Vec<Problem>) {
    let written = draft.token("versions").cloned();
    let transport = &mut draft.proxy.transport;
    let is_written_h2c = draft.scheme == Some(Scheme::H2c);
    if let (true, false, Some(token)) = (is_written_h2c, transport.versions.h2c, &written) {
        let message = "`versions` does not name `h2c`, and the upstreams are written with `h2c://`";
        found.push(contradiction(token, message, "add `h2c`, or take `versions` away"));
        return;
    }
    transport.versions.h2c |= is_written_h2c;
    let speaks_2 = transport.versions.encrypted != EncryptedVersions::Http1;
    if let (None, false, true, Some(token)) = (&transport.tls, transport.versions.h2c, speaks_2, &written) {
        let message = "`versions` has no effect: without TLS, upstreams are spoken to in HTTP/1.1".to_owned();
        warn_of_no_effect(cx, token, message, "`versions h2c` speaks HTTP/2 in the clear");
    }
}

fn is_trust(name: &str) -> bool {
    name == "tls_trust_pool" || name == "tls_trusted_ca_certs"
}

/// Up to Caddy 2.5 such an address meant HTTPS.
fn warn_of_plain(cx: &mut Context<'_>, draft: &Draft) {
    let is_https =
        |upstream: &&ProxyUpstream| matches!(upstream.address, ProxyAddress::Tcp { port: 443, .. });
    let Some(upstream) = draft.proxy.upstreams.iter().find(is_https) else { return };
    let Some(place) =
        draft.targets.iter().find(|token| token.text.contains(":443")).map(|token| &token.place)
    else {
        return;
    };
    let message = format!("`{}` is spoken to without TLS, on the port of HTTPS", upstream.label);
    let host = upstream.label.strip_suffix(":443").unwrap_or(&upstream.label);
    cx.problems.push(
        Problem::warning("plain-http", place, message)
            .help(format!("write `https://{host}` where it has TLS")),
    );
}

/// `pool` beside the options of the transport that bound the same connections.
fn settle_pool(draft: &mut Draft, found: &mut Vec<Problem>) {
    settle_idle(draft, found);
    let (written, written_as) = (draft.pool, draft.token("pool").cloned());
    let transport = &mut draft.proxy.transport;
    let upstreams = u32::try_from(draft.proxy.upstreams.len()).unwrap_or(u32::MAX);
    let pool = &mut draft.proxy.pool;
    pool.max = written.max;
    let names_later = is_named_later(transport);
    let hosts_later = draft.proxy.upstreams.iter().all(is_of_request);
    let total = transport.keepalive_idle_conns;
    let keeps_too_few = |min: u32| total.is_some_and(|total| total < min.saturating_mul(upstreams));
    let Some((min, token)) = written.min.zip(written_as) else {
        // The usual floor gives way to whatever leaves no room for it.
        if transport.keepalive.is_none() || names_later || hosts_later || keeps_too_few(pool.min) {
            pool.min = 0;
        }
        contradict_two_bounds(draft, found);
        return;
    };
    pool.min = min;
    let mut push = |message: String, help: &str| found.push(contradiction(&token, message, help));
    if let Some(max) = written.max.filter(|max| *max < min) {
        push(
            format!("`pool min {min} max {max}` keeps more connections than it allows"),
            "make `max` larger",
        );
    }
    if let Some(most) = transport.max_conns_per_host.filter(|most| *most < min) {
        let message = format!("`pool min {min}` is more than `max_conns_per_host {most}` allows");
        push(message, "make `max_conns_per_host` larger, or take it away");
    }
    if transport.keepalive.is_none() && min > 0 {
        let message = format!("`pool min {min}` keeps connections, and `keepalive off` keeps none");
        push(message, "take one of the two away");
    }
    if (names_later || hosts_later) && min > 0 {
        let message =
            "no connection can be open before a request says where to: an upstream has placeholders";
        push(message.to_owned(), "write the upstreams out, or leave `min` out");
    }
    if keeps_too_few(min) {
        let message = format!(
            "`pool min {min}` for {upstreams} upstreams is more than `keepalive_idle_conns {}` keeps",
            total.unwrap_or_default()
        );
        push(message, "make `keepalive_idle_conns` larger, or take it away");
    }
    let says_per_host = draft.transport.token("keepalive_idle_conns_per_host").is_some();
    let per_host = &mut transport.keepalive_idle_conns_per_host;
    if says_per_host && *per_host < min {
        let message =
            format!("`pool min {min}` is more than `keepalive_idle_conns_per_host {per_host}` keeps");
        push(message, "make `keepalive_idle_conns_per_host` larger, or take it away");
    }
    *per_host = min.max(*per_host);
    contradict_two_bounds(draft, found);
}

/// `pool idle` and `keepalive` are one setting.
fn settle_idle(draft: &mut Draft, found: &mut Vec<Problem>) {
    let Some((idle, token)) = draft.pool.idle.zip(draft.token("pool").cloned()) else { return };
    let is_written = draft.transport.token("keepalive").is_some();
    let keepalive = &mut draft.proxy.transport.keepalive;
    if is_written && *keepalive != Some(idle) {
        let message = "`idle` of `pool` and `keepalive` of the transport are one setting, and differ";
        found.push(contradiction(&token, message, "take one of the two away"));
    }
    *keepalive = Some(idle);
}

/// `pool max` and `max_conns_per_host` are one bound.
fn contradict_two_bounds(draft: &Draft, found: &mut Vec<Problem>) {
    let (max, most) = (draft.pool.max, draft.proxy.transport.max_conns_per_host);
    if let (Some(max), Some(most), Some(token)) = (max, most, draft.token("pool"))
        && max != most
    {
        let message = format!("`pool max {max}` and `max_conns_per_host {most}` bound the same connections");
        found.push(contradiction(token, message, "take one of the two away"));
    }
}

fn settle_active_health(cx: &mut Context<'_>, draft: &mut Draft, found: &mut Vec<Problem>) {
    let Some(first) = draft.token_where(|name| name.starts_with("health_")) else { return };
    let Some(asks) = draft.token_where(|name| matches!(name, "health_uri" | "health_path" | "health_port"))
    else {
        let message = "no upstream is asked without `health_uri` or `health_port`".to_owned();
        warn_of_no_effect(cx, first, message, "`health_uri /` asks for the first page");
        return;
    };
    if let (Some(_), Some(token)) = (draft.token("health_uri"), draft.token("health_path")) {
        let message = "`health_path` and `health_uri` are one setting";
        found.push(contradiction(token, message, "take `health_path` away"));
    }
    if let (Some(_), Some(token)) = (draft.token("health_upstream"), draft.token("health_port")) {
        let message = "`health_port` has no meaning beside `health_upstream`, which has its own port";
        found.push(contradiction(token, message, "take one of the two away"));
    }
    if let Some(token) = draft.token("health_body").filter(|_| draft.active.method == "HEAD") {
        let message = "an answer to HEAD has no body that `health_body` could match";
        found.push(contradiction(token, message, "take `health_method` or `health_body` away"));
    }
    let upstreams = &draft.proxy.upstreams;
    let stands_in = "`health_upstream` says who is asked in its stead";
    if draft.active.target.is_none() && upstreams.iter().any(is_of_request) {
        let message = "an upstream with placeholders cannot be asked before there is a request";
        found.push(contradiction(asks, message, stands_in));
    } else if draft.active.target.is_none() && is_named_later(&draft.proxy.transport) {
        let message =
            "an upstream whose `tls_server_name` has placeholders cannot be asked before there is a request";
        found.push(contradiction(asks, message, stands_in));
    }
    let has_socket = upstreams.iter().any(|upstream| matches!(upstream.address, ProxyAddress::Unix(_)));
    if let Some(token) = draft.token("health_port").filter(|_| has_socket && draft.active.target.is_none()) {
        let message = "a Unix socket has no other port that `health_port` could name";
        found.push(contradiction(token, message, "`health_upstream 127.0.0.1:PORT` names host and port"));
    }
    draft.proxy.active_health = Some(draft.active.clone());
}

/// As in Caddy, nothing is remembered without `fail_duration`.
fn warn_of_passive_health(cx: &mut Context<'_>, draft: &Draft) {
    if draft.proxy.passive_health.fail_duration.is_some() {
        return;
    }
    let counts = |name: &str| matches!(name, "max_fails" | "unhealthy_status" | "unhealthy_latency");
    let Some(token) = draft.token_where(counts) else { return };
    let message = format!("`{}` has no effect without `fail_duration`", token.text);
    warn_of_no_effect(cx, token, message, "`fail_duration 30s` remembers a failure for so long");
}

fn settle_balance(cx: &mut Context<'_>, draft: &mut Draft, found: &mut Vec<Problem>) {
    let balance = &mut draft.proxy.balance;
    if !balance.try_duration.is_zero() && balance.try_interval.is_zero() {
        balance.try_interval = TRY_INTERVAL;
    }
    let balance = &draft.proxy.balance;
    let count = draft.proxy.upstreams.len();
    if let (Err(weights), Some(token)) = (weights_fit(&balance.policy, count), draft.token("lb_policy")) {
        let are = if weights == 1 { "is 1 weight".to_owned() } else { format!("are {weights} weights") };
        let plural = if count == 1 { "" } else { "s" };
        let message = format!("there {are} for {count} upstream{plural}");
        found.push(contradiction(token, message, "write one for each, in their order; 0 leaves one out"));
    }
    if balance.retries.is_some() || !balance.try_duration.is_zero() {
        return;
    }
    let waits = |name: &str| matches!(name, "lb_try_interval" | "lb_retry_match");
    let Some(token) = draft.token_where(waits) else { return };
    let message = format!("`{}` has no effect without `lb_retries` or `lb_try_duration`", token.text);
    warn_of_no_effect(cx, token, message, "`lb_try_duration 5s` tries others for so long");
}
