//! What is known while the locations of a server are translated.

use super::directive::Directive;
use super::location::{Kind, Location, Paths, paths, takes};
use super::server::Server;
use crate::deployment::Deployment;
use crate::refusal::Refusal;

/// What is at hand while locations are read.
pub(crate) struct Context<'a> {
    pub(crate) server: &'a Server<'a>,
    pub(crate) deployment: &'a dyn Deployment,
    /// `location @name`.
    pub(crate) named: Vec<&'a Directive>,
    /// All others.
    pub(crate) locations: Vec<Location<'a>>,
}

impl Context<'_> {
    /// The paths of a location: expressions end at a `^~`.
    pub(crate) fn paths(&self, location: &Location<'_>) -> Result<Paths, Refusal> {
        let mut paths = paths(location)?;
        if location.kind == Kind::Expression {
            let strong = self.locations.iter().filter(|other| other.kind == Kind::Strong);
            paths.but.extend(strong.map(|other| format!("{}*", other.pattern)));
        }
        Ok(paths)
    }

    /// The levels of a location, the outermost first.
    pub(crate) fn levels<'b>(&'b self, location: &'b Location<'b>, is_server: bool) -> Vec<&'b [Directive]> {
        let mut levels = vec![self.server.http, self.server.directive.inner()];
        if !is_server {
            levels.push(location.directive.inner());
        }
        levels
    }

    /// Whether nginx chooses this location for a path (ngx_http_core_find_location).
    pub(crate) fn is_chosen_for(&self, location: &Location<'_>, path: &str) -> Result<bool, Refusal> {
        let is_same = |other: &Location<'_>| std::ptr::eq(other.directive, location.directive);
        if let Some(exact) =
            self.locations.iter().find(|other| other.kind == Kind::Exact && other.pattern == path)
        {
            return Ok(is_same(exact));
        }
        let is_prefix = |other: &&Location<'_>| {
            matches!(other.kind, Kind::Prefix | Kind::Strong) && path.starts_with(&other.pattern)
        };
        let longest = self.locations.iter().filter(is_prefix).max_by_key(|other| other.pattern.len());
        if longest.is_none_or(|longest| longest.kind != Kind::Strong) {
            for other in self.locations.iter().filter(|other| other.kind == Kind::Expression) {
                if takes(other, path)? {
                    return Ok(is_same(other));
                }
            }
        }
        // Without any it is the server itself.
        Ok(longest.map_or(std::ptr::eq(location.directive, self.server.directive), is_same))
    }
}
