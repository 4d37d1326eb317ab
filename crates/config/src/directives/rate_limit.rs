//! `rate_limit`: how often the same somebody may ask.
//!
//! Two forms: one line of onehop's own, and a block of zones as the plugin mholt/caddy-ratelimit has it. Each zone is a step
//! of its own. `zone` reads what either says of one, and finds what no zone can be. Who asked how often is the server's part.

mod zone;

use std::sync::Arc;

use super::limit::matcher_of;
use super::{placed, trust, unknown_option, unknown_word, wrong_arguments};
use crate::check::Context;
use crate::check::matcher::{Chosen, Scope, condition_set, split};
use crate::check::order::Placed;
use crate::checked::limit::RateLimit;
use crate::checked::{Matcher, Step};
use crate::problem::Problem;
use crate::syntax::{Line, Token};
use zone::Zone;

const USAGE: &str =
    "rate_limit [<matcher>] 10r/s [burst 20] [by ip|header <field>|cookie <name>|<placeholder>] [announce]";
const ZONE_USAGE: &str = "zone <name> { … }";
/// Behind the rate, each once.
const WORDS: [&str; 5] = ["burst", "by", "keys", "zone", "announce"];
const OPTIONS: [&str; 2] = ["zone", "sweep_interval"];
/// The plugin's, that onehop does not have.
const NOT_YET: [&str; 4] = ["distributed", "jitter", "log_key", "storage"];
const ZONE_OPTIONS: [&str; 7] = ["key", "events", "window", "match", "burst", "keys", "announce"];
const ZONE_NOT_YET: [&str; 2] = ["ipv4_prefix", "ipv6_prefix"];

pub(super) fn rate_limit(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Line,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    match (args, &line.block) {
        ([], None) => Err(wrong_arguments(line, USAGE).help(format!(
            "it is written `{USAGE}`, or with a block of zones, each with `key`, `events` and `window`"
        ))),
        ([], Some(block)) => Ok(zones(cx, &chosen, line, block)),
        ([rate, words @ ..], None) => {
            let zone = on_line(cx, line, rate, words)?;
            let rate_limit = known(cx, zone)?;
            Ok(vec![placed("rate_limit", chosen, line, Step::RateLimit(rate_limit))])
        }
        ([rate, ..], Some(_)) => {
            let message = "`rate_limit` has a rate on its line and a block besides";
            Err(Problem::error("arguments", &rate.place, message)
                .help("a block holds zones; with a rate, `burst` and `by` stand on the same line"))
        }
    }
}

/// `10r/s burst 20 by header X-Key`
fn on_line<'l>(
    cx: &mut Context<'_>,
    line: &'l Line,
    rate: &'l Token,
    mut rest: &'l [Token],
) -> Result<Zone<'l>, Box<Problem>> {
    let mut zone = Zone::new(cx.limits.zone(matcher_of(line)), &line.name);
    zone.rate(rate)?;
    let mut seen: Vec<&str> = Vec::new();
    while let [word, after @ ..] = rest {
        let name = word.text.as_str();
        if seen.contains(&name) {
            let message = format!("`{name}` is set twice");
            return Err(Problem::error("duplicate-option", &word.place, message));
        }
        seen.push(name);
        rest = after;
        if name == "announce" {
            zone.announce();
            continue;
        }
        if !WORDS.contains(&name) {
            return Err(unknown(word));
        }
        let [value, after @ ..] = after else {
            let message = format!("`{name}` has no value behind it");
            return Err(
                Problem::error("arguments", &word.place, message).help(format!("it is written `{USAGE}`"))
            );
        };
        rest = after;
        match (name, value.text.as_str()) {
            ("burst", _) => zone.burst(value)?,
            ("keys", _) => zone.keys(value)?,
            ("zone", _) => zone.name(cx.source, value)?,
            ("by", "header" | "cookie") => {
                let [of, after @ ..] = rest else {
                    let message = format!("`by {0}` does not say which {0}", value.text);
                    return Err(Problem::error("arguments", &value.place, message)
                        .help("for example `by header X-Api-Key`, or `by cookie session`"));
                };
                zone.by_field(cx.source, value, of)?;
                rest = after;
            }
            _ => zone.by(cx.source, value)?,
        }
    }
    Ok(zone)
}

/// Many write the words of nginx behind a rate.
fn unknown(word: &Token) -> Box<Problem> {
    let problem = unknown_word("rate_limit", word, &WORDS);
    match word.text.as_str() {
        "nodelay" | "delay" => {
            problem.help("take it away: nobody has to wait, and `burst N` lets in so many at once")
        }
        _ => problem,
    }
}

