//! `try_files`: a condition on files, and a rewrite to the one that was found.

use crate::arguments::wrong_arguments;
use crate::check::Context;
use crate::check::file_match::{add_candidates, candidate, try_policy};
use crate::check::matcher::Chosen;
use crate::check::route_order::Placed;
use crate::check::template::read;
use crate::checked::{Condition, FileMatch, Matcher, Part, Placeholder, Step, Template, TryPolicy};
use crate::option_table::{OptionTable, value};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

pub(super) const OPTIONS: OptionTable<TryPolicy> = OptionTable::new(
    "try_files",
    &[value("policy", "first_exist", |_, policy, value| {
        try_policy(value.token).map(|chosen| *policy = chosen)
    })],
);

pub(super) fn try_files(cx: &mut Context<'_>, line: &Directive) -> Result<Vec<Placed>, Box<Problem>> {
    if line.args.is_empty() {
        return Err(wrong_arguments(line, "try_files <file>…"));
    }
    let mut policy = TryPolicy::FirstExist;
    OPTIONS.read(cx, &mut policy, line.block.as_deref());
    let found = Template { parts: vec![Part::Value(Placeholder::FileMatchRelative)] };
    let mut placed = Vec::new();
    // A file with a query of its own is rewritten to differently: it becomes a route of its own.
    let has_query = |token: &Token| token.text.contains('?');
    for run in line.args.chunk_by(|left, right| !has_query(left) && !has_query(right)) {
        let mut wanted = FileMatch { root: None, candidates: Vec::new(), otherwise_status: None, policy };
        let mut target = found.clone();
        match run {
            [token] if let Some((path, query)) = token.text.split_once('?') => {
                wanted.candidates.push(candidate(cx, path, &token.place)?);
                target.parts.extend(read(cx.source, &format!("?{query}"), &token.place)?.parts);
            }
            files => add_candidates(cx, &mut wanted, files)?,
        }
        let chosen =
            Chosen { matcher: Some(Matcher { all: vec![Condition::File(wanted)] }), single_path: None };
        placed.push(super::placed("try_files", chosen, line, Step::Rewrite(target)));
    }
    if placed.len() > 1 {
        let group = Some(cx.next_group());
        placed.iter_mut().for_each(|one| one.route.group = group);
    }
    Ok(placed)
}
