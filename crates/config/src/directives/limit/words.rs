//! The options of `limit` as they were written: one behind the other on its line, or a line each in its block.
//!
//! What is not there stays empty. Finds what contradicts itself; knows nothing of where the line stands.

use std::time::Duration;

use super::QUEUE_OF_APP;
use crate::check::Context;
use crate::check::value::{number, within};
use crate::checked::limit::Priority;
use crate::directives::{no_block, unknown_word, wrong_arguments};
use crate::limits::{
    LIMIT_IN_FLIGHT_MAX, LIMIT_LAG_MAX, LIMIT_LAG_MIN, LIMIT_QUEUE_MAX, LIMIT_WAIT_MAX, LIMIT_WAIT_MIN,
};
use crate::problem::Problem;
use crate::syntax::{Line, Token};

const OPTIONS: [&str; 8] = ["in_flight", "queue", "wait", "priority", "shed", "adaptive", "lag", "off"];
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
pub(super) struct Written<'l> {
    /// The words of all options.
    seen: Vec<&'l Token>,
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

impl<'l> Written<'l> {
    /// The option of this name.
    pub(super) fn token(&self, name: &str) -> Option<&'l Token> {
        self.seen.iter().find(|token| token.text == name).copied()
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
pub(super) fn read<'l>(
    cx: &mut Context<'_>,
    line: &'l Line,
    args: &'l [Token],
    usual: Usual,
    usage: &str,
) -> Result<Written<'l>, Box<Problem>> {
    let mut written = Written::default();
    let mut results = vec![options(&mut written, &args.iter().collect::<Vec<_>>())];
    for inner in line.block.iter().flatten() {
        let tokens: Vec<&Token> = std::iter::once(&inner.name).chain(&inner.args).collect();
        results.push(no_block(inner).and_then(|()| options(&mut written, &tokens)));
    }
    let mut problems: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    if problems.is_empty() {
        if written.seen.is_empty() {
            return Err(wrong_arguments(line, usage));
        }
        problems = contradictions(&written, usual).collect();
    }
    let mut problems = problems.into_iter();
    let first = problems.next();
    problems.for_each(|problem| cx.problems.push(problem));
    first.map_or(Ok(written), Err)
}

/// The first word of a line that makes a bound, and its `priority`, whether or not the rest can be read.
pub(super) fn of_line(line: &Line) -> (Option<&Token>, Option<&Token>) {
    let lines = line.block.iter().flatten();
    let inner = lines.flat_map(|line| std::iter::once(&line.name).chain(&line.args));
    let tokens: Vec<&Token> = line.args.iter().chain(inner).collect();
    let first = |names: &[&str]| tokens.iter().find(|token| names.contains(&token.text.as_str())).copied();
    (first(&BOUNDS), first(&["priority"]))
}

/// Options one behind the other.
fn options<'l>(written: &mut Written<'l>, tokens: &[&'l Token]) -> Result<(), Box<Problem>> {
    let mut rest = tokens;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let name = word.text.as_str();
        if let Some(earlier) = written.token(name) {
            let message = format!("`{name}` is set twice; line {} has it already", earlier.place.line());
            return Err(Problem::error("duplicate-option", &word.place, message));
        }
        match name {
            "off" => written.off = true,
            "adaptive" => written.adaptive = Some(adaptive(word, &mut rest)?),
            "in_flight" => {
                let token = value(word, &mut rest, "64")?;
                written.in_flight = Some(count(token, "`in_flight`", 1, LIMIT_IN_FLIGHT_MAX)?);
            }
            "queue" => {
                let token = value(word, &mut rest, "128")?;
                written.queue = Some(count(token, "`queue`", 0, LIMIT_QUEUE_MAX)?);
            }
            "wait" => {
                let token = value(word, &mut rest, "250ms")?;
                written.wait = Some(within(token, "`wait`", LIMIT_WAIT_MIN, LIMIT_WAIT_MAX)?);
            }
            "lag" => {
                let token = value(word, &mut rest, "70ms")?;
                written.lag = Some(within(token, "`lag`", LIMIT_LAG_MIN, LIMIT_LAG_MAX)?);
            }
            "priority" => written.priority = Some(priority(value(word, &mut rest, "high")?)?),
            "shed" => written.shed = Some(shed(value(word, &mut rest, "503")?)?),
            _ => return Err(unknown(word)),
        }
        written.seen.push(*word);
    }
    Ok(())
}

