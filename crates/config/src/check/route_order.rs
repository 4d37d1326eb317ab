//! The order in which directives act: Caddy's, so that a Caddyfile means the same here.
//!
//! Directives are sorted by kind, within a kind by how specific their path is. Of some kinds only
//! the first that matches acts.

use super::Context;
use super::sort::sort_like_go;
use crate::checked::{Route, Step};
use crate::limits::GROUPS_PER_BLOCK_MAX;
use crate::problem::{Location, Problem};
use crate::vocabulary::DIRECTIVE_ORDER;

/// Kinds of which only the first that matches acts.
const EXCLUSIVE: [&str; 3] = ["handle", "rewrite", "root"];

/// What one directive made, with what its place depends on.
#[derive(Debug)]
pub(crate) struct Placed {
    /// The directive under whose name it is sorted.
    directive: &'static str,
    /// Where that stands in the order.
    position: usize,
    /// The one path of its matcher.
    path: Option<String>,
    pub(crate) route: Route,
}

impl Placed {
    /// A route with the directive under whose name it is sorted, and the one path of its matcher.
    pub(crate) fn new(directive: &'static str, path: Option<String>, route: Route) -> Self {
        let position = DIRECTIVE_ORDER.iter().position(|known| *known == directive);
        Self { directive, position: position.unwrap_or(DIRECTIVE_ORDER.len()), path, route }
    }
}

/// Puts what the directives of a block made into acting order. A `route` block keeps the written
/// order.
pub(crate) fn arrange(
    cx: &mut Context<'_>,
    block: &Location,
    mut placed: Vec<Placed>,
    sorted: bool,
) -> Vec<Route> {
    if sorted {
        sort_like_go(&mut placed, &acts_before);
    }
    let mut placed = merged(placed);
    for kind in EXCLUSIVE {
        if placed.iter().filter(|one| one.directive == kind).count() > 1 {
            let group = Some(cx.next_group());
            let members = placed.iter_mut().filter(|one| one.directive == kind);
            members.for_each(|one| one.route.group = group);
        }
    }
    let mut routes: Vec<Route> = placed.into_iter().map(|one| one.route).collect();
    if number_groups(&mut routes) > GROUPS_PER_BLOCK_MAX {
        let message =
            format!("more than {GROUPS_PER_BLOCK_MAX} `try_files` with queries stand in this block");
        cx.problems
            .push(Problem::error("too-large", block, message).help("put some of them into `handle` blocks"));
    }
    routes
}

/// Numbers the groups of a list from 0, so that a request can note in a few bits which are taken.
fn number_groups(routes: &mut [Route]) -> usize {
    let mut known: Vec<u32> = Vec::new();
    for group in routes.iter_mut().filter_map(|route| route.group.as_mut()) {
        let number = known.iter().position(|other| other == group).unwrap_or_else(|| {
            known.push(*group);
            known.len() - 1
        });
        *group = u32::try_from(number).unwrap_or(u32::MAX);
        if known.len() > GROUPS_PER_BLOCK_MAX {
            break;
        }
    }
    known.len()
}

/// Of the exclusive kinds, neighbours with the very same matcher are one to Caddy, whose steps all
/// act: of two `root` or `rewrite` the last one counts, and two `handle` follow one another.
fn merged(placed: Vec<Placed>) -> Vec<Placed> {
    let mut kept: Vec<Placed> = Vec::with_capacity(placed.len());
    for one in placed {
        let same = |last: &&mut Placed| {
            let exclusive = last.directive == one.directive && EXCLUSIVE.contains(&one.directive);
            exclusive && last.route.matcher == one.route.matcher
        };
        let Some(last) = kept.last_mut().filter(same) else {
            kept.push(one);
            continue;
        };
        if one.directive == "handle" {
            let matcher = last.route.matcher.take();
            let line = last.route.line;
            let inside = Route { matcher: None, ..one.route };
            let both = Route { matcher, group: None, step: Step::Handle(Vec::new()), line };
            let first = std::mem::replace(&mut last.route, both);
            last.route.step = Step::Handle(vec![first, inside]);
        } else {
            *last = one;
        }
    }
    kept
}

/// Kinds that act the other way round, as Caddy's `vars` do: a bound for everybody is passed before one for some, and of
/// several priorities that of the more specific matcher comes last and counts.
const GENERAL_FIRST: [&str; 1] = ["limit"];

fn acts_before(left: &Placed, right: &Placed) -> bool {
    if left.position != right.position {
        return left.position < right.position;
    }
    let (left, right) = if GENERAL_FIRST.contains(&left.directive) { (right, left) } else { (left, right) };
    let (Some(left_path), Some(right_path)) = (&left.path, &right.path) else {
        return left.route.matcher.is_some() && right.route.matcher.is_none();
    };
    let left_trimmed = left_path.strip_suffix('*').unwrap_or(left_path);
    let right_trimmed = right_path.strip_suffix('*').unwrap_or(right_path);
    if left_trimmed == right_trimmed {
        return left_path.len() < right_path.len();
    }
    if left_trimmed.len() == right_trimmed.len() {
        return left_trimmed < right_trimmed;
    }
    left_trimmed.len() > right_trimmed.len()
}

#[cfg(test)]
mod tests {
    use super::{Placed, Route, Step, acts_before, sort_like_go};
    use crate::checked::Matcher;

    fn sorted(paths: &[&str]) -> Vec<String> {
        let mut run: Vec<Placed> = paths
            .iter()
            .map(|path| {
                let matcher = (!path.is_empty()).then(|| Matcher { all: Vec::new() });
                let route = Route { matcher, group: None, step: Step::Handle(Vec::new()), line: 0 };
                Placed::new("handle", path.starts_with('/').then(|| (*path).to_owned()), route)
            })
            .collect();
        sort_like_go(&mut run, &acts_before);
        let unnamed = |one: &Placed| if one.route.matcher.is_some() { "@m" } else { "" };
        run.iter().map(|one| one.path.clone().unwrap_or_else(|| unnamed(one).to_owned())).collect()
    }

    #[test]
    fn longer_paths_come_first_and_no_matcher_comes_last() {
        assert_eq!(sorted(&["", "/a*", "/abc*", "/ab"]), ["/abc*", "/ab", "/a*", ""]);
    }

    #[test]
    fn the_exact_path_comes_before_the_same_path_with_a_star() {
        assert_eq!(sorted(&["/foo*", "/foo"]), ["/foo", "/foo*"]);
    }

    #[test]
    fn paths_of_one_length_are_sorted_by_letters() {
        assert_eq!(sorted(&["/b/*", "/a/*"]), ["/a/*", "/b/*"]);
    }

    #[test]
    fn a_matcher_without_a_single_path_keeps_its_place() {
        assert_eq!(sorted(&["@m", "/a", "/abc"]), ["@m", "/abc", "/a"]);
        assert_eq!(sorted(&["/a", "@m", "/abc"]), ["/a", "@m", "/abc"]);
    }
}
