//! `onehop try`: an application as it runs today and with onehop, side by side.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use onehop_load::report::Findings;
use onehop_load::side_by_side::{self, Environment, Settings};

use super::bench::Session;
use crate::arguments::Try;
use crate::failure::Failure;
use crate::own_program;

pub(crate) fn run(arguments: &Try) -> Result<(), Failure> {
    if let Some(file) = arguments.keep.as_deref().filter(|file| file.exists()) {
        return Err(Failure::wrong(format!(
            "{} is there already and is not replaced: name another file, or move it away",
            file.display()
        )));
    }
    let onehop = own_program::name()
        .ok_or_else(|| Failure::failed("cannot find the program itself: /proc is not there"))?
        .to_path_buf();
    let setup = side_by_side::detect(&arguments.path, &Environment::look())
        .map_err(|error| Failure::wrong(error.to_string()))?;
    let mut session = Session::begin(&arguments.output)?;
    let settings = Settings { onehop, within: arguments.within, ..Settings::default() };
    let found = side_by_side::run(&setup, &settings, &mut session)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let onehopfile = found.onehopfile.clone();
    let is_measured = found.comparison.is_some();
    session.tell(Findings::SideBySide(Box::new(found)))?;
    if let Some(file) = &arguments.keep {
        keep(file, &onehopfile)?;
    }
    if is_measured { Ok(()) } else { Err(Failure::failed("nothing was measured: see above why")) }
}

/// Writes the Onehopfile where none is yet.
fn keep(file: &Path, text: &str) -> Result<(), Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    opened
        .and_then(|mut opened| opened.write_all(text.as_bytes()))
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", file.display())))?;
    crate::report::write_line(&format!("written: {}", file.display()));
    Ok(())
}