fn unknown(word: &Token) -> Box<Problem> {
    if word.text.parse::<u64>().is_ok() {
        let message = format!("`{}` does not say what it bounds", word.text);
        return Problem::error("arguments", &word.place, message)
            .help(format!("write `in_flight {}` for requests that are answered at a time", word.text));
    }
    let problem = unknown_word("limit", word, &OPTIONS);
    match OTHERS_WORDS.iter().find(|(theirs, _)| *theirs == word.text) {
        Some((_, help)) => problem.help(*help),
        None => problem,
    }
}

/// What stands behind an option's word.
fn value<'l>(word: &Token, rest: &mut &[&'l Token], example: &str) -> Result<&'l Token, Box<Problem>> {
    match rest.split_first() {
        Some((value, after)) => {
            *rest = after;
            Ok(*value)
        }
        None => {
            Err(Problem::error("arguments", &word.place, format!("`{}` has no value behind it", word.text))
                .help(format!("for example `{} {example}`", word.text)))
        }
    }
}

/// `adaptive [min N] [max N]`; what is not written gives way to what is.
fn adaptive(option: &Token, rest: &mut &[&Token]) -> Result<(u32, u32), Box<Problem>> {
    let (mut min, mut max) = (None, None);
    while let Some((word, after)) = rest.split_first() {
        let (bound, example) = match word.text.as_str() {
            "min" => (&mut min, "4"),
            "max" => (&mut max, "256"),
            _ => break,
        };
        *rest = after;
        let token = value(word, rest, example)?;
        let number = count(token, &format!("`{}`", word.text), 1, LIMIT_IN_FLIGHT_MAX)?;
        if bound.replace(number).is_some() {
            let message = format!("`{}` is set twice", word.text);
            return Err(Problem::error("duplicate-option", &word.place, message));
        }
    }
    let (least, most) = super::ADAPTIVE;
    let min_or_usual = min.unwrap_or(least.min(max.unwrap_or(most)));
    let max_or_usual = max.unwrap_or(most.max(min_or_usual));
    if min_or_usual > max_or_usual {
        let message = format!("`adaptive min {min_or_usual} max {max_or_usual}` leaves no bound to be found");
        return Err(Problem::error("contradiction", &option.place, message).help("make `max` larger"));
    }
    Ok((min_or_usual, max_or_usual))
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
    Ok(u16::try_from(status).unwrap_or(super::SHED_STATUS))
}

fn count(token: &Token, what: &str, from: u64, to: u64) -> Result<u32, Box<Problem>> {
    number(token, what, from, to).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

/// What the options of one line say against each other.
fn contradictions(written: &Written<'_>, usual: Usual) -> impl Iterator<Item = Box<Problem>> {
    let mut found = Vec::new();
    let mut push = |token: &Token, message: &str, help: &str| {
        found.push(Problem::error("contradiction", &token.place, message).help(help));
    };
    if written.off {
        if let Some(other) = written.seen.iter().find(|token| token.text != "off") {
            let message = format!("`off` takes a bound away, and `{}` makes one", other.text);
            push(other, &message, "take one of the two away");
        }
        return found.into_iter();
    }
    if let (Some(_), Some(token)) = (written.in_flight, written.token("adaptive")) {
        let message = "`adaptive` finds the bound that `in_flight` says";
        push(token, message, "take one of the two away; `adaptive max N` finds one up to N");
    }
    let keeps_bound = usual == Usual::OfApp && !written.bounds();
    let has_places = written.has_places() || keeps_bound;
    let queue = written.queue.unwrap_or(if usual == Usual::OfApp && has_places { QUEUE_OF_APP } else { 0 });
    if let Some(token) = written.token("queue").filter(|_| !has_places) {
        let message = "nobody waits in this `queue`: as many as come are let in";
        push(token, message, "`in_flight N` or `adaptive` beside it lets only some in");
    } else if let Some(token) = written.token("wait").filter(|_| queue == 0) {
        let message = "`wait` says how long requests wait, and there is no queue";
        push(token, message, "`queue 128` lets so many wait; without it they are refused at once");
    }
    if let Some(token) = written.token("shed").filter(|_| !written.bounds() && !keeps_bound) {
        let message = "`shed` says what those are answered who are refused, and nobody is";
        push(token, message, "`in_flight N`, `adaptive` or `lag TIME` beside it refuses some");
    }
    found.into_iter()
}
