//! The walk through the routes of a site: the steps that a request takes, up to the target that answers it.
//!
//! Never waits and never answers. What the walk meets on its way (root, header edits, limits, rewrites) it notes in the
//! [`RequestContext`]; each route is met once. Where a matcher needs the disk, the walk stops in front of that route and
//! continues there with what was found. Error routes are walked in the same way.

use std::borrow::Cow;

use onehop_message::error::HttpError;
use onehop_message::path::RequestPath;
use onehop_message::uri::rewrite;
use onehop_metrics::access_log::Logs;
use smallvec::SmallVec;

use super::blocking::Lookup;
use super::context::RequestContext;
use super::early_hints;
use super::handle::try_files::{Lookups, Undecided};
use super::handle::{header, request_header, uri};
use super::passwords::PasswordCheck;
use super::route::{self, Action, Root, Route, Site, Target};
use super::tracing::{self, OpenSpan};

/// Nested lists of routes that cost no allocation.
const LEVELS_INLINE: usize = 4;

/// A request's place in the routes of its site.
pub(crate) struct Walk<'a> {
    /// The lists of routes that it is in, innermost last.
    levels: SmallVec<[Level<'a>; LEVELS_INLINE]>,
    /// What the matcher of the next route has found on disk.
    lookups: Lookups,
}

/// A list of routes.
struct Level<'a> {
    /// The routes that are still to come.
    rest: &'a [Route],
    /// The groups of which a route was taken, as bits.
    taken_groups: u64,
}

/// Where a walk has come.
pub(crate) enum Step<'a> {
    /// This answers the request. If it does not, the walk can continue.
    Target(&'a Target),
    /// A matcher has to know which file exists.
    Lookup(Lookup),
    /// The walk continues if the password is right.
    Password(PasswordCheck),
    /// No route is left.
    End,
}

impl<'a> Walk<'a> {
    /// Begins at the first route of a site.
    pub(crate) fn new(routes: &'a [Route]) -> Self {
        Self { levels: SmallVec::from_iter([Level::new(routes)]), lookups: Lookups::default() }
    }

    /// Begins at the first of a site's error routes for this status.
    pub(crate) fn of_errors(site: &'a Site, status: u16) -> Self {
        let lists = site.errors.iter().rev().filter(|errors| errors.are_for(status));
        Self { levels: lists.map(|errors| Level::new(&errors.routes)).collect(), lookups: Lookups::default() }
    }

    /// Notes what was found for the [`Step::Lookup`] at which the walk stopped.
    pub(crate) fn found(&mut self, found: Option<Vec<u8>>) {
        self.lookups.add(found);
    }

    /// Walks on to the next target. An error ends the walk.
    pub(crate) fn next(&mut self, context: &mut RequestContext<'a>) -> Result<Step<'a>, HttpError> {
        loop {
            let Some(level) = self.levels.last_mut() else { return Ok(Step::End) };
            let Some((route, rest)) = level.rest.split_first() else {
                self.levels.pop();
                continue;
            };
            let group = route.group.map_or(0, |group| 1 << group);
            let matched = level.taken_groups & group == 0
                && match &route.matcher {
                    None => true,
                    Some(matcher) => match route::matches(matcher, context, self.lookups.again()) {
                        Ok(matched) => matched,
                        Err(Undecided::NeedsDisk(lookup)) => return Ok(Step::Lookup(lookup)),
                        Err(Undecided::Error(error)) => return Err(error),
                    },
                };
            level.rest = rest;
            self.lookups.clear();
            if !matched {
                continue;
            }
            level.taken_groups |= group;
            match &route.action {
                Action::Target(target) => {
                    context.at.route = route.number;
                    return Ok(Step::Target(target));
                }
                Action::Handle(routes) => self.levels.push(Level::new(routes)),
                Action::HandlePath { prefix, routes } => {
                    if let Some(path) = context.request.path.without_prefix(prefix) {
                        context.request.path = path.map_err(|_| HttpError::BadPath)?;
                    }
                    self.levels.push(Level::new(routes));
                }
                Action::BasicAuth(auth) => {
                    if let Some(check) = auth.admit(context)? {
                        return Ok(Step::Password(check));
                    }
                }
                action => take(action, context)?,
            }
        }
    }
}

impl<'a> Level<'a> {
    fn new(routes: &'a [Route]) -> Self {
        Self { rest: routes, taken_groups: 0 }
    }
}

/// Notes a step that answers nothing.
fn take<'a>(action: &'a Action, context: &mut RequestContext<'a>) -> Result<(), HttpError> {
    match action {
        Action::Root(root) => context.root = Some(root),
        Action::Header(step, expressions) => {
            let edits = header::gather(step, expressions, context);
            context.header_edits.push(edits);
        }
        Action::RequestHeader(ops, expressions) => request_header::change(ops, expressions, context)?,
        Action::Encode(encode) => context.encode = Some(encode),
        Action::EarlyHints(hints) => {
            if early_hints::are_for(&context.request.head) {
                context.early_hints.push(hints);
            }
        }
        // Only noted: a request that is answered from memory is never in flight.
        Action::Limit(number) => context.limits.add(*number),
        Action::Priority(priority) => context.limits.set_priority(*priority),
        Action::RateLimit(limiter) => limiter.check(context)?,
        Action::Error { status, message } => {
            // As in Caddy, the first error counts where its own route fails.
            if context.failure.is_none() {
                context.error_message =
                    Some(route::expand(message, context, route::Into::Text).into_boxed_slice());
            }
            return Err(HttpError::Configured(*status));
        }
        // As in Caddy, the last one counts.
        Action::RequestBody(bytes) => context.body_bytes_max = Some(*bytes),
        Action::LogSkip => context.logs = Logs::NONE,
        // What is skipped stays so.
        Action::LogName(logs) if context.logs != Logs::NONE => context.logs = *logs,
        Action::LogName(_) => {}
        // Of several, the first one counts.
        Action::Tracing(settings) if context.traced.is_none() => {
            let name = settings.span.as_ref().map(|name| route::expand(name, context, route::Into::Text));
            let name = name.unwrap_or_else(|| context.request.head.method_bytes().to_vec());
            context.request.span = Some(Box::new(tracing::begin(settings, &context.request.head)));
            context.traced = Some(Box::new(OpenSpan { name, settings }));
        }
        Action::Tracing(_) => {}
        Action::LogAppend(append) => {
            let value = append.early.then(|| route::expand(&append.value, context, route::Into::Text));
            context.appended.get_or_insert_default().push((append, value));
        }
        Action::ChangeUri(change) => uri::change(change, context)?,
        Action::Rewrite(to) => {
            let to = route::expand(to, context, route::Into::Uri);
            let (path, query) = rewrite(&to);
            if let Some(path) = path {
                context.request.path = RequestPath::read(Cow::Owned(path)).map_err(|_| HttpError::BadPath)?;
            }
            if let Some(query) = query {
                context.request.query = (!query.is_empty()).then_some(Cow::Owned(query));
            }
        }
        Action::Handle(_) | Action::HandlePath { .. } | Action::Target(_) | Action::BasicAuth(_) => {}
    }
    Ok(())
}

/// The root that holds for the error routes of a request whose path is refused: it takes no route.
pub(crate) fn first_root(routes: &[Route]) -> Option<&Root> {
    routes.iter().filter(|route| route.matcher.is_none()).find_map(|route| match &route.action {
        Action::Root(root) => Some(root),
        _ => None,
    })
}
