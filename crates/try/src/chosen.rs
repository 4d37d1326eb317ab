//! Applies the rule of `route.rs` to what was found: named paths stand in place of the start page, guesses are listed
//! unless they are wanted.

use std::collections::HashSet;

use super::given::Given;
use super::route::{Origin, PATHS_MAX, Route, SkipReason, Skipped, is_plain, state_change};
use super::setup::Setup;

impl Setup {
    /// Takes the paths that a person named in place of the start page and, where that is wanted, those that were
    /// guessed.
    pub fn choose_routes(&mut self, given: Given, probes_guesses: bool) {
        if !given.routes.is_empty() {
            let is_given = |page: &String| given.routes.iter().any(|route| route.path == *page);
            self.routes.retain(|route| matches!(&route.origin, Origin::Link(page) if is_given(page)));
            self.routes.splice(0..0, given.routes);
        }
        self.skipped.extend(given.skipped);
        for path in std::mem::take(&mut self.guessed) {
            if self.routes.iter().any(|route| route.path == path) {
                continue;
            }
            match never_asked(&path) {
                None if probes_guesses => self.routes.push(Route { path, origin: Origin::Guess }),
                reason => self.skipped.push(Skipped { path, reason: reason.unwrap_or(SkipReason::Guess) }),
            }
        }
        let mut seen = HashSet::new();
        self.routes.retain(|route| seen.insert(route.path.clone()));
        let too_many = self.routes.drain(PATHS_MAX.min(self.routes.len())..);
        self.skipped.extend(too_many.map(|route| Skipped { path: route.path, reason: SkipReason::TooMany }));
    }

    /// The path that is asked first.
    pub(super) fn first_path(&self) -> String {
        self.routes.first().map_or_else(|| "/".to_owned(), |route| route.path.clone())
    }
}

/// Why a guessed path is not even asked with `--probe-routes`.
fn never_asked(path: &str) -> Option<SkipReason> {
    if !is_plain(path) {
        return Some(SkipReason::Parameter);
    }
    state_change(path).map(SkipReason::StateChange)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::tests::setup;

    fn route(path: &str, origin: Origin) -> Route {
        Route { path: path.to_owned(), origin }
    }

    fn chosen(
        routes: &[Route],
        guessed: &[&str],
        given: Given,
        probes_guesses: bool,
    ) -> (Vec<String>, Vec<String>) {
        let mut setup = setup();
        setup.routes = routes.to_vec();
        setup.guessed = guessed.iter().map(|path| (*path).to_owned()).collect();
        setup.choose_routes(given, probes_guesses);
        let asked = setup.routes.iter().map(|route| route.path.clone()).collect();
        (asked, setup.skipped.iter().map(|skipped| format!("{}: {}", skipped.path, skipped.reason)).collect())
    }

    const GUESSED: [&str; 5] = ["/", "/api/items", "/items/:id", "/purge", "/unsubscribe/:id"];

    #[test]
    fn guessed_routes_are_listed_and_not_asked() {
        let (asked, skipped) = chosen(&[route("/", Origin::StartPage)], &GUESSED, Given::default(), false);
        assert_eq!(asked, ["/"]);
        assert_eq!(
            skipped,
            [
                "/api/items: guessed from source code or a configuration; --probe-routes asks it",
                "/items/:id: guessed, and a part of it is not known",
                "/purge: may change state: its name has `purge`",
                "/unsubscribe/:id: guessed, and a part of it is not known",
            ]
        );
    }

    #[test]
    fn with_probes_guessed_routes_without_parameters_and_state_changes_are_asked() {
        let (asked, skipped) = chosen(&[route("/", Origin::StartPage)], &GUESSED, Given::default(), true);
        assert_eq!(asked, ["/", "/api/items"]);
        assert_eq!(skipped.len(), 3, "{skipped:?}");
    }

    #[test]
    fn named_paths_stand_in_for_the_start_page_whatever_their_names() {
        let start = [route("/", Origin::StartPage), route("/a.js", Origin::Link("/".to_owned()))];
        let mut given = Given::default();
        given.path("/purge".to_owned());
        assert_eq!(chosen(&start, &[], given.clone(), false).0, ["/purge"]);
        given.path("/".to_owned());
        given.path("/purge".to_owned());
        assert_eq!(chosen(&start, &[], given, false).0, ["/purge", "/", "/a.js"]);
    }

    #[test]
    fn more_paths_than_are_asked_are_listed() {
        let mut given = Given::default();
        (0..12).for_each(|number| given.path(format!("/{number}")));
        let (asked, skipped) = chosen(&[], &[], given, false);
        assert_eq!((asked.len(), skipped.len()), (PATHS_MAX, 2));
        assert_eq!(skipped[0], "/10: at most 10 paths are asked");
    }
}
