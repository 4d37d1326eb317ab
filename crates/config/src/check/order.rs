//! The order in which directives act: Caddy's, so that a Caddyfile means the same here.
//!
//! Directives are sorted by kind, within a kind by how specific their path is. Of some kinds only
//! the first that matches acts.

use std::cmp::Ordering;

use super::Context;
use crate::checked::Route;
use crate::vocabulary::DIRECTIVE_ORDER;

/// Kinds of which only the first that matches acts.
const EXCLUSIVE: [&str; 3] = ["handle", "rewrite", "root"];

/// What one directive made, with what its place depends on.
#[derive(Debug)]
pub(crate) struct Placed {
    /// The directive under whose name it is sorted.
    pub(crate) directive: &'static str,
    /// The one path of its matcher.
    pub(crate) path: Option<String>,
    /// Whether it has a matcher at all.
    pub(crate) has_matcher: bool,
    pub(crate) routes: Vec<Route>,
}

/// Puts what the directives of a block made into acting order. A `route` block keeps the written
/// order.
pub(crate) fn arrange(cx: &mut Context<'_>, mut placed: Vec<Placed>, sorted: bool) -> Vec<Route> {
    if sorted {
        placed.sort_by_key(|one| position(one.directive));
        let mut rest = placed.as_mut_slice();
        while let Some(first) = rest.first() {
            let kind = position(first.directive);
            let length = rest.iter().take_while(|one| position(one.directive) == kind).count();
            let (run, after) = rest.split_at_mut(length);
            sort_by_specificity(run);
            rest = after;
        }
    }
    for kind in EXCLUSIVE {
        if placed.iter().filter(|one| one.directive == kind).count() > 1 {
            let group = Some(cx.next_group());
            let members = placed.iter_mut().filter(|one| one.directive == kind);
            members.flat_map(|one| &mut one.routes).for_each(|route| route.group = group);
        }
    }
    placed.into_iter().flat_map(|one| one.routes).collect()
}

fn position(directive: &str) -> usize {
    DIRECTIVE_ORDER.iter().position(|known| *known == directive).unwrap_or(DIRECTIVE_ORDER.len())
}

/// By insertion: a path and a matcher without one compare as equal to each other but not in the
/// same way to a third, so that the result depends on how one sorts, and Caddy inserts.
fn sort_by_specificity(run: &mut [Placed]) {
    for end in 1..run.len() {
        let mut at = end;
        while at > 0 && specificity(&run[at], &run[at - 1]) == Ordering::Less {
            run.swap(at, at - 1);
            at -= 1;
        }
    }
}

fn specificity(left: &Placed, right: &Placed) -> Ordering {
    let (Some(left_path), Some(right_path)) = (&left.path, &right.path) else {
        return right.has_matcher.cmp(&left.has_matcher);
    };
    let left_trimmed = left_path.strip_suffix('*').unwrap_or(left_path);
    let right_trimmed = right_path.strip_suffix('*').unwrap_or(right_path);
    if left_trimmed == right_trimmed {
        return left_path.len().cmp(&right_path.len());
    }
    right_trimmed.len().cmp(&left_trimmed.len()).then_with(|| left_trimmed.cmp(right_trimmed))
}

#[cfg(test)]
mod tests {
    use super::{Placed, sort_by_specificity};

    fn sorted(paths: &[&str]) -> Vec<String> {
        let mut run: Vec<Placed> = paths
            .iter()
            .map(|path| Placed {
                directive: "handle",
                path: path.starts_with('/').then(|| (*path).to_owned()),
                has_matcher: !path.is_empty(),
                routes: Vec::new(),
            })
            .collect();
        sort_by_specificity(&mut run);
        let name = |one: Placed| {
            one.path.unwrap_or_else(|| if one.has_matcher { "@m".into() } else { String::new() })
        };
        run.into_iter().map(name).collect()
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
