//! Other servers' configurations as Onehopfiles: nginx.conf text in, an Onehopfile or a refusal with its line out.
//!
//! Pure: no socket, clock or process. Files are read through [`Source`], which may be a map in memory; what a text
//! cannot say (which application answers behind a port, what a folder holds) is asked of a [`Deployment`].
//!
//! The way of a translation: [`nginx::Configuration`] reads the file with what it includes and chooses a server of
//! it, [`nginx::translate`] writes that server's directives as those of a site. A directive that decides about
//! answers and has no equal is a [`Refusal`], one that does not is a note: nothing is dropped silently.
//! [`translate`] does all of it in one call. `onehop try` (crates/try) does it in steps, since it looks for the
//! applications in between and measures the configuration beside its translation.
#![forbid(unsafe_code)]

mod deployment;
pub mod nginx;
pub mod onehopfile;
pub mod paths;
mod position;
mod refusal;

use std::path::Path;

use onehop_config::Source;

pub use deployment::{Deployment, TextOnly, Upstream};
pub use position::Position;
pub use refusal::Refusal;

/// The address of a site for which a configuration names none.
const ADDRESS: &str = ":80";

/// A configuration as an Onehopfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translation {
    /// The whole text.
    pub onehopfile: String,
    /// Paths that show whether both answer the same.
    pub paths: Vec<String>,
    /// What could not be carried over, for people; each once.
    pub notes: Vec<String>,
}

/// Translates an nginx.conf with everything that it includes.
///
/// # Errors
///
/// What is no configuration, cannot be read, or has no equal, with its line.
pub fn translate(
    path: &Path,
    source: &dyn Source,
    deployment: &dyn Deployment,
) -> Result<Translation, Refusal> {
    let mut notes = Vec::new();
    let configuration = nginx::Configuration::read(path, source, &mut notes)?;
    let server = configuration.server(&mut notes)?;
    let translated = nginx::translate(&server, deployment, &mut notes)?;
    let addresses = nginx::addresses(server.directive, &mut notes);
    let addresses = if addresses.is_empty() { ADDRESS.to_owned() } else { addresses.join(", ") };
    let mut seen = std::collections::HashSet::new();
    notes.retain(|note| seen.insert(note.clone()));
    let onehopfile = format!("{addresses} {{\n{}}}\n", onehopfile::indented(&translated.body));
    Ok(Translation { onehopfile, paths: translated.paths, notes })
}
