//! Keeps secrets out of reports: one place for all forms of them.
//!
//! Owns what counts as a secret: values of header fields that carry one, passwords in URLs and in `--user`, and
//! options, variables, keys or query parameters that are named like one. In doubt it hides: a report is made to be
//! shown to others. `secrets/command_line.rs` reads command lines.

mod command_line;

use onehop_load::plan::Request;

pub use command_line::hidden_words;

/// What stands in the place of a secret.
pub(crate) const HIDDEN: &str = "(hidden)";

/// Header fields whose values are secrets, in lower case.
const FIELDS: [&str; 9] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-csrf-token",
    "x-amz-security-token",
];

/// Parts of names that make a field, a variable or a query parameter a secret, wherever they stand.
const PARTS: [&str; 9] =
    ["password", "passwd", "passphrase", "secret", "token", "api_key", "apikey", "api-key", "credential"];

/// Parts that do so where a name has its value beside it, as `NAME=value` or `--NAME value`; in sentences they are
/// words like others.
const PARTS_OF_PAIRS: [&str; 9] =
    ["authorization", "cookie", "session", "sessid", "signature", "jwt", "pwd", "accesskey", "privatekey"];

/// Whole words of such names: as parts of longer words (`author`, `monkey`) they mean something else.
const WORDS_OF_PAIRS: [&str; 9] = ["pass", "auth", "key", "sid", "sig", "sign", "code", "pin", "otp"];

/// The value of a header field as it may be shown.
pub(crate) fn field_value<'value>(name: &str, value: &'value str) -> &'value str {
    if is_secret(name) { HIDDEN } else { value }
}

/// Method and URL of a request as they may be shown.
pub(crate) fn line(request: &Request) -> String {
    hide(&format!("{} {}", request.method, request.url))
}

/// A text from outside (a command, a URL, a caveat with words of others) as it may be shown.
pub(crate) fn hide(text: &str) -> String {
    hide_pairs(&hide_fields(&command_line::hide(&hide_url_passwords(text))))
}

/// A configuration as it may be shown; `header_up Authorization VALUE` needs no colon to be one.
pub(crate) fn hide_in_configuration(text: &str) -> String {
    let hidden = text.lines().map(|line| {
        let end_of_name = |at: usize| at + line[at..].find(char::is_whitespace).unwrap_or(line.len() - at);
        let mut words = line.split_whitespace();
        match words.find(|word| is_secret_in_sentences(word.trim_matches(['"', '\'', '+', '-', '>', ':']))) {
            Some(word) if words.next().is_some_and(|next| next != "{") => {
                let at = line.find(word).unwrap_or_default();
                format!("{} {HIDDEN}", &line[..end_of_name(at)])
            }
            _ => hide(line),
        }
    });
    let mut shown = hidden.collect::<Vec<_>>().join("\n");
    if text.ends_with('\n') {
        shown.push('\n');
    }
    shown
}

/// Whether what stands behind this name is a secret where the name surely is a name.
fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    is_secret_in_sentences(name)
        || PARTS_OF_PAIRS.iter().any(|part| lower.contains(part))
        || lower.ends_with("pass")
        || words_of(name).iter().any(|word| WORDS_OF_PAIRS.contains(&word.as_str()))
}

/// Whether it is one where the name may be a word of a sentence: `code: 404` is none, `X-Session-Id: 1` is.
fn is_secret_in_sentences(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_field = || lower.contains('-') && lower.chars().all(is_name_letter) && !lower.starts_with('-');
    FIELDS.contains(&lower.as_str())
        || PARTS.iter().any(|part| lower.contains(part))
        || is_field()
            && (PARTS_OF_PAIRS.iter().any(|part| lower.contains(part))
                || words_of(name).iter().any(|word| WORDS_OF_PAIRS.contains(&word.as_str())))
}

/// The words of a name in lower case: `X-Auth`, `auth_code`, `authCode`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() || (letter.is_ascii_uppercase() && was_small) {
            words.push(String::new());
        }
        was_small = letter.is_ascii_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_ascii_alphanumeric()) {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words
}

/// `scheme://name:password@` loses the password; what stands there without a colon may be a token and goes too.
fn hide_url_passwords(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(|letter: char| letter.is_whitespace() || "/?#'\"`".contains(letter));
        let (authority, behind) = after.split_at(end.unwrap_or(after.len()));
        match authority.rsplit_once('@') {
            Some((user, host)) => {
                let name = user.split_once(':').map(|(name, _)| name);
                match name {
                    Some(name) => shown.push_str(&format!("{name}:{HIDDEN}@{host}")),
                    None => shown.push_str(&format!("{HIDDEN}@{host}")),
                }
            }
            None => shown.push_str(authority),
        }
        rest = behind;
    }
    shown + rest
}

/// `Name: value`: within quotes up to the closing one, else to the end of the line, since nobody knows where the
/// value ends. A name in quotes of its own is a key, as in JSON.
fn hide_fields(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        let (before, after) = rest.split_at(at);
        shown.push_str(before);
        shown.push(':');
        rest = &after[1..];
        if rest.starts_with("//") {
            continue;
        }
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let bare = before.trim_end();
        if let Some(key) = bare.strip_suffix(['"', '\'', '`']) {
            if is_secret(last_name(key.trim_end_matches('\\'))) {
                shown.push_str(&format!("{}{HIDDEN}", &rest[..blank]));
                rest = &rest[blank + length_of_value(&rest[blank..])..];
            }
            continue;
        }
        let name = last_name(before);
        if name.is_empty() || !is_secret_in_sentences(name) {
            continue;
        }
        let outside = &before[..before.len() - name.len()];
        let end = match outside.chars().next_back().filter(|letter| "'\"`".contains(*letter)) {
            Some(quote) => rest.find(quote),
            None => rest.find('\n'),
        };
        shown.push_str(&format!(" {HIDDEN}"));
        rest = &rest[end.unwrap_or(rest.len())..];
    }
    shown + rest
}

