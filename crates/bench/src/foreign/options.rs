//! The words of a command line taken apart: options, their values, what else there is.
//!
//! Owns the grammar that the tools share (`-c 10`, `-c10`, `-lk`, `--name value`, `--name=value`, `--`).
//! Knows no option by itself: each tool hands in its table.

use super::{ForeignError, Options, Tool};
use crate::quantity;

/// One option of a tool, or several that mean the same.
pub(super) struct Spec {
    /// What the tool's reader knows it by: its letter, where it has one.
    pub(super) key: char,
    /// Long names beside it.
    pub(super) long: &'static [&'static str],
    /// Whether a value belongs to it.
    pub(super) takes: Takes,
}

/// What belongs to an option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// It stands alone.
    Nothing,
    /// A value.
    Value,
}

/// Options of ours that may stand among another tool's, where that has none of the same name.
const OURS: &[(&str, Takes)] = &[
    ("html", Takes::Value),
    ("json", Takes::Value),
    ("markdown", Takes::Value),
    ("runs", Takes::Value),
    ("warm-up", Takes::Value),
    ("cores", Takes::Value),
    ("seed", Takes::Value),
    ("expect", Takes::Value),
    ("http2", Takes::Nothing),
    ("streams", Takes::Value),
    ("cacert", Takes::Value),
    ("insecure", Takes::Nothing),
    ("tls-sessions", Takes::Value),
    ("tls-curves", Takes::Value),
    ("quiet", Takes::Nothing),
    ("verbose", Takes::Nothing),
    ("i-own-this-host", Takes::Nothing),
];

/// A command line, taken apart.
pub(super) struct Taken {
    /// Options with their values, in order.
    pub(super) options: Vec<(char, String)>,
    /// What is no option.
    pub(super) plain: Vec<String>,
    /// What stood behind `--`.
    pub(super) behind: Option<Vec<String>>,
    /// Options of ours, each as one word.
    pub(super) ours: Vec<String>,
}

/// Takes the words apart by a tool's table.
pub(super) fn take(tool: Tool, words: &[String], table: &[Spec]) -> Result<Taken, ForeignError> {
    let mut taken = Taken { options: Vec::new(), plain: Vec::new(), behind: None, ours: Vec::new() };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            taken.behind = Some(rest.cloned().collect());
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            let (name, glued) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let missing = || tool.wrong(format!("--{name} needs a value"));
            if let Some(spec) = table.iter().find(|spec| spec.long.contains(&name)) {
                let value = match (spec.takes, glued) {
                    (Takes::Nothing, glued) => glued.unwrap_or_default(),
                    (Takes::Value, Some(value)) => value,
                    (Takes::Value, None) => rest.next().ok_or_else(missing)?.clone(),
                };
                taken.options.push((spec.key, value));
            } else if let Some((_, takes)) = OURS.iter().find(|(ours, _)| *ours == name) {
                taken.ours.push(match (takes, glued) {
                    (Takes::Nothing, _) => format!("--{name}"),
                    (Takes::Value, Some(value)) => format!("--{name}={value}"),
                    (Takes::Value, None) => format!("--{name}={}", rest.next().ok_or_else(missing)?),
                });
            } else {
                return Err(tool.wrong(format!("there is no option --{name}")));
            }
            continue;
        }
        match word.strip_prefix('-') {
            Some(letters) if !letters.is_empty() => {
                take_letters(tool, letters, table, &mut rest, &mut taken)?;
            }
            _ => taken.plain.push(word.clone()),
        }
    }
    Ok(taken)
}

/// `-lk`, `-c10`, `-c 10`; autocannon and hey have `-c=10` too.
fn take_letters(
    tool: Tool,
    letters: &str,
    table: &[Spec],
    rest: &mut std::slice::Iter<'_, String>,
    taken: &mut Taken,
) -> Result<(), ForeignError> {
    let mut left = letters.chars();
    while let Some(letter) = left.next() {
        let spec = table.iter().find(|spec| spec.key == letter);
        let spec = spec.ok_or_else(|| tool.wrong(format!("there is no option -{letter}")))?;
        if spec.takes == Takes::Nothing {
            taken.options.push((letter, String::new()));
            continue;
        }
        let glued = left.as_str();
        let has_equals = matches!(tool, Tool::Autocannon | Tool::Hey);
        let glued = if has_equals { glued.trim_start_matches('=') } else { glued };
        let value = match glued {
            "" => rest.next().ok_or_else(|| tool.wrong(format!("-{letter} needs a value")))?.clone(),
            glued => glued.to_owned(),
        };
        taken.options.push((letter, value));
        break;
    }
    Ok(())
}

impl Tool {
    /// A number from 1.
    pub(super) fn count(self, option: char, text: &str) -> Result<u64, ForeignError> {
        quantity::count(text).map_err(|why| self.wrong(format!("-{option} {text}: {why}")))
    }

    /// A number from 1 that fits a machine.
    pub(super) fn size(self, option: char, text: &str) -> Result<usize, ForeignError> {
        usize::try_from(self.count(option, text)?)
            .map_err(|_| self.wrong(format!("-{option} {text} is too large")))
    }

    /// A time; a bare number counts seconds.
    pub(super) fn time(self, option: char, text: &str) -> Result<std::time::Duration, ForeignError> {
        quantity::duration(text).map_err(|why| self.wrong(format!("-{option} {text}: {why}")))
    }

    /// `Name: value`.
    pub(super) fn field(self, text: &str) -> Result<(String, String), ForeignError> {
        match text.split_once(':') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(self.wrong(format!("-H '{text}' is no header: write 'Name: value'"))),
        }
    }

    /// The only URL.
    pub(super) fn one_url(self, plain: Vec<String>, asked: &mut Options) -> Result<(), ForeignError> {
        match plain.as_slice() {
            [] => Err(self.wrong("the URL is missing")),
            [_] => {
                asked.urls = plain;
                Ok(())
            }
            [_, second, ..] => Err(self.wrong(format!("{second} is too much: it takes one URL"))),
        }
    }
}
