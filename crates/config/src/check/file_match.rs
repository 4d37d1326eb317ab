//! Conditions on files: the `file` matcher and the lists of `try_files`.

use super::Context;
use super::template::{read, template};
use crate::checked::{Condition, FileMatch, Part, Placeholder, Template, TryPolicy};
use crate::nearest::nearest;
use crate::problem::{Location, Problem};
use crate::syntax::{Directive, Token};

/// `file /a /b` or `file { … }`
pub(super) fn file_condition(cx: &mut Context<'_>, line: &Directive) -> Result<Condition, Box<Problem>> {
    let mut found = FileMatch {
        root: None,
        candidates: Vec::new(),
        otherwise_status: None,
        policy: TryPolicy::FirstExist,
    };
    add_candidates(cx, &mut found, &line.args)?;
    for option in line.block.as_deref().unwrap_or_default() {
        match (option.name.text.as_str(), option.args.as_slice()) {
            ("root", [root]) => {
                let root = template(cx.source, root)?;
                found.root = Some(cx.absolute_template(root));
            }
            ("try_files", files @ [_, ..]) => add_candidates(cx, &mut found, files)?,
            ("try_policy", [policy]) => found.policy = try_policy(policy)?,
            ("root" | "try_files" | "try_policy", _) => {
                let message = format!("`{}` has too few or too many arguments", option.name.text);
                let help = "it is written `root FOLDER`, `try_files FILE…` or `try_policy first_exist`";
                return Err(Problem::error("arguments", &option.name.place, message).help(help));
            }
            ("split_path", _) => {
                let message = "`split_path` is an option of Caddy that onehop does not have yet";
                return Err(Problem::error("not-yet", &option.name.place, message));
            }
            (word, _) => {
                let message = format!("`file` has no option `{word}`");
                return Err(Problem::error("unknown-option", &option.name.place, message)
                    .help("there are `root`, `try_files` and `try_policy`"));
            }
        }
    }
    if found.candidates.is_empty() {
        found.candidates.push(Template { parts: vec![Part::Value(Placeholder::Path)] });
    }
    Ok(Condition::File(found))
}

/// Adds the files of a `try_files` list. `=404` may end it.
pub(crate) fn add_candidates(
    cx: &mut Context<'_>,
    found: &mut FileMatch,
    files: &[Token],
) -> Result<(), Box<Problem>> {
    for token in files {
        if found.otherwise_status.is_some() {
            return Err(Problem::error("try-files", &token.place, "nothing is tried after a status")
                .help("put the `=` status at the end of the list"));
        }
        if let Some(status) = otherwise_status(token) {
            found.otherwise_status = Some(status);
            continue;
        }
        found.candidates.push(candidate(cx, &token.text, &token.place)?);
    }
    Ok(())
}

/// `=404`
fn otherwise_status(token: &Token) -> Option<u16> {
    token.text.strip_prefix('=')?.parse().ok().filter(|status| (200..=999).contains(status))
}

/// One file to try.
pub(crate) fn candidate(cx: &Context<'_>, text: &str, place: &Location) -> Result<Template, Box<Problem>> {
    let candidate = read(cx.source, text, place)?;
    let has_pattern =
        candidate.parts.iter().any(|part| matches!(part, Part::Text(text) if text.contains(['*', '['])));
    if has_pattern {
        let message = "a pattern in `try_files` is a feature of Caddy that onehop does not have yet";
        return Err(Problem::error("not-yet", place, message).help("name the files themselves"));
    }
    Ok(candidate)
}

/// Which existing file is taken.
pub(crate) fn try_policy(token: &Token) -> Result<TryPolicy, Box<Problem>> {
    const POLICIES: [(&str, TryPolicy); 5] = [
        ("first_exist", TryPolicy::FirstExist),
        ("first_exist_fallback", TryPolicy::FirstExistFallback),
        ("smallest_size", TryPolicy::SmallestSize),
        ("largest_size", TryPolicy::LargestSize),
        ("most_recently_modified", TryPolicy::MostRecentlyModified),
    ];
    if let Some((_, policy)) = POLICIES.iter().find(|(name, _)| *name == token.text) {
        return Ok(*policy);
    }
    let near = nearest(&token.text, POLICIES.map(|(name, _)| name)).unwrap_or("first_exist");
    let problem = Problem::error("policy", &token.place, format!("there is no policy `{}`", token.text));
    Err(problem.help(format!("did you mean `{near}`?")))
}
