//! Variables: `{{URL}}` in every text of a collection.
//!
//! Owns which value wins and the parts that are made anew for each iteration. Never leaves a variable without a
//! value in a request: what would be sent as `{{URL}}` was never meant.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::kind::of_json;
use super::limits::{FILE_BYTES_MAX, FILLED_BYTES_MAX, VARIABLE_PASSES_MAX};
use super::problem::Problem;
use crate::plan::Ask;

/// Where values come from, strongest first. It is Postman's order.
#[derive(Debug, Default)]
pub(super) struct Variables {
    command_line: BTreeMap<String, String>,
    environment: BTreeMap<String, String>,
    collection: BTreeMap<String, String>,
    /// Names that scripts of the collection set. They are not run: only a hint for whoever misses a value.
    set_by_scripts: Vec<String>,
    /// Stands before each part that is made anew: a word that is nowhere in the collection, of letters and digits
    /// only, so that no encoding changes it.
    mark: String,
    filled_bytes: usize,
}

/// Parts of a request that are made anew for each iteration.
#[derive(Debug, Clone)]
pub(super) struct Varying {
    path: Template,
    fields: Vec<(String, Template)>,
    body: Option<Template>,
}

/// Bytes, and between them what is made anew.
#[derive(Debug, Clone)]
struct Template(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Bytes(Vec<u8>),
    Dynamic(Dynamic),
}

/// What is made anew, as Postman names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dynamic {
    /// `$guid` and `$randomUUID`: a random UUID, version 4 (RFC 9562 section 5.4).
    Guid,
    /// `$timestamp`: seconds since 1970.
    Timestamp,
    /// `$randomInt`: from 0 to 1000.
    RandomInt,
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

    /// Chooses the mark so that it is nowhere in this text, nor in a value.
    pub(super) fn mark_against(&mut self, text: &str) {
        let layers = [&self.command_line, &self.environment];
        let mut mark = String::from("onehopmade");
        while text.contains(&mark) || layers.iter().any(|layer| layer.values().any(|v| v.contains(&mark))) {
            mark.push(fastrand::lowercase());
        }
        self.mark = mark;
    }

    /// The text with all variables filled in; what is made anew has its mark.
    pub(super) fn fill(&mut self, text: &str) -> Result<String, Problem> {
        let mut filled = text.to_owned();
        for _ in 0..VARIABLE_PASSES_MAX {
            let Some((next, _)) = self.pass(&filled)? else { return Ok(filled) };
            filled = next;
        }
        match self.pass(&filled)? {
            None => Ok(filled),
            Some((_, mut names)) => {
                names.sort();
                names.dedup();
                let names: Vec<String> = names.iter().take(4).map(|name| format!("`{name}`")).collect();
                Err(Problem::new(
                    format!("the value of {} leads back to itself", names.join(", ")),
                    "Give one of them a value that names no variable.",
                ))
            }
        }
    }

    /// The same with what is made anew made once, for texts that are encoded beyond recognition.
    pub(super) fn fill_once(&mut self, text: &str) -> Result<String, Problem> {
        let filled = self.fill(text)?;
        Ok(match self.template(filled.as_bytes()) {
            Some(template) => template.text(),
            None => filled,
        })
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
    fn value(&self, name: &str) -> Result<Option<String>, Problem> {
        let layers = [&self.command_line, &self.environment, &self.collection];
        if let Some(value) = layers.iter().find_map(|layer| layer.get(name)) {
            return Ok(Some(value.clone()));
        }
        if let Some(dynamic) = Dynamic::of(name) {
            return Ok(Some(format!("{}{}", self.mark, dynamic.letter())));
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

    /// Takes the marks out of a request: it gets values, and what makes others where there were marks.
    pub(super) fn settle(&self, ask: &mut Ask) -> Option<Varying> {
        let path = self.template(ask.target.path.as_bytes());
        let body = ask.body.as_deref().and_then(|body| self.template(body));
        let fields: Vec<_> =
            ask.fields.iter().map(|(name, value)| (name, self.template(value.as_bytes()), value)).collect();
        if path.is_none() && body.is_none() && fields.iter().all(|(_, value, _)| value.is_none()) {
            return None;
        }
        let whole = |bytes: &[u8]| Template(vec![Piece::Bytes(bytes.to_vec())]);
        let varying = Varying {
            path: path.unwrap_or_else(|| whole(ask.target.path.as_bytes())),
            fields: fields
                .into_iter()
                .map(|(name, made, value)| (name.clone(), made.unwrap_or_else(|| whole(value.as_bytes()))))
                .collect(),
            body: body.or_else(|| ask.body.as_deref().map(whole)),
        };
        varying.renew(ask);
        Some(varying)
    }

    /// Cuts bytes at the marks. `None` where there is none.
    fn template(&self, bytes: &[u8]) -> Option<Template> {
        let mut pieces = Vec::new();
        let mut rest = bytes;
        while let Some((before, dynamic, after)) = self.next_mark(rest) {
            pieces.extend([Piece::Bytes(before.to_vec()), Piece::Dynamic(dynamic)]);
            rest = after;
        }
        if pieces.is_empty() {
            return None;
        }
        pieces.push(Piece::Bytes(rest.to_vec()));
        Some(Template(pieces))
    }

    fn next_mark<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], Dynamic, &'a [u8])> {
        let mark = self.mark.as_bytes();
        if mark.is_empty() {
            return None;
        }
        let mut from = 0;
        while let Some(found) = bytes.get(from..)?.windows(mark.len()).position(|window| window == mark) {
            let at = from + found;
            let after = bytes.get(at + mark.len()..)?;
            if let Some((dynamic, rest)) =
                after.split_first().and_then(|(l, rest)| Some((Dynamic::at(*l)?, rest)))
            {
                return Some((bytes.get(..at)?, dynamic, rest));
            }
            from = at + mark.len();
        }
        None
    }
}

