//! A directive of nginx with its block, the way back to text, and which of several levels decides.

use super::lexer::Word;
use crate::position::Position;

/// A directive.
#[derive(Debug, Clone)]
pub struct Directive {
    /// Its first word.
    pub name: String,
    /// The words after it.
    pub args: Vec<Word>,
    /// The directives in its braces.
    pub block: Option<Vec<Directive>>,
    /// Its position in the file.
    pub place: Position,
}

impl Directive {
    /// One without a block, made here.
    pub fn new(name: &str, args: &[&str], place: &Position) -> Directive {
        let args =
            args.iter().map(|text| Word { raw: (*text).to_owned(), text: (*text).to_owned() }).collect();
        Directive { name: name.to_owned(), args, block: None, place: place.clone() }
    }

    /// An argument's text; empty where it is missing.
    pub fn arg(&self, at: usize) -> &str {
        self.args.get(at).map_or("", |word| word.text.as_str())
    }

    /// The directives of its block.
    pub fn inner(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// As it is written, without its block.
    pub fn shown(&self) -> String {
        let words: Vec<&str> = self.args.iter().map(|word| word.raw.as_str()).collect();
        // Entries of a `map` may be any text, such as none at all.
        let is_bare = |character: char| !character.is_whitespace() && !";{}\"'#".contains(character);
        let name = match !self.name.is_empty() && self.name.chars().all(is_bare) {
            true => self.name.clone(),
            false => format!("\"{}\"", self.name.replace('"', "\\\"")),
        };
        format!("{name} {}", words.join(" ")).trim_end().to_owned()
    }
}

/// Directives as text, each line behind so many tabulators.
pub fn write(directives: &[Directive], depth: usize, out: &mut String) {
    for directive in directives {
        for _ in 0..depth {
            out.push('\t');
        }
        out.push_str(&directive.shown());
        match &directive.block {
            None => out.push_str(";\n"),
            Some(block) => {
                out.push_str(" {\n");
                write(block, depth + 1, out);
                for _ in 0..depth {
                    out.push('\t');
                }
                out.push_str("}\n");
            }
        }
    }
}

/// The first of a name, from the innermost level outwards.
pub fn nearest<'a>(name: &str, levels: &[&'a [Directive]]) -> Option<&'a Directive> {
    levels.iter().rev().find_map(|level| level.iter().find(|directive| directive.name == name))
}

/// All of a name at the innermost level that has one: nginx inherits such lists as a whole.
pub fn nearest_all<'a>(name: &str, levels: &[&'a [Directive]]) -> Vec<&'a Directive> {
    let at = |level: &&'a [Directive]| -> Vec<&'a Directive> {
        level.iter().filter(|directive| directive.name == name).collect()
    };
    levels.iter().rev().map(at).find(|found| !found.is_empty()).unwrap_or_default()
}
