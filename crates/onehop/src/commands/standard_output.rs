//! Standard output: what commands print, and the pages of `onehop completions` and `onehop man`.

use std::io::{self, Write};

use clap::CommandFactory;

use crate::arguments::{Arguments, Completions, Man};
use crate::failure::Failure;

pub(crate) fn completions(arguments: &Completions) -> Result<(), Failure> {
    let mut page = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "onehop", &mut page);
    print_all(&page).map_err(|error| Failure::failed(format!("cannot write to standard output: {error}")))?;
    Ok(())
}

pub(crate) fn manual(arguments: &Man) -> Result<(), Failure> {
    let mut command = Arguments::command();
    command.build();
    for name in &arguments.command {
        let found = command.find_subcommand(name).cloned();
        command = found.ok_or_else(|| Failure::wrong(format!("there is no command {name:?}")))?;
    }
    if !arguments.command.is_empty() {
        command = command.display_name(format!("onehop-{}", arguments.command.join("-")));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .source(concat!("onehop ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)
        .map_err(|error| Failure::failed(format!("cannot write the page: {error}")))?;
    print_all(&page).map_err(|error| Failure::failed(format!("cannot write to standard output: {error}")))?;
    Ok(())
}

pub(crate) fn version() {
    print(concat!("onehop ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// To standard output. A reader that has seen enough (`| head`) is no error.
pub(super) fn print(text: &str) {
    let _ = print_all(text.as_bytes());
}

/// The same for what must not be lost.
pub(super) fn print_all(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}
