//! Secrets among the words of a command line.
//!
//! Owns which options of load tools and of others take a secret, with the value glued to them, behind `=` or in the
//! next word. Never needs to know the tool: a letter that means something else elsewhere is told by its value.

use std::mem;

use super::{HIDDEN, is_name_letter, is_secret};

/// A command line as it may be shown, from its words: what is one word is known to be one.
#[must_use]
pub fn hidden_words(words: &[String]) -> String {
    let mut follows = Takes::Nothing;
    let shown = words.iter().map(|word| {
        // A word may be a command itself, a URL or a body.
        let word = super::hide(&shown(word, &mut follows));
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@%+{}[]".contains(letter);
        match word.replace(HIDDEN, "x").chars().all(is_plain) && !word.is_empty() {
            true => word,
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// The same in a text that may hold a command line.
pub(super) fn hide(text: &str) -> String {
    let mut follows = Takes::Nothing;
    let mut result = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let blank = rest.len() - rest.trim_start().len();
        let (space, behind) = rest.split_at(blank);
        result.push_str(space);
        let (word, behind) = behind.split_at(length_of_word(behind));
        let quote = word.chars().next().filter(|letter| "'\"".contains(*letter));
        let inner = quote.and_then(|quote| word.strip_prefix(quote)?.strip_suffix(quote));
        match (quote, inner) {
            (Some(quote), Some(inner)) => {
                result.push(quote);
                result.push_str(&shown(inner, &mut follows));
                result.push(quote);
            }
            _ if !word.is_empty() => result.push_str(&shown(word, &mut follows)),
            _ => {}
        }
        rest = behind;
    }
    result
}

/// What an option takes.
#[derive(Clone, Copy, PartialEq, Default)]
enum Takes {
    /// Nothing that is known.
    #[default]
    Nothing,
    /// A header field, `Name: value` or `Name=value`.
    Field,
    /// `name:password`; without a colon it is a name, a number or a URL.
    User,
    /// `name=value; name=value`.
    Cookies,
    /// `name:password`, or a secret alone.
    Login,
    /// A secret.
    Secret,
}

impl Takes {
    fn of_option(word: &str) -> Takes {
        match word {
            "-H" | "--header" | "--headers" | "--proxy-header" => Takes::Field,
            "-u" | "-U" | "-A" | "-a" | "-P" | "--user" | "--proxy-user" => Takes::User,
            "--auth" | "--basic-auth" | "--basic" => Takes::Login,
            "-C" | "--cookie" | "--cookies" => Takes::Cookies,
            _ => match word.strip_prefix('-').map(|name| name.trim_start_matches('-')) {
                Some(name) if name.len() > 1 && name.chars().all(is_name_letter) && is_secret(name) => {
                    Takes::Secret
                }
                _ => Takes::Nothing,
            },
        }
    }

    /// The value of such an option as it may be shown.
    fn shown(self, value: &str) -> String {
        match self {
            _ if value.is_empty() => String::new(),
            Takes::Nothing => value.to_owned(),
            Takes::Field => field(value),
            Takes::User => user(value).unwrap_or_else(|| value.to_owned()),
            Takes::Cookies => cookies(value),
            Takes::Login => user(value).unwrap_or_else(|| HIDDEN.to_owned()),
            Takes::Secret => HIDDEN.to_owned(),
        }
    }
}

/// One word as it may be shown; `follows` is what the word before it takes.
fn shown(word: &str, follows: &mut Takes) -> String {
    match mem::take(follows) {
        Takes::Nothing => {}
        Takes::Login | Takes::Secret | Takes::Cookies if word.starts_with('-') => {}
        takes => return takes.shown(word),
    }
    *follows = Takes::of_option(word);
    if *follows != Takes::Nothing {
        return word.to_owned();
    }
    if let Some((name, value)) = word.split_once('=') {
        let takes = match Takes::of_option(name) {
            Takes::Nothing if !name.is_empty() && name.chars().all(is_name_letter) && is_secret(name) => {
                Takes::Secret
            }
            takes => takes,
        };
        if takes != Takes::Nothing {
            return format!("{name}={}", takes.shown(value));
        }
    }
    // `-uname:password`: one letter and what it takes.
    let glued = word.char_indices().nth(2).map(|(at, _)| word.split_at(at));
    if let Some((option, value)) = glued.filter(|(option, _)| option.starts_with('-')) {
        let takes = Takes::of_option(option);
        return format!("{option}{}", takes.shown(value));
    }
    word.to_owned()
}

fn field(value: &str) -> String {
    let quote = value.chars().next().filter(|letter| "'\"".contains(*letter));
    let bare = quote.map_or(value, |quote| value.trim_matches(quote));
    let Some(at) = bare.find([':', '=']) else { return value.to_owned() };
    let (name, rest) = bare.split_at(at);
    if !is_secret(name.trim()) || rest.len() == 1 {
        return value.to_owned();
    }
    let between = if rest.starts_with(':') { ": " } else { "=" };
    let quote = quote.map(String::from).unwrap_or_default();
    format!("{quote}{name}{between}{HIDDEN}{quote}")
}

/// Hides the password; none where there is no name beside it.
fn user(value: &str) -> Option<String> {
    if value.starts_with("http://") || value.starts_with("https://") {
        return Some(value.to_owned());
    }
    let (name, password) = value.split_once(':')?;
    let quote = password.chars().next_back().filter(|last| "'\"".contains(*last));
    let quote = quote.filter(|quote| value.starts_with(*quote)).map(String::from).unwrap_or_default();
    (!password.is_empty()).then(|| format!("{name}:{HIDDEN}{quote}"))
}

fn cookies(value: &str) -> String {
    let each = value.split(';').map(|one| match one.split_once('=') {
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None => one.to_owned(),
    });
    each.collect::<Vec<_>>().join(";")
}

/// How long the first word is. A quote begins where a value does, for in sentences it is an apostrophe, and counts
/// only where the line has its end too.
fn length_of_word(text: &str) -> usize {
    let mut begin_of_value = true;
    let mut quote: Option<char> = None;
    let mut was_quoted = false;
    let mut was_backslash = false;
    for (at, letter) in text.char_indices() {
        if let Some(open) = quote {
            if letter == open && !(was_backslash && open == '"') {
                quote = None;
                was_quoted = true;
            }
        } else if letter.is_whitespace() {
            return at;
        } else if "'\"".contains(letter) && (begin_of_value || was_quoted) && !was_backslash {
            let line = text[at + 1..].lines().next().unwrap_or_default();
            quote = line.contains(letter).then_some(letter);
        }
        let is_short_option = at == 1 && text.starts_with('-');
        begin_of_value = is_short_option || "=:".contains(letter);
        was_backslash = letter == '\\' && !was_backslash;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Report, html, json, markdown, sample, text};

    /// Letters that all secrets below have.
    const SECRET: &str = "s3cr3t";

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn no_way_to_hand_a_tool_a_secret_gets_into_any_form() {
        for (words, expected) in [
            (&["-uann:s3cr3t"][..], "-uann:(hidden)"),
            (&["-Ame:s3cr3t"], "-Ame:(hidden)"),
            (&["-A", "me:s3cr3t"], "-A me:(hidden)"),
            (&["-HAuthorization: Bearer s3cr3t"], "'-HAuthorization: (hidden)'"),
            (&["-H", "Authorization=Bearer s3cr3t"], "-H Authorization=(hidden)"),
            (&["-H", "Authorization: Bearer s3cr3t"], "-H 'Authorization: (hidden)'"),
            (&["--header=X-Auth: s3cr3t"], "'--header=X-Auth: (hidden)'"),
            (&["-H", "X-Session-Id: s3cr3t"], "-H 'X-Session-Id: (hidden)'"),
            (&["-C", "session=s3cr3t"], "-C session=(hidden)"),
            (&["-Cid=s3cr3t"], "-Cid=(hidden)"),
            (&["--cookie", "a=s3cr3t; b=s3cr3t"], "--cookie 'a=(hidden); b=(hidden)'"),
            (&["-b", r#"{"password":"s3cr3t"}"#], r#"-b '{"password":(hidden)}'"#),
            (&["-b", r#"{ "pwd" : "a\"s3cr3t" }"#], r#"-b '{ "pwd" : (hidden) }'"#),
            (&["-b", "user[password]=s3cr3t&x=1"], "-b 'user[password]=(hidden)&x=1'"),
            (&["compare", "PASS=s3cr3t node x --token s3cr3t --pwd s3cr3t"], "compare PASS=(hidden)"),
            (
                &["compare", "node x --token s3cr3t --pwd 's3 s3cr3t'"],
                r"compare 'node x --token (hidden) --pwd '\''(hidden)'\'''",
            ),
            (&["--auth", "s3cr3t"], "--auth (hidden)"),
            (&["--jwt", "s3cr3t", "-c", "4"], "--jwt (hidden) -c 4"),
            (&["API_KEY=a s3cr3t"], "API_KEY=(hidden)"),
            (&["http://h/?key=s3cr3t&x=1"], "'http://h/?key=(hidden)&x=1'"),
            (&["http://h/?x=1&sig=s3cr3t"], "'http://h/?x=1&sig=(hidden)'"),
            (&["http://h/?auth=s3cr3t"], "'http://h/?auth=(hidden)'"),
            (&["http://ann:s3cr3t@h/?code=s3cr3t"], "'http://ann:(hidden)@h/?code=(hidden)'"),
        ] {
            let words = owned(words);
            let command = hidden_words(&words);
            assert_eq!(command, expected);
            let (_, report) = sample::reports().swap_remove(0);
            let report = Report { command, ..report };
            for shown in
                [text(&report, false, 200), markdown(&report), html(&report), json(&report).to_string()]
            {
                assert!(!shown.contains(SECRET), "{words:?}: {shown}");
            }
        }
    }

    #[test]
    fn what_names_no_secret_stays() {
        for words in [
            &[
                "onehop",
                "bench",
                "-t4",
                "-c",
                "64",
                "-a",
                "10",
                "-H",
                "Accept: */*",
                "http://127.0.0.1:8080/author?x=1",
            ][..],
            &["bench", "-b", r#"{"monkey":"a"}"#, "-H", "Content-Type: application/json", ":8080/"],
            &["compare", "nginx -c a.conf", "PORT=1 node server.js --keep-alive 5"],
        ] {
            let words = owned(words);
            assert!(!hidden_words(&words).contains(HIDDEN), "{}", hidden_words(&words));
            assert_eq!(super::super::hide(&words.join(" ")), words.join(" "));
        }
        for sentence in ["exit code: 1, and the server's key: none isn't there", "it's 404: 5, don't"] {
            assert_eq!(super::super::hide(sentence), sentence);
        }
    }

    #[test]
    fn a_command_within_a_text_loses_its_secrets_too() {
        for (text, expected) in [
            (
                "PASS=s3cr3t node x --token s3cr3t --pwd 's3 cr3t' y",
                "PASS=(hidden) node x --token (hidden) --pwd '(hidden)' y",
            ),
            ("wrk '-HAuthorization: Bearer s3cr3t' :1", "wrk '-HAuthorization: (hidden)' :1"),
            ("wrk -H'X-Key: s3cr3t' :1", "wrk -H'X-Key: (hidden)' :1"),
            ("autocannon -H 'Authorization=Bearer s3cr3t' :1", "autocannon -H 'Authorization=(hidden)' :1"),
            ("autocannon -H Authorization=Bearer s3cr3t", "autocannon -H Authorization=(hidden)"),
            (r#"curl -d "{\"pwd\":\"s3cr3t\"}" :1"#, r#"curl -d "{\"pwd\":(hidden)}" :1"#),
        ] {
            assert_eq!(super::super::hide(text), expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_words_make_it_panic(words in proptest::collection::vec("\\PC*", 0..4)) {
            let _ = hidden_words(&words);
        }
    }
}
