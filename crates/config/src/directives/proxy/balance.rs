//! `lb_*`: which upstream a request goes to, and what is done when that fails.

use std::time::Duration;

use super::quantities::{count_or_none, time_or_none, time_or_zero};
use crate::check::Context;
use crate::check::matcher::condition_set;
use crate::check::template::fixed;
use crate::check::value::{field_name, is_token, number};
use crate::checked::proxy::{Balance, BalancePolicy, CookieSecret};
use crate::checked::{Condition, Matcher};
use crate::directives::{cookie, no_block, unknown_option, wrong_arguments};
use crate::limits::{
    PROXY_COUNT_MAX, PROXY_LIST_MAX, PROXY_TEXT_BYTES_MAX, PROXY_UPSTREAMS_MAX, PROXY_WEIGHT_MAX,
};
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::{Line, Token};

const POLICIES: [&str; 13] = [
    "random",
    "random_choose",
    "first",
    "round_robin",
    "weighted_round_robin",
    "least_conn",
    "peak_ewma",
    "ip_hash",
    "client_ip_hash",
    "uri_hash",
    "query",
    "header",
    "cookie",
];
/// The cookie's name where the file does not say: Caddy's.
const COOKIE: &str = "lb";

/// One option whose name begins with `lb_`.
pub(super) fn option(cx: &mut Context<'_>, balance: &mut Balance, option: &Line) -> Result<(), Box<Problem>> {
    match option.name.text.as_str() {
        "lb_policy" => balance.policy = policy(cx, option)?,
        "lb_retries" => balance.retries = count_or_none(option, PROXY_COUNT_MAX)?,
        "lb_try_duration" => balance.try_duration = time_or_zero(option)?,
        "lb_try_interval" => balance.try_interval = time_or_zero(option)?,
        _ => balance.retry_match.push(retry_match(cx, option, balance.retry_match.len())?),
    }
    Ok(())
}

/// Whether a policy has a weight for each of so many upstreams; else how many it has.
pub(super) fn weights_fit(policy: &BalancePolicy, upstreams: usize) -> Result<(), usize> {
    match policy {
        BalancePolicy::WeightedRoundRobin(weights) if weights.len() != upstreams => Err(weights.len()),
        BalancePolicy::Query(_, fallback)
        | BalancePolicy::Header(_, fallback)
        | BalancePolicy::Cookie { fallback, .. } => weights_fit(fallback, upstreams),
        _ => Ok(()),
    }
}

/// `lb_policy <name> [<argument>…]`, and `fallback`, which takes the same.
fn policy(cx: &mut Context<'_>, line: &Line) -> Result<BalancePolicy, Box<Problem>> {
    let Some((name, args)) = line.args.split_first() else {
        return Err(wrong_arguments(line, &format!("{} <policy>", line.name.text)));
    };
    let policy = match name.text.as_str() {
        "random" => BalancePolicy::Random,
        "first" => BalancePolicy::First,
        "round_robin" => BalancePolicy::RoundRobin,
        "least_conn" => BalancePolicy::LeastConn,
        "peak_ewma" => BalancePolicy::PeakEwma,
        "ip_hash" => BalancePolicy::IpHash,
        "client_ip_hash" => BalancePolicy::ClientIpHash,
        "uri_hash" => BalancePolicy::UriHash,
        "random_choose" => return random_choose(line, args),
        "weighted_round_robin" => return weighted(line, args),
        "query" => return query(cx, line, args),
        "header" => return header(cx, line, args),
        "cookie" => return cookie(cx, line, args),
        _ => return Err(unknown_policy(name)),
    };
    no_block(line)?;
    match args.first() {
        None => Ok(policy),
        Some(first) => {
            let message = format!("`{}` takes nothing after it", name.text);
            Err(Problem::error("arguments", &first.place, message).help("take it away"))
        }
    }
}

fn unknown_policy(name: &Token) -> Box<Problem> {
    let problem = Problem::error("policy", &name.place, format!("there is no policy `{}`", name.text));
    let near = match name.text.as_str() {
        "ewma" | "p2c" | "power_of_two" | "least_time" => Some("peak_ewma"),
        "leastconn" | "least_connections" => Some("least_conn"),
        "roundrobin" => Some("round_robin"),
        "source" | "remote_addr" => Some("ip_hash"),
        "sticky" => Some("cookie"),
        word => nearest(word, POLICIES),
    };
    match near {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem.help(format!("there are `{}`", POLICIES.join("`, `"))),
    }
}

fn random_choose(line: &Line, args: &[Token]) -> Result<BalancePolicy, Box<Problem>> {
    no_block(line)?;
    let [count] = args else { return Err(wrong_arguments(line, "lb_policy random_choose <count>")) };
    let most = u64::try_from(PROXY_UPSTREAMS_MAX).unwrap_or(u64::MAX);
    let count = number(count, "`random_choose`", 2, most)
        .map_err(|problem| problem.help("of so many at random, the one with the fewest requests is taken"))?;
    Ok(BalancePolicy::RandomChoose(u32::try_from(count).unwrap_or(u32::MAX)))
}

fn weighted(line: &Line, args: &[Token]) -> Result<BalancePolicy, Box<Problem>> {
    no_block(line)?;
    if args.is_empty() || args.len() > PROXY_UPSTREAMS_MAX {
        return Err(wrong_arguments(line, "lb_policy weighted_round_robin <weight>…")
            .help("write a weight for each upstream, in their order"));
    }
    let mut weights = Vec::with_capacity(args.len());
    for token in args {
        let weight = number(token, "a weight", 0, PROXY_WEIGHT_MAX)?;
        weights.push(u32::try_from(weight).unwrap_or(u32::MAX));
    }
    if weights.iter().all(|weight| *weight == 0) {
        let message = "no upstream has a weight above zero: none would ever be asked";
        return Err(
            Problem::error("policy", &line.name.place, message).help("write at least one that is larger")
        );
    }
    Ok(BalancePolicy::WeightedRoundRobin(weights))
}

