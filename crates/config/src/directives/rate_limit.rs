//! `rate_limit`: requests per client or other key.
//!
//! Two forms: one line of onehop's own, and a block of zones as the plugin mholt/caddy-ratelimit has it. Each zone is a step
//! of its own. `draft` reads what either says of one, and finds what no zone can be. Who asked how often is the server's part.

mod draft;

use std::sync::Arc;

use super::limit::matcher_of;
use super::{placed, trust};
use crate::arguments::wrong_arguments;
use crate::check::Context;
use crate::check::matcher::{Chosen, Scope, condition_set, split};
use crate::check::route_order::Placed;
use crate::checked::limit::RateLimit;
use crate::checked::{Matcher, Step};
use crate::option_table::{OptionTable, Outline, flag, line, no_value, not_yet, value, words};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};
use draft::Draft;

const USAGE: &str =
    "rate_limit [<matcher>] 10r/s [burst 20] [by ip|header <field>|cookie <name>|<placeholder>] [announce]";
const ZONE_USAGE: &str = "zone <name> { … }";

/// Behind the rate, each once.
const ON_LINE: OptionTable<Draft> = OptionTable::new(
    "rate_limit",
    &[
        value("burst", "20", |_, draft, value| draft.burst(value)),
        words("by", "ip|header <field>|cookie <name>|<placeholder>", |cx, draft, word, rest| {
            by(cx, draft, word, rest)
        }),
        value("keys", "100000", |_, draft, value| draft.keys(value)),
        value("zone", "<name>", |cx, draft, value| draft.name(cx.source, value.token)),
        flag("announce", Draft::announce),
    ],
);
/// The plugin's block.
const IN_BLOCK: OptionTable<Block> = OptionTable::new(
    "rate_limit",
    &[
        line("zone", "<name> { … }", zone),
        line("sweep_interval", "1m", |cx, _, option| {
            let message = "`sweep_interval` has no effect: a zone remembers a bounded number of keys";
            cx.problems.push(
                Problem::warning("no-effect", &option.name.place, message)
                    .help("`keys N` in the block of a zone says how many"),
            );
            Ok(())
        }),
        not_yet("distributed"),
        not_yet("jitter"),
        not_yet("log_key"),
        not_yet("storage"),
    ],
);
const ZONE: OptionTable<Draft> = OptionTable {
    once: true,
    ..OptionTable::new(
        "zone",
        &[
            value("key", "{client_ip}", |cx, draft, value| draft.key(cx.source, value.token)),
            value("events", "100", |_, draft, value| draft.events(value)),
            value("window", "1m", |_, draft, value| draft.window(value.token)),
            line("match", "{ <condition>… }", |cx, draft, option| {
                condition_set(cx, option).map(|matcher| draft.conditions = Some(matcher))
            }),
            value("burst", "20", |_, draft, value| draft.burst(value)),
            value("keys", "100000", |_, draft, value| draft.keys(value)),
            flag("announce", Draft::announce),
            not_yet("ipv4_prefix"),
            not_yet("ipv6_prefix"),
        ],
    )
};

/// The zones of a block so far.
struct Block {
    chosen: Chosen,
    placed: Vec<Placed>,
}

/// The options of either form.
pub(super) fn outlines() -> [Outline; 3] {
    [ON_LINE.outline(), IN_BLOCK.outline(), ZONE.outline()]
}

