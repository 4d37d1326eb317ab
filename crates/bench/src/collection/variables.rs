//! Variables: `{{URL}}` in every text of a collection.
//!
//! Owns which value wins and the parts that are made anew for each iteration. Never leaves a variable without a
//! value in a request: what would be sent as `{{URL}}` was never meant.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::kind::of_json;
use super::limits::{FILE_BYTES_MAX, FILLED_BYTES_MAX, VARIABLE_PASSES_MAX};
use super::problem::Problem;
use super::varying::{Dynamic, Mark};

/// Where values come from, strongest first. It is Postman's order.
#[derive(Debug, Default)]
pub(super) struct Variables {
    command_line: BTreeMap<String, String>,
    environment: BTreeMap<String, String>,
    collection: BTreeMap<String, String>,
    /// Names that scripts of the collection set. They are not run: only a hint for whoever misses a value.
    set_by_scripts: Vec<String>,
    /// Stands for what is made anew for each iteration.
    pub(super) mark: Mark,
    filled_bytes: usize,
}

impl Variables {
    pub(super) fn new(command_line: Vec<(String, String)>) -> Variables {
        Variables { command_line: command_line.into_iter().collect(), ..Variables::default() }
    }

    /// Reads a Postman environment (or Postman's globals, which have the same form).
    pub(super) fn add_environment(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        debug_assert!(bytes.len() as u64 <= FILE_BYTES_MAX);
        let next = "Give an environment as Postman exports it.";
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Problem::new("the environment is not written in UTF-8", next))?
            .trim_start_matches('\u{feff}');
        let value: Value = serde_json::from_str(text).map_err(|error| of_json(&error))?;
        let Some(values) = value.get("values").and_then(Value::as_array) else {
            return Err(Problem::new("there are no `values` in it: it is no Postman environment", next));
        };
        for entry in values {
            let is_enabled = entry.get("enabled").and_then(Value::as_bool).unwrap_or(true);
            if let Some((name, value)) = entry_of(entry).filter(|_| is_enabled) {
                self.environment.insert(name, value);
            }
        }
        Ok(())
    }

    /// Takes the variables of a collection, where they are.
    pub(super) fn add_collection(&mut self, variables: &Value) {
        for entry in variables.as_array().into_iter().flatten() {
            let is_disabled = entry.get("disabled").and_then(Value::as_bool).unwrap_or(false);
            if let Some((name, value)) = entry_of(entry).filter(|_| !is_disabled) {
                self.collection.insert(name, value);
            }
        }
    }

    /// Remembers a name that a script would give a value.
    pub(super) fn set_by_script(&mut self, name: &str) {
        self.set_by_scripts.push(name.to_owned());
    }

    /// The text with all variables filled in; what is made anew has its mark.
    pub(super) fn fill(&mut self, text: &str) -> Result<String, Problem> {
        let mut filled = text.to_owned();
        let mut turning = BTreeSet::new();
        for pass in 0..=VARIABLE_PASSES_MAX {
            let Some((next, names)) = self.pass(&filled)? else { return Ok(filled) };
            // What is still replaced so late turns in a circle, however long that is.
            if pass > VARIABLE_PASSES_MAX / 2 {
                turning.extend(names);
            }
            filled = next;
        }
        let names: Vec<String> = turning.iter().take(4).map(|name| format!("`{name}`")).collect();
        Err(Problem::new(
            format!("variables lead back to themselves: {}", names.join(", ")),
            "Give one of them a value that names no variable.",
        ))
    }

    /// The same with what is made anew made once, for texts that are encoded beyond recognition.
    pub(super) fn fill_once(&mut self, text: &str) -> Result<String, Problem> {
        let filled = self.fill(text)?;
        Ok(self.mark.resolve(filled))
    }

    /// Replaces each variable once. `None` where there is nothing to replace.
    fn pass(&mut self, text: &str) -> Result<Option<(String, Vec<String>)>, Problem> {
        let mut out = String::new();
        let mut names = Vec::new();
        let mut rest = text;
        while let Some((before, name, after)) = next_variable(rest) {
            out.push_str(before);
            match self.value(name)? {
                Some(value) => {
                    self.spend(value.len(), &out)?;
                    out.push_str(&value);
                    names.push(name.to_owned());
                }
                None => {
                    out.push_str("{{");
                    out.push_str(name);
                    out.push_str("}}");
                }
            }
            self.spend(before.len() + 4, &out)?;
            rest = after;
        }
        if names.is_empty() {
            return Ok(None);
        }
        out.push_str(rest);
        self.spend(rest.len(), &out)?;
        Ok(Some((out, names)))
    }

    fn spend(&mut self, bytes: usize, out: &str) -> Result<(), Problem> {
        self.filled_bytes = self.filled_bytes.saturating_add(bytes);
        if self.filled_bytes.max(out.len()) <= FILLED_BYTES_MAX {
            return Ok(());
        }
        let size = FILLED_BYTES_MAX / (1024 * 1024);
        Err(Problem::new(
            format!("its variables grow to more than {size} MiB when they are filled in"),
            "Give them values that do not name each other so often.",
        ))
    }

    /// The value of a name; `None` for what is no variable's name (`{{#each}}` in a template that is sent).
    fn value(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let layers = [&self.command_line, &self.environment, &self.collection];
        if let Some(value) = layers.iter().find_map(|layer| layer.get(name)) {
            return Ok(Some(value.clone()));
        }
        if let Some(dynamic) = Dynamic::of(name) {
            return Ok(Some(self.mark.put(dynamic)));
        }
        let is_mark = |letter: char| "_-.$ ".contains(letter);
        let is_name = !name.trim().is_empty() && name.chars().all(|l| l.is_alphanumeric() || is_mark(l));
        if is_name { Err(self.missing(name)) } else { Ok(None) }
    }

    fn missing(&self, name: &str) -> Problem {
        let cause = format!("the variable `{name}` has no value");
        let give = format!("Give it one: --var {}=VALUE", quoted(name));
        if name.starts_with('$') {
            let cause = format!(
                "{cause}; of those that Postman makes up, $guid, $timestamp and $randomInt are known"
            );
            return Problem::new(cause, format!("{give}."));
        }
        if self.set_by_scripts.iter().any(|set| set == name) {
            let cause = format!("{cause}: a script of the collection sets it, and scripts are not run");
            return Problem::new(cause, format!("{give}."));
        }
        let layers = [&self.command_line, &self.environment, &self.collection];
        let known = layers.iter().flat_map(|layer| layer.keys());
        let nearest = known.map(|known| (distance(name, known), known)).min();
        match nearest {
            Some((far, known)) if far <= name.chars().count().div_ceil(3) => Problem::new(
                format!("{cause}. Is `{known}` meant?"),
                format!("{give}, or in an environment."),
            ),
            _ => Problem::new(cause, format!("{give}, or in an environment.")),
        }
    }
}