fn query(cx: &mut Context<'_>, line: &Line, args: &[Token]) -> Result<BalancePolicy, Box<Problem>> {
    let fallback = fallback(cx, line, "query");
    let [name] = args else { return Err(wrong_arguments(line, "lb_policy query <name>")) };
    let name = named(cx, name, "the name of a parameter")?;
    Ok(BalancePolicy::Query(name, Box::new(fallback?.0)))
}

fn header(cx: &mut Context<'_>, line: &Line, args: &[Token]) -> Result<BalancePolicy, Box<Problem>> {
    let fallback = fallback(cx, line, "header");
    let [token] = args else { return Err(wrong_arguments(line, "lb_policy header <field>")) };
    let name = named(cx, token, "the name of a field")?;
    let name = field_name(token, &name)?.to_ascii_lowercase();
    Ok(BalancePolicy::Header(name, Box::new(fallback?.0)))
}

fn cookie(cx: &mut Context<'_>, line: &Line, args: &[Token]) -> Result<BalancePolicy, Box<Problem>> {
    let inside = fallback(cx, line, "cookie");
    let (name, secret) = match args {
        [] => (None, None),
        [name] => (Some(name), None),
        [name, secret] => (Some(name), Some(secret)),
        _ => return Err(wrong_arguments(line, "lb_policy cookie [<name> [<secret>]]")),
    };
    let secret = secret.map(|token| named(cx, token, "the secret of a cookie")).transpose()?;
    let (fallback, max_age) = inside?;
    let Some(token) = name else {
        let name = COOKIE.to_owned();
        let secret = CookieSecret(String::new());
        return Ok(BalancePolicy::Cookie { name, secret, max_age, fallback: Box::new(fallback) });
    };
    let name = named(cx, token, "the name of a cookie")?;
    if !is_token(&name) {
        return Err(Problem::error("arguments", &token.place, format!("`{name}` is no name of a cookie"))
            .help("letters, digits, `-` and `_` make one"));
    }
    cookie::warn_of_prefix(cx, &name, !cx.trusted_proxies.is_empty(), token);
    let secret = CookieSecret(secret.unwrap_or_default());
    Ok(BalancePolicy::Cookie { name, secret, max_age, fallback: Box::new(fallback) })
}

/// What the block of a policy says: what is done where a request has nothing to choose by, and how long a cookie is kept.
fn fallback(
    cx: &mut Context<'_>,
    line: &Line,
    of: &str,
) -> Result<(BalancePolicy, Option<Duration>), Box<Problem>> {
    let mut found = None;
    let mut max_age = None;
    let known: &[&'static str] = if of == "cookie" { &["fallback", "max_age"] } else { &["fallback"] };
    for option in line.block.as_deref().unwrap_or_default() {
        match option.name.text.as_str() {
            "fallback" if found.is_none() => found = Some(policy(cx, option)?),
            "max_age" if of == "cookie" && max_age.is_none() => {
                max_age = time_or_none(option)?;
                if max_age.is_none() {
                    let message = "`max_age` must be more than nothing";
                    return Err(Problem::error("duration", &option.name.place, message)
                        .help("without it a browser keeps the cookie until it is closed"));
                }
            }
            word if known.contains(&word) => {
                let message = format!("`{word}` is set twice");
                return Err(Problem::error("duplicate-option", &option.name.place, message));
            }
            _ => return Err(unknown_option(&format!("lb_policy {of}"), option, known, &[])),
        }
    }
    Ok((found.unwrap_or(BalancePolicy::Random), max_age))
}

/// A text that is not empty.
fn named(cx: &Context<'_>, token: &Token, what: &str) -> Result<String, Box<Problem>> {
    let text = fixed(cx.source, token, what)?;
    if !text.is_empty() && text.len() <= PROXY_TEXT_BYTES_MAX {
        return Ok(text);
    }
    let problem = if text.is_empty() { "is empty" } else { "is too long" };
    Err(Problem::error("arguments", &token.place, format!("{what} {problem}"))
        .help("a variable or a placeholder may stand for something else than was meant"))
}

/// `lb_retry_match <condition>`, or a block of them.
fn retry_match(cx: &mut Context<'_>, option: &Line, already: usize) -> Result<Matcher, Box<Problem>> {
    if already >= PROXY_LIST_MAX {
        let message = format!("a `reverse_proxy` takes at most {PROXY_LIST_MAX} `lb_retry_match`");
        return Err(Problem::error("too-large", &option.name.place, message));
    }
    if let Some(token) = option.args.first().filter(|token| token.text.starts_with('@')) {
        let message = format!("`lb_retry_match` takes conditions, and no name like `{}`", token.text);
        return Err(Problem::error("matcher", &token.place, message)
            .help("write them out: `lb_retry_match method GET POST`"));
    }
    let matcher = condition_set(cx, option)?;
    if asks_for_files(&matcher) {
        let message = "`file` cannot decide whether a request is sent again";
        return Err(Problem::error("matcher", &option.name.place, message)
            .help("`path`, `method`, `host`, `header` and `not` can"));
    }
    Ok(matcher)
}

fn asks_for_files(matcher: &Matcher) -> bool {
    matcher.all.iter().any(|condition| match condition {
        Condition::File(_) => true,
        Condition::Not(inner) => inner.iter().any(asks_for_files),
        _ => false,
    })
}
