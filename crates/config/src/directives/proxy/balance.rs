//! `lb_*`: which upstream a request goes to, and what is done when that fails.

use std::time::Duration;

use super::quantities::time_or_none;
use crate::arguments::{no_block, nothing_after, wrong_arguments};
use crate::check::Context;
use crate::check::matcher::condition_set;
use crate::check::template::fixed;
use crate::check::value::{field_name, is_token, number};
use crate::checked::proxy::{BalancePolicy, CookieSecret};
use crate::checked::{Condition, Matcher};
use crate::directives::cookie;
use crate::limits::{PROXY_LIST_MAX, PROXY_TEXT_BYTES_MAX, PROXY_UPSTREAMS_MAX, PROXY_WEIGHT_MAX};
use crate::nearest::nearest;
use crate::option_table::{OptionTable, Outline, Row, line, value};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// What reads the arguments of a policy, and its block.
type ReadPolicy = fn(&mut Context<'_>, &Directive, &[Token]) -> Result<BalancePolicy, Box<Problem>>;

const POLICIES: [(&str, ReadPolicy); 13] = [
    ("random", |_, line, args| alone(line, args, BalancePolicy::Random)),
    ("random_choose", |_, line, args| random_choose(line, args)),
    ("first", |_, line, args| alone(line, args, BalancePolicy::First)),
    ("round_robin", |_, line, args| alone(line, args, BalancePolicy::RoundRobin)),
    ("weighted_round_robin", |_, line, args| weighted(line, args)),
    ("least_conn", |_, line, args| alone(line, args, BalancePolicy::LeastConn)),
    ("peak_ewma", |_, line, args| alone(line, args, BalancePolicy::PeakEwma)),
    ("ip_hash", |_, line, args| alone(line, args, BalancePolicy::IpHash)),
    ("client_ip_hash", |_, line, args| alone(line, args, BalancePolicy::ClientIpHash)),
    ("uri_hash", |_, line, args| alone(line, args, BalancePolicy::UriHash)),
    ("query", query),
    ("header", header),
    ("cookie", cookie),
];
/// The cookie's name where the file does not say: Caddy's.
const COOKIE_NAME: &str = "lb";

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
pub(super) fn policy(cx: &mut Context<'_>, line: &Directive) -> Result<BalancePolicy, Box<Problem>> {
    let Some((name, args)) = line.args.split_first() else {
        return Err(wrong_arguments(line, &format!("{} <policy>", line.name.text)));
    };
    match POLICIES.iter().find(|(known, _)| *known == name.text) {
        Some((_, read)) => read(cx, line, args),
        None => Err(unknown_policy(name)),
    }
}

/// A policy without arguments.
fn alone(line: &Directive, args: &[Token], policy: BalancePolicy) -> Result<BalancePolicy, Box<Problem>> {
    no_block(line)?;
    match (&line.args.first(), args.first()) {
        (Some(name), Some(first)) => Err(nothing_after(name, first)),
        _ => Ok(policy),
    }
}

fn unknown_policy(name: &Token) -> Box<Problem> {
    let problem = Problem::error("policy", &name.place, format!("there is no policy `{}`", name.text));
    let names = POLICIES.map(|(name, _)| name);
    let near = match name.text.as_str() {
        "ewma" | "p2c" | "power_of_two" | "least_time" => Some("peak_ewma"),
        "leastconn" | "least_connections" => Some("least_conn"),
        "roundrobin" => Some("round_robin"),
        "source" | "remote_addr" => Some("ip_hash"),
        "sticky" => Some("cookie"),
        word => nearest(word, names),
    };
    match near {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem.help(format!("there are `{}`", names.join("`, `"))),
    }
}

fn random_choose(line: &Directive, args: &[Token]) -> Result<BalancePolicy, Box<Problem>> {
    no_block(line)?;
    let [count] = args else { return Err(wrong_arguments(line, "lb_policy random_choose <count>")) };
    let most = u64::try_from(PROXY_UPSTREAMS_MAX).unwrap_or(u64::MAX);
    let count = number(count, "`random_choose`", 2, most)
        .map_err(|problem| problem.help("of so many at random, the one with the fewest requests is taken"))?;
    Ok(BalancePolicy::RandomChoose(u32::try_from(count).unwrap_or(u32::MAX)))
}

fn weighted(line: &Directive, args: &[Token]) -> Result<BalancePolicy, Box<Problem>> {
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

fn query(cx: &mut Context<'_>, line: &Directive, args: &[Token]) -> Result<BalancePolicy, Box<Problem>> {
    let fallback = keyed(cx, line, &QUERY);
    let [name] = args else { return Err(wrong_arguments(line, "lb_policy query <name>")) };
    let name = named(cx, name, "the name of a parameter")?;
    Ok(BalancePolicy::Query(name, Box::new(fallback?.policy)))
}

fn header(cx: &mut Context<'_>, line: &Directive, args: &[Token]) -> Result<BalancePolicy, Box<Problem>> {
    let fallback = keyed(cx, line, &HEADER);
    let [token] = args else { return Err(wrong_arguments(line, "lb_policy header <field>")) };
    let name = named(cx, token, "the name of a field")?;
    let name = field_name(token, &name)?.to_ascii_lowercase();
    Ok(BalancePolicy::Header(name, Box::new(fallback?.policy)))
}

fn cookie(cx: &mut Context<'_>, line: &Directive, args: &[Token]) -> Result<BalancePolicy, Box<Problem>> {
    let inside = keyed(cx, line, &COOKIE);
    let (name, secret) = match args {
        [] => (None, None),
        [name] => (Some(name), None),
        [name, secret] => (Some(name), Some(secret)),
        _ => return Err(wrong_arguments(line, "lb_policy cookie [<name> [<secret>]]")),
    };
    let secret = secret.map(|token| named(cx, token, "the secret of a cookie")).transpose()?;
    let Keyed { policy: fallback, max_age } = inside?;
    let Some(token) = name else {
        let name = COOKIE_NAME.to_owned();
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

/// The block of a policy that goes by something in the request.
#[derive(Default)]
struct KeyedDraft {
    fallback: Option<BalancePolicy>,
    max_age: Option<Duration>,
}

/// The policy for requests that have nothing to choose by, and how long a cookie is kept.
struct Keyed {
    policy: BalancePolicy,
    max_age: Option<Duration>,
}

const QUERY: OptionTable<KeyedDraft> = OptionTable::new("lb_policy query", &[FALLBACK]);
const HEADER: OptionTable<KeyedDraft> = OptionTable::new("lb_policy header", &[FALLBACK]);
const COOKIE: OptionTable<KeyedDraft> = OptionTable::new(
    "lb_policy cookie",
    &[
        FALLBACK,
        value("max_age", "10s", |_, keyed, value| {
            once(keyed.max_age.is_some(), value.name)?;
            keyed.max_age = time_or_none(value)?;
            if keyed.max_age.is_some() {
                return Ok(());
            }
            let message = "`max_age` must be more than nothing";
            Err(Problem::error("duration", &value.name.place, message)
                .help("without it a browser keeps the cookie until it is closed"))
        }),
    ],
);
const FALLBACK: Row<KeyedDraft> = line("fallback", "<policy>", |cx, keyed, option| {
    once(keyed.fallback.is_some(), &option.name)?;
    policy(cx, option).map(|policy| keyed.fallback = Some(policy))
});

/// The options of the policies that have a block.
pub(super) fn outlines() -> [Outline; 3] {
    [QUERY.outline(), HEADER.outline(), COOKIE.outline()]
}

fn once(is_there: bool, name: &Token) -> Result<(), Box<Problem>> {
    if !is_there {
        return Ok(());
    }
    let message = format!("`{}` is set twice", name.text);
    Err(Problem::error("duplicate-option", &name.place, message))
}

/// Reads the block of a policy, up to the first error.
fn keyed(
    cx: &mut Context<'_>,
    line: &Directive,
    table: &OptionTable<KeyedDraft>,
) -> Result<Keyed, Box<Problem>> {
    let mut draft = KeyedDraft::default();
    for option in line.block.as_deref().unwrap_or_default() {
        table.read_option(cx, &mut draft, option)?;
    }
    let KeyedDraft { fallback, max_age } = draft;
    Ok(Keyed { policy: fallback.unwrap_or(BalancePolicy::Random), max_age })
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
pub(super) fn retry_match(
    cx: &mut Context<'_>,
    option: &Directive,
    already: usize,
) -> Result<Matcher, Box<Problem>> {
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
