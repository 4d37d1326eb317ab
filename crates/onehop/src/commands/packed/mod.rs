//! A program that is a pack: serves what it holds, with what whoever runs it changes.
//!
//! `choices` finds what is changed of it, the archive crate reads the configuration. Nothing is tried that is not in the
//! pack: one that is damaged says so and ends.

mod choices;
mod serve;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onehop_archive::{Index, Location, Pack, PackError};

use crate::arguments::{PackedArguments, PackedCommand, Title};
use crate::failure::Failure;
use crate::own_program;
use crate::report::write_line;
use crate::{commands, problems};

use choices::Choices;

/// The pack that this program is.
pub(super) struct Own {
    pack: Arc<Pack>,
    index: Arc<Index>,
    /// Its file.
    program: &'static Path,
    /// What it is unpacked under: the first half of its digest.
    key: String,
}

/// Digits of the digest that a person is shown.
const SHOWN_DIGITS: usize = 12;

/// Does what was asked of a pack.
pub(crate) fn obey(location: Location) -> Result<(), Failure> {
    let own = Own::open(location)?;
    let digest: String = own.key.chars().take(SHOWN_DIGITS).collect();
    let title = Title { name: &own.index.name, made_by: &own.index.made_by, digest: &digest };
    let mut arguments = PackedArguments::read(&title);
    if let Some(target) = arguments.command.as_mut().and_then(PackedCommand::target) {
        // The running one is found by the file of the program.
        target.config.get_or_insert_with(|| own.program.to_path_buf());
    }
    match arguments.command {
        None => {
            let form = arguments.process.log;
            serve::serve(&own, &arguments).map_err(|failure| failure.in_form(form))
        }
        Some(PackedCommand::Inspect(view)) => {
            commands::inspect::show(own.program, &own.pack, &own.index, &view)
        }
        Some(PackedCommand::Status(status)) => commands::status::status(&status),
        Some(PackedCommand::Reload(reload)) => commands::control::reload(&reload),
        Some(PackedCommand::Stop(stop)) => commands::control::stop(&stop),
        Some(PackedCommand::Workers(workers)) => commands::workers::workers(&workers),
        Some(PackedCommand::Logs(logs)) => commands::logs::logs(&logs),
        Some(PackedCommand::Dashboard(dashboard)) => commands::dashboard::dashboard(&dashboard),
        Some(PackedCommand::Top(top)) => commands::top::top(&top),
        Some(PackedCommand::Why(why)) => commands::why::why(&why),
        Some(PackedCommand::Certs(certs)) => commands::certs::certs(&certs),
        Some(PackedCommand::Validate(changes)) => {
            let loaded = own.load_shown(&Choices::of(&changes, &own)?)?;
            commands::validate::tell(&own.index.name, &loaded.checked, Some(&own.nowhere()))
        }
        Some(PackedCommand::Routes(changes)) => {
            commands::routes::show(&own.load_shown(&Choices::of(&changes, &own)?)?.checked);
            Ok(())
        }
    }
}

/// Why this program is no pack that can be used.
pub(crate) fn unusable(error: &PackError) -> Failure {
    let name = own_program::name().unwrap_or(Path::new("this program"));
    commands::inspect::refused(name, error)
}

impl Own {
    fn open(location: Location) -> Result<Self, Failure> {
        let file = own_program::open().map_err(|error| unusable(&PackError::Io(error)))?;
        let (pack, index) = Pack::with_location(file, location).map_err(|error| unusable(&error))?;
        let program = own_program::name()
            .ok_or_else(|| Failure::failed("this program cannot find its own file: /proc is not there"))?;
        let key = onehop_archive::layout::key(&location);
        Ok(Self { pack: Arc::new(pack), index: Arc::new(index), program, key })
    }

    /// The same for another thread.
    fn shared(&self) -> Self {
        Self {
            pack: Arc::clone(&self.pack),
            index: Arc::clone(&self.index),
            program: self.program,
            key: self.key.clone(),
        }
    }

    /// Reads the configuration as it would be served; where files would be unpacked is not looked for.
    fn load_shown(&self, choices: &Choices) -> Result<onehop_config::Loaded, Failure> {
        let base = self.nowhere();
        let look = problems::Look::of_standard_error();
        let loaded = choices
            .load(self, &base)
            .map_err(|errors| Failure::drawn(self.named(&problems::draw(&errors, look), &base)))?;
        if !loaded.warnings.is_empty() {
            write_line(self.named(&problems::draw(&loaded.warnings, look), &base).trim_end());
        }
        Ok(loaded)
    }

    /// Stands for the folder into which it is unpacked, where none is needed.
    fn nowhere(&self) -> PathBuf {
        Path::new("/").join(format!("onehop-pack-{}", self.key))
    }

    /// The text with paths of the pack as paths below its name: where it is unpacked is not what a person thinks of.
    fn named(&self, text: &str, base: &Path) -> String {
        text.replace(&format!("{}/", base.display()), &format!("{}/", self.index.name))
    }
}
