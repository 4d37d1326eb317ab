//! Which paths reach the application behind a front, so that it is the application that is waited for and measured.
//!
//! Found by looking and not by reading a configuration: the front runs once with nobody behind it, and what it answers
//! with 502 to 504 then, it passes on. Owns the choice of what is measured. Never takes a front's own file for an
//! answer of the application without saying so.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use onehop_bench::compare::Source;
use onehop_load::client::Client;
use onehop_load::plan::{Expect, Timeouts};
use onehop_load::progress::Observer;
use onehop_load::url::Address;

use super::SideBySideError;
use super::measuring::Bench;
use super::route::Route;
use super::same::PathSeen;
use super::setup::Front;
use super::stacks::{Stack, StackBuilder};
use super::starting::{anything, begin};

/// Paths of a site that are asked in turn: a page and what belongs to it.
const SITE_PATHS_MAX: usize = 4;
/// A refused connection is told at once, unless the front tries it again for a while.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(1), response: Duration::from_secs(1) };
/// All paths together; those that were not reached are taken for the front's own.
const ASKED_WITHIN: Duration = Duration::from_secs(4);
/// How long an application may take that cannot be waited for through its front.
const READY_WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);

/// The paths that reach the application: all of them where there is no front. `None` where there is no application.
pub(super) fn paths(
    builder: &mut StackBuilder<'_>,
    front: &Front,
    bench: &Bench<'_>,
    observer: &mut dyn Observer,
) -> Result<Option<Vec<String>>, SideBySideError> {
    let given: Vec<String> = builder.setup.routes.iter().map(|route| route.path.clone()).collect();
    if builder.setup.application.is_none() {
        return Ok(None);
    }
    let Some(stack) = builder.front_alone(front)? else { return Ok(Some(given)) };
    let Source::Command(start) = &stack.source else { return Ok(Some(given)) };
    observer.stage("sees which paths reach the application");
    let request =
        onehop_load::plan::Request { expect: Expect::Any, ..stack.request(&builder.setup.first_path()) };
    // Where it does not start, its real start tells why.
    let Ok((_server, _)) = begin(start, &request, &bench.server_cores, observer) else {
        return Ok(Some(Vec::new()));
    };
    let begun = Instant::now();
    let mut client = Client::new(Address::Tcp(stack.address));
    let is_passed = |path: &String| {
        if begun.elapsed() > ASKED_WITHIN {
            return false;
        }
        // A front that goes on trying gives no answer at all; a file takes no second.
        client
            .request(&stack.request(path), TIMEOUTS)
            .map_or(true, |response| matches!(response.status, 502..=504))
    };
    Ok(Some(given.into_iter().filter(is_passed).collect()))
}

/// The routes in the order in which they are asked: first one that reaches the application.
pub(super) fn first(routes: &[Route], passed: Option<&[String]>) -> Vec<Route> {
    let leads = |route: &&Route| passed.and_then(<[String]>::first) == Some(&route.path);
    let others = routes.iter().filter(|route| !leads(route));
    routes.iter().find(leads).into_iter().chain(others).cloned().collect()
}

/// Waits for the application itself, where none of the paths is known to reach it.
pub(super) fn wait_for_application(
    stack: &Stack,
    path: &str,
    observer: &dyn Observer,
) -> Result<(), SideBySideError> {
    let Some(port) = stack.app_port else { return Ok(()) };
    let begun = Instant::now();
    loop {
        for address in [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), (Ipv6Addr::LOCALHOST, port).into()] {
            if Client::new(Address::Tcp(address)).request(&anything(port, path), Timeouts::default()).is_ok()
            {
                return Ok(());
            }
        }
        if observer.is_interrupted() {
            return Err(SideBySideError::Interrupted);
        }
        if begun.elapsed() > READY_WITHIN {
            return Err(SideBySideError::Side {
                side: stack.words.clone(),
                cause: format!("the application does not answer at port {port}, where it was told to listen"),
                next: "start it by hand, see that it answers, and try again".to_owned(),
            });
        }
        std::thread::sleep(POLL);
    }
}

