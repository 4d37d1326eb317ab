//! Words of flags and variables to a layer, as if they stood in a file.
//!
//! Values of variables are taken as they are, and never shown.

use super::apps::{AppChange, Which};
use super::listen::Listen;
use super::{Layer, Said, Word, line_at, place_of, token_at};
use crate::directives::is_variable_name;
use crate::problem::{Location, Problem, Problems};

/// What every application takes from the environment.
pub(super) fn passed_on(names: &[String]) -> Layer {
    let place = place_of("", "");
    let args: Vec<_> = names.iter().map(|name| token_at(name, &place)).collect();
    if args.is_empty() {
        return Layer::default();
    }
    let lines = vec![line_at("env_pass", args, &place)];
    Layer { apps: vec![AppChange { which: Which::Every, lines }], ..Layer::default() }
}

/// The layer of flags or of variables.
pub(super) fn layer(said: &Said, problems: &mut Problems) -> Layer {
    let mut layer = Layer::default();
    must_be_said_once(&said.workers, |word| word.split_once('=').map_or("", |(app, _)| app), problems);
    must_be_said_once(&said.env, |word| word.split_once('=').map_or(word, |(name, _)| name), problems);
    for word in &said.listen {
        let place = place_of(&word.from, &word.text);
        // A path may have an equals sign in it.
        let named = word.text.split_once('=').filter(|_| !word.text.starts_with("unix/"));
        let (site, at) = match named {
            Some((site, at)) => (Some(token_at(site, &part(&place, 0, site.len()))), at),
            None => (None, word.text.as_str()),
        };
        let end = word.text.len();
        layer.listens.push(Listen { site, at: token_at(at, &part(&place, end - at.len(), end)) });
    }
    for word in &said.workers {
        let place = place_of(&word.from, &word.text);
        let (which, count) = match word.text.split_once('=') {
            Some((app, count)) => (Which::Named(token_at(app, &part(&place, 0, app.len()))), count),
            None => (Which::Only(place.clone()), word.text.as_str()),
        };
        let end = word.text.len();
        let count = token_at(count, &part(&place, end - count.len(), end));
        let lines = vec![line_at("workers", vec![count], &place)];
        layer.apps.push(AppChange { which, lines });
    }
    for word in &said.env {
        match variable(word) {
            Ok(change) => {
                if word.text.starts_with("PORT=") {
                    problems.push(port_of_applications(word));
                }
                layer.apps.push(change);
            }
            Err(problem) => problems.push(problem),
        }
    }
    layer
}

/// Of two words for the same thing one would count in silence.
fn must_be_said_once<'w>(words: &'w [Word], what: fn(&'w str) -> &'w str, problems: &mut Problems) {
    for (number, word) in words.iter().enumerate() {
        let name = what(&word.text);
        if words.iter().take(number).any(|other| what(&other.text) == name) {
            // What follows the name may be a secret.
            let place = place_of(&word.from, if name.is_empty() { &word.text } else { name });
            let message = match name {
                "" => format!("`{}` is given twice", word.from),
                name => format!("`{}` is given twice for `{name}`", word.from),
            };
            problems
                .push(Problem::error("duplicate-option", &place, message).help("take one of the two away"));
        }
    }
}

/// Whoever says this may mean where the pack listens.
fn port_of_applications(word: &Word) -> Box<Problem> {
    let place = place_of(&word.from, "PORT");
    Problem::warning(
        "environment",
        &place,
        "this sets `PORT` for applications, and not where the pack listens",
    )
    .help("`--listen :8080`, or the variable PORT of the pack itself, says where it listens")
}

fn part(place: &Location, start: usize, end: usize) -> Location {
    Location { file: std::sync::Arc::clone(&place.file), span: start..end }
}

fn variable(word: &Word) -> Result<AppChange, Box<Problem>> {
    let (name, value) = match word.text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word.text.as_str(), None),
    };
    // The value may be a secret: not even its place shows it.
    let place = place_of(&word.from, name);
    let bare = if value.is_none() { name.strip_suffix('*').unwrap_or(name) } else { name };
    if !is_variable_name(bare) {
        let message = format!("`{name}` is no name of a variable");
        return Err(Problem::error("environment", &place, message)
            .help("write NAME=VALUE, or NAME to pass on the variable of this process"));
    }
    let line = match value {
        Some(value) => {
            // A brace of a value is no placeholder.
            let literal = value.replace('{', "\\{").replace('}', "\\}");
            line_at("env", vec![token_at(name, &place), token_at(literal, &place)], &place)
        }
        None => line_at("env_pass", vec![token_at(name, &place)], &place),
    };
    Ok(AppChange { which: Which::Every, lines: vec![line] })
}
