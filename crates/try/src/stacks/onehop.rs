//! onehop's side: the Onehopfile, and the command that runs it.

use std::net::SocketAddr;
use std::path::Path;

use onehop_bench::compare::Source;
use onehop_load::measure;
use onehop_load::measure::Start;

use super::{READY_WITHIN, Stack, StackBuilder, Tells, fill, loopback, scratch, write};
use crate::SideBySideError;
use crate::setup::{AppPort, Setup};

/// A name that ends in `Caddyfile` has its relative paths start in the working directory, which is the user's folder;
/// those of an Onehopfile would start in the scratch folder.
const FILE: &str = "try.Caddyfile";

/// Where the Onehopfile that a person gets listens, where nothing better is known.
const SHOWN_PORT: u16 = 8080;
/// Where most applications listen without `PORT`.
const SHOWN_APP_PORT: u16 = 3000;

impl StackBuilder<'_> {
    /// The stack of onehop.
    pub(crate) fn onehop(&mut self) -> Result<Stack, SideBySideError> {
        let folder = scratch()?;
        let (port, admin) = (self.port()?, loopback(self.port()?));
        let is_run_by_onehop = self.is_run_by_onehop();
        let app_port = if is_run_by_onehop { None } else { self.app_port()? };
        let text = self.setup.onehopfile.replace("{workers}", "1");
        let text = fill(&with_admin(&text, admin), port, app_port, folder.path());
        let file = write(folder.path().join(FILE), &text)?;
        let program = self.onehop.to_string_lossy().into_owned();
        let mut words = vec![program.clone(), "run".to_owned(), "--config".to_owned(), text_of(&file)];
        words.extend(["--control".to_owned(), text_of(&folder.path().join("control"))]);
        let mut directory = self.setup.folder.clone();
        let mut behind = Vec::new();
        if !is_run_by_onehop {
            behind = self.behind();
            if let (Some(application), Some(app_port)) = (self.application_to_start(), app_port) {
                let script = super::starter::script(application, app_port, &directory, &words);
                let script = write(folder.path().join("start.sh"), &script)?;
                words = vec!["/bin/sh".to_owned(), text_of(&script)];
                directory = folder.path().to_owned();
            }
        }
        let start = Start {
            words,
            environment: Vec::new(),
            directory: Some(directory),
            port: Some(port),
            behind,
            ready_within: READY_WITHIN,
        };
        let version = measure::version_of(&program).unwrap_or_else(|| "onehop".to_owned());
        let what = match &self.setup.application {
            Some(application) if is_run_by_onehop => {
                format!("runs {}", super::today::application_words(application))
            }
            Some(application) => format!("in front of {}", super::today::application_words(application)),
            None => "serves the files".to_owned(),
        };
        Ok(Stack {
            name: "onehop".to_owned(),
            words: format!("{version} {what}"),
            source: Source::Command(start.clone()),
            telling: Source::Command(start),
            tells: Tells::Metrics(admin),
            address: loopback(port),
            app_port: self.application_to_start().and(app_port),
            _scratch: Some(folder),
        })
    }

    /// Whether onehop runs the application itself, so that it needs no port.
    pub(super) fn is_run_by_onehop(&self) -> bool {
        self.setup.application.as_ref().is_none_or(|application| application.is_run_by_onehop)
    }

    /// See [`Setup::shown_onehopfile`].
    pub(crate) fn shown_onehopfile(&self) -> String {
        self.setup.shown_onehopfile()
    }
}

impl Setup {
    /// The Onehopfile for a person: with ports that can be kept.
    pub fn shown_onehopfile(&self) -> String {
        let app_port = match self.application.as_ref().map(|application| application.port) {
            Some(AppPort::Fixed(port)) => Some(port),
            Some(AppPort::Running(address)) => Some(address.port()),
            Some(AppPort::Assigned) => Some(SHOWN_APP_PORT),
            None => None,
        };
        // What goes to the scratch folder in a side-by-side run goes beside the file afterwards.
        let text = at_addresses(&self.onehopfile, &self.addresses);
        let text = text.replace("{workers}", self.workers.as_deref().unwrap_or("1"));
        fill(&text, SHOWN_PORT, app_port, Path::new("."))
    }
}

/// The same text with the site at the addresses that it has today, if there are any.
fn at_addresses(text: &str, addresses: &[String]) -> String {
    let lines = text.lines().map(|line| match line.strip_prefix(":{port}") {
        Some(rest) if !addresses.is_empty() => format!("{}{rest}\n", addresses.join(", ")),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// The same text with the admin endpoint where it can be read. The global block is the first of a file, if there is
/// one, and begins with a brace that stands alone.
fn with_admin(text: &str, admin: SocketAddr) -> String {
    let line = format!("\tadmin {admin}");
    let is_blank = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let begin = text.lines().take_while(is_blank).count();
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.get(begin).is_none_or(|line| line.trim() != "{") {
        return format!("{{\n{line}\n}}\n{text}");
    }
    let end =
        lines.iter().skip(begin).position(|line| line.trim() == "}").map_or(lines.len(), |at| begin + at);
    let mut number = 0;
    lines.retain(|kept| {
        let is_within = number > begin && number < end;
        number += 1;
        !(is_within && kept.split_whitespace().next() == Some("admin"))
    });
    lines.insert(begin + 1, &line);
    lines.join("\n") + "\n"
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_onehopfile_of_a_person_keeps_the_names_of_its_site() {
        let text = "{\n\tgrace_period 1s\n}\n:{port} {\n\trespond :{port}\n}\n";
        assert_eq!(at_addresses(text, &[]), text);
        assert_eq!(
            at_addresses(text, &["http://a.example".to_owned(), "http://b.example:81".to_owned()]),
            "{\n\tgrace_period 1s\n}\nhttp://a.example, http://b.example:81 {\n\trespond :{port}\n}\n"
        );
    }

    #[test]
    fn the_admin_endpoint_is_put_where_it_can_be_read() {
        let admin = "127.0.0.1:2".parse().unwrap();
        for (text, expected) in [
            (":{port}\nspa ./dist\n", "{\n\tadmin 127.0.0.1:2\n}\n:{port}\nspa ./dist\n"),
            (
                "# made by try\n{\n\tadmin off\n\tmemory 1GiB\n}\n:1 {\n\tfile_server\n}\n",
                "# made by try\n{\n\tadmin 127.0.0.1:2\n\tmemory 1GiB\n}\n:1 {\n\tfile_server\n}\n",
            ),
        ] {
            assert_eq!(with_admin(text, admin), expected);
        }
    }
}
