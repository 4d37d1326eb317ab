//! Text to tokens, by the Caddyfile's rules. Knows quotes, escapes, comments, heredocs and line
//! ends; must not know what a brace or a word means.

use std::ops::Range;
use std::sync::Arc;

use super::environment::{Expanded, expand, masked};
use super::{Quote, Token};
use crate::limits::TOKENS_MAX;
use crate::problem::{Location, Problem, Problems, UNSET_VARIABLE};
use crate::source::{Source, SourceText};

/// All tokens of a file. What is wrong goes to `problems`, and reading goes on behind it.
pub(crate) fn tokens(file: &Arc<SourceText>, source: &dyn Source, problems: &mut Problems) -> Vec<Token> {
    let expanded = expand(&file.text, source);
    for (name, span) in &expanded.unset {
        let place = Location { file: Arc::clone(file), span: span.clone() };
        problems.push(
            Problem::warning(UNSET_VARIABLE, &place, format!("the environment variable `{name}` is not set"))
                .label("stands for nothing")
                .help(format!("set it, or give a default: `{{${name}:default}}`")),
        );
    }
    let mut lexer = Lexer::new(file, &expanded);
    lexer.read(problems);
    lexer.tokens
}

/// A token as it stands in a file, with its variables.
pub(crate) struct WrittenToken {
    pub(crate) text: String,
    pub(crate) is_quoted: bool,
    pub(crate) starts_line: bool,
    /// Where it stands, with its quotes.
    pub(crate) span: Range<usize>,
}

/// All tokens of a file as they are written, and its comments.
pub(crate) fn written(
    file: &Arc<SourceText>,
    problems: &mut Problems,
) -> (Vec<WrittenToken>, Vec<Range<usize>>) {
    let masked = masked(&file.text);
    let mut lexer = Lexer::new(file, &masked);
    lexer.read(problems);
    let tokens = lexer.tokens.into_iter().map(|token| WrittenToken {
        is_quoted: token.quote != Quote::None,
        text: token.text,
        starts_line: token.starts_line,
        span: token.place.span,
    });
    (tokens.collect(), lexer.comments)
}

struct Lexer<'a> {
    file: &'a Arc<SourceText>,
    expanded: &'a Expanded,
    /// In the expanded text.
    at: usize,
    /// Whether the next token begins a line.
    starts_line: bool,
    tokens: Vec<Token>,
    /// In the expanded text.
    comments: Vec<Range<usize>>,
}

impl<'a> Lexer<'a> {
    fn new(file: &'a Arc<SourceText>, expanded: &'a Expanded) -> Lexer<'a> {
        // Some editors begin a file with a byte order mark.
        let at = if expanded.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Lexer { file, expanded, at, starts_line: true, tokens: Vec::new(), comments: Vec::new() }
    }
}

