//! One Rust file, read just well enough for the rules: comments and the insides of strings are blanked,
//! test code is known, functions are found with their length.
//!
//! It is no parser: it knows tokens and braces. It must never fail on a file that compiles.

use std::ops::Range;

/// A file as the rules see it.
pub(crate) struct Source {
    /// Path from the checkout's top folder.
    pub(crate) path: String,
    /// The lines as written.
    pub(crate) lines: Vec<String>,
    /// The lines with comments and the insides of strings as spaces; same lengths in characters.
    pub(crate) code: Vec<String>,
    /// For each line, whether it is test code.
    pub(crate) is_test: Vec<bool>,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// Indices of its lines, from `fn` to the closing brace.
    pub(crate) lines: Range<usize>,
}

impl Source {
    /// Reads a file's text.
    pub(crate) fn read(path: &str, text: &str) -> Source {
        let blanked = blank(text);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut code: Vec<String> = blanked.lines().map(str::to_owned).collect();
        code.resize(lines.len(), String::new());
        let whole_file =
            path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("/benches/");
        let mut is_test = vec![whole_file; lines.len()];
        for place in test_items(&code) {
            is_test[place].fill(true);
        }
        Source { path: path.to_owned(), lines, code, is_test }
    }

    /// Lines that are not test code.
    pub(crate) fn length_without_tests(&self) -> usize {
        self.is_test.iter().filter(|&&is_test| !is_test).count()
    }

    /// Code lines outside tests, with their index.
    pub(crate) fn code_outside_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.is_test[*index])
            .map(|(index, line)| (index, line.as_str()))
    }

    /// Every function with a body, nested ones too.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        for (index, line) in self.code.iter().enumerate() {
            let Some(column) = word_in(line, "fn") else { continue };
            let name: String = line[column + 2..]
                .trim_start()
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                .collect();
            // `fn(` is a type, not a function.
            if name.is_empty() {
                continue;
            }
            if let Some(end) = body_end(&self.code, index, column) {
                found.push(Function { name, lines: index..end + 1 });
            }
        }
        found
    }
}

/// Where `word` stands alone in a line.
pub(crate) fn word_in(line: &str, word: &str) -> Option<usize> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).map(|(place, _)| place).find(|&place| {
        !line[..place].chars().next_back().is_some_and(is_word)
            && !line[place + word.len()..].chars().next().is_some_and(is_word)
    })
}

/// The line of the brace that closes the first block after a place, unless a `;` comes first.
fn body_end(code: &[String], line: usize, column: usize) -> Option<usize> {
    let (mut braces, mut others) = (0_i32, 0_i32);
    for (index, text) in code.iter().enumerate().skip(line) {
        let text = if index == line { &text[column..] } else { text.as_str() };
        for letter in text.chars() {
            match letter {
                '(' | '[' => others += 1,
                ')' | ']' => others -= 1,
                ';' if braces == 0 && others == 0 => return None,
                '{' => braces += 1,
                '}' => {
                    braces -= 1;
                    if braces == 0 {
                        return Some(index);
                    }
                }
                _ => {}
            }
        }
    }
    None
}

/// Lines of the items that stand under `#[cfg(test)]` or `#[test]`.
fn test_items(code: &[String]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (index, line) in code.iter().enumerate() {
        let attribute = line.trim_start();
        if !attribute.starts_with("#[cfg(test)]") && !attribute.starts_with("#[test]") {
            continue;
        }
        let column = line.find(']').map_or(0, |place| place + 1);
        let end = body_end(code, index, column).unwrap_or(index + 1);
        found.push(index..(end + 1).min(code.len()));
    }
    found
}

