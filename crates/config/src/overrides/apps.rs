//! Changes of applications, put into their lines.
//!
//! An application is found by the name that it has in logs, which may follow from what it runs: that is why the
//! configuration is read once without changes before. The name is then written down, so that a change cannot make
//! it another one.

use std::collections::HashMap;
use std::sync::Arc;

use super::{line_at, token_at};
use crate::arguments::listed;
use crate::checked::{App, AppRun};
use crate::nearest::nearest;
use crate::problem::{Location, Problem, Problems};
use crate::syntax::{Block, Directive, Token};

/// Options of an application.
#[derive(Debug)]
pub(super) struct AppChange {
    pub(super) which: Which,
    pub(super) lines: Vec<Directive>,
}

/// Which application is meant.
#[derive(Debug)]
pub(super) enum Which {
    /// Every one whose processes onehop starts.
    Every,
    /// The only one; where the wish was written.
    Only(Location),
    /// The one of this name.
    Named(Token),
}

/// Puts changes into lines, in their order.
pub(super) fn apply<'a>(
    changes: impl Iterator<Item = &'a AppChange>,
    blocks: &mut [Block],
    known: &[(u32, Arc<App>)],
    is_whole: bool,
    problems: &mut Problems,
) {
    let mut names: Vec<&str> = Vec::new();
    let mut started: Vec<&str> = Vec::new();
    for (_, app) in known {
        if !names.contains(&app.name.as_str()) {
            names.push(&app.name);
            if !matches!(app.run, AppRun::Elsewhere { .. }) {
                started.push(&app.name);
            }
        }
    }
    let mut by_name: HashMap<&str, Vec<&Directive>> = HashMap::new();
    for change in changes {
        let chosen = match &change.which {
            Which::Every => Ok(started.clone()),
            Which::Only(place) => the_only(&started, place).map(|name| vec![name]),
            Which::Named(token) => find(&names, token).map(|name| vec![name]),
        };
        match chosen {
            Ok(chosen) => {
                for name in chosen {
                    by_name.entry(name).or_default().extend(&change.lines);
                }
            }
            // One that is broken has no name: its own errors come first.
            Err(problem) if is_whole => problems.push(problem),
            Err(_) => {}
        }
    }
    let by_line: HashMap<u32, (&str, &[&Directive])> = known
        .iter()
        .filter_map(|(number, app)| {
            let (name, lines) = by_name.get_key_value(app.name.as_str())?;
            Some((*number, (*name, lines.as_slice())))
        })
        .collect();
    for block in blocks {
        walk(&mut block.lines, &by_line);
    }
}

fn the_only<'n>(started: &[&'n str], place: &Location) -> Result<&'n str, Box<Problem>> {
    match started {
        [only] => Ok(only),
        [] => Err(Problem::error(
            "unknown-app",
            place,
            "there is no application whose processes could be counted",
        )
        .help("take it away")),
        [first, ..] => {
            Err(Problem::error("unknown-app", place, "this does not say which application is meant")
                .help(format!("write `{first}={}`; there are {}", place.raw(), listed(started))))
        }
    }
}

fn find<'n>(names: &[&'n str], token: &Token) -> Result<&'n str, Box<Problem>> {
    if let Some(name) = names.iter().find(|name| **name == token.text) {
        return Ok(name);
    }
    let message = format!("there is no application `{}`", token.text);
    let problem = Problem::error("unknown-app", &token.place, message);
    Err(match nearest(&token.text, names.iter().copied()) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None if names.is_empty() => problem.help("the configuration runs no application"),
        None => problem.help(format!("there is {}", listed(names))),
    })
}

/// Goes through lines within lines; how deep they can stand is bounded where they are read.
fn walk(lines: &mut [Directive], by_line: &HashMap<u32, (&str, &[&Directive])>) {
    for line in lines {
        if line.name.text == "app"
            && let Some((name, changes)) = by_line.get(&line.number)
        {
            let block = line.block.get_or_insert_default();
            if !block.iter().any(|option| option.name.text == "name") {
                let place = &line.name.place;
                block.push(line_at("name", vec![token_at(*name, place)], place));
            }
            for change in *changes {
                change_option(block, change);
            }
        } else if let Some(block) = &mut line.block {
            walk(block, by_line);
        }
    }
}

/// Puts one option in. Variables replace those of their name, files of variables come after those that are there, and any
/// other option replaces the one of its name.
fn change_option(block: &mut Vec<Directive>, change: &Directive) {
    match change.name.text.as_str() {
        "env" => {
            let in_block = change.block.iter().flatten().map(|line| &line.name);
            let names: Vec<&Token> = change.args.first().into_iter().chain(in_block).collect();
            forget(block, &names);
        }
        "env_pass" => forget(block, &change.args.iter().collect::<Vec<_>>()),
        "env_file" => {}
        "concurrency" | "one_at_a_time" => {
            block.retain(|line| !matches!(line.name.text.as_str(), "concurrency" | "one_at_a_time"));
        }
        name => block.retain(|line| line.name.text != name),
    }
    block.push(change.clone());
}

/// Takes away what sets these variables.
fn forget(block: &mut Vec<Directive>, names: &[&Token]) {
    let is_one = |token: &Token| names.iter().any(|name| name.text == token.text);
    block.retain_mut(|line| {
        if line.name.text != "env" {
            return true;
        }
        let Some(inner) = &mut line.block else { return !line.args.first().is_some_and(is_one) };
        inner.retain(|line| !is_one(&line.name));
        !inner.is_empty()
    });
}
