//! The options of `limit` as they were written: one behind the other on its line, or a line each in its block.
//!
//! What is not there stays empty. Finds what contradicts itself; knows nothing of where the line stands.

use std::time::Duration;

use crate::arguments::{no_block, set_twice, unknown_word, wrong_arguments};
use crate::check::Context;
use crate::check::value::number;
use crate::checked::limit::Priority;
use crate::limits::{
    LIMIT_IN_FLIGHT_MAX, LIMIT_LAG_MAX, LIMIT_LAG_MIN, LIMIT_QUEUE_MAX, LIMIT_WAIT_MAX, LIMIT_WAIT_MIN,
};
use crate::option_table::{OptionTable, Seen, Value, flag, value, words};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// Requests that wait before an application whose file says nothing of bounds: those of some hundred people's pages. How many can be answered in time is found out once
/// they wait.
pub(super) const QUEUE_OF_APP: u32 = 4096;
/// The bounds of `adaptive` where none are written. One request at a time is what a handler that computes can do; more than
/// so many at a time are as good as no bound.
pub(super) const ADAPTIVE_USUAL: (u32, u32) = (1, 4096);
/// What those are answered that are not let in (RFC 9110 section 15.6.4).
pub(super) const SHED_STATUS: u16 = 503;

pub(super) const OPTIONS: OptionTable<Draft> = OptionTable {
    others: &OTHERS_WORDS,
    ..OptionTable::new(
        "limit",
        &[
            value("in_flight", "64", |_, draft, value| {
                value.count(1, LIMIT_IN_FLIGHT_MAX).map(|most| draft.in_flight = Some(most))
            }),
            value("queue", "128", |_, draft, value| {
                value.count(0, LIMIT_QUEUE_MAX).map(|length| draft.queue = Some(length))
            }),
            value("wait", "250ms", |_, draft, value| {
                value.within(LIMIT_WAIT_MIN, LIMIT_WAIT_MAX).map(|wait| draft.wait = Some(wait))
            }),
            value("priority", "high", |_, draft, value| {
                priority(value.token).map(|priority| draft.priority = Some(priority))
            }),
            value("shed", "503", |_, draft, value| shed(value.token).map(|status| draft.shed = Some(status))),
            words("adaptive", "[min 4] [max 256]", |cx, draft, word, rest| {
                adaptive(cx, word, rest).map(|bounds| draft.adaptive = Some(bounds))
            }),
            value("lag", "70ms", |_, draft, value| {
                value.within(LIMIT_LAG_MIN, LIMIT_LAG_MAX).map(|lag| draft.lag = Some(lag))
            }),
            flag("off", |draft| draft.off = true),
        ],
    )
};
/// The bounds between which `adaptive` finds one.
pub(super) const ADAPTIVE: OptionTable<(Option<u32>, Option<u32>)> = OptionTable::new(
    "adaptive",
    &[
        value("min", "4", |_, (min, _), value| single_bound(min, value)),
        value("max", "256", |_, (_, max), value| single_bound(max, value)),
    ],
);
/// Those that make a bound.
const BOUNDS: [&str; 3] = ["in_flight", "adaptive", "lag"];
const PRIORITIES: [&str; 3] = ["high", "normal", "low"];

/// Words of other programs, with ours.
const OTHERS_WORDS: [(&str, &str); 8] = [
    ("burst", "that belongs to `rate_limit`; here `queue N` holds what is too much"),
    ("concurrency", "that is `in_flight N` here"),
    ("max", "`min` and `max` stand behind `adaptive`"),
    ("max_lag", "that is `lag TIME` here"),
    ("min", "`min` and `max` stand behind `adaptive`"),
    ("rate", "that is the directive `rate_limit`: `rate_limit 10r/s`"),
    ("status", "that is `shed STATUS` here"),
    ("timeout", "that is `wait TIME` here"),
];

/// What a line says.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The words of all options.
    seen: Seen,
    pub(super) in_flight: Option<u32>,
    pub(super) adaptive: Option<(u32, u32)>,
    pub(super) queue: Option<u32>,
    pub(super) wait: Option<Duration>,
    pub(super) priority: Option<Priority>,
    pub(super) shed: Option<u16>,
    pub(super) lag: Option<Duration>,
    pub(super) off: bool,
}

/// What is there besides what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usual {
    /// No bound and no queue.
    Nothing,
    /// A bound with a queue, which an `app` has by itself.
    OfApp,
}

impl Draft {
    /// The option of this name.
    pub(super) fn token(&self, name: &str) -> Option<&Token> {
        self.seen.token(name)
    }

    /// Whether something is bounded.
    pub(super) fn bounds(&self) -> bool {
        self.has_places() || self.lag.is_some()
    }

    /// Whether only so many are let in, so that one can wait for another.
    pub(super) fn has_places(&self) -> bool {
        self.in_flight.is_some() || self.adaptive.is_some()
    }
}

/// Reads what stands behind the matcher, and the block. What is not written is `usual`. Where several things are wrong,
/// all but the first are kept.
pub(super) fn read(
    cx: &mut Context<'_>,
    line: &Directive,
    args: &[Token],
    usual: Usual,
    usage: &str,
) -> Result<Draft, Box<Problem>> {
    let mut draft = Draft::default();
    let mut results = vec![options(cx, &mut draft, args)];
    for inner in line.block.iter().flatten() {
        let tokens: Vec<Token> = std::iter::once(&inner.name).chain(&inner.args).cloned().collect();
        results.push(no_block(inner).and_then(|()| options(cx, &mut draft, &tokens)));
    }
    let mut problems: Vec<Problem> =
        results.into_iter().filter_map(Result::err).map(|problem| *problem).collect();
    if problems.is_empty() {
        if draft.seen.names.is_empty() {
            return Err(wrong_arguments(line, usage));
        }
        problems = contradictions(&draft, usual);
    }
    let mut problems = problems.into_iter();
    let first = problems.next();
    problems.for_each(|problem| cx.problems.push(Box::new(problem)));
    first.map_or(Ok(draft), |problem| Err(Box::new(problem)))
}

