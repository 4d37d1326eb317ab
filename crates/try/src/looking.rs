//! Before anything is measured: both run once, side by side, and are looked at.
//!
//! Owns the servers of that phase; all of them have ended when a function of this file returns.

use std::time::Duration;

use onehop_bench::compare::Source;
use onehop_load::client::Client;
use onehop_load::engine;
use onehop_load::measure::{Server, StartError};
use onehop_load::plan::{Expect, Request, Timeouts};
use onehop_load::progress::Observer;
use onehop_load::url::Address;

use super::SideBySideError;
use super::links;
use super::measuring::Bench;
use super::own_figures;
use super::passed;
use super::route::{Route, Skipped};
use super::same::{self, Sameness};
use super::setup::{AppPort, Front, Setup};
use super::stacks::{Stack, StackBuilder};
use super::starting::{Failed, anything, begin};

/// The load around which a server's own counters are read.
const OWN_FIGURES_TIME: Duration = Duration::from_millis(800);

/// What the look came to.
#[derive(Debug)]
pub(super) struct Looked {
    /// Today's and onehop's, ready to be measured.
    pub(super) stacks: Vec<Stack>,
    /// What both were asked for.
    pub(super) routes: Vec<Route>,
    /// Links that were not asked.
    pub(super) skipped: Vec<Skipped>,
    pub(super) sameness: Sameness,
    /// What may be measured, or why nothing may.
    pub(super) measured: Result<Vec<String>, String>,
    /// What a reader must know of it.
    pub(super) caveat: Option<String>,
    pub(super) own_figures: Vec<String>,
}

/// A stack that runs, or that ran already.
struct Running {
    server: Option<Server>,
    /// From its start to its first answer.
    took: Duration,
}

/// An application that does not listen where `PORT` tells it is found, and its port taken as fixed. Gives what a
/// reader must know.
pub(super) fn settle_port(
    setup: &mut Setup,
    bench: &Bench<'_>,
    observer: &mut dyn Observer,
) -> Result<Option<String>, SideBySideError> {
    if setup.application.as_ref().is_none_or(|application| application.port != AppPort::Assigned) {
        return Ok(None);
    }
    observer.stage("starts the application by itself, to see where it listens");
    let path = setup.first_path();
    let found = {
        let mut builder = StackBuilder::new(setup, bench.onehop());
        let Some(start) = builder.application_alone()? else { return Ok(None) };
        let request = anything(start.port.unwrap_or_default(), &path);
        match begin(&start, &request, &bench.server_cores, observer) {
            Ok(_) => None,
            Err(Failed::Start(StartError::ListensElsewhere { found, .. })) => Some(found),
            Err(failed) => return Err(side("the application by itself", &failed)),
        }
    };
    let Some(found) = found else { return Ok(None) };
    if let Some(application) = &mut setup.application {
        application.port = AppPort::Fixed(found);
    }
    Ok(Some(format!("The application listens on port {found} whatever PORT says.")))
}

/// Runs both, compares their answers, and reads what they say of themselves.
pub(super) fn look(
    builder: &mut StackBuilder<'_>,
    front: &Front,
    bench: &mut Bench<'_>,
    observer: &mut dyn Observer,
) -> Result<Looked, SideBySideError> {
    let mut passed = passed::paths(builder, front, bench, observer)?;
    // Two applications cannot have one port: then one of them serves both fronts.
    let shared = match builder.application_that_cannot_run_twice()? {
        Some(start) => {
            observer.stage("starts the application");
            let port = start.port.unwrap_or_default();
            let (server, _) =
                begin(&start, &anything(port, &builder.setup.first_path()), &bench.server_cores, observer)
                    .map_err(|failed| side("the application", &failed))?;
            builder.application_runs_at(port);
            Some(server)
        }
        None => None,
    };
    let (mut today, mut onehop) = (builder.today(front)?, builder.onehop()?);
    let mut routes = passed::first(&builder.setup.routes, passed.as_deref());
    let first = builder.setup.first_path();
    let first = routes.first().map_or(first.as_str(), |route| route.path.as_str());
    observer.stage(&format!("starts {}", today.name));
    let running_today = run(&mut today, first, bench, observer)?;
    observer.stage(&format!("starts {}", onehop.name));
    let running_onehop = run(&mut onehop, first, bench, observer)?;
    if passed.as_ref().is_some_and(Vec::is_empty) {
        for stack in [&today, &onehop] {
            passed::wait_for_application(stack, &builder.setup.first_path(), observer)?;
        }
    }
    bench.saw_start(running_today.took.max(running_onehop.took));
    let mut skipped = Vec::new();
    if !builder.setup.has_links {
        observer.stage("reads what the pages link to");
        let links = links::follow(&today, &routes, same::TIMEOUTS);
        // Without a front all paths reach the application.
        let passed = passed.as_mut().filter(|_| *front == Front::None);
        passed
            .into_iter()
            .for_each(|passed| passed.extend(links.routes.iter().map(|route| route.path.clone())));
        routes.extend(links.routes);
        skipped = links.skipped;
    }
    observer.stage("asks both the same");
    let asked: Vec<String> = routes.iter().map(|route| route.path.clone()).collect();
    let sameness = same::compare(&today, &onehop, &asked);
    let (measured, caveat) = match passed::measurable(&sameness.paths, passed.as_deref()) {
        Ok((paths, caveat)) => (Ok(paths), caveat),
        Err(reason) => (Err(reason), None),
    };
    let mut own_figures = Vec::new();
    if let Ok(paths) = &measured {
        for (stack, running) in [(&today, &running_today), (&onehop, &running_onehop)] {
            observer.stage(&format!("reads what {} says of itself", stack.name));
            own_figures.extend(own(stack, running, paths, bench, observer)?);
        }
    }
    drop((running_today, running_onehop));
    let stacks = if shared.is_some() {
        drop(shared);
        builder.application_runs_as_set_up();
        vec![builder.today(front)?, builder.onehop()?]
    } else {
        vec![today, onehop]
    };
    Ok(Looked { stacks, routes, skipped, sameness, measured, caveat, own_figures })
}

