//! The routes of a site, as labels of metrics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::handler::Handler;
use crate::limits::{ROUTE_NAME_BYTES_MAX, ROUTES_COUNTED_MAX};

/// The label of requests that reached no site, and of sites, routes and upstreams beyond their bounds.
pub const OTHER: &str = "_other";

/// The name of no route: the request was refused before one, or none matched.
const NONE: &str = "none";

/// How many numbers there are: 0 for no route, one for each route, the last for all further routes.
pub(crate) const NUMBERS: usize = ROUTES_COUNTED_MAX + 2;

/// The number of a route among those of its site; by default that of no route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouteNumber(u8);

/// Where a response is counted: the route that its request took, and the handler that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteHandler {
    /// The route.
    pub route: RouteNumber,
    /// The handler.
    pub handler: Handler,
}

/// The names of a site's routes, which keep their numbers over reloads.
#[derive(Debug, Default)]
pub struct RouteNames(Mutex<Vec<Arc<str>>>);

impl RouteNames {
    /// The number of the route with this name, and a new one for a new name. Further routes share the last number, and a
    /// long name is cut off.
    pub fn number(&self, name: &str) -> RouteNumber {
        let end = (0..=ROUTE_NAME_BYTES_MAX).rev().find(|end| name.is_char_boundary(*end));
        let name = name.get(..end.unwrap_or_default().min(name.len())).unwrap_or(name);
        let mut names = self.lock();
        let known = names.iter().position(|known| **known == *name);
        let index = known.unwrap_or_else(|| {
            if names.len() < ROUTES_COUNTED_MAX {
                names.push(name.into());
                names.len() - 1
            } else {
                ROUTES_COUNTED_MAX
            }
        });
        RouteNumber(u8::try_from(index + 1).unwrap_or_default())
    }

    /// The name of a number that was given here.
    pub fn name(&self, number: RouteNumber) -> Arc<str> {
        match number.index().checked_sub(1) {
            None => NONE.into(),
            Some(index) => self.lock().get(index).map_or_else(|| OTHER.into(), Arc::clone),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RouteNumber {
    /// Below [`NUMBERS`].
    pub(crate) fn index(self) -> usize {
        self.0.into()
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..NUMBERS).map(|index| Self(u8::try_from(index).unwrap_or_default()))
    }
}

/// Of no route.
impl From<Handler> for RouteHandler {
    fn from(handler: Handler) -> Self {
        Self { route: RouteNumber::default(), handler }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_keeps_its_number_and_routes_beyond_the_bound_share_one() {
        let names = RouteNames::default();
        let first = names.number("/api/*");
        assert_eq!((names.number("/api/*"), &*names.name(first)), (first, "/api/*"));
        let numbers: Vec<_> =
            (1..ROUTES_COUNTED_MAX + 5).map(|route| names.number(&route.to_string())).collect();
        assert_eq!(&*names.name(numbers[ROUTES_COUNTED_MAX - 2]), (ROUTES_COUNTED_MAX - 1).to_string());
        assert_eq!(numbers[ROUTES_COUNTED_MAX - 1], numbers[ROUTES_COUNTED_MAX]);
        assert_eq!(&*names.name(numbers[ROUTES_COUNTED_MAX]), "_other");
        assert_eq!(&*names.name(RouteNumber::default()), "none");
        assert_eq!(RouteNumber::all().last().map(RouteNumber::index), Some(NUMBERS - 1));
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let names = RouteNames::default();
        let name = names.name(names.number(&format!("a{}", "é".repeat(ROUTE_NAME_BYTES_MAX))));
        assert_eq!(name.len(), ROUTE_NAME_BYTES_MAX - 1);
    }
}
