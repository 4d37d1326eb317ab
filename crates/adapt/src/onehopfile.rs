//! Words as an Onehopfile and a Caddyfile take them.
//!
//! A word that comes from a user's file means the same text afterwards: no placeholder, no quote, no brace.

use std::fmt::Write as _;

/// A word, quoted where its grammar would read something else in it.
pub fn word(text: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "_./:@%+=,~-&?!$*^".contains(character);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let escaped = text.replace('{', "\\{").replace('}', "\\}");
    if escaped.contains('`') {
        format!("\"{}\"", escaped.replace('"', "\\\""))
    } else {
        format!("`{escaped}`")
    }
}

/// Several, with blanks between them.
pub fn words<T: AsRef<str>>(list: &[T]) -> String {
    list.iter().map(|text| word(text.as_ref())).collect::<Vec<_>>().join(" ")
}

/// A directive with the lines of its block, which are left out where there are none; ends with a newline.
pub fn directive(head: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return format!("{head}\n");
    }
    let mut text = format!("{head} {{\n");
    for line in lines {
        let _ = writeln!(text, "\t{line}");
    }
    text.push_str("}\n");
    text
}

/// The same text, each line one step further in.
pub fn indented(text: &str) -> String {
    indented_by("\t", text)
}

/// The same text, each line behind an indentation; a quoted text that goes over lines stays as it is.
pub fn indented_by(indentation: &str, text: &str) -> String {
    let mut quote = None;
    text.lines().fold(String::new(), |mut all, line| {
        if !line.is_empty() && quote.is_none() {
            all.push_str(indentation);
        }
        quote = quote_after(line, quote);
        all.push_str(line);
        all.push('\n');
        all
    })
}

/// The quote that is open at the end of a line. Only a word's first letter opens one.
fn quote_after(line: &str, mut quote: Option<char>) -> Option<char> {
    if quote.is_none() && line.trim_start().starts_with('#') {
        return None;
    }
    let mut before = ' ';
    for letter in line.chars() {
        match quote {
            Some(open) if letter == open && !(open == '"' && before == '\\') => quote = None,
            None if before.is_whitespace() && matches!(letter, '"' | '`') => quote = Some(letter),
            _ => {}
        }
        before = letter;
    }
    quote
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_is_not_indented() {
        let text = "respond `a\n  b` 200\n# it`s\nheader X \"a \\\" `\nb\"\nlast\n";
        assert_eq!(indented(text), "\trespond `a\n  b` 200\n\t# it`s\n\theader X \"a \\\" `\nb\"\n\tlast\n");
    }
}
