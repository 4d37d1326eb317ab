//! Which paths both sides are asked for, where each comes from, and why others are not asked.
//!
//! Owns the rule: a path is asked where a person named it, or where a page that is asked links to it (`links.rs`). What
//! source code or a configuration only suggests is listed, and asked with `--probe-routes` alone. Only GET and HEAD are
//! sent. `given.rs` reads what a person named, `chosen.rs` decides.

use std::fmt;

/// Paths that are asked for: each is asked several times of both sides, in up to five variants.
pub const PATHS_MAX: usize = 10;

/// What links and guessed routes never have in their names, since a GET may change state there. A defence in depth and
/// no promise: the rule above is what keeps routes from being asked. Paths that a person names are not looked at.
const STATE_CHANGES: [&str; 28] = [
    "logout",
    "logoff",
    "signout",
    "delete",
    "destroy",
    "remove",
    "purge",
    "flush",
    "clear",
    "reset",
    "wipe",
    "erase",
    "drop",
    "unsubscribe",
    "cancel",
    "revoke",
    "disable",
    "deactivate",
    "approve",
    "reject",
    "confirm",
    "trigger",
    "toggle",
    "restart",
    "shutdown",
    "stop",
    "kill",
    "crash",
];

/// A path that both sides are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// From the root, with its query where a person gave one.
    pub path: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a path comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The start page, which is asked where no other path is named.
    StartPage,
    /// `--path`.
    Argument,
    /// A collection, a HAR, a list or a sitemap with this name.
    File(String),
    /// The page at this path, which is asked itself.
    Link(String),
    /// Source code or a configuration, with `--probe-routes`.
    Guess,
}

/// A path that is known and not asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// From the root, as it was found.
    pub path: String,
    /// Why it is not asked.
    pub reason: SkipReason,
}

/// Why a path is not asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// Source code or a configuration suggests it.
    Guess,
    /// A part of it is not known.
    Parameter,
    /// Its name has this word.
    StateChange(&'static str),
    /// The link has a query.
    Query,
    /// The link has `rel="nofollow"`.
    NoFollow,
    /// The link has `download`.
    Download,
    /// Not a plain GET or HEAD: the method, or what else there is to it.
    Method(String),
    /// The file's request goes to another host than its first one.
    OtherHost,
    /// There are [`PATHS_MAX`] others.
    TooMany,
}

/// Whether a path consists of letters that mean nothing but themselves: no parameter, no query, no escape.
pub(super) fn is_plain(path: &str) -> bool {
    path.starts_with('/')
        && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.~@,+".contains(&byte))
}

/// The word of a path that says that asking for it may change state: `log-out`, `/users/deleteAll`.
pub(super) fn state_change(path: &str) -> Option<&'static str> {
    let words = words(path);
    let pairs = words.windows(2).map(|pair| pair.concat());
    let mut candidates = words.iter().cloned().chain(pairs);
    candidates.find_map(|word| STATE_CHANGES.into_iter().find(|change| word.starts_with(change)))
}

/// The words of a path in lower case; `deleteAll` is two.
fn words(path: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in path.chars() {
        if !letter.is_alphanumeric() || (letter.is_ascii_uppercase() && was_small) {
            words.push(String::new());
        }
        was_small = letter.is_ascii_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::StartPage => formatter.write_str("the start page"),
            Origin::Argument => formatter.write_str("--path"),
            Origin::File(name) => write!(formatter, "in {name}"),
            Origin::Link(page) => write!(formatter, "linked from {page}"),
            Origin::Guess => formatter.write_str("guessed, --probe-routes"),
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::Guess => {
                formatter.write_str("guessed from source code or a configuration; --probe-routes asks it")
            }
            SkipReason::Parameter => formatter.write_str("guessed, and a part of it is not known"),
            SkipReason::StateChange(word) => write!(formatter, "may change state: its name has `{word}`"),
            SkipReason::Query => formatter.write_str("linked with a query"),
            SkipReason::NoFollow => formatter.write_str("linked with rel=nofollow"),
            SkipReason::Download => formatter.write_str("linked as a download"),
            SkipReason::Method(method) => write!(formatter, "{method}: only GET and HEAD are sent"),
            SkipReason::OtherHost => formatter.write_str("on another host than the file's first request"),
            SkipReason::TooMany => write!(formatter, "at most {PATHS_MAX} paths are asked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_state_change_is_seen_wherever_it_is_in_a_path() {
        for (path, expected) in [
            ("/purge", Some("purge")),
            ("/unsubscribe/42", Some("unsubscribe")),
            ("/users/42/deleteAll", Some("delete")),
            ("/Log-Out", Some("logout")),
            ("/sign_out.php", Some("signout")),
            ("/cache.flush", Some("flush")),
            ("/about", None),
            ("/backlog/outline", None),
            ("/", None),
        ] {
            assert_eq!(state_change(path), expected, "{path}");
        }
    }
}
