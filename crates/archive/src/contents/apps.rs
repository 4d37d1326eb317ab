//! What of the machine the applications and the configuration need: which projects, files and programs.
//!
//! Owns the reading of settings; the walking is done by `sources.rs`.

use std::collections::BTreeSet;

use onehop_config::checked::{App, AppRun, Checked};

use super::base::{Base, PathLocation, parent};
use super::below::below;
use super::error::{ContentsError, Named};
use super::notes::Notes;

/// What is to be gathered, below the base.
#[derive(Debug, Default)]
pub struct Needed {
    /// Folders, with all that is in them.
    pub folders: BTreeSet<String>,
    /// Single files that the configuration names.
    pub files: BTreeSet<String>,
    /// What a command line names, besides: files and folders of the project that it needs.
    pub needed: BTreeSet<String>,
    /// Environment files of applications.
    pub environments: BTreeSet<String>,
    /// Names of the applications.
    pub apps: Vec<String>,
}

/// Everything that the settings name and that is not a tree.
///
/// # Errors
///
/// Something of it lies where a pack does not reach.
pub fn needed(base: &Base, checked: &Checked, notes: &mut Notes) -> Result<Needed, ContentsError> {
    let mut wanted = Needed::default();
    for app in checked.apps() {
        of_app(base, app, &mut wanted, notes)?;
        wanted.apps.push(app.name.clone());
    }
    for proxy in checked.proxies() {
        let Some(tls) = &proxy.transport.tls else { continue };
        let client = tls.client_certificate.iter().flat_map(|(certificate, key)| [certificate, key]);
        for path in tls.trusted.iter().chain(client) {
            if let Some(path) = below(base, path, Named::File, notes)? {
                wanted.files.insert(path);
            }
        }
    }
    Ok(wanted)
}

fn of_app(base: &Base, app: &App, wanted: &mut Needed, notes: &mut Notes) -> Result<(), ContentsError> {
    let program = match &app.run {
        // Somebody else starts it.
        AppRun::Elsewhere { .. } => return Ok(()),
        AppRun::Handler { file, runtime, .. } => {
            if let Some(runtime) = runtime.as_deref().filter(|runtime| runtime.contains('/'))
                && let Some(path) = below(base, &app.directory.join(runtime), Named::Runtime, notes)?
            {
                wanted.files.insert(path);
            }
            Some(file.clone())
        }
        AppRun::Command { line } => {
            for word in line.iter().skip(1) {
                if let PathLocation::Within(path) = base.locate(&app.directory.join(word))
                    && base.at(&path).exists()
                {
                    wanted.needed.insert(path);
                }
            }
            line.first().filter(|program| program.contains('/')).map(|program| app.directory.join(program))
        }
    };
    let directory = below(base, &app.directory, Named::Folder, notes)?;
    if let Some(program) = program
        && let Some(program) = below(base, &program, Named::File, notes)?
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
        && let Some(files) = below(base, files, Named::Folder, notes)?
    {
        wanted.folders.insert(files);
    }
    for path in &app.environment.files {
        if let Some(path) = below(base, path, Named::File, notes)? {
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
