//! What a side-by-side run would start and ask, in words, without starting or asking anything.
//!
//! Owns the text of `--dry-run`. Never shows the value of a variable, and hides secrets in commands.

use std::fmt::Write as _;

use onehop_try::{AppPort, Application, Front, MISSING, PATHS_MAX, Setup};

use super::{figures, secrets};

/// Says what a run would do.
#[must_use]
pub fn dry_run(setup: &Setup) -> String {
    let mut text = "Dry run: nothing is started and nothing is asked.\n\n".to_owned();
    line(&mut text, 0, &format!("Found: {}", setup.found.description));
    text.push_str("\nWould start on free ports of this machine, several times in turn:\n");
    let application = setup.application.as_ref();
    for front in &setup.today {
        line(&mut text, 1, &format!("today   {}", today(front, application)));
    }
    let runs = match application {
        Some(application) if application.is_run_by_onehop => {
            format!(", which runs {}", command(application))
        }
        Some(application) => format!(" in front of {}", name(application)),
        None => " that serves the files".to_owned(),
    };
    line(&mut text, 1, &format!("onehop  onehop run with a configuration in a temporary folder{runs}"));
    if let Some(application) = application.filter(|application| !application.words.is_empty()) {
        environment(&mut text, application);
    }
    routes(&mut text, setup);
    text
}

fn environment(text: &mut String, application: &Application) {
    let _ = writeln!(text, "\nThe application");
    line(text, 1, &format!("folder            {}", application.directory.display()));
    let names: Vec<&str> = application.environment.iter().map(|(name, _)| name.as_str()).collect();
    line(text, 1, &format!("variables set     {}", listed(&names)));
    let passed: Vec<&str> = application.passed.iter().map(String::as_str).collect();
    line(text, 1, &format!("of this shell     all on today's side; its sources read {}", listed(&passed)));
    line(text, 1, "given by onehop   those that are set or read");
}

fn routes(text: &mut String, setup: &Setup) {
    let width = setup
        .routes
        .iter()
        .map(|route| route.path.len())
        .chain(setup.skipped.iter().map(|one| one.path.len()));
    let width = width.max().unwrap_or_default().min(PATH_COLUMNS_MAX);
    text.push_str("\nWould ask both, with GET and HEAD, several times each:\n");
    for route in &setup.routes {
        line(text, 1, &format!("{:width$}  {}", route.path, route.origin));
    }
    if !setup.has_links {
        line(
            text,
            1,
            &format!("and what these pages link to on the same origin, at most {PATHS_MAX} paths in all"),
        );
    }
    line(text, 1, &format!("{MISSING}  to compare errors"));
    if setup.skipped.is_empty() {
        return;
    }
    text.push_str("\nWould not ask:\n");
    for skipped in &setup.skipped {
        line(text, 1, &format!("{:width$}  {}", skipped.path, skipped.reason));
    }
}

/// Columns of a path before what is said of it; longer ones push that to the right.
const PATH_COLUMNS_MAX: usize = 40;

fn today(front: &Front, application: Option<&Application>) -> String {
    let server = match front {
        Front::None => return application.map_or_else(String::new, name),
        Front::Nginx { .. } => "nginx",
        Front::Caddy { .. } => "Caddy",
    };
    let behind =
        application.map_or_else(String::new, |application| format!(" in front of {}", name(application)));
    format!("{server} with a configuration in a temporary folder{behind}")
}

fn name(application: &Application) -> String {
    match application.port {
        AppPort::Running(address) => format!("the server at {address}, which runs already and is only asked"),
        AppPort::Fixed(port) => format!("{} at port {port}", command(application)),
        AppPort::Assigned => command(application),
    }
}

fn command(application: &Application) -> String {
    secrets::hidden_words(&application.words)
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}

/// A line in which nothing steers the terminal and no secret is shown.
fn line(text: &mut String, depth: usize, words: &str) {
    let _ = writeln!(text, "{}{}", "  ".repeat(depth), secrets::hide(&figures::visible(words)));
}
