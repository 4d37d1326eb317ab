//! What a file of Rust imports, names and defines, read from its tokens outside of tests.
//!
//! It knows paths, `use` trees and the items of the file's top level, and nothing of types: which file a path leads
//! to is worked out in `modules.rs`.

use std::collections::BTreeSet;

use super::source::Source;

/// Words before an item's name.
const ITEM_WORDS: [&str; 9] =
    ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules"];

/// What a file says about itself and other modules.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// One for each name that a `use` brings in.
    pub(super) imports: Vec<Import>,
    /// Paths of two segments or more that stand in code.
    pub(super) paths: Vec<Path>,
    /// Names of what is defined at the top level, inline modules too.
    pub(super) items: BTreeSet<String>,
    /// Names of the modules that only tests have.
    pub(super) test_modules: BTreeSet<String>,
}

/// One leaf of a `use` tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// The name in this file; `None` for `*`.
    pub(super) name: Option<String>,
    /// What stands before `as`, without `*`.
    pub(super) path: Path,
    /// Begins with `pub`, and the file itself does not use the name: it is passed on only.
    pub(super) is_passed_on: bool,
}

/// A path with the place where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) segments: Vec<String>,
    /// Line, from 1.
    pub(super) line: usize,
}

type Token<'a> = (usize, &'a str);

/// Reads a file.
pub(super) fn names(source: &Source) -> Names {
    let tokens: Vec<Token<'_>> =
        source.code_outside_tests().flat_map(|(index, line)| tokens(line, index + 1)).collect();
    let mut names = Names { test_modules: test_modules(source), ..Names::default() };
    let mut used = BTreeSet::new();
    let mut public = BTreeSet::new();
    let mut depth = 0_usize;
    let mut place = 0;
    while let Some(&(line, text)) = tokens.get(place) {
        match text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            // `use<'a>` in a type lists lifetimes.
            "use" if is_name(&tokens, place + 1) || matches!(text_at(&tokens, place + 1), "{" | "::") => {
                let first = names.imports.len();
                let is_public = place > 0 && matches!(tokens[place - 1].1, "pub" | ")");
                place = use_tree(&tokens, place + 1, &[], &mut names.imports);
                public.extend((first..names.imports.len()).filter(|_| is_public));
                continue;
            }
            _ if is_name(&tokens, place) => {
                if depth == 0 && (ITEM_WORDS.contains(&text) || text == "mod") {
                    names.items.extend(item_name(&tokens, place));
                }
                let segments = path_at(&tokens, place);
                used.insert(segments[0].clone());
                place += segments.len() * 2 - 1;
                if segments.len() > 1 {
                    names.paths.push(Path { segments, line });
                }
                continue;
            }
            _ => {}
        }
        place += 1;
    }
    for index in public {
        let import = &mut names.imports[index];
        import.is_passed_on = import.name.as_ref().is_none_or(|name| !used.contains(name));
    }
    names
}

