//! Patterns that paths are compared with. The comparison itself is the server's.

use super::Context;
use super::template::fixed;
use crate::checked::PathPattern;
use crate::problem::Problem;
use crate::syntax::Token;

/// A path pattern. How it is compared follows from where its stars stand, as in Caddy.
pub(crate) fn path_pattern(cx: &mut Context<'_>, token: &Token) -> Result<PathPattern, Box<Problem>> {
    let pattern = fixed(cx.source, token, "a path to match")?.to_lowercase();
    if !pattern.starts_with(['/', '*']) {
        let problem = Problem::warning("path", &token.place, format!("no path is like `{pattern}`"));
        cx.problems
            .push(problem.help(format!("paths begin with a slash: write `/{pattern}` or `*{pattern}`")));
    }
    let stars = pattern.matches('*').count();
    if pattern == "*" {
        return Ok(PathPattern::Any);
    }
    if pattern.contains('%') {
        return Ok(PathPattern::Escaped(pattern));
    }
    if stars == 2
        && let Some(middle) = pattern.strip_prefix('*').and_then(|rest| rest.strip_suffix('*'))
    {
        return Ok(PathPattern::Contains(middle.to_owned()));
    }
    if stars == 1 {
        if let Some(suffix) = pattern.strip_prefix('*') {
            return Ok(PathPattern::Suffix(suffix.to_owned()));
        }
        if let Some(prefix) = pattern.strip_suffix('*') {
            return Ok(PathPattern::Prefix(prefix.to_owned()));
        }
    }
    if pattern.contains('[') && !has_closed_class(&pattern) {
        return Err(Problem::error("path", &token.place, "the `[` of this pattern is not closed")
            .help("close it, or escape it as `\\[`"));
    }
    if pattern.contains(['*', '?', '[', '\\']) {
        return Ok(PathPattern::Glob(pattern));
    }
    Ok(PathPattern::Exact(pattern))
}

/// Whether each `[` that is not escaped has its `]`, with at least one character between them.
fn has_closed_class(pattern: &str) -> bool {
    let mut characters = pattern.chars();
    let mut inside: Option<usize> = None;
    while let Some(character) = characters.next() {
        inside = match (inside, character) {
            (_, '\\') => match characters.next() {
                Some(_) => inside.map(|count| count + 1),
                None => return false,
            },
            (None, '[') => Some(0),
            (None, _) => None,
            (Some(count), ']') if count > 0 => None,
            (Some(0), '^') => Some(0),
            (Some(count), _) => Some(count + 1),
        };
    }
    inside.is_none()
}
