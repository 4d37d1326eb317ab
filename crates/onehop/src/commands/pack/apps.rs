//! What of the machine the applications and the configuration need: which projects, files and programs.
//!
//! Owns the reading of settings; the walking is done by `sources.rs`.

use std::collections::BTreeSet;
use std::path::Path;

use onehop_config::checked::{App, AppRun, Checked};
use onehop_server::request::route::app_wishes;

use super::base::{Base, Place, parent};
use super::notes::Notes;
use crate::failure::Failure;

/// What is to be gathered, below the base.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Folders, with all that is in them.
    pub(super) folders: BTreeSet<String>,
    /// Single files that the configuration names.
    pub(super) files: BTreeSet<String>,
    /// What a command line names, besides: files and folders of the project that it needs.
    pub(super) needed: BTreeSet<String>,
    /// Environment files of applications.
    pub(super) environments: BTreeSet<String>,
    /// Names of the applications.
    pub(super) apps: Vec<String>,
}

/// Everything that the settings name and that is not a tree.
pub(super) fn wanted(base: &Base, checked: &Checked, notes: &mut Notes) -> Result<Wanted, Failure> {
    let mut wanted = Wanted::default();
    for app in app_wishes(checked) {
        of_app(base, &app, &mut wanted, notes)?;
        wanted.apps.push(app.name.clone());
    }
    for proxy in checked.proxies() {
        let Some(tls) = &proxy.transport.tls else { continue };
        let client = tls.client_certificate.iter().flat_map(|(certificate, key)| [certificate, key]);
        for path in tls.trusted.iter().chain(client) {
            if let Some(path) = below(base, path, "the file", notes)? {
                wanted.files.insert(path);
            }
        }
    }
    Ok(wanted)
}

fn of_app(base: &Base, app: &App, wanted: &mut Wanted, notes: &mut Notes) -> Result<(), Failure> {
    let program = match &app.run {
        // Somebody else starts it.
        AppRun::Elsewhere { .. } => return Ok(()),
        AppRun::Handler { file, runtime, .. } => {
            if let Some(runtime) = runtime.as_deref().filter(|runtime| runtime.contains('/'))
                && let Some(path) = below(base, &app.directory.join(runtime), "the runtime", notes)?
            {
                wanted.files.insert(path);
            }
            Some(file.clone())
        }
        AppRun::Command { line } => {
            for word in line.iter().skip(1) {
                if let Place::Within(path) = base.place(&app.directory.join(word))
                    && base.at(&path).exists()
                {
                    wanted.needed.insert(path);
                }
            }
            line.first().filter(|program| program.contains('/')).map(|program| app.directory.join(program))
        }
    };
    let directory = below(base, &app.directory, "the folder", notes)?;
    if let Some(program) = program
        && let Some(program) = below(base, &program, "the file", notes)?
    {
        let folder = parent(&program).unwrap_or_default();
        // Without a package.json, the folder that it runs in is all that is known of its project.
        match (project(base, folder), &directory) {
            (Some(project), _) => drop(wanted.folders.insert(project)),
            (None, Some(_)) => {}
            (None, None) => drop(wanted.folders.insert(folder.to_owned())),
        }
        wanted.files.insert(program);
    }
    if let Some(directory) = directory {
        wanted.folders.insert(project(base, &directory).unwrap_or(directory));
    }
    if let Some(files) = &app.files
        && let Some(files) = below(base, files, "the folder", notes)?
    {
        wanted.folders.insert(files);
    }
    for path in &app.environment.files {
        if let Some(path) = below(base, path, "the file", notes)? {
            wanted.environments.insert(path);
        }
    }
    Ok(())
}

/// The nearest folder upwards that has a package.json, up to the base.
fn project(base: &Base, folder: &str) -> Option<String> {
    let mut at = Some(folder);
    while let Some(folder) = at {
        if base.at(folder).join("package.json").is_file() {
            return Some(folder.to_owned());
        }
        at = parent(folder);
    }
    None
}

/// A path of the settings below the base; what lies elsewhere on the machine is noted.
fn below(base: &Base, path: &Path, what: &str, notes: &mut Notes) -> Result<Option<String>, Failure> {
    match base.place(path) {
        Place::Within(below) => Ok(Some(below)),
        Place::Outside(path) => {
            notes.needs_outside(path.display().to_string());
            Ok(None)
        }
        Place::LeadsOut(path) => Err(Failure::wrong(format!(
            "{what} {path} leads out of {}, the folder of the configuration\n  \
             move the Onehopfile to a folder that holds both, or write an absolute path: it is then looked for on the \
             machine",
            base.folder().display()
        ))),
        Place::WrittenAbsolute(below) => {
            let written = base.shown(&Place::WrittenAbsolute(below.clone()));
            Err(Failure::wrong(format!(
                "{what} {written} is written as an absolute path, which a pack would look for on the machine\n  \
                 write it below the Onehopfile, and it is packed:  ./{below}"
            )))
        }
    }
}
