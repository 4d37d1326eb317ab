//! The layout of a configuration: indentation, spaces and blank lines. Never changes a word, a quote or a comment.

use std::ops::Range;
use std::sync::Arc;

use crate::problem::{Location, Problem, Problems};
use crate::source::SourceText;
use crate::syntax::{WrittenToken, written};

/// A piece of the text that is kept as it is.
struct Piece {
    kind: Kind,
    span: Range<usize>,
    /// At the end of a line, without a space behind it, it would begin a heredoc.
    is_opening: bool,
    /// It begins a line; not said of a comment.
    starts_line: bool,
}

#[derive(PartialEq, Clone, Copy)]
enum Kind {
    Word,
    /// A quoted text or a heredoc, in which a carriage return is content.
    Quoted,
    Open,
    Close,
    Comment,
}

/// The text of a configuration with tabs for each block, single spaces between words, at most one blank line in a row, and one
/// between the blocks of the file. `name` is the file's, for messages.
///
/// # Errors
///
/// A text that cannot be cut into words, such as one with a quote that is never closed.
pub fn format(name: &str, text: &str) -> Result<String, Vec<Problem>> {
    let file = Arc::new(SourceText::new(name, text));
    let formatted = layout(&pieces(&file)?, text);
    // Whatever this file overlooks must not reach a server.
    let again = Arc::new(SourceText::new(name, formatted.as_str()));
    let same = |one: &(String, bool), other: &(String, bool)| one == other;
    let (before, after) = (meaning(&file)?, meaning(&again)?);
    if before.len() != after.len() || !before.iter().zip(&after).all(|(one, other)| same(one, other)) {
        let place = Location { file, span: 0..0 };
        let message = "this file cannot be formatted without a change of what it means".to_owned();
        let help = "the file works as it is; this is a fault of `onehop fmt`: report it with the file";
        return Err(vec![*Problem::error("format", &place, message).help(help)]);
    }
    Ok(formatted)
}

/// Each word as written, and whether it begins a line.
fn meaning(file: &Arc<SourceText>) -> Result<Vec<(String, bool)>, Vec<Problem>> {
    let pieces = pieces(file)?;
    let words = pieces.iter().filter(|piece| piece.kind != Kind::Comment);
    Ok(words.map(|piece| (slice(&file.text, piece), piece.starts_line)).collect())
}

fn pieces(file: &Arc<SourceText>) -> Result<Vec<Piece>, Vec<Problem>> {
    let mut problems = Problems::default();
    let (tokens, comments) = written(file, &mut problems);
    let (errors, _) = problems.split();
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut pieces: Vec<Piece> = tokens.into_iter().map(|token| Piece::of(token, &file.text)).collect();
    let comment = |span| Piece { kind: Kind::Comment, span, is_opening: false, starts_line: false };
    pieces.extend(comments.into_iter().map(comment));
    pieces.sort_by_key(|piece| piece.span.start);
    Ok(pieces)
}

impl Piece {
    fn of(token: WrittenToken, text: &str) -> Piece {
        let is_escaped = text.get(token.span.clone()).is_some_and(|written| written.starts_with('\\'));
        let is_opening = !token.is_quoted && !is_escaped && token.text.starts_with("<<");
        let kind = match (token.is_quoted, token.text.as_str()) {
            (true, _) => Kind::Quoted,
            (false, "{") => Kind::Open,
            (false, "}") => Kind::Close,
            (false, _) => Kind::Word,
        };
        Piece { kind, span: token.span, is_opening, starts_line: token.starts_line }
    }
}

fn slice(text: &str, piece: &Piece) -> String {
    let written = text.get(piece.span.clone()).unwrap_or_default();
    match piece.kind {
        Kind::Quoted => written.to_owned(),
        _ => written.trim_end().to_owned(),
    }
}

fn layout(pieces: &[Piece], text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0_usize;
    let mut before: Option<&Piece> = None;
    for piece in pieces {
        if piece.kind == Kind::Close {
            depth = depth.saturating_sub(1);
        }
        let end = before.map_or(0, |before| before.span.end);
        let between = text.get(end..piece.span.start).unwrap_or_default();
        if let Some(before) = before {
            let newlines = between.matches('\n').count();
            if piece.starts_line || (piece.kind == Kind::Comment && newlines > 0) {
                out.push_str(if before.is_opening { " " } else { "" });
                let is_first = before.kind == Kind::Open;
                let is_next_block = depth == 0 && before.kind == Kind::Close && piece.kind != Kind::Close;
                let is_blank = newlines > 1 && !is_first && piece.kind != Kind::Close;
                out.push_str(if is_blank || is_next_block { "\n\n" } else { "\n" });
                indent(&mut out, depth);
            } else if newlines > 0 {
                // A backslash joins this line with the one before.
                out.push_str(" \\\n");
                indent(&mut out, depth + 1);
            } else {
                out.push(' ');
            }
        }
        out.push_str(&slice(text, piece));
        if piece.kind == Kind::Open {
            depth += 1;
        }
        before = Some(piece);
    }
    // Behind a backslash the end of the file is another thing than the end of a line.
    if let Some(last) = before.filter(|_| !out.ends_with('\\')) {
        out.push_str(if last.is_opening { " \n" } else { "\n" });
    }
    out
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n('\t', depth));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn formatted(text: &str) -> String {
        format("Onehopfile", text).unwrap()
    }

    #[test]
    fn blocks_are_indented_and_blank_lines_are_single() {
        let text = "{\n  admin   off\n}\nhttp://:80 {\n\n\n   # files\n  root   ./dist\n\n\n\tlog  {   # of it\n output stderr\n\n}\n    }\n# next\nhttp://:81 {\n}\n\n\n";
        assert_eq!(
            formatted(text),
            "{\n\tadmin off\n}\n\nhttp://:80 {\n\t# files\n\troot ./dist\n\n\tlog { # of it\n\t\toutput stderr\n\t}\n}\n\n# next\nhttp://:81 {\n}\n"
        );
    }

    #[test]
    fn quotes_heredocs_variables_and_joined_lines_are_kept() {
        for text in [
            "http://:80 {\n\trespond `a  b\n  c` 200\n}\n",
            "http://:80 {\n\trespond <<END\n\t\tone  two\n\t\tEND 200\n}\n",
            "http://:80 {\n\troot {$ROOT:/srv/a  b}\n}\n",
            "a, \\\n\tb {\n\theader X \"a \\\"b\\\" {\" \\\n\t\tmore\n}\n",
            "# only a comment\n",
            "",
        ] {
            assert_eq!(formatted(text), text);
        }
        assert_eq!(formatted("a   b \\\r\n c # x\r\n{\r\n}"), "a b \\\n\tc # x\n{\n}\n");
    }

    #[test]
    fn what_is_no_configuration_is_an_error_with_its_place() {
        let problems = format("Onehopfile", "a {\n\trespond \"x\n}\n").unwrap_err();
        assert!(problems[0].to_string().contains("this quote `\"` is never closed"), "{problems:?}");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_a_second_time_changes_nothing(
            text in "[ \\n\\t\\r#{}`\"<$:a\\\\]{0,60}",
        ) {
            if let Ok(once) = format("x", &text) {
                prop_assert_eq!(format("x", &once).unwrap(), once);
            } else if let Ok(file) = meaning(&Arc::new(SourceText::new("x", text.as_str()))) {
                prop_assert!(false, "{file:?} of {text:?} cannot be formatted");
            }
        }
    }
}