impl Varying {
    /// Gives a request new values.
    pub(super) fn renew(&self, ask: &mut Ask) {
        ask.target.path = self.path.text();
        ask.fields = self.fields.iter().map(|(name, value)| (name.clone(), value.text())).collect();
        ask.body = self.body.as_ref().map(Template::bytes);
    }
}

impl Template {
    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Bytes(bytes) => out.extend_from_slice(bytes),
                Piece::Dynamic(dynamic) => out.extend_from_slice(dynamic.make().as_bytes()),
            }
        }
        out
    }

    /// It was cut from text at marks that are text: nothing is lost.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

impl Dynamic {
    fn of(name: &str) -> Option<Dynamic> {
        match name {
            "$guid" | "$randomUUID" => Some(Dynamic::Guid),
            "$timestamp" => Some(Dynamic::Timestamp),
            "$randomInt" => Some(Dynamic::RandomInt),
            _ => None,
        }
    }

    fn letter(self) -> char {
        match self {
            Dynamic::Guid => '0',
            Dynamic::Timestamp => '1',
            Dynamic::RandomInt => '2',
        }
    }

    fn at(letter: u8) -> Option<Dynamic> {
        match letter {
            b'0' => Some(Dynamic::Guid),
            b'1' => Some(Dynamic::Timestamp),
            b'2' => Some(Dynamic::RandomInt),
            _ => None,
        }
    }

    fn make(self) -> String {
        match self {
            Dynamic::Guid => {
                let random = fastrand::u128(..);
                // RFC 9562 section 5.4: version 4, variant 10.
                let marked = (random & !(0xF << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
                let text = format!("{marked:032x}");
                let parts: Vec<&str> = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)]
                    .into_iter()
                    .filter_map(|(from, to)| text.get(from..to))
                    .collect();
                parts.join("-")
            }
            Dynamic::Timestamp => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                since.as_secs().to_string()
            }
            Dynamic::RandomInt => fastrand::u32(0..=1000).to_string(),
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