impl Lexer<'_> {
    fn read(&mut self, problems: &mut Problems) {
        while self.skip_to_token() {
            if self.tokens.len() >= TOKENS_MAX {
                let end = self.at..self.at;
                problems.push(self.problem("too-large", end, "the file has too many words".into()));
                break;
            }
            if let Err(problem) = self.token() {
                problems.push(problem);
            }
        }
    }

    fn rest(&self) -> &str {
        self.expanded.text.get(self.at..).unwrap_or_default()
    }

    /// Skips white space, continued lines and comments. False at the end of the text.
    fn skip_to_token(&mut self) -> bool {
        while let Some(character) = self.rest().chars().next() {
            match character {
                '\n' => {
                    self.starts_line = true;
                    self.at += 1;
                }
                '#' => {
                    let length = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.comments.push(self.at..self.at + length);
                    self.at += length;
                }
                // A backslash at the end of a line joins it with the next one.
                '\\' => match self.line_end_after(1) {
                    Some(length) => self.at += length,
                    None => return true,
                },
                space if space.is_whitespace() => self.at += space.len_utf8(),
                _ => return true,
            }
        }
        false
    }

    /// Bytes up to and with the line feed, if one follows `skip` bytes on.
    fn line_end_after(&self, skip: usize) -> Option<usize> {
        let rest = self.rest().get(skip..)?;
        match rest.as_bytes() {
            [b'\n', ..] => Some(skip + 1),
            [b'\r', b'\n', ..] => Some(skip + 2),
            _ => None,
        }
    }

    /// Reads one token. A broken one is kept as well as it can be, so that what follows from it (a
    /// missing argument) is not reported, too.
    fn token(&mut self) -> Result<(), Box<Problem>> {
        match self.rest().as_bytes().first() {
            Some(b'"') => self.quoted('"', Quote::Double),
            Some(b'`') => self.quoted('`', Quote::Backtick),
            _ => self.word(),
        }
    }

    /// Up to the closing quote, over lines. Only a double quote can be escaped, and only in double
    /// quotes; any other backslash stands for itself.
    fn quoted(&mut self, mark: char, quote: Quote) -> Result<(), Box<Problem>> {
        let start = self.at;
        let mut text = String::new();
        let mut characters = self.rest().char_indices().skip(1).peekable();
        while let Some((offset, character)) = characters.next() {
            if character == mark {
                self.at = start + offset + 1;
                self.push(text, quote, start..start + offset + 1);
                return Ok(());
            }
            if quote == Quote::Double && character == '\\' {
                match characters.next() {
                    Some((_, '"')) => text.push('"'),
                    Some((_, other)) => text.extend(['\\', other]),
                    None => {}
                }
                continue;
            }
            text.push(character);
        }
        self.at = self.expanded.text.len();
        self.push(text, quote, start..self.at);
        Err(self
            .problem("open-quote", start..start + 1, format!("this quote `{mark}` is never closed"))
            .label("opened here")
            .help("close it, or escape it where it is meant as a character"))
    }

    /// Up to white space. A leading `<<` begins a heredoc unless escaped as `\<<`.
    fn word(&mut self) -> Result<(), Box<Problem>> {
        let start = self.at;
        let mut text = String::new();
        let mut length = self.rest().len();
        let mut characters = self.rest().char_indices().peekable();
        let mut heredoc_possible = true;
        while let Some((offset, character)) = characters.next() {
            match character {
                '\r' => {}
                space if space.is_whitespace() => {
                    length = offset;
                    break;
                }
                '\\' => match characters.peek() {
                    Some((_, '<')) => {
                        heredoc_possible &= !text.is_empty();
                        text.push('<');
                        characters.next();
                    }
                    // Joins lines or ends the word: `skip_to_token` decides which.
                    Some((_, next)) if next.is_whitespace() => {
                        length = offset;
                        break;
                    }
                    // The second backslash of a pair escapes nothing.
                    Some((_, '\\')) => {
                        text.push_str("\\\\");
                        characters.next();
                    }
                    _ => text.push('\\'),
                },
                other => text.push(other),
            }
        }
        let ends_line =
            self.rest().get(length..).is_some_and(|rest| rest.starts_with('\n') || rest.starts_with("\r\n"));
        if heredoc_possible && text.starts_with("<<") && ends_line {
            return self.heredoc(start, length, &text);
        }
        self.at = start + length;
        if text.is_empty() {
            // A lone backslash before white space means nothing.
            self.at += usize::from(length == 0);
            return Ok(());
        }
        self.push(text, Quote::None, start..start + length);
        Ok(())
    }

    /// From `<<MARK` to the line that begins with MARK; the white space before that MARK is taken
    /// off every line.
    fn heredoc(&mut self, start: usize, length: usize, opening: &str) -> Result<(), Box<Problem>> {
        let mark = opening.get(2..).unwrap_or_default();
        let opening_span = start..start + length;
        self.at = start + length;
        if mark.is_empty() || !mark.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        {
            self.push(opening.to_owned(), Quote::None, opening_span.clone());
            return Err(self
                .problem("heredoc-mark", opening_span, format!("`{opening}` does not begin a heredoc"))
                .label("letters, digits, `-` and `_` may follow the two `<`")
                .help("write for example `<<END`, or `\\<<` for the characters themselves"));
        }
        let body_start = start + length + self.line_end_after(0).unwrap_or(1);
        let body = self.expanded.text.get(body_start..).unwrap_or_default();
        let mut lines: Vec<(usize, &str)> = Vec::new();
        let mut offset = body_start;
        for line in body.split_inclusive('\n') {
            let trimmed = line.trim_start();
            if trimmed.starts_with(mark) {
                let padding = line.get(..line.len() - trimmed.len()).unwrap_or_default();
                let text = self.without_padding(&lines, padding, mark);
                self.at = offset + padding.len() + mark.len();
                let (text, problem) = match text {
                    Ok(text) => (text, Ok(())),
                    Err(problem) => (body.to_owned(), Err(problem)),
                };
                self.push(text, Quote::Heredoc, start..self.at);
                return problem;
            }
            lines.push((offset, line));
            offset += line.len();
        }
        self.at = self.expanded.text.len();
        self.push(body.to_owned(), Quote::Heredoc, start..self.at);
        Err(self
            .problem("open-heredoc", opening_span, format!("the heredoc `{opening}` is never closed"))
            .label("opened here")
            .help(format!("end it by a line that holds `{mark}`")))
    }

    fn without_padding(
        &self,
        lines: &[(usize, &str)],
        padding: &str,
        mark: &str,
    ) -> Result<String, Box<Problem>> {
        let mut text = String::new();
        for (number, (offset, line)) in lines.iter().enumerate() {
            let line = line.trim_end_matches('\n').replace('\r', "");
            if number > 0 {
                text.push('\n');
            }
            if line.is_empty() {
                continue;
            }
            let Some(stripped) = line.strip_prefix(padding) else {
                let message = "this line is indented less than the end of its heredoc";
                let span = *offset..*offset + line.len();
                return Err(self
                    .problem("heredoc-indent", span, message.into())
                    .help(format!("indent it like `{mark}`, with the same spaces or tabs")));
            };
            text.push_str(stripped);
        }
        Ok(text)
    }

    fn push(&mut self, text: String, quote: Quote, span: Range<usize>) {
        let place = Location { file: Arc::clone(self.file), span: self.expanded.written(span) };
        let starts_line = std::mem::take(&mut self.starts_line);
        self.tokens.push(Token { text, quote, starts_line, place, origin: None });
    }

    fn problem(&self, code: &'static str, span: Range<usize>, message: String) -> Box<Problem> {
        let place = Location { file: Arc::clone(self.file), span: self.expanded.written(span) };
        Problem::error(code, &place, message)
    }
}
