//! `onehop try`: an application as it runs today and with onehop, side by side.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use onehop_report::Findings;
use onehop_try::{Environment, Given, Settings, Setup, SideBySideError};

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
    let setup = setup(arguments).map_err(|error| Failure::wrong(error.to_string()))?;
    if arguments.dry_run {
        super::standard_output::print(&onehop_report::dry_run(&setup));
        return Ok(());
    }
    let mut session = Session::begin(&arguments.output)?;
    let settings = Settings { onehop, within: arguments.within, ..Settings::default() };
    let found = onehop_try::run(&setup, &settings, &mut session)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let onehopfile = found.onehopfile.clone();
    let is_measured = found.comparison.is_some();
    session.tell(Findings::SideBySide(Box::new(found)))?;
    if let Some(file) = &arguments.keep {
        keep(file, &onehopfile)?;
    }
    if is_measured { Ok(()) } else { Err(Failure::failed("nothing was measured: see above why")) }
}

/// What is there, with the paths that are asked.
fn setup(arguments: &Try) -> Result<Setup, SideBySideError> {
    let environment = Environment { is_dry_run: arguments.dry_run, ..Environment::look() };
    let mut given = Given::default();
    arguments.paths.iter().cloned().for_each(|path| given.path(path));
    for file in &arguments.collections {
        given.file(file, &arguments.variables)?;
    }
    let mut setup = onehop_try::detect(&arguments.path, &environment)?;
    setup.choose_routes(given, arguments.probe_routes);
    Ok(setup)
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
