//! The text of a Caddyfile as lines and blocks with their places, and edits to it.
//!
//! Knows the grammar of words, quotes and braces, and no directive: what is not edited stays byte for byte.

use std::ops::Range;

/// Blocks within blocks.
const DEPTH_MAX: usize = 32;

/// One word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// Without quotes.
    pub(super) text: String,
    /// With them.
    pub(super) span: Range<usize>,
    is_quoted: bool,
    /// From 1.
    pub(super) line: usize,
    /// The same, but that a line joined to the one before has its number.
    row: usize,
}

/// A directive, or the head of a site.
#[derive(Debug, Clone)]
pub(super) struct TextLine {
    /// Its words, without the brace that opens its block.
    pub(super) words: Vec<Token>,
    /// The lines of its block.
    pub(super) block: Option<Vec<TextLine>>,
    /// All of it.
    pub(super) span: Range<usize>,
    /// From 1.
    pub(super) line: usize,
}

impl TextLine {
    /// A word's text; empty where it is missing.
    pub(super) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word.text.as_str())
    }

    /// The lines of its block.
    pub(super) fn inner(&self) -> &[TextLine] {
        self.block.as_deref().unwrap_or_default()
    }
}

/// Reads a text; the line of what is wrong where that fails.
pub(super) fn read(text: &str) -> Result<Vec<TextLine>, (usize, String)> {
    let tokens = tokens(text);
    let mut tokens = tokens.into_iter().peekable();
    let lines = lines(&mut tokens, 0)?;
    match tokens.next() {
        None => Ok(lines),
        Some(token) => Err((token.line, "this `}` closes nothing".to_owned())),
    }
}

fn lines(
    tokens: &mut std::iter::Peekable<std::vec::IntoIter<Token>>,
    depth: usize,
) -> Result<Vec<TextLine>, (usize, String)> {
    let is = |token: &Token, brace: &str| !token.is_quoted && token.text == brace;
    let mut lines = Vec::new();
    while let Some(first) = tokens.next_if(|token| !is(token, "}")) {
        if depth > DEPTH_MAX {
            return Err((first.line, "there are too many blocks in blocks".to_owned()));
        }
        let number = first.line;
        let mut row = first.row;
        let mut line = TextLine { span: first.span.clone(), line: number, words: vec![first], block: None };
        // A comma at the end of an address goes on in the next line.
        while let Some(next) = tokens.next_if(|token| {
            token.row == row
                || line.words.last().is_some_and(|word| word.text.ends_with(',') && !word.is_quoted)
        }) {
            row = next.row + next.text.matches('\n').count();
            line.span.end = next.span.end;
            line.words.push(next);
        }
        if line.words.last().is_some_and(|word| is(word, "{")) {
            line.words.pop();
            line.block = Some(self::lines(tokens, depth + 1)?);
            let Some(close) = tokens.next() else {
                return Err((number, "this block is never closed".to_owned()));
            };
            line.span.end = close.span.end;
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Cuts a text into words. One that is never closed ends with the text.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let (mut at, mut line, mut row) = (0, 1, 1);
    while let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).unwrap_or_default();
        if character == '\n' {
            line += 1;
            row += 1;
        }
        if character.is_whitespace() {
            at += character.len_utf8();
            continue;
        }
        if character == '#' {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        if let Some(joined) = ["\\\n", "\\\r\n"].iter().find(|joined| rest.starts_with(**joined)) {
            // What follows stands on the same line as far as words go.
            at += joined.len();
            line += 1;
            continue;
        }
        let length = match character {
            '"' | '`' => quoted(rest, character),
            _ => {
                let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
                heredoc(rest, word).unwrap_or(word)
            }
        };
        let raw = rest.get(..length).unwrap_or_default();
        let is_quoted = character == '"' || character == '`';
        let text = if is_quoted {
            let inner = raw.strip_prefix(character).unwrap_or(raw);
            let inner = inner.strip_suffix(character).unwrap_or(inner);
            if character == '"' { inner.replace("\\\"", "\"") } else { inner.to_owned() }
        } else {
            raw.to_owned()
        };
        tokens.push(Token { text, span: at..at + length, is_quoted, line, row });
        let lines = raw.matches('\n').count();
        line += lines;
        row += lines;
        at += length.max(1);
    }
    tokens
}

/// Bytes of a quoted word with its quotes.
fn quoted(rest: &str, quote: char) -> usize {
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        if character == '\\' && quote == '"' {
            characters.next();
        } else if character == quote {
            return at + 1;
        }
    }
    rest.len()
}

