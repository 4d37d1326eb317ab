//! One `location`: which requests it takes.

use super::directive::Directive;
use super::values;
use crate::refusal::Refusal;

/// How a location chooses its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `= /path`
    Exact,
    /// `/path`
    Prefix,
    /// `^~ /path`
    Strong,
    /// `~ expression`, `~* expression`
    Expression,
}

/// A location.
#[derive(Debug, Clone)]
pub(crate) struct Location<'a> {
    pub(crate) kind: Kind,
    pub(crate) pattern: String,
    pub(crate) directive: &'a Directive,
}

impl<'a> Location<'a> {
    /// A `location`.
    pub(crate) fn of(directive: &'a Directive) -> Result<Location<'a>, Refusal> {
        let (kind, pattern) = match (directive.arg(0), directive.arg(1)) {
            ("=", pattern) => (Kind::Exact, pattern),
            ("^~", pattern) => (Kind::Strong, pattern),
            ("~" | "~*", pattern) => (Kind::Expression, pattern),
            (pattern, "") => (Kind::Prefix, pattern),
            _ => (Kind::Prefix, ""),
        };
        let is_plain = kind == Kind::Expression
            || (pattern.starts_with('/') && !pattern.contains([' ', '*', '{', '}', '"', '`', '\\']));
        if pattern.is_empty() || !is_plain {
            return Err(Refusal::at(
                &directive.place,
                format!("`{}` is no location that can be carried over", directive.shown()),
                "a location is a path, or one of =, ^~, ~ and ~* before one",
            ));
        }
        if directive.inner().iter().any(|inner| inner.name == "location") {
            return Err(Refusal::at(
                &directive.place,
                format!("`{}` has locations of its own", directive.shown()),
                "move them out of it in a copy of the file, and try that",
            ));
        }
        Ok(Location { kind, pattern: pattern.to_owned(), directive })
    }

    /// Whether its expression takes letters in any case.
    fn is_caseless(&self) -> bool {
        self.directive.arg(0) == "~*"
    }
}

/// Whether a location does nothing but refuse everybody.
pub(crate) fn is_denied(location: &Location<'_>) -> bool {
    let inner = location.directive.inner();
    let is_quiet = |directive: &Directive| ["access_log", "log_not_found"].contains(&directive.name.as_str());
    let denies = |directive: &Directive| directive.name == "deny" && directive.arg(0) == "all";
    inner.iter().any(denies) && inner.iter().all(|directive| denies(directive) || is_quiet(directive))
}

/// `rewrite ^/api/(.*)$ /$1 break;`, the usual way of taking a prefix off: the prefix.
pub(crate) fn takes_prefix_off(directives: &[Directive]) -> Option<&str> {
    let mut rewrites = directives.iter().filter(|directive| directive.name == "rewrite");
    let (rewrite, None) = (rewrites.next()?, rewrites.next()) else { return None };
    let expression = rewrite.arg(0).strip_prefix('^')?;
    let expression = expression.strip_suffix('$').unwrap_or(expression);
    let prefix = ["/?(.*)", "/(.*)"].iter().find_map(|rest| expression.strip_suffix(rest))?;
    let is_plain = prefix.starts_with('/') && values::patterns(&format!("^{prefix}/")).is_some();
    (is_plain && rewrite.arg(1) == "/$1" && rewrite.arg(2) == "break").then_some(prefix)
}

/// Which paths a location takes.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// Path patterns; with none and no expression it takes all that is left.
    pub(crate) all: Vec<String>,
    /// Path patterns that it leaves to others all the same.
    pub(crate) but: Vec<String>,
    /// An expression, quoted, where no path pattern is equal to it.
    pub(crate) expression: Option<String>,
}

/// The paths of a location.
pub(crate) fn paths(location: &Location<'_>) -> Result<Paths, Refusal> {
    let all = match location.kind {
        Kind::Prefix | Kind::Strong if location.pattern == "/" => return Ok(Paths::default()),
        Kind::Exact => vec![location.pattern.clone()],
        Kind::Prefix | Kind::Strong => vec![format!("{}*", location.pattern)],
        Kind::Expression => return of_expression(location),
    };
    Ok(Paths { all, ..Paths::default() })
}

fn of_expression(location: &Location<'_>) -> Result<Paths, Refusal> {
    if let Some((all, but)) = values::patterns(&location.pattern) {
        return Ok(Paths { all, but, expression: None });
    }
    match values::expression(&location.pattern, location.is_caseless()) {
        Some(expression) => Ok(Paths { expression: Some(expression), ..Paths::default() }),
        None => Err(Refusal::at(
            &location.directive.place,
            format!("`{}` matches by an expression that onehop does not have", location.directive.shown()),
            "write it as a prefix, or as endings `\\.(css|js)$`, in a copy of the file, and try that",
        )),
    }
}

/// Whether an expression takes a path.
pub(crate) fn takes(location: &Location<'_>, path: &str) -> Result<bool, Refusal> {
    let paths = paths(location)?;
    if paths.expression.is_some() {
        return Ok(values::fits(&location.pattern, location.is_caseless(), path));
    }
    let is_like = |patterns: &[String]| patterns.iter().any(|one| values::is_like(one, path));
    Ok(is_like(&paths.all) && !is_like(&paths.but))
}

/// Refuses the one order that path patterns cannot say: expressions that end at a `^~` and begin again below it.
pub(crate) fn check_order(locations: &[Location<'_>]) -> Result<(), Refusal> {
    if !locations.iter().any(|location| location.kind == Kind::Expression) {
        return Ok(());
    }
    for strong in locations.iter().filter(|location| location.kind == Kind::Strong) {
        let is_below =
            |other: &&Location<'_>| other.kind == Kind::Prefix && other.pattern.starts_with(&strong.pattern);
        if let Some(below) = locations.iter().find(is_below) {
            return Err(Refusal::at(
                &below.directive.place,
                format!(
                    "`{}` lies below `{}` ({}), so expressions hold here and not around it",
                    below.directive.shown(),
                    strong.directive.shown(),
                    strong.directive.place.words()
                ),
                format!("write `location ^~ {}` too in a copy of the file, and try that", below.pattern),
            ));
        }
    }
    Ok(())
}