pub(super) fn rate_limit(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    match (args, &line.block) {
        ([], None) => Err(wrong_arguments(line, USAGE).help(format!(
            "it is written `{USAGE}`, or with a block of zones, each with `key`, `events` and `window`"
        ))),
        ([], Some(block)) => Ok(zones(cx, chosen, line, block)),
        ([rate, words @ ..], None) => {
            let draft = on_line(cx, line, rate, words)?;
            let rate_limit = known(cx, draft)?;
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
fn on_line(
    cx: &mut Context<'_>,
    line: &Directive,
    rate: &Token,
    mut rest: &[Token],
) -> Result<Draft, Box<Problem>> {
    let mut draft = Draft::new(cx.limits.zone(matcher_of(line)), &line.name);
    draft.rate(rate)?;
    let mut seen: Vec<&str> = Vec::new();
    while let [word, after @ ..] = rest {
        let name = word.text.as_str();
        if seen.contains(&name) {
            let message = format!("`{name}` is set twice");
            return Err(Problem::error("duplicate-option", &word.place, message));
        }
        seen.push(name);
        rest = after;
        if ON_LINE.row(name).is_none() {
            return Err(unknown(word));
        }
        if rest.is_empty() && name != "announce" {
            return Err(no_value(word).help(format!("it is written `{USAGE}`")));
        }
        ON_LINE.read_word(cx, &mut draft, word, &mut rest)?;
    }
    Ok(draft)
}

/// `by ip`, `by header FIELD`
fn by(
    cx: &mut Context<'_>,
    draft: &mut Draft,
    word: &Token,
    rest: &mut &[Token],
) -> Result<(), Box<Problem>> {
    let Some((kind, after)) = rest.split_first() else { return Err(no_value(word)) };
    *rest = after;
    if !matches!(kind.text.as_str(), "header" | "cookie") {
        return draft.by(cx.source, kind);
    }
    let Some((of, after)) = rest.split_first() else {
        let message = format!("`by {0}` does not say which {0}", kind.text);
        return Err(Problem::error("arguments", &kind.place, message)
            .help("for example `by header X-Api-Key`, or `by cookie session`"));
    };
    *rest = after;
    draft.by_field(cx.source, kind, of)
}

/// Many write the words of nginx behind a rate.
fn unknown(word: &Token) -> Box<Problem> {
    let problem = ON_LINE.unknown_word(word);
    match word.text.as_str() {
        "nodelay" | "delay" => {
            problem.help("take it away: nobody has to wait, and `burst N` lets in so many at once")
        }
        _ => problem,
    }
}

/// The plugin's block. Every problem is kept.
fn zones(cx: &mut Context<'_>, chosen: Chosen, line: &Directive, lines: &[Directive]) -> Vec<Placed> {
    let mut block = Block { chosen, placed: Vec::new() };
    let seen = IN_BLOCK.read(cx, &mut block, Some(lines));
    if seen.token("zone").is_none() {
        let message = "`rate_limit` has no zone";
        cx.problems.push(
            Problem::error("arguments", &line.name.place, message)
                .help(format!("write `{ZONE_USAGE}` into its block, or the short form `rate_limit 10r/s`")),
        );
    }
    block.placed
}

/// `zone NAME { key … events … window … }`; adds nothing where its options are wrong.
fn zone(cx: &mut Context<'_>, block: &mut Block, line: &Directive) -> Result<(), Box<Problem>> {
    let ([name], Some(options)) = (line.args.as_slice(), &line.block) else {
        return Err(wrong_arguments(line, ZONE_USAGE));
    };
    let mut draft = Draft::new(String::new(), &line.name);
    draft.name(cx.source, name)?;
    draft.has_one_key();
    let seen = ZONE.read(cx, &mut draft, Some(options));
    if seen.is_broken {
        return Ok(());
    }
    if let Some(missing) = ["events", "window"].into_iter().find(|name| seen.token(name).is_none()) {
        let message = format!("the zone `{}` has no `{missing}`", name.text);
        return Err(Problem::error("arguments", &line.name.place, message)
            .help("`events 100` and `window 1m` let a hundred requests in each minute"));
    }
    let mut chosen = block.chosen.clone();
    if let Some(conditions) = draft.conditions.take() {
        chosen.matcher.get_or_insert_with(|| Matcher { all: Vec::new() }).all.extend(conditions.all);
    }
    let rate_limit = known(cx, draft)?;
    block.placed.push(placed("rate_limit", chosen, line, Step::RateLimit(rate_limit)));
    Ok(())
}

/// The zone under its name, which is another's as well only if both are the same in everything.
fn known(cx: &mut Context<'_>, draft: Draft) -> Result<Arc<RateLimit>, Box<Problem>> {
    let place = draft.place().clone();
    let mut trusted_proxies = Vec::new();
    trust::add_global(cx, &mut trusted_proxies);
    let rate_limit = draft.finished(trusted_proxies)?;
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
