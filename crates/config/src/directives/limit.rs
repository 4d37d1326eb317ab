//! `limit`: maximum concurrent requests, and how requests above it are treated. A directive of
//! onehop's own, an option of `app`, and one of the global block.
//!
//! Owns what such a line means wherever it stands; `options` reads it, and finds what contradicts itself. What is done with it
//! is the server's part.

mod known;
mod options;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::placed;
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::checked::Step;
use crate::checked::limit::{Bound, Limit};
use crate::limits::LIMITS_PER_SITE_MAX;
use crate::option_table::Outline;
use crate::problem::{Location, Problem};
use crate::syntax::{Directive, Token};
use options::{ADAPTIVE_USUAL, Draft, QUEUE_OF_APP, SHED_STATUS, Usual};

pub(crate) use known::KnownLimits;

const USAGE: &str = "limit [<matcher>] in_flight 64 [queue 128] [wait 250ms]";
/// In an `app` and in the global block.
const USAGE_WITHOUT_MATCHER: &str = "limit in_flight 64 [queue 128] [wait 250ms]";

/// What the bound of the whole server is called.
const SERVER: &str = "server";
/// How long a request waits in a queue that does not say it: as long as few people notice.
const WAIT: Duration = Duration::from_secs(1);
/// And before an application whose file says nothing of bounds: a first page that is late is better than none.
const WAIT_OF_APP: Duration = Duration::from_secs(3);

/// What the block of an `app` says of its bound.
#[derive(Debug, Default)]
pub(super) enum OfApp {
    /// Nothing: it has the usual one.
    #[default]
    Usual,
    /// `limit off`
    Off,
    /// This one.
    Is(Limit),
}

/// The options of `limit`.
pub(super) fn outlines() -> [Outline; 2] {
    [options::OPTIONS.outline(), options::ADAPTIVE.outline()]
}

pub(super) fn limit(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    let draft = options::read(cx, line, args, Usual::Nothing, USAGE)?;
    if let Some(off) = draft.token("off") {
        let message = "`limit off` takes away what an `app` has by itself, and stands in its block";
        return Err(Problem::error("directive-place", &off.place, message).help(
            "in the global block it takes that of every `app` away; any other bound goes with its line",
        ));
    }
    if let Some(lag) = draft.token("lag") {
        cx.limits.lags.push(lag.place.clone());
    }
    let mut steps = Vec::new();
    if let Some(priority) = draft.priority {
        steps.push(placed("limit", chosen.clone(), line, Step::Priority(priority)));
    }
    if draft.bounds() {
        if cx.limits.is_full() {
            let message = format!("more than {LIMITS_PER_SITE_MAX} bounds stand in this site");
            return Err(Problem::error("too-large", &line.name.place, message).help(
                "let several routes share one: a matcher with several paths, or a `handle` around them",
            ));
        }
        let label = cx.limits.label(matcher_of(line));
        steps.push(placed(
            "limit",
            chosen,
            line,
            Step::Limit(Arc::new(settings(&draft, Usual::Nothing, label))),
        ));
    }
    Ok(steps)
}

/// `limit` in the block of an `app`. What it is called is known with the application's name.
pub(super) fn of_app(cx: &mut Context<'_>, option: &Directive) -> Result<OfApp, Box<Problem>> {
    let draft = without_matcher(cx, option, Usual::OfApp, "of an `app`")?;
    if draft.off {
        return Ok(OfApp::Off);
    }
    Ok(OfApp::Is(settings(&draft, Usual::OfApp, String::new())))
}

/// The bound that an application has in the end, still without a name.
pub(super) fn settled(cx: &Context<'_>, of_app: OfApp) -> Option<Arc<Limit>> {
    let limit = match of_app {
        OfApp::Off => return None,
        OfApp::Usual if cx.limits.leaves_apps_alone => return None,
        OfApp::Usual => settings(&Draft::default(), Usual::OfApp, String::new()),
        OfApp::Is(limit) => limit,
    };
    Some(Arc::new(limit))
}