/// What may be measured: of an application the first path that it serves on both sides, of a site a few in turn. With
/// it what a reader must know.
pub(super) fn measurable(
    paths: &[PathSeen],
    passed: Option<&[String]>,
) -> Result<(Vec<String>, Option<String>), String> {
    let Some(passed) = passed else {
        return Ok((chosen(&paths.iter().collect::<Vec<_>>(), SITE_PATHS_MAX)?, None));
    };
    let own: Vec<&PathSeen> = paths.iter().filter(|seen| passed.contains(&seen.path)).collect();
    if own.iter().any(|seen| seen.is_served || seen.differs.is_some()) {
        return Ok((chosen(&own, 1)?, None));
    }
    let caveat = "None of the paths that were asked is known to be answered with 200 by the application: what is \
        measured is a file that the front serves, with the application idle beside it. --path names one.";
    Ok((chosen(&paths.iter().collect::<Vec<_>>(), 1)?, Some(caveat.to_owned())))
}

/// The first of these that both serve and others that are the same.
fn chosen(paths: &[&PathSeen], at_most: usize) -> Result<Vec<String>, String> {
    let mut served = paths.iter().filter(|path| path.is_served);
    let Some(first) = served.next() else {
        // A path that only one side serves is the reason, where there is one.
        let differing = paths.iter().find_map(|path| Some((&path.path, path.differs.as_ref()?)));
        return Err(match differing {
            Some((path, words)) => unequal(path, words),
            None => "no path was found that both answer with 200; --path names one".to_owned(),
        });
    };
    if let Some(words) = &first.differs {
        return Err(unequal(&first.path, words));
    }
    let others = served.filter(|path| path.differs.is_none());
    Ok(std::iter::once(first).chain(others).take(at_most).map(|path| path.path.clone()).collect())
}

/// Why what differs is not measured, and the next step.
fn unequal(path: &str, words: &str) -> String {
    format!(
        "the responses to {path} differ ({words}), so that their costs cannot be compared; --path names a path with equal \
         ones"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;

    fn seen(path: &str, is_served: bool, differs: Option<&str>) -> PathSeen {
        PathSeen { path: path.to_owned(), is_served, differs: differs.map(str::to_owned), bytes: 10 }
    }

    fn owned(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn of_an_application_the_first_served_path_is_measured_and_of_a_site_a_few() {
        let paths = [
            seen("/", false, None),
            seen("/a", true, None),
            seen("/b", true, Some("body")),
            seen("/c", true, None),
        ];
        let all = owned(&["/", "/a", "/b", "/c"]);
        assert_eq!(measurable(&paths, Some(&all)).unwrap(), (owned(&["/a"]), None));
        assert_eq!(measurable(&paths, None).unwrap().0, ["/a", "/c"]);
        let many: Vec<PathSeen> = (0..9).map(|number| seen(&format!("/{number}"), true, None)).collect();
        assert_eq!(measurable(&many, None).unwrap().0.len(), SITE_PATHS_MAX);
    }

    #[test]
    fn a_path_that_reaches_the_application_comes_before_the_fronts_own_files() {
        let paths = [seen("/", true, None), seen("/old/", false, None), seen("/nws/", true, None)];
        let passed = owned(&["/old/", "/nws/"]);
        assert_eq!(measurable(&paths, Some(&passed)).unwrap(), (owned(&["/nws/"]), None));
        let (measured, caveat) = measurable(&paths, Some(&owned(&["/old/"]))).unwrap();
        assert_eq!(measured, ["/"]);
        assert!(caveat.unwrap().contains("a file that the front serves"));
        let given =
            ["/", "/old/", "/nws/"].map(|path| Route { path: path.to_owned(), origin: Origin::Argument });
        let first = |passed| first(&given, passed).into_iter().map(|route| route.path).collect::<Vec<_>>();
        assert_eq!(first(Some(&passed)), ["/old/", "/", "/nws/"]);
        assert_eq!(first(None), ["/", "/old/", "/nws/"]);
    }

    #[test]
    fn what_differs_is_not_measured_and_the_reason_is_reported() {
        let all = owned(&["/"]);
        let reason = measurable(&[seen("/", true, Some("body: other"))], Some(&all)).unwrap_err();
        assert!(reason.starts_with("the responses to / differ (body: other), "), "{reason}");
        let reason = measurable(&[seen("/", false, Some("status: 200 and 404"))], None).unwrap_err();
        assert!(reason.starts_with("the responses to / differ (status: 200 and 404), "), "{reason}");
        assert!(measurable(&[seen("/", false, None)], None).unwrap_err().contains("no path was found"));
    }
}
