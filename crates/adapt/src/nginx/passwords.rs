//! `auth_basic` with its file of users as `basic_auth` (ngx_http_auth_basic_module).
//!
//! Copies hashes that onehop verifies. Of every other line only the user's name is shown, because the rest may be a
//! password.

use super::context::Context;
use super::directive::{Directive, nearest};
use crate::onehopfile::{directive as written, word};
use crate::refusal::{LEFT_OUT, Refusal};

/// Users of one `basic_auth`, which onehop's own checker bounds.
const USERS_MAX: usize = 1_000;
/// Users without a hash that onehop verifies, each with a comment.
const COMMENTS_MAX: usize = 50;
/// Where nginx looks for a relative path.
const SYSTEM_FOLDER: &str = "/etc/nginx";
/// What to do about a hash of another kind.
const NEXT: &str = "`onehop hash-password` prints a hash for a line `USER HASH` of `basic_auth`";

/// The `basic_auth` of these levels, the outermost first; empty where nginx asks for no password.
pub(crate) fn passwords(
    context: &Context<'_>,
    levels: &[&[Directive]],
    notes: &mut Vec<String>,
) -> Result<String, Refusal> {
    let Some(asks) = nearest("auth_basic", levels).filter(|asks| asks.arg(0) != "off") else {
        return Ok(String::new());
    };
    let refuse = |cause: String| {
        let next = "write `basic_auth` with a line for each user";
        Err(Refusal::at(&asks.place, format!("`{}`: {cause}", asks.shown()), next))
    };
    let Some(file) = nearest("auth_basic_user_file", levels) else {
        return refuse("without `auth_basic_user_file` nginx asks for no password".to_owned());
    };
    let Some(text) = text_of(context, file) else {
        return refuse(format!("the users' file, `{}`, cannot be read; {NEXT}", file.arg(0)));
    };
    let users = users(&text);
    let known = users.iter().filter_map(|user| Some(format!("{} {}", word(user.name), user.hash.ok()?)));
    let known: Vec<String> = known.collect();
    let name = file.arg(0);
    if known.is_empty() || known.len() > USERS_MAX {
        let mut kinds: Vec<&str> = users.iter().filter_map(|user| user.hash.err()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let found = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        return refuse(match known.is_empty() {
            true => format!("no user of `{name}` has a bcrypt hash{found}; {NEXT}"),
            false => format!("`{name}` has more than {USERS_MAX} users"),
        });
    }
    let others = users.iter().filter_map(|user| Some((user, user.hash.err()?)));
    notes.extend(others.take(COMMENTS_MAX).map(|(user, kind)| {
        let UserLine { name: user, line, .. } = user;
        format!(
            "{LEFT_OUT}: {name}:{line}: user `{user}` has {kind}, and onehop verifies bcrypt hashes; {NEXT}."
        )
    }));
    Ok(written(&format!("basic_auth{}", realm(asks, notes)), &known))
}

/// The realm behind the name of the hashes' algorithm, where it is a fixed text.
fn realm(asks: &Directive, notes: &mut Vec<String>) -> String {
    let realm = asks.arg(0);
    if realm.contains('$') || realm.chars().any(char::is_control) {
        notes.push(format!(
            "`{}` ({}): a realm is a fixed text, so that of onehop is `restricted`.",
            asks.shown(),
            asks.place.words()
        ));
        return String::new();
    }
    format!(" bcrypt {}", word(realm))
}

/// The text of the file that an `auth_basic_user_file` names.
fn text_of(context: &Context<'_>, file: &Directive) -> Option<String> {
    let written = Some(file.arg(0)).filter(|path| !path.is_empty() && !path.contains('$'))?;
    let folders = [context.server.folder, std::path::Path::new(SYSTEM_FOLDER)];
    folders.iter().find_map(|folder| context.server.source().read(&folder.join(written)).ok())
}

/// A user of a file.
struct UserLine<'a> {
    name: &'a str,
    line: usize,
    /// What onehop verifies, or what it is instead.
    hash: Result<&'a str, &'static str>,
}

/// The users, each once: nginx compares with the first line of a name.
fn users(text: &str) -> Vec<UserLine<'_>> {
    let mut seen = std::collections::HashSet::new();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    let users = lines.filter_map(|(index, line)| {
        let (name, rest) = line.split_once(':')?;
        let hash = rest.split([':', '\r']).next().unwrap_or_default();
        // Before a file's name `import` would be a directive, and a name has no characters that end a line.
        let is_name = !name.is_empty() && name != "import" && !name.contains(|c: char| c.is_control());
        is_name.then(|| UserLine { name, line: index + 1, hash: verified(hash) })
    });
    users.filter(|user| seen.insert(user.name)).collect()
}

/// The hash, if onehop verifies it: bcrypt of a usual cost.
fn verified(hash: &str) -> Result<&str, &'static str> {
    let bcrypt = ["$2y$", "$2b$", "$2a$"].iter().find_map(|start| hash.strip_prefix(start));
    if let Some((cost, digest)) = bcrypt.and_then(|rest| rest.split_once('$')) {
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'/';
        let is_usual = cost.len() == 2 && cost.parse::<u8>().is_ok_and(|cost| (4..=16).contains(&cost));
        let is_whole = digest.len() == 53 && digest.bytes().all(is_digit);
        return if is_usual && is_whole { Ok(hash) } else { Err("a bcrypt hash of an unusual form") };
    }
    let kinds = [
        ("$apr1$", "an apr1 hash"),
        ("{SHA}", "a {SHA} hash"),
        ("{SSHA}", "a {SSHA} hash"),
        ("{PLAIN}", "a password in plain text"),
    ];
    Err(kinds.iter().find(|(start, _)| hash.starts_with(start)).map_or("a crypt hash", |(_, kind)| *kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_users_has_a_hash_that_onehop_verifies_or_the_name_of_another_kind() {
        let digest = "a".repeat(53);
        for (line, expected) in [
            (format!("a:$2y$10${digest}"), Some(("a", true))),
            (format!("a:$2b$04${digest}:a comment\r"), Some(("a", true))),
            (format!("a:$2y$31${digest}"), Some(("a", false))),
            (format!("a:$2y$10${digest}x"), Some(("a", false))),
            ("a:$apr1$x$y".to_owned(), Some(("a", false))),
            ("a:".to_owned(), Some(("a", false))),
            (format!("#a:$2y$10${digest}"), None),
            ("no colon".to_owned(), None),
            (":x".to_owned(), None),
            ("import:x".to_owned(), None),
        ] {
            let found = users(&line);
            let found = found.first().map(|user| (user.name, user.hash.is_ok()));
            assert_eq!(found, expected, "{line}");
        }
        assert_eq!(users("a:x\na:y\nb:z").len(), 2);
    }
}
