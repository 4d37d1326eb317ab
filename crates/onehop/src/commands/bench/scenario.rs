//! `onehop bench run` and `onehop bench init`: comparisons that are written down.

use std::io::{ErrorKind, Write as _};
use std::time::Duration;

use onehop_bench::scenario::{self, Choice, FILE_NAME, Held, Scenario};
use onehop_report::Findings;

use super::compare;
use super::session::Session;
use crate::arguments::{InitScenario, RunScenario};
use crate::commands::standard_output::print_all;
use crate::failure::Failure;
use crate::units;

/// What `init` writes: it can be run as it is where Python is.
const FIRST: &str = include_str!("scenario.toml");

pub(super) fn run(arguments: &RunScenario) -> Result<(), Failure> {
    let wrong = |error: scenario::ScenarioError| Failure::wrong(error.to_string());
    let scenario = Scenario::read(&arguments.place).map_err(wrong)?;
    if arguments.list {
        return list(&scenario);
    }
    let choice = Choice {
        cases: arguments.cases.clone(),
        servers: arguments.servers.clone(),
        rounds: arguments.rounds,
        time: arguments.time,
        warm_up: arguments.warm_up,
        until_decided: arguments.until_decided,
    };
    scenario.check(&choice).map_err(wrong)?;
    let mut session = Session::begin(&arguments.output)?;
    let mut together = Duration::ZERO;
    for (case, settings) in scenario.settings(&choice) {
        let targets = scenario.targets(case, &choice).map_err(wrong)?;
        session.say(&format!("case {}:", case.name));
        together += compare::announce(&session, &settings, targets.len());
    }
    session
        .say(&format!("{} and more for all; `--rounds` and `--cases` shorten it", units::duration(together)));
    let found = scenario::run(&scenario, &choice, &mut session)
        .map_err(|error| Failure::failed(error.to_string()))?;
    for program in scenario.programs(&choice).map_err(wrong)? {
        session.note_version(&program);
    }
    let missed = found.bounds.iter().filter(|bound| bound.held == Held::No).count();
    let failed = (!found.failures.is_empty()).then(|| found.failures.join("\n"));
    let nothing = match (failed, found.is_broken_off) {
        (Some(why), _) => Some(why),
        (None, true) if found.cases.is_empty() => Some("broken off before anything was measured".to_owned()),
        // A server that was hardly asked is not to blame for having answered nothing.
        (None, true) => None,
        (None, false) => {
            let good = |case: &scenario::CaseRun| compare::nothing_good(&case.comparison);
            found.cases.iter().find_map(good).map(|server| format!("{server} gave not one good answer"))
        }
    };
    session.tell(Findings::Scenario(found))?;
    match (nothing, missed) {
        (Some(why), _) => Err(Failure::failed(why)),
        (None, 0) => Ok(()),
        (None, missed) => Err(Failure::failed(format!("missed {}", units::counted(missed as u64, "bound")))),
    }
}

fn list(scenario: &Scenario) -> Result<(), Failure> {
    let names = |names: Vec<&str>| names.join(", ");
    let text = format!(
        "{}\n\nservers: {}\ncases:   {}\n",
        scenario.file.about,
        names(scenario.file.servers.iter().map(|server| server.name.as_str()).collect()),
        names(scenario.file.cases.iter().map(|case| case.name.as_str()).collect())
    );
    print_all(text.as_bytes())
        .map_err(|error| Failure::failed(format!("cannot write to standard output: {error}")))
}

pub(super) fn init(arguments: &InitScenario) -> Result<(), Failure> {
    let path = arguments.folder.join(FILE_NAME);
    let failed = |error: std::io::Error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    std::fs::create_dir_all(&arguments.folder).map_err(failed)?;
    match std::fs::OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(mut file) => file.write_all(FIRST.as_bytes()).map_err(failed)?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(Failure::wrong(format!("{} is there already; name another folder", path.display())));
        }
        Err(error) => return Err(failed(error)),
    }
    let place = arguments.folder.display();
    let text = format!("written: {}\nrun it with: onehop bench run {place}\n", path.display());
    print_all(text.as_bytes())
        .map_err(|error| Failure::failed(format!("cannot write to standard output: {error}")))
}