/// The name at the end of a text.
fn last_name(text: &str) -> &str {
    &text[text.trim_end_matches(is_name_letter).len()..]
}

/// How long the value of a key is: a quoted one up to its closing quote, one that holds others to the end of the line.
fn length_of_value(text: &str) -> usize {
    let opening = text.strip_prefix('\\').unwrap_or(text);
    let is_escaped = opening.len() < text.len();
    let end = match opening.chars().next() {
        Some(quote @ ('"' | '\'' | '`')) => {
            let mut was_backslash = false;
            let mut letters = opening.char_indices().skip(1);
            let closing = letters.find(|(_, letter)| {
                let is_end = *letter == quote && was_backslash == is_escaped;
                was_backslash = *letter == '\\' && (is_escaped || !was_backslash);
                is_end
            });
            closing.map(|(at, _)| at + 1 + usize::from(is_escaped))
        }
        Some('{' | '[') => text.find('\n'),
        _ => text.find(|letter: char| letter.is_whitespace() || ",;}]'\"`".contains(letter)),
    };
    end.unwrap_or(text.len())
}

/// `NAME=value` of variables and query parameters, and of fields where tools write them so.
fn hide_pairs(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('=') {
        let (before, after) = rest.split_at(at);
        shown.push_str(before);
        shown.push('=');
        rest = &after[1..];
        // `user[password]=` and `user%5Bpassword%5D=` of forms.
        let bare = before.trim_end_matches("%5D").trim_end_matches("%5d").trim_end_matches([']', '"', '\'']);
        let name = last_name(bare);
        if !is_secret(name) {
            continue;
        }
        let outside = &bare[..bare.len() - name.len()];
        let around = outside.chars().next_back().filter(|letter| "'\"`".contains(*letter));
        let quote = rest.chars().next().filter(|letter| "'\"".contains(*letter));
        let is_field = name.to_ascii_lowercase().contains("authorization");
        let end = match (quote, around) {
            (Some(quote), _) => rest[1..].find(quote).map(|end| end + 2),
            (None, Some(around)) if !bare.ends_with(around) && bare.len() == before.len() => {
                rest.find(around)
            }
            _ if is_field => rest.find(['\n', '\'', '"', '`', '&']),
            _ => rest.find(|letter: char| letter.is_whitespace() || "&#'\"`;,".contains(letter)),
        };
        shown.push_str(HIDDEN);
        rest = &rest[end.unwrap_or(rest.len())..];
    }
    shown + rest
}

fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-' || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_commands_urls_and_headers_are_hidden_and_the_rest_stays() {
        for (text, shown) in [
            (
                "onehop bench -H 'Authorization: Bearer abc.def' http://localhost:1/",
                "onehop bench -H 'Authorization: (hidden)' http://localhost:1/",
            ),
            ("bench -H \"X-Api-Key:k1\" -c 4", "bench -H \"X-Api-Key: (hidden)\" -c 4"),
            ("bench -H Cookie: a=b; c=d http://x/", "bench -H Cookie: (hidden)"),
            ("http://ann:pa:ss@host:1/x", "http://ann:(hidden)@host:1/x"),
            ("http://t0ken@host/", "http://(hidden)@host/"),
            ("a http://h/?to=x@y b", "a http://h/?to=x@y b"),
            ("bench --user ann:pw http://h/", "bench --user ann:(hidden) http://h/"),
            ("bench --user=ann:pw -c 1", "bench --user=ann:(hidden) -c 1"),
            ("bench -u 'ann:pw' -c 1", "bench -u 'ann:(hidden)' -c 1"),
            ("http://h/?access_token=abc&x=1", "http://h/?access_token=(hidden)&x=1"),
            ("DB_PASSWORD='a b' node x", "DB_PASSWORD=(hidden) node x"),
            ("GET http://[::1]:81/ with Accept: */*", "GET http://[::1]:81/ with Accept: */*"),
            ("\u{e9}\u{e9}:=\u{e9}@://", "\u{e9}\u{e9}:=\u{e9}@://"),
        ] {
            assert_eq!(hide(text), shown);
        }
        assert_eq!(field_value("COOKIE", "a=b"), HIDDEN);
        assert_eq!(field_value("X-My-Token", "a"), HIDDEN);
        assert_eq!(field_value("Accept", "*/*"), "*/*");
    }

    #[test]
    fn a_configuration_keeps_its_lines_and_loses_its_secrets() {
        let text = "localhost {\n\theader_up Authorization \"Basic abc\"\n\treverse_proxy :1\n}\n";
        let shown = "localhost {\n\theader_up Authorization (hidden)\n\treverse_proxy :1\n}\n";
        assert_eq!(hide_in_configuration(text), shown);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*") {
            let _ = hide(&text);
            let _ = hide_in_configuration(&text);
        }
    }
}