/// The plugin's block. Every problem is kept.
fn zones(cx: &mut Context<'_>, chosen: &Chosen, line: &Line, block: &[Line]) -> Vec<Placed> {
    let mut made = Vec::new();
    for option in block {
        let result = match option.name.text.as_str() {
            "zone" => of_block(cx, chosen, option).map(|placed| made.extend(placed)),
            "sweep_interval" => {
                let message = "`sweep_interval` has no effect: a zone remembers a bounded number of keys";
                cx.problems.push(
                    Problem::warning("no-effect", &option.name.place, message)
                        .help("`keys N` in the block of a zone says how many"),
                );
                Ok(())
            }
            _ => Err(unknown_option("rate_limit", option, &OPTIONS, &NOT_YET)),
        };
        cx.keep(result);
    }
    if !block.iter().any(|option| option.name.text == "zone") {
        let message = "`rate_limit` has no zone";
        cx.problems.push(
            Problem::error("arguments", &line.name.place, message)
                .help(format!("write `{ZONE_USAGE}` into its block, or the short form `rate_limit 10r/s`")),
        );
    }
    made
}

/// `zone NAME { key … events … window … }`; nothing where its options are wrong, which was said.
fn of_block(cx: &mut Context<'_>, chosen: &Chosen, line: &Line) -> Result<Option<Placed>, Box<Problem>> {
    let ([name], Some(block)) = (line.args.as_slice(), &line.block) else {
        return Err(wrong_arguments(line, ZONE_USAGE));
    };
    let mut zone = Zone::new(String::new(), &line.name);
    zone.name(cx.source, name)?;
    zone.has_one_key();
    let mut conditions: Option<Matcher> = None;
    let mut seen: Vec<&Token> = Vec::new();
    let mut is_sound = true;
    for option in block {
        let word = option.name.text.as_str();
        let mut result = match word {
            "match" => condition_set(cx, option).map(|matcher| conditions = Some(matcher)),
            _ => zone_option(cx, &mut zone, option),
        };
        if let (Ok(()), Some(earlier)) = (&result, seen.iter().find(|earlier| earlier.text == word)) {
            let message = format!("`{word}` is set twice; line {} has it already", earlier.place.line());
            result = Err(Problem::error("duplicate-option", &option.name.place, message));
        }
        seen.push(&option.name);
        is_sound &= cx.keep(result).is_some();
    }
    if !is_sound {
        return Ok(None);
    }
    let has = |name: &str| seen.iter().any(|token| token.text == name);
    if let Some(missing) = ["events", "window"].into_iter().find(|name| !has(name)) {
        let message = format!("the zone `{}` has no `{missing}`", name.text);
        return Err(Problem::error("arguments", &line.name.place, message)
            .help("`events 100` and `window 1m` let a hundred requests in each minute"));
    }
    let rate_limit = known(cx, zone)?;
    let mut chosen = chosen.clone();
    if let Some(conditions) = conditions {
        chosen.matcher.get_or_insert_with(|| Matcher { all: Vec::new() }).all.extend(conditions.all);
    }
    Ok(Some(placed("rate_limit", chosen, line, Step::RateLimit(rate_limit))))
}

fn zone_option<'l>(cx: &Context<'_>, zone: &mut Zone<'l>, option: &'l Line) -> Result<(), Box<Problem>> {
    let one = |example: &str| super::one_argument(option, example);
    match option.name.text.as_str() {
        "key" => zone.key(cx.source, one("key {client_ip}")?),
        "events" => zone.events(one("events 100")?),
        "window" => zone.window(one("window 1m")?),
        "burst" => zone.burst(one("burst 20")?),
        "keys" => zone.keys(one("keys 100000")?),
        "announce" => super::no_arguments(option).map(|()| zone.announce()),
        _ => Err(unknown_option("zone", option, &ZONE_OPTIONS, &ZONE_NOT_YET)),
    }
}

/// The zone under its name, which is another's as well only if both are the same in everything.
fn known(cx: &mut Context<'_>, zone: Zone<'_>) -> Result<Arc<RateLimit>, Box<Problem>> {
    let place = zone.place().clone();
    let mut trusted_proxies = Vec::new();
    trust::add_global(cx, &mut trusted_proxies);
    let rate_limit = zone.finished(trusted_proxies)?;
    match cx.limits.zones.get(&rate_limit.zone) {
        Some(known) if **known == rate_limit => Ok(Arc::clone(known)),
        Some(_) => {
            let message = format!("two zones with different settings are called `{}`", rate_limit.zone);
            Err(Problem::error("name", &place, message).help("give one of the two another name"))
        }
        None => {
            let rate_limit = Arc::new(rate_limit);
            cx.limits.zones.insert(rate_limit.zone.clone(), Arc::clone(&rate_limit));
            Ok(rate_limit)
        }
    }
}