/// Bytes of `<<MARK` with its text, where a word begins one.
fn heredoc(rest: &str, word: usize) -> Option<usize> {
    let mark = rest.get(2..word).filter(|mark| rest.starts_with("<<") && !mark.is_empty())?;
    let mut at = word + rest.get(word..)?.find('\n')? + 1;
    for line in rest.get(at..)?.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if trimmed.starts_with(mark) {
            return Some(at + (line.len() - trimmed.len()) + mark.len());
        }
        at += line.len();
    }
    None
}

/// A text with stretches of it replaced.
#[derive(Debug, Clone, Default)]
pub(super) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    /// Puts a text in the place of a stretch. Of two that overlap, the first that was asked for holds.
    pub(super) fn replace(&mut self, span: Range<usize>, text: impl Into<String>) {
        if self.0.iter().all(|(other, _)| span.end <= other.start || other.end <= span.start) {
            self.0.push((span, text.into()));
        }
    }

    /// The text, and for each of its lines that of the original (from 1).
    pub(super) fn apply(&self, original: &str) -> (String, Vec<usize>) {
        let mut edits: Vec<&(Range<usize>, String)> = self.0.iter().collect();
        edits.sort_by_key(|(span, _)| span.start);
        let mut out = String::new();
        let mut origins = vec![1];
        let (mut at, mut line) = (0, 1);
        for (span, text) in edits {
            let kept = original.get(at..span.start).unwrap_or_default();
            out.push_str(kept);
            for _ in kept.matches('\n') {
                line += 1;
                origins.push(line);
            }
            out.push_str(text);
            origins.extend(text.matches('\n').map(|_| line));
            line += original.get(span.clone()).unwrap_or_default().matches('\n').count();
            at = span.end;
        }
        let kept = original.get(at..).unwrap_or_default();
        out.push_str(kept);
        for _ in kept.matches('\n') {
            line += 1;
            origins.push(line);
        }
        (out, origins)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(lines: &[TextLine]) -> String {
        let mut out = Vec::new();
        for line in lines {
            let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
            let block = line.block.as_ref().map(|block| format!(" <{}>", shown(block))).unwrap_or_default();
            out.push(format!("{}:{}{block}", line.line, words.join("|")));
        }
        out.join(" ")
    }

    #[test]
    fn lines_and_blocks_are_found_with_their_numbers() {
        for (text, expected) in [
            (":80 {\n\troot * /a # b\n}\n", "1::80 <2:root|*|/a>"),
            ("{\n\tadmin off\n}\na.com,\nb.com {\n}\n", "1: <2:admin|off> 4:a.com,|b.com <>"),
            ("a \"b \\\" c\" `d {`\ne {path} \\\n f\ng", "1:a|b \" c|d { 2:e|{path}|f 4:g"),
            ("respond <<END\n  }\n  END 200\nb", "1:respond|<<END\n  }\n  END|200 4:b"),
            ("", ""),
        ] {
            assert_eq!(read(text).map(|lines| shown(&lines)), Ok(expected.to_owned()), "{text}");
        }
        assert!(read("a {").is_err() && read("}").is_err() && read(&"a {\n".repeat(10_000)).is_err());
    }

    #[test]
    fn edits_know_where_each_line_came_from() {
        let mut edits = Edits::default();
        edits.replace(2..5, "x\ny");
        edits.replace(3..4, "never");
        let (text, origins) = edits.apply("1\n2\n3\n4\n");
        assert_eq!((text.as_str(), origins), ("1\nx\ny\n4\n", vec![1, 2, 2, 4, 5]));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a-z{}\"`\\\\#<\n ,é]{0,80}") {
            if let Ok(lines) = read(&text) {
                let mut edits = Edits::default();
                for line in &lines {
                    prop_assert!(text.get(line.span.clone()).is_some());
                    edits.replace(line.span.clone(), "");
                }
                edits.apply(&text);
            }
        }
    }
}