/// The text with comments and the insides of strings and characters as spaces.
fn blank(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut place = 0;
    while place < letters.len() {
        let rest = &letters[place..];
        let length = match rest {
            ['/', '/', ..] => rest.iter().position(|&letter| letter == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => block_comment(rest),
            ['"', ..] => quoted(rest, 0),
            ['r' | 'b' | 'c', ..] if !word_before(&letters, place) => prefixed(rest),
            ['\'', ..] => character(rest),
            _ => 0,
        };
        if length == 0 {
            out.push(letters[place]);
            place += 1;
            continue;
        }
        let is_string = rest[0] != '/';
        for (index, &letter) in rest[..length].iter().enumerate() {
            let edge = is_string && (index == 0 || index + 1 == length);
            out.push(if letter == '\n' || (edge && letter.is_ascii()) { letter } else { ' ' });
        }
        place += length;
    }
    out
}

fn word_before(letters: &[char], place: usize) -> bool {
    place > 0 && (letters[place - 1].is_alphanumeric() || letters[place - 1] == '_')
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut place) = (0, 0);
    while place < rest.len() {
        match &rest[place..] {
            ['/', '*', ..] => {
                depth += 1;
                place += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                place += 2;
                if depth == 0 {
                    return place;
                }
            }
            _ => place += 1,
        }
    }
    rest.len()
}

/// A string that begins at `start` with its quote; the length from the slice's beginning.
fn quoted(rest: &[char], start: usize) -> usize {
    let mut place = start + 1;
    while place < rest.len() {
        match rest[place] {
            '\\' => place += 2,
            '"' => return place + 1,
            _ => place += 1,
        }
    }
    rest.len()
}

/// `r"…"`, `br#"…"#`, `b"…"`, `c"…"`, `b'…'`; 0 when it is none of them.
fn prefixed(rest: &[char]) -> usize {
    let prefix = rest.iter().take_while(|letter| matches!(letter, 'r' | 'b' | 'c')).count();
    let hashes = rest[prefix..].iter().take_while(|&&letter| letter == '#').count();
    match rest.get(prefix + hashes) {
        Some('"') if rest[..prefix].contains(&'r') => {
            let mut place = prefix + hashes + 1;
            while place < rest.len() {
                if rest[place] == '"'
                    && rest[place + 1..].iter().take_while(|&&letter| letter == '#').count() >= hashes
                {
                    return place + 1 + hashes;
                }
                place += 1;
            }
            rest.len()
        }
        Some('"') if hashes == 0 && prefix == 1 => quoted(rest, prefix),
        Some('\'') if hashes == 0 && rest[0] == 'b' && prefix == 1 => match character(&rest[1..]) {
            0 => 0,
            length => length + 1,
        },
        _ => 0,
    }
}

/// A character literal; 0 when the quote begins a lifetime.
fn character(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', ..] => {
            rest.iter().skip(3).position(|&letter| letter == '\'').map_or(0, |place| place + 4)
        }
        ['\'', _, '\'', ..] => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        blank(text)
    }

    #[test]
    fn comments_and_the_insides_of_strings_are_blank() {
        assert_eq!(code("let a = \"use tokio\"; // tokio"), "let a = \"         \";         ");
        assert_eq!(code("/* a /* b */ c */ x"), "                  x");
        assert_eq!(code("r#\"a \" b\"# x"), "r        # x");
        assert_eq!(code("b\"\\\"{\" x"), "b    \" x");
    }

    #[test]
    fn a_lifetime_is_no_character() {
        assert_eq!(code("fn f<'a>(x: &'a str) { '{' }"), "fn f<'a>(x: &'a str) { ' ' }");
        assert_eq!(code("'\\'' x '\\u{7d}' y b'{' z"), "'  ' x '      ' y b  ' z");
    }

    #[test]
    fn test_code_is_known() {
        let text = "fn a() {\n}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let source = Source::read("crates/x/src/lib.rs", text);
        assert_eq!(source.is_test, [false, false, true, true, true, true, false]);
        assert_eq!(source.length_without_tests(), 3);
        let beside = Source::read("crates/x/src/lib.rs", "#[cfg(test)]\nmod tests;\nfn c() {}\n");
        assert_eq!(beside.is_test, [true, true, false]);
    }

    #[test]
    fn functions_are_found_with_their_length() {
        let text = "trait T {\n    fn none(&self);\n    fn some(&self) -> [u8; 2] {\n        [1; 2]\n    }\n}\nfn wide<F>(\n    f: F,\n) where\n    F: Fn(u8),\n{\n    f(1)\n}\n";
        let source = Source::read("x.rs", text);
        assert_eq!(
            source.functions(),
            [
                Function { name: "some".to_owned(), lines: 2..5 },
                Function { name: "wide".to_owned(), lines: 6..13 }
            ]
        );
    }
}
