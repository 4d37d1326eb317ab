//! Keeps secrets out of reports: one place for all forms of them.
//!
//! Owns what counts as a secret: values of header fields that carry one, passwords in URLs and in `--user`, and
//! variables or query parameters that are named like one. In doubt it hides: a report is made to be shown to others.

use crate::plan::Ask;

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

/// Parts of names that make a field, a variable or a query parameter a secret.
const PARTS: [&str; 8] =
    ["password", "passwd", "secret", "token", "api_key", "apikey", "api-key", "credential"];

/// Options of command lines that take a name and a password.
const USER_OPTIONS: [&str; 5] = ["--user", "-u", "--auth", "-A", "--proxy-user"];

/// The value of a header field as it may be shown.
pub(crate) fn field_value<'value>(name: &str, value: &'value str) -> &'value str {
    if is_secret(name) { HIDDEN } else { value }
}

/// Method and URL of a request as they may be shown.
pub(crate) fn line(ask: &Ask) -> String {
    hide(&format!("{} {}", ask.method, ask.target))
}

/// A text from outside (a command, a URL, a caveat with words of others) as it may be shown.
pub(crate) fn hide(text: &str) -> String {
    hide_pairs(&hide_users(&hide_fields(&hide_url_passwords(text))))
}

/// A configuration as it may be shown; `header_up Authorization VALUE` needs no colon to be one.
pub(crate) fn hide_in_configuration(text: &str) -> String {
    let hidden = text.lines().map(|line| {
        let end_of_name = |at: usize| at + line[at..].find(char::is_whitespace).unwrap_or(line.len() - at);
        let mut words = line.split_whitespace();
        match words.find(|word| is_secret(word.trim_matches(['"', '\'', '+', '-', '>', ':']))) {
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

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    FIELDS.contains(&name.as_str()) || PARTS.iter().any(|part| name.contains(part))
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
/// value ends.
fn hide_fields(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        let (before, after) = rest.split_at(at);
        let begin = before
            .rfind(|letter: char| !is_name_letter(letter))
            .map_or(0, |place| place + before[place..].chars().next().map_or(1, char::len_utf8));
        let name = &before[begin..];
        shown.push_str(before);
        shown.push(':');
        rest = &after[1..];
        if name.is_empty() || !is_secret(name) || rest.starts_with("//") {
            continue;
        }
        let quote = before[..begin].chars().next_back().filter(|letter| "'\"`".contains(*letter));
        let end = match quote {
            Some(quote) => rest.find(quote),
            None => rest.find('\n'),
        };
        shown.push_str(&format!(" {HIDDEN}"));
        rest = &rest[end.unwrap_or(rest.len())..];
    }
    shown + rest
}

/// `--user name:password`.
fn hide_users(text: &str) -> String {
    let mut shown = String::new();
    let mut follows = false;
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end();
        let space = &word[bare.len()..];
        let option = bare.split_once('=').filter(|(name, _)| USER_OPTIONS.contains(name));
        let (before, user) = match option {
            Some((name, user)) => (format!("{name}="), user),
            None => (String::new(), bare),
        };
        match user.split_once(':') {
            Some((name, password)) if (follows || option.is_some()) && !password.is_empty() => {
                let quote = if password.ends_with('\'') || password.ends_with('"') {
                    &password[password.len() - 1..]
                } else {
                    ""
                };
                shown.push_str(&format!("{before}{name}:{HIDDEN}{quote}{space}"));
            }
            _ => shown.push_str(word),
        }
        follows = USER_OPTIONS.contains(&bare) || (follows && bare.is_empty());
    }
    shown
}

/// `NAME=value` of variables and query parameters.
fn hide_pairs(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('=') {
        let (before, after) = rest.split_at(at);
        let begin = before
            .rfind(|letter: char| !is_name_letter(letter))
            .map_or(0, |place| place + before[place..].chars().next().map_or(1, char::len_utf8));
        shown.push_str(before);
        shown.push('=');
        rest = &after[1..];
        if is_secret(&before[begin..]) {
            let quote = rest.chars().next().filter(|letter| "'\"".contains(*letter));
            let end = match quote {
                Some(quote) => rest[1..].find(quote).map(|end| end + 2),
                None => rest.find(|letter: char| letter.is_whitespace() || "&#'\"`;,".contains(letter)),
            };
            shown.push_str(HIDDEN);
            rest = &rest[end.unwrap_or(rest.len())..];
        }
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
