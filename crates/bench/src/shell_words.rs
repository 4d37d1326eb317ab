//! A command in one argument, split into words as a shell splits them.
//!
//! Owns quotes and backslashes (POSIX, Shell Command Language, section 2.2). Expands nothing: what would need a
//! shell is handed to one.

/// What only a shell does: pipes, lists, redirections, expansions, subshells, patterns.
const SHELL_ONLY: &[char] = &['|', '&', ';', '<', '>', '(', ')', '$', '`', '*', '?', '\n'];

/// The words to start; `sh -c` and the text where a shell is needed.
/// # Errors
/// Where a quote is not closed, or it ends with a backslash.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    if text.contains(SHELL_ONLY) {
        return Ok(["sh", "-c", text].map(str::to_owned).to_vec());
    }
    split(text)
}

/// `NODE_ENV=production node server.js`: what stands before the program, as a shell takes it.
pub fn variables(command: &str) -> (Vec<(String, String)>, &str) {
    let (mut variables, mut rest) = (Vec::new(), command);
    loop {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        match word.split_once('=') {
            // With quotes or expansions in it, the shell that then runs it (or nobody) takes it apart.
            Some((name, value)) if is_variable(name) && !value.contains(['\'', '"', '\\', '$', '`']) => {
                variables.push((name.to_owned(), value.to_owned()));
                rest = after.trim_start();
            }
            _ => return (variables, rest),
        }
    }
}

/// Whether a text is the name of a variable as servers take them, in capitals: `PORT`, and no option and no path.
pub fn is_variable(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    text.bytes().all(letter) && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => quoted(letter, &mut letters, word.get_or_insert_default())
                .ok_or_else(|| format!("{text}: the quote {letter} is not closed"))?,
            '\\' => {
                let next = letters.next().ok_or_else(|| format!("{text}: it ends with a backslash"))?;
                word.get_or_insert_default().push(next);
            }
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

/// What stands between quotes; none where they are not closed.
fn quoted(quote: char, letters: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match letters.next()? {
            letter if letter == quote => return Some(()),
            '\\' if quote == '"' => match letters.next()? {
                next @ ('"' | '\\') => word.push(next),
                next => word.extend(['\\', next]),
            },
            letter => word.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        for (text, expected) in [
            ("node server.js", &["node", "server.js"][..]),
            ("  a\t b ", &["a", "b"]),
            ("a 'b c' \"d e\"f", &["a", "b c", "d ef"]),
            (r#"a "b\"c" d\ e '\'"#, &["a", "b\"c", "d e", "\\"]),
            ("a '' b", &["a", "", "b"]),
            ("node x.js | cat", &["sh", "-c", "node x.js | cat"]),
            ("./run --port $PORT", &["sh", "-c", "./run --port $PORT"]),
            ("./run --port {port}", &["./run", "--port", "{port}"]),
        ] {
            assert_eq!(words(text).unwrap(), expected, "{text}");
        }
        for text in ["a 'b", "a \"b", "a \\"] {
            assert!(words(text).is_err(), "{text}");
        }
    }
}
