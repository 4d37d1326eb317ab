//! Serving: the configuration out of the pack, the changes, and where files of applications are unpacked.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use onehop_archive::installed::{Packed, UnpackFolder};
use onehop_config::checked::{AppRun, Checked};
use onehop_config::{Loaded, Problem};

use super::Own;
use super::choices::Choices;
use crate::arguments::{LogForm, PackedArguments};
use crate::commands::serving::{Serving, reporter, serve_until_stopped};
use crate::failure::Failure;
use crate::problems::{self, Look};
use crate::report::Reporter;
use crate::units::counted;
use crate::watch::{Watched, Watching};

pub(super) fn serve(own: &Own, arguments: &PackedArguments) -> Result<(), Failure> {
    let reporter = reporter(&arguments.process)?;
    let choices = Choices::of(&arguments.changes, own)?;
    let (folder, loaded) = load(own, &choices)?;
    let base = folder.base();
    reporter.starting(&serves(own, &choices, &loaded.checked));
    tell_warnings(own, &reporter, arguments.process.log, &loaded.warnings, &base);
    tell_missing_variables(own, &reporter);
    let watching: Watching = Arc::new(Mutex::new(watched(&choices, loaded.files, &base)));
    let load = {
        let (own, choices, watching, base) =
            (own.shared(), choices.clone(), Arc::clone(&watching), base.clone());
        Arc::new(move || load_again(&own, &choices, &base, &watching))
    };
    let packed = Packed { pack: Arc::clone(&own.pack), index: Arc::clone(&own.index), folder };
    serve_until_stopped(Serving {
        checked: loaded.checked,
        process: &arguments.process,
        subject: own.program,
        load,
        watch: arguments.watch.then_some(watching),
        packed: Some(packed),
        reporter,
        keeps_history: true,
    })
}

/// The configuration, and where files would be unpacked: which place will do depends on whether any has to be.
fn load(own: &Own, choices: &Choices) -> Result<(UnpackFolder, Loaded), Failure> {
    let drawn = |base: &Path| {
        let (name, look) = (base.to_path_buf(), Look::of_standard_error());
        move |errors: Vec<Problem>| Failure::drawn(own.named(&problems::draw(&errors, look), &name))
    };
    let provisional = own.nowhere();
    let first = choices.load(own, &provisional).map_err(drawn(&provisional))?;
    let starts_apps = first.checked.apps().iter().any(|app| !matches!(app.run, AppRun::Elsewhere { .. }));
    let only_handlers = !first.checked.apps().iter().any(|app| matches!(app.run, AppRun::Command { .. }));
    let needs_exec = starts_apps && UnpackFolder::needs_exec(&own.index, only_handlers);
    let folder = UnpackFolder::choose(&own.key, needs_exec, starts_apps).map_err(Failure::failed)?;
    let base = folder.base();
    let loaded = choices.load(own, &base).map_err(drawn(&base))?;
    Ok((folder, loaded))
}

/// The same for a reload, in plain text, since it also goes through the control socket.
fn load_again(own: &Own, choices: &Choices, base: &Path, watching: &Watching) -> Result<Checked, String> {
    let loaded =
        choices.load(own, base).map_err(|errors| own.named(&problems::draw(&errors, Look::Plain), base))?;
    *watching.lock().unwrap_or_else(PoisonError::into_inner) = watched(choices, loaded.files, base);
    Ok(loaded.checked)
}

/// Nothing of the pack changes. A file beside the program may come later.
fn watched(choices: &Choices, mut files: Vec<PathBuf>, base: &Path) -> Watched {
    files.retain(|file| !file.starts_with(base));
    let possible = choices.possible_file();
    if !files.contains(&possible) {
        files.push(possible);
    }
    Watched::only(files)
}

/// `serves the pack shop: 3 sites, 1 app, with /etc/shop.override`
fn serves(own: &Own, choices: &Choices, checked: &Checked) -> String {
    let mut text =
        format!("serves the pack {}: {}", own.index.name, counted(checked.sites.len() as u64, "site"));
    match checked.apps().len() {
        0 => {}
        apps => text.push_str(&format!(", {}", counted(apps as u64, "app"))),
    }
    if let Some(file) = choices.file() {
        text.push_str(&format!(", with {}", file.display()));
    }
    text
}

fn tell_warnings(own: &Own, reporter: &Reporter, form: LogForm, warnings: &[Problem], base: &Path) {
    for warning in warnings {
        match form {
            LogForm::Plain => {
                let drawn = problems::draw(std::slice::from_ref(warning), Look::of_standard_error());
                crate::report::write_line(own.named(drawn.trim_end(), base).trim_end());
            }
            LogForm::Json => reporter.warn(own.named(&warning.to_string(), base)),
        }
    }
}

/// Variables of files that were left out of the pack have to come from here. The environment of a process never changes,
/// so this is told once.
fn tell_missing_variables(own: &Own, reporter: &Reporter) {
    let is_missing = |name: &&String| std::env::var_os(name.as_str()).is_none();
    let missing: Vec<&str> = own.index.variables.iter().filter(is_missing).map(String::as_str).collect();
    if !missing.is_empty() {
        reporter.warn(format!(
            "its applications expect variables that are not set: {} (their file was left out of the pack; set them, or name \
             a file: `env_file` in an override file)",
            missing.join(", ")
        ));
    }
}