/// `a::b::c` from this token on. A path that follows `::` has begun before a type's `<…>` and says nothing of modules.
fn path_at(tokens: &[Token<'_>], place: usize) -> Vec<String> {
    let mut segments = vec![tokens[place].1.to_owned()];
    let is_rest = place > 0 && tokens[place - 1].1 == "::";
    let mut next = place + 1;
    while text_at(tokens, next) == "::" && is_name(tokens, next + 1) {
        segments.push(tokens[next + 1].1.to_owned());
        next += 2;
    }
    if is_rest {
        segments.truncate(1);
    }
    segments
}

fn item_name(tokens: &[Token<'_>], place: usize) -> Option<String> {
    let mut next = place + 1;
    while matches!(text_at(tokens, next), "!" | "mut") {
        next += 1;
    }
    let is_item = is_name(tokens, next) && !ITEM_WORDS.contains(&text_at(tokens, next));
    // `mod name;` is another file.
    let is_file = text_at(tokens, place) == "mod" && text_at(tokens, next + 1) == ";";
    (is_item && !is_file).then(|| tokens[next].1.to_owned())
}

/// One tree of a `use`, below a prefix; the place behind it.
fn use_tree(tokens: &[Token<'_>], mut place: usize, prefix: &[String], imports: &mut Vec<Import>) -> usize {
    let line = tokens.get(place).map_or(0, |token| token.0);
    let mut segments = prefix.to_vec();
    let mut name = None;
    loop {
        match text_at(tokens, place) {
            "{" => {
                place += 1;
                while !matches!(text_at(tokens, place), "}" | "") {
                    let from = place;
                    place = use_tree(tokens, place, &segments, imports);
                    if text_at(tokens, place) == "," || place == from {
                        place += 1;
                    }
                }
                return place + 1;
            }
            "::" => place += 1,
            "*" => {
                imports.push(Import { name: None, path: Path { segments, line }, is_passed_on: false });
                return place + 1;
            }
            "as" => {
                name = Some(text_at(tokens, place + 1).to_owned());
                place += 2;
            }
            // `{self}` is what stands before the braces.
            "self" if !segments.is_empty() => place += 1,
            text if is_name(tokens, place) => {
                segments.push(text.to_owned());
                place += 1;
            }
            _ => break,
        }
    }
    if let Some(last) = segments.last() {
        let name = Some(name.unwrap_or_else(|| last.clone()));
        imports.push(Import { name, path: Path { segments, line }, is_passed_on: false });
    }
    place
}

/// Modules in files of their own that stand under `#[cfg(test)]`.
fn test_modules(source: &Source) -> BTreeSet<String> {
    let tests = source.code.iter().zip(&source.is_test).filter(|(_, is_test)| **is_test);
    let tokens: Vec<Token<'_>> = tests.flat_map(|(line, _)| tokens(line, 0)).collect();
    let found = tokens.windows(3).filter(|three| three[0].1 == "mod" && three[2].1 == ";");
    found.map(|three| three[1].1.to_owned()).collect()
}

/// Words, `::` and single marks of a line whose comments and strings are blank.
fn tokens(line: &str, number: usize) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if is_word(first) => rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            // A lifetime is no name.
            '\'' => 1 + rest[1..].find(|letter| !is_word(letter)).unwrap_or(rest.len() - 1),
            _ => first.len_utf8(),
        };
        found.push((number, &rest[..length]));
        rest = rest[length..].trim_start();
    }
    found
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn is_name(tokens: &[Token<'_>], place: usize) -> bool {
    text_at(tokens, place).starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

fn text_at<'a>(tokens: &[Token<'a>], place: usize) -> &'a str {
    tokens.get(place).map_or("", |token| token.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(text: &str) -> Names {
        names(&Source::read("crates/x/src/a.rs", text))
    }

    #[test]
    fn trees_of_imports_are_unfolded() {
        let text = "use crate::a::{self, B as C, d::{E, F}};\npub use child::G;\nuse super::*;\npub(crate) use h::I;\nfn f(i: I) {}\n";
        let found: Vec<String> = read(text)
            .imports
            .iter()
            .map(|import| {
                let name = import.name.as_deref().unwrap_or("*");
                let mark = if import.is_passed_on { " on" } else { "" };
                format!("{}: {} = {}{mark}", import.path.line, name, import.path.segments.join("::"))
            })
            .collect();
        assert_eq!(
            found,
            [
                "1: a = crate::a",
                "1: C = crate::a::B",
                "1: E = crate::a::d::E",
                "1: F = crate::a::d::F",
                "2: G = child::G on",
                "3: * = super",
                "4: I = h::I",
            ]
        );
    }

    #[test]
    fn paths_and_items_are_found_and_tests_are_left_out() {
        let text = "struct A;\npub(super) const fn b() -> impl Sized + use<'_> {\n    crate::c::<u8>(x::Y::new(), <u8 as d::E>::F::g());\n    fn inner() {}\n}\n#[cfg(test)]\nmod testing;\n#[cfg(test)]\nmod tests {\n    use crate::z;\n}\nmod inline {\n}\nmod file;\n";
        let names = read(text);
        let paths: Vec<String> = names.paths.iter().map(|path| path.segments.join("::")).collect();
        assert_eq!(paths, ["crate::c", "x::Y::new", "d::E"]);
        assert_eq!(names.items.into_iter().collect::<Vec<_>>(), ["A", "b", "inline"]);
        assert_eq!(names.test_modules.into_iter().collect::<Vec<_>>(), ["testing"]);
        assert!(names.imports.is_empty());
    }
}