/// The next `{{name}}`: what stands before it, the name, what follows. The innermost, where braces are nested.
fn next_variable(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let end = from + text.get(from..)?.find("}}")?;
        let before = text.get(..end)?;
        if let Some(begin) = before.get(from..)?.rfind("{{").map(|at| at + from) {
            let name = before.get(begin + 2..)?;
            if !name.contains(['{', '}']) {
                return Some((before.get(..begin)?, name, text.get(end + 2..)?));
            }
        }
        // Of `}}}` the last two may still end a name, but none that begins before: names hold no braces.
        from = end + 1;
    }
}

/// Name and value of an entry of a list of variables.
fn entry_of(entry: &Value) -> Option<(String, String)> {
    let name = entry.get("key").or_else(|| entry.get("id")).and_then(Value::as_str)?;
    Some((name.to_owned(), text_of(entry.get("value").unwrap_or(&Value::Null))))
}

/// A value as the text that is filled in.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A name as a shell takes it.
fn quoted(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    if name.chars().all(is_plain) { name.to_owned() } else { format!("'{name}'") }
}

/// How many letters have to be changed, added or left out to make one name of the other, case aside.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().take(64).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.to_lowercase().chars().take(64).enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        let mut next = vec![left];
        for (above, known) in row.iter().skip(1).zip(&other) {
            left = (diagonal + usize::from(letter != *known)).min(above + 1).min(left + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