/// `limit` in the global block; `off` takes away what every `app` has by itself.
pub(crate) fn of_global_block(
    cx: &mut Context<'_>,
    option: &Directive,
) -> Result<Option<Arc<Limit>>, Box<Problem>> {
    let draft = without_matcher(cx, option, Usual::Nothing, "in the global block")?;
    if draft.off {
        cx.limits.leaves_apps_alone = true;
        return Ok(None);
    }
    cx.limits.lag_of_server = draft.token("lag").map(|lag| lag.place.clone());
    Ok(Some(Arc::new(settings(&draft, Usual::Nothing, SERVER.to_owned()))))
}

/// That no two lines of one block say the same of the same requests.
pub(super) fn must_stand_once(cx: &mut Context<'_>, lines: &[Directive]) {
    let mut bounds: HashMap<&str, &Token> = HashMap::new();
    let mut priorities: HashMap<&str, &Token> = HashMap::new();
    for line in lines.iter().filter(|line| line.name.text == "limit") {
        let requests = matcher_of(line).unwrap_or("*");
        let (bound, priority) = options::of_line(line);
        for (word, known, what) in [
            (bound, &mut bounds, "these requests have a bound already"),
            (priority, &mut priorities, "these requests have a priority already"),
        ] {
            let Some(word) = word else { continue };
            let Some(earlier) = known.insert(requests, word) else { continue };
            let message = format!("{what}, in line {}", earlier.place.line());
            cx.problems.push(
                Problem::error("duplicate-option", &word.place, message)
                    .help("put both on one line, or say with a matcher for which requests each is meant"),
            );
        }
    }
}

/// Warns of each `lag` where no worker reports its lag.
pub(crate) fn warn_of_lag(cx: &mut Context<'_>, places: Vec<Location>, has_workers: bool) {
    for place in places.into_iter().filter(|_| !has_workers) {
        let message = "`lag` has no effect: no `app` here runs a file, and nobody else tells how late it is";
        cx.problems.push(
            Problem::warning("no-effect", &place, message)
                .help("`adaptive` finds a bound for everybody else"),
        );
    }
}

/// The options of a `limit` that stands where no request is told from another.
fn without_matcher(
    cx: &mut Context<'_>,
    option: &Directive,
    usual: Usual,
    place: &str,
) -> Result<Draft, Box<Problem>> {
    if let Some(matcher) = option.args.first().filter(|_| matcher_of(option).is_some()) {
        let message = format!("`limit` {place} holds for all requests and takes no matcher");
        return Err(Problem::error("matcher", &matcher.place, message).help(format!(
            "beside its `app` or `reverse_proxy`, `limit {} …` holds for some",
            matcher.text
        )));
    }
    let draft = options::read(cx, option, &option.args, usual, USAGE_WITHOUT_MATCHER)?;
    if let Some(priority) = draft.token("priority") {
        let message = format!("`priority` tells requests apart, and `limit` {place} holds for all");
        return Err(Problem::error("contradiction", &priority.place, message)
            .help("it stands in a site or a `handle`: `limit /checkout/* priority high`"));
    }
    Ok(draft)
}

/// The matcher that a line begins with, as written.
pub(super) fn matcher_of(line: &Directive) -> Option<&str> {
    let first = line.args.first()?.text.as_str();
    (first.starts_with(['/', '@']) || first == "*").then_some(first)
}

/// With every default. A bound that is named takes the usual one's place; what else is not written stays usual.
fn settings(draft: &Draft, usual: Usual, label: String) -> Limit {
    let is_of_app = usual == Usual::OfApp;
    let bound = match (draft.in_flight, draft.adaptive) {
        (Some(most), _) => Bound::Fixed(most),
        (None, Some((min, max))) => Bound::Adaptive { min, max },
        (None, None) if is_of_app && !draft.bounds() => usual_bound(),
        (None, None) => Bound::Unbounded,
    };
    let usual_queue = if is_of_app && bound != Bound::Unbounded { QUEUE_OF_APP } else { 0 };
    let queue = draft.queue.unwrap_or(usual_queue);
    let usual_wait = if is_of_app { WAIT_OF_APP } else { WAIT };
    let wait = if queue == 0 { Duration::ZERO } else { draft.wait.unwrap_or(usual_wait) };
    Limit { label, bound, queue, wait, lag: draft.lag, shed_status: draft.shed.unwrap_or(SHED_STATUS) }
}

fn usual_bound() -> Bound {
    Bound::Adaptive { min: ADAPTIVE_USUAL.0, max: ADAPTIVE_USUAL.1 }
}
