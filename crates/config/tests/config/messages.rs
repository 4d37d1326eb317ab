//! The catalogue of all errors and warnings in the sources: what is wrong, and what to do about it. Whoever changes one reviews
//! the whole snapshot. Braces are placeholders, as in `format!`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Bytes before a problem in which its message is looked for, where it has a name of its own.
const BEFORE: usize = 900;

/// How the source of other errors and warnings begins: failures of commands, the text of error types, errors that are plain
/// texts, warnings of the server.
const MESSAGES: [&str; 7] = [
    "Failure::failed(",
    "Failure::wrong(",
    "#[error(",
    "Err(format!(",
    "Warning(format!(",
    "warn(format!(",
    "warn)(format!(",
];

#[test]
fn every_problem_with_its_next_step() {
    let mut catalogue = String::new();
    for path in sources(Path::new("../")) {
        let source = std::fs::read_to_string(&path).expect("a source");
        let source = source.split("#[cfg(test)]").next().unwrap_or_default();
        let found: Vec<String> = ["Problem::error(", "Problem::warning("]
            .into_iter()
            .flat_map(|call| problems(source, call))
            .chain(MESSAGES.into_iter().flat_map(|call| messages(source, call)))
            .collect();
        if !found.is_empty() {
            let name = path.strip_prefix("../").expect("a source").display();
            let _ = writeln!(catalogue, "{name}\n{}", with_constants(source, found.concat()));
        }
    }
    insta::assert_snapshot!(catalogue);
}

/// The messages with the constant texts of their source that they name in braces.
fn with_constants(source: &str, mut messages: String) -> String {
    for (at, declared) in source.match_indices("const ") {
        let declaration = source[at + declared.len()..].split(";\n").next().unwrap_or_default();
        if let Some((name, value)) = declaration.split_once(": &str =")
            && let Some(text) = literals(value).first()
        {
            messages = messages.replace(&format!("{{{name}}}"), text);
        }
    }
    messages
}

/// The texts that begin so, each on a line of its own; further lines of a text are its next steps.
fn messages(source: &str, call: &str) -> Vec<String> {
    let found = source.match_indices(call).filter_map(|(at, _)| {
        let arguments = &source[at + call.len()..];
        let text = literals(&arguments[..closing(arguments)]).into_iter().next()?;
        let text = text.trim().replace('\n', "\n    ");
        text.contains(' ').then(|| format!("  {text}\n"))
    });
    found.collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        // Only what is handed out: no tests, no examples, and not the tests' own crate.
        let is_other = ["tests", "examples", "benches", "testkit", "fuzz", "target", "node_modules"]
            .iter()
            .any(|other| path.ends_with(other));
        if path.is_dir() && !is_other {
            all.extend(sources(&path));
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// The problems that a source makes in this way, each on a line of its own, with its next step on a second one.
fn problems(source: &str, call: &str) -> Vec<String> {
    let places = source.match_indices(call).map(|(at, _)| at);
    let found = places.filter_map(|at| {
        let (arguments, rest) = source[at + call.len()..].split_at(closing(&source[at + call.len()..]));
        let mut texts = literals(arguments).into_iter();
        let code = texts.next()?;
        let message = texts.next().or_else(|| {
            let before =
                &source[(0..=at.saturating_sub(BEFORE)).rev().find(|at| source.is_char_boundary(*at))?..at];
            literals(&before[before.rfind("message")?..]).into_iter().next()
        });
        let chain = rest.trim_start_matches([')', ' ', '\n']);
        let help = chain.strip_prefix(".help(").map(|help| {
            let help = literals(&help[..closing(help)]).into_iter().next();
            format!("    {}\n", help.as_deref().unwrap_or("(made elsewhere)"))
        });
        Some(format!(
            "  {code}: {}\n{}",
            message.as_deref().unwrap_or("(made elsewhere)"),
            help.unwrap_or_default()
        ))
    });
    found.collect()
}

/// Where the parenthesis closes that was opened before this text.
fn closing(text: &str) -> usize {
    let (mut depth, mut is_text, mut is_escaped) = (1, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'(' | b'[' | b'{' if !is_text => depth += 1,
            b')' | b']' | b'}' if !is_text => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The texts in a piece of Rust, without the breaks of their lines.
fn literals(source: &str) -> Vec<String> {
    let (mut all, mut text, mut is_text) = (Vec::new(), String::new(), false);
    let mut characters = source.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_text => all.push(std::mem::take(&mut text)),
            '"' => {}
            '\\' if is_text => match characters.next() {
                Some('n') => text.push('\n'),
                Some('\n') => while characters.next_if(|next| next.is_whitespace()).is_some() {},
                Some(escaped) => text.push(escaped),
                None => {}
            },
            other if is_text => text.push(other),
            _ => {}
        }
        is_text ^= character == '"';
    }
    all
}
