//! Where results go: standard output, and files.
//!
//! Owns the check, before anything is measured, that each file can be written: nobody should wait for minutes and
//! lose what was found. Never mixes two forms on one output.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use onehop_report::Report;

use crate::arguments::Output;
use crate::commands::standard_output::print_all;
use crate::failure::Failure;

/// A page is as wide as people read, also on a wider terminal.
const WIDTH: usize = 100;
const WIDTH_MIN: usize = 40;

/// Writes a report in one format.
type Format = fn(&Report) -> String;

/// Where a result goes, checked.
#[derive(Debug)]
pub(crate) struct Destinations {
    files: Vec<(Format, PathBuf)>,
    /// What standard output gets in the place of the text.
    instead_of_text: Option<Format>,
    /// The text has all that was found.
    is_verbose: bool,
}

impl Destinations {
    /// Checks that all of it can be written.
    pub(crate) fn check(output: &Output) -> Result<Destinations, Failure> {
        let wanted: [(&Option<PathBuf>, Format); 3] = [
            (&output.json, json),
            (&output.html, onehop_report::html),
            (&output.markdown, onehop_report::markdown),
        ];
        let mut destinations =
            Destinations { files: Vec::new(), instead_of_text: None, is_verbose: output.verbose };
        for (path, format) in wanted {
            let Some(path) = path else { continue };
            if path == Path::new("-") {
                if destinations.instead_of_text.replace(format).is_some() {
                    return Err(Failure::wrong(
                        "only one format of the result can go to standard output (-)",
                    ));
                }
                continue;
            }
            check_file(path)?;
            destinations.files.push((format, path.clone()));
        }
        Ok(destinations)
    }

    /// Writes all of it; what fails is told after the rest was written.
    pub(crate) fn write(&self, report: &Report) -> Result<(), Failure> {
        let reported = self.instead_of_text.map_or_else(|| self.text(report), |format| format(report));
        let mut failed = Vec::new();
        if let Err(error) = print_all(reported.as_bytes()) {
            failed.push(format!("cannot write to standard output: {error}"));
        }
        for (format, path) in &self.files {
            match std::fs::write(path, format(report)) {
                Ok(()) => crate::report::write_line(&format!("written: {}", path.display())),
                Err(error) => failed.push(format!("cannot write {}: {error}", path.display())),
            }
        }
        if failed.is_empty() { Ok(()) } else { Err(Failure::failed(failed.join("\n"))) }
    }

    fn text(&self, report: &Report) -> String {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_terminal = io::stdout().is_terminal();
        let width = match rustix::termios::tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 => usize::from(size.ws_col).clamp(WIDTH_MIN, WIDTH),
            _ => WIDTH,
        };
        let format = if self.is_verbose { onehop_report::text } else { onehop_report::brief };
        format(report, is_terminal && !no_colour, width)
    }
}

/// Opens the file for writing and leaves it as it was; one that was not there is not there afterwards.
fn check_file(path: &Path) -> Result<(), Failure> {
    let cannot = |error: io::Error| {
        Failure::wrong(format!(
            "cannot write {}: {error}\n  nothing was measured yet; name a file in a folder that you may write to",
            path.display()
        ))
    };
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => std::fs::remove_file(path).map_err(cannot),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            OpenOptions::new().append(true).open(path).map(drop).map_err(cannot)
        }
        Err(error) => Err(cannot(error)),
    }
}

fn json(report: &Report) -> String {
    let mut text = onehop_report::json(report).to_string();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_checked_and_left_as_it_was() {
        let folder = std::env::temp_dir().join(format!("onehop-output-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (there, new) = (folder.join("there"), folder.join("new"));
        std::fs::write(&there, "kept").unwrap();
        assert!(check_file(&there).is_ok() && check_file(&new).is_ok());
        assert_eq!(std::fs::read_to_string(&there).unwrap(), "kept");
        assert!(!new.exists());
        assert!(check_file(&folder).is_err() && check_file(&folder.join("no/file")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
