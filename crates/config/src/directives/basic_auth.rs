//! `basic_auth`: users and the hashes of their passwords.

use std::sync::Arc;

use super::placed;
use crate::arguments::wrong_arguments;
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::template::fixed;
use crate::checked::{BasicAuth, Step};
use crate::limits::BASIC_AUTH_ACCOUNTS_MAX;
use crate::problem::Problem;
use crate::syntax::Directive;

const USAGE: &str = "basic_auth [<matcher>] [bcrypt [<realm>]] { <user> <hash> }";
/// Caddy's.
const REALM: &str = "restricted";

/// `basic_auth [<matcher>] [bcrypt [<realm>]] { <user> <hash> … }`
pub(super) fn basic_auth(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    let realm = match args {
        [] => REALM.to_owned(),
        [algorithm] if algorithm.text == "bcrypt" => REALM.to_owned(),
        [algorithm, realm] if algorithm.text == "bcrypt" => fixed(cx.source, realm, "a realm")?,
        [algorithm] | [algorithm, _] if algorithm.text == "argon2id" => {
            let message = "`argon2id` is a hash of Caddy that onehop does not have yet";
            return Err(Problem::error("not-yet", &algorithm.place, message)
                .help("make a bcrypt hash: `onehop hash-password`"));
        }
        _ => return Err(wrong_arguments(line, USAGE)),
    };
    let lines = line.block.as_deref().unwrap_or_default();
    if lines.is_empty() {
        return Err(Problem::error("arguments", &line.name.place, "`basic_auth` has no user")
            .help("write a name and the hash that `onehop hash-password` prints, a line for each user"));
    }
    if lines.len() > BASIC_AUTH_ACCOUNTS_MAX {
        let message = format!("`basic_auth` has at most {BASIC_AUTH_ACCOUNTS_MAX} users");
        return Err(Problem::error("too-large", &line.name.place, message));
    }
    let mut accounts: Vec<(String, Arc<str>)> = Vec::new();
    for account in lines {
        let read = read_account(cx, account, line);
        let Some((user, hash)) = cx.keep(read) else { continue };
        if accounts.iter().any(|(known, _)| *known == user) {
            let message = format!("`{user}` has two passwords");
            cx.problems.push(Problem::error("duplicate-option", &line.name.place, message));
            continue;
        }
        accounts.push((user, hash));
    }
    let step = Step::BasicAuth(Arc::new(BasicAuth { realm, accounts }));
    Ok(vec![placed("basic_auth", chosen, line, step)])
}

/// A user's line. Problems point at the directive: lines are shown beside them, and this one may have the password itself.
fn read_account(
    cx: &Context<'_>,
    line: &Directive,
    directive: &Directive,
) -> Result<(String, Arc<str>), Box<Problem>> {
    let place = &directive.name.place;
    let user = fixed(cx.source, &line.name, "a user")?;
    if user.is_empty() || user.contains(':') {
        let message = "the name of a user is not empty and has no colon (RFC 7617 section 2)";
        return Err(Problem::error("name", place, message).help("choose another name"));
    }
    let hash = match (line.args.as_slice(), &line.block) {
        ([hash], None) => fixed(cx.source, hash, "the hash of a password")?,
        _ => String::new(),
    };
    if is_bcrypt(&hash) {
        return Ok((user, hash.into()));
    }
    Err(Problem::error("hash", place, format!("`{user}` has no bcrypt hash of a password"))
        .help("`onehop hash-password` prints one; it begins with `$2b$` and has 60 characters"))
}

/// `$2b$14$` and 53 characters of bcrypt's own base64; costs that are usual. A cost of 16 takes seconds.
fn is_bcrypt(hash: &str) -> bool {
    let rest = ["$2a$", "$2b$", "$2y$"].iter().find_map(|begin| hash.strip_prefix(begin));
    let Some((cost, digest)) = rest.and_then(|rest| rest.split_once('$')) else { return false };
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'/';
    let has_cost = cost.len() == 2 && cost.parse::<u8>().is_ok_and(|cost| (4..=16).contains(&cost));
    has_cost && digest.len() == 53 && digest.bytes().all(is_digit)
}