/// Another of today's stacks, where it answers as the first one did.
pub(super) fn beside(
    builder: &mut StackBuilder<'_>,
    front: &Front,
    paths: &[String],
    bench: &Bench<'_>,
    observer: &mut dyn Observer,
) -> Result<Stack, String> {
    let mut stack = builder.today(front).map_err(|error| format!("Not measured: {error}"))?;
    observer.stage(&format!("looks at {}", stack.name));
    let first = paths.first().map_or("/", String::as_str).to_owned();
    let running =
        run(&mut stack, &first, bench, observer).map_err(|error| format!("Not measured: {error}"))?;
    let mut client = Client::new(Address::Tcp(stack.address));
    for path in paths {
        let status =
            client.request(&stack.request(path), Timeouts::default()).map(|response| response.status);
        if !matches!(status, Ok(200)) {
            let why = status.map_or_else(|error| error.to_string(), |status| format!("it answers {status}"));
            return Err(format!("{} is not measured: GET {path}: {why}", stack.words));
        }
    }
    drop(running);
    Ok(stack)
}

/// What one stack says of itself, around a short load.
fn own(
    stack: &Stack,
    running: &Running,
    paths: &[String],
    bench: &mut Bench<'_>,
    observer: &mut dyn Observer,
) -> Result<Vec<String>, SideBySideError> {
    if let Some(words) = own_figures::silent(stack) {
        return Ok(vec![words]);
    }
    let failed = |why: String| vec![format!("{} could not be asked for its own figures: {why}", stack.name)];
    let before = match own_figures::look(stack) {
        Ok(Some(before)) => before,
        Ok(None) => return Ok(Vec::new()),
        Err(why) => return Ok(failed(why)),
    };
    let plan = bench.plan(stack, paths, OWN_FIGURES_TIME);
    let run =
        engine::run(&plan, observer).map_err(|error| SideBySideError::Measurement(error.to_string()))?;
    if let Some(how) = running.server.as_ref().and_then(Server::ended) {
        let log = running.server.as_ref().map(Server::log_tail).unwrap_or_default();
        let cause = format!("it ended under load ({how}){}", last_lines(&log));
        let next = "see why in its output; the same load without onehop: onehop bench URL".to_owned();
        return Err(SideBySideError::Side { side: stack.words.clone(), cause, next });
    }
    match own_figures::look(stack) {
        Ok(Some(after)) => Ok(own_figures::judge(stack, &before, &after, &run, plan.pace.connections())),
        Ok(None) => Ok(Vec::new()),
        Err(why) => Ok(failed(why)),
    }
}

/// Starts a stack and waits until it answers.
fn run(
    stack: &mut Stack,
    path: &str,
    bench: &Bench<'_>,
    observer: &mut dyn Observer,
) -> Result<Running, SideBySideError> {
    let request = Request { expect: settled(), ..stack.request(path) };
    let Source::Command(start) = stack.telling.clone() else {
        return match Client::new(request.address.clone()).request(&request, Timeouts::default()) {
            Ok(_) => Ok(Running { server: None, took: Duration::ZERO }),
            Err(error) => Err(SideBySideError::Side {
                side: stack.words.clone(),
                cause: format!("{} does not answer: {error}", stack.address),
                next: "start it, and try again".to_owned(),
            }),
        };
    };
    match begin(&start, &request, &bench.server_cores, observer) {
        Ok((server, ip)) => {
            stack.address.set_ip(ip);
            let took = server.started_at().elapsed();
            Ok(Running { server: Some(server), took })
        }
        Err(failed) => Err(side(&stack.words, &failed)),
    }
}

/// Whatever an application answers, and not what a front answers while there is none behind it.
fn settled() -> Expect {
    Expect::Exactly((200..600).filter(|status| !matches!(status, 502..=504)).collect())
}

/// A program's own words say most about why it does not run.
fn side(who: &str, failed: &Failed) -> SideBySideError {
    let Failed::Start(error) = failed else { return SideBySideError::Interrupted };
    let next = match error {
        StartError::PortTaken { .. } | StartError::NoPort { .. } => "end what listens there, and try again",
        StartError::Empty | StartError::NotFound { .. } => "install it, and try again",
        _ => "start it by hand, see that it answers, and try again",
    };
    SideBySideError::Side { side: who.to_owned(), cause: error.to_string(), next: next.to_owned() }
}

fn last_lines(log: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    if last.is_empty() { String::new() } else { format!("; its last lines:\n  {}", last.join("\n  ")) }
}
