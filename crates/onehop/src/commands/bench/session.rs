//! What surrounds every measurement: the machine, the command, the view of it, and how it is broken off.
//!
//! Owns the report's frame and the exit code of what was measured. Never changes a figure.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use onehop_load::caveat::{Caveat, CaveatCode};
use onehop_load::measure::{self, Machine, StealMeter};
use onehop_load::progress::{Observer, Progress};
use onehop_message::calendar::Moment;
use onehop_report::{Findings, Live, Report};

use super::output::Destinations;
use crate::arguments::Output;
use crate::failure::Failure;
use crate::signals;

/// A measurement that begins.
pub(crate) struct Session {
    destinations: Destinations,
    view: View,
    begun: SystemTime,
    machine: Machine,
    steal: StealMeter,
    /// Programs that take part, and their versions.
    pub(crate) versions: Vec<(String, String)>,
    /// What a reader must know beside the findings.
    pub(crate) caveats: Vec<Caveat>,
}

/// Who watches.
#[expect(clippy::large_enum_variant, reason = "there is one, for as long as the command runs")]
enum View {
    Live(Live),
    Quiet(Arc<AtomicBool>),
}

impl Session {
    /// Checks the destinations, listens for Ctrl-C and looks at the machine.
    pub(crate) fn begin(output: &Output) -> Result<Session, Failure> {
        let destinations = Destinations::check(output)?;
        let interrupted = Arc::new(AtomicBool::new(false));
        signals::break_off(Arc::clone(&interrupted))
            .map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))?;
        let machine = measure::look();
        let mut caveats = machine.caveats();
        if cfg!(debug_assertions) {
            caveats.push(
                CaveatCode::DebugBuild
                    .says("this onehop was built for debugging: its own figures, as a server, mean nothing"),
            );
        }
        Ok(Session {
            destinations,
            view: if output.quiet {
                View::Quiet(interrupted)
            } else {
                View::Live(Live::new().interruptible(interrupted))
            },
            begun: SystemTime::now(),
            machine,
            steal: StealMeter::start(),
            versions: Vec::new(),
            caveats,
        })
    }

    /// A line before the measurement, where progress is shown.
    pub(crate) fn say(&self, line: &str) {
        if matches!(self.view, View::Live(_)) {
            crate::report::write_line(line);
        }
    }

    /// Adds the version of a program, where it tells one.
    pub(crate) fn note_version(&mut self, program: &str) {
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        let is_known = |version: &String| {
            self.versions.iter().any(|(known, reported)| *known == *name && reported == version)
        };
        if let Some(version) = measure::version_of(program).filter(|version| !is_known(version)) {
            self.versions.push((name.into_owned(), version));
        }
    }

    /// Tells what was found.
    pub(crate) fn tell(mut self, findings: Findings) -> Result<(), Failure> {
        if let View::Live(live) = &mut self.view {
            live.finish();
        }
        let reported = Report {
            command: onehop_report::hidden_words(&typed()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            date: Moment::of(self.begun).rfc3339(),
            machine: self.machine,
            steal: self.steal.share(),
            versions: self.versions,
            findings,
            caveats: self.caveats,
        };
        self.destinations.write(&reported)
    }
}

impl Observer for Session {
    fn stage(&mut self, words: &str) {
        if let View::Live(live) = &mut self.view {
            live.stage(words);
        }
    }

    fn progress(&mut self, progress: &Progress) {
        if let View::Live(live) = &mut self.view {
            live.progress(progress);
        }
    }

    fn is_interrupted(&self) -> bool {
        match &self.view {
            View::Live(live) => live.is_interrupted(),
            View::Quiet(interrupted) => interrupted.load(Ordering::Acquire),
        }
    }
}

/// The command line, with the program's name as people know it.
fn typed() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("onehop".to_owned()).chain(words).collect()
}
