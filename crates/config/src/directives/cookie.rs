//! Cookies that onehop gives out. Knows what browsers make of their names.

use crate::check::Context;
use crate::problem::Problem;
use crate::syntax::Token;

/// What makes browsers ask for `Secure`, whatever its case.
const SECURE_PREFIXES: [&str; 2] = ["__Host-", "__Secure-"];

/// RFC 6265bis section 5.7: a cookie of such a name is dropped unless it has `Secure`, which it cannot have over HTTP,
/// unless a proxy in front says that its client came encrypted.
pub(super) fn warn_of_prefix(cx: &mut Context<'_>, name: &str, trusts_somebody: bool, token: &Token) {
    let has_prefix =
        |prefix: &&str| name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    let is_plain = cx.apps.is_plain && !trusts_somebody;
    let Some(prefix) = SECURE_PREFIXES.into_iter().find(has_prefix).filter(|_| is_plain) else { return };
    let message = format!("browsers drop `{name}` where a site is served without TLS");
    let help = format!("a name without `{prefix}` needs no encryption");
    cx.problems.push(Problem::warning("secure-cookie", &token.place, message).help(help));
}
