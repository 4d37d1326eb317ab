//! nginx's words: the tokens of a configuration, by the rules of its own reader.
//!
//! Knows quotes, escapes, comments and `${name}`; no word's meaning. Any text is read without a panic.

/// Tokens of one file; the largest that people have are a tenth of it.
const TOKENS_MAX: usize = 200_000;

/// A word, as it was written and as it is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// With its quotes and escapes.
    pub raw: String,
    /// Without.
    pub text: String,
}

/// What a text is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Word(Word),
    Open,
    Close,
    End,
}

/// Why a text is no configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// From 1.
    pub(crate) line: u32,
    /// In words.
    pub(crate) cause: String,
}

/// Cuts a text into tokens, each with its line.
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token, u32)>, Flaw> {
    let mut lexer = Lexer { characters: text.chars().peekable(), line: 1 };
    let mut tokens = Vec::new();
    while let Some(character) = lexer.characters.peek().copied() {
        let line = lexer.line;
        let token = match character {
            ' ' | '\t' | '\r' | '\n' => {
                lexer.next();
                continue;
            }
            '#' => {
                while lexer.characters.peek().is_some_and(|next| *next != '\n') {
                    lexer.next();
                }
                continue;
            }
            ';' => lexer.single(Token::End),
            '{' => lexer.single(Token::Open),
            '}' => lexer.single(Token::Close),
            '"' | '\'' => Token::Word(lexer.quoted(character)?),
            _ => Token::Word(lexer.word()),
        };
        if tokens.len() >= TOKENS_MAX {
            return Err(Flaw { line, cause: format!("it has more than {TOKENS_MAX} words") });
        }
        tokens.push((token, line));
    }
    Ok(tokens)
}

struct Lexer<'a> {
    characters: std::iter::Peekable<std::str::Chars<'a>>,
    line: u32,
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<char> {
        let character = self.characters.next()?;
        if character == '\n' {
            self.line = self.line.saturating_add(1);
        }
        Some(character)
    }

    fn single(&mut self, token: Token) -> Token {
        self.next();
        token
    }

    /// Up to white space, `;` or `{`; the brace of `${name}` is none, and neither is `}`.
    fn word(&mut self) -> Word {
        let mut word = Word { raw: String::new(), text: String::new() };
        while let Some(next) = self.characters.peek().copied() {
            match next {
                ' ' | '\t' | '\r' | '\n' | ';' => break,
                '{' if !word.raw.ends_with('$') => break,
                '\\' => self.escape(&mut word),
                other => {
                    self.next();
                    word.raw.push(other);
                    word.text.push(other);
                }
            }
        }
        word
    }

    fn quoted(&mut self, quote: char) -> Result<Word, Flaw> {
        let line = self.line;
        let open = || Flaw { line, cause: format!("this quote {quote} is never closed") };
        self.next();
        let mut word = Word { raw: String::from(quote), text: String::new() };
        loop {
            match self.characters.peek().copied().ok_or_else(open)? {
                '\\' => self.escape(&mut word),
                other => {
                    self.next();
                    word.raw.push(other);
                    if other == quote {
                        break;
                    }
                    word.text.push(other);
                }
            }
        }
        match self.characters.peek() {
            None | Some(' ' | '\t' | '\r' | '\n' | ';' | '{' | ')') => Ok(word),
            Some(other) => {
                Err(Flaw { line: self.line, cause: format!("`{other}` follows a closing quote at once") })
            }
        }
    }

    /// A backslash and what it escapes.
    fn escape(&mut self, word: &mut Word) {
        self.next();
        word.raw.push('\\');
        let Some(escaped) = self.next() else {
            word.text.push('\\');
            return;
        };
        word.raw.push(escaped);
        match escaped {
            '"' | '\'' | '\\' => word.text.push(escaped),
            't' => word.text.push('\t'),
            'r' => word.text.push('\r'),
            'n' => word.text.push('\n'),
            other => word.text.extend(['\\', other]),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        match tokens(text) {
            Err(flaw) => format!("line {}: {}", flaw.line, flaw.cause),
            Ok(tokens) => tokens
                .into_iter()
                .map(|(token, _)| match token {
                    Token::Word(word) => word.text,
                    Token::Open => "<".to_owned(),
                    Token::Close => ">".to_owned(),
                    Token::End => ".".to_owned(),
                })
                .collect::<Vec<_>>()
                .join("|"),
        }
    }

    #[test]
    fn words_are_cut_as_nginx_cuts_them() {
        for (text, expected) in [
            ("listen 80;", "listen|80|."),
            ("location /{root a;}", "location|/|<|root|a|.|>"),
            ("a # b;\nc;", "a|c|."),
            ("a b#c;", "a|b#c|."),
            ("a \"b; {c}\" 'd \\' e';", "a|b; {c}|d ' e|."),
            ("set $x ${host}y;", "set|$x|${host}y|."),
            ("location ~ \\.(js|css)$ {", "location|~|\\.(js|css)$|<"),
            ("a b\\;c;", "a|b\\;c|."),
            ("a \"b", "line 1: this quote \" is never closed"),
            ("\n\na 'b'c;", "line 3: `c` follows a closing quote at once"),
            ("a\\", "a\\"),
            ("", ""),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_what_is_written_back_is_the_same(text in "[a-z$ {};\"'\\\\#\n~^()|]{0,60}") {
            if let Ok(read) = tokens(&text) {
                let written = read.iter().fold(String::new(), |all, (token, _)| all + &match token {
                    Token::Word(word) => format!(" {}", word.raw),
                    Token::Open => " {".to_owned(),
                    Token::Close => "\n}".to_owned(),
                    Token::End => ";".to_owned(),
                });
                let again = tokens(&written).map(|again| again.into_iter().map(|(token, _)| token).collect::<Vec<_>>());
                prop_assert_eq!(again, Ok(read.into_iter().map(|(token, _)| token).collect::<Vec<_>>()));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = tokens(&text);
        }
    }
}