/// The first word of a line that makes a bound, and its `priority`, whether or not the rest can be read.
pub(super) fn of_line(line: &Directive) -> (Option<&Token>, Option<&Token>) {
    let lines = line.block.iter().flatten();
    let inner = lines.flat_map(|line| std::iter::once(&line.name).chain(&line.args));
    let tokens: Vec<&Token> = line.args.iter().chain(inner).collect();
    let first = |names: &[&str]| tokens.iter().find(|token| names.contains(&token.text.as_str())).copied();
    (first(&BOUNDS), first(&["priority"]))
}

/// Options one behind the other.
fn options(cx: &mut Context<'_>, draft: &mut Draft, tokens: &[Token]) -> Result<(), Box<Problem>> {
    let mut rest = tokens;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        if let Some(first) = draft.token(&word.text) {
            return Err(set_twice(word, first));
        }
        if OPTIONS.row(&word.text).is_none() && word.text.parse::<u64>().is_ok() {
            let message = format!("`{}` does not say what it bounds", word.text);
            return Err(Problem::error("arguments", &word.place, message)
                .help(format!("write `in_flight {}` for requests that are answered at a time", word.text)));
        }
        OPTIONS.read_word(cx, draft, word, &mut rest)?;
        draft.seen.names.push(word.clone());
    }
    Ok(())
}

/// `adaptive [min N] [max N]`; what is not written gives way to what is.
fn adaptive(cx: &mut Context<'_>, option: &Token, rest: &mut &[Token]) -> Result<(u32, u32), Box<Problem>> {
    let mut bounds = (None, None);
    while let Some((word, after)) = rest.split_first().filter(|(word, _)| ADAPTIVE.row(&word.text).is_some())
    {
        *rest = after;
        ADAPTIVE.read_word(cx, &mut bounds, word, rest)?;
    }
    let (min, max) = bounds;
    let (least, most) = ADAPTIVE_USUAL;
    let min_or_usual = min.unwrap_or(least.min(max.unwrap_or(most)));
    let max_or_usual = max.unwrap_or(most.max(min_or_usual));
    if min_or_usual > max_or_usual {
        let message = format!("`adaptive min {min_or_usual} max {max_or_usual}` leaves no bound to be found");
        return Err(Problem::error("contradiction", &option.place, message).help("make `max` larger"));
    }
    Ok((min_or_usual, max_or_usual))
}

fn single_bound(bound: &mut Option<u32>, value: Value<'_>) -> Result<(), Box<Problem>> {
    if bound.replace(value.count(1, LIMIT_IN_FLIGHT_MAX)?).is_none() {
        return Ok(());
    }
    let message = format!("`{}` is set twice", value.name.text);
    Err(Problem::error("duplicate-option", &value.name.place, message))
}

fn priority(token: &Token) -> Result<Priority, Box<Problem>> {
    match token.text.as_str() {
        "high" => Ok(Priority::High),
        "normal" => Ok(Priority::Normal),
        "low" => Ok(Priority::Low),
        _ => Err(unknown_word("priority", token, &PRIORITIES)),
    }
}

/// A status that says no: a client that got another would take it for an answer.
fn shed(token: &Token) -> Result<u16, Box<Problem>> {
    let status = number(token, "what `shed` answers with", 400, 599).map_err(|problem| {
        problem.help("503 says that the server is busy, 429 that the client asks too much")
    })?;
    Ok(u16::try_from(status).unwrap_or(SHED_STATUS))
}

/// What the options of one line say against each other.
fn contradictions(draft: &Draft, usual: Usual) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut push = |token: &Token, message: &str, help: &str| {
        found.push(*Problem::error("contradiction", &token.place, message).help(help));
    };
    if draft.off {
        if let Some(other) = draft.seen.token_where(|name| name != "off") {
            let message = format!("`off` takes a bound away, and `{}` makes one", other.text);
            push(other, &message, "take one of the two away");
        }
        return found;
    }
    if let (Some(_), Some(token)) = (draft.in_flight, draft.token("adaptive")) {
        let message = "`adaptive` finds the bound that `in_flight` says";
        push(token, message, "take one of the two away; `adaptive max N` finds one up to N");
    }
    let keeps_bound = usual == Usual::OfApp && !draft.bounds();
    let has_places = draft.has_places() || keeps_bound;
    let queue = draft.queue.unwrap_or(if usual == Usual::OfApp && has_places { QUEUE_OF_APP } else { 0 });
    if let Some(token) = draft.token("queue").filter(|_| !has_places) {
        let message = "nobody waits in this `queue`: as many as come are let in";
        push(token, message, "`in_flight N` or `adaptive` beside it lets only some in");
    } else if let Some(token) = draft.token("wait").filter(|_| queue == 0) {
        let message = "`wait` says how long requests wait, and there is no queue";
        push(token, message, "`queue 128` lets so many wait; without it they are refused at once");
    }
    if let Some(token) = draft.token("shed").filter(|_| !draft.bounds() && !keeps_bound) {
        let message = "`shed` says what those are answered who are refused, and nobody is";
        push(token, message, "`in_flight N`, `adaptive` or `lag TIME` beside it refuses some");
    }
    found
}
