//! Finds the configuration file, reads it and refuses what cannot be served yet.
//!
//! What the text means is the config crate's; this knows names, the working directory and the exit code.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use onehop_config::checked::{Checked, ListenAddress};
use onehop_config::{FileKind, FileSource, Loaded};

use crate::failure::Failure;
use crate::problems::{self, Look};
use crate::watch::{Watched, Watching};

/// Where a file is looked for that nobody named: in the working directory, then where services and containers keep
/// theirs. The last one is that of Caddy's packages and image, so that a container needs another image and no more.
const PLACES: [&str; 4] = ["Onehopfile", "Caddyfile", "/etc/onehop/Onehopfile", "/etc/caddy/Caddyfile"];

/// The file that was taken.
#[derive(Debug, Clone)]
pub(crate) struct ConfigurationFile {
    /// As it was named or found.
    pub(crate) path: PathBuf,
    /// How it is read.
    pub(crate) kind: FileKind,
}

/// The file that was named, else the first that stands in one of the usual places. `line` is what to type to name one.
pub(crate) fn find(named: Option<&PathBuf>, line: &str) -> Result<ConfigurationFile, Failure> {
    if let Some(path) = named {
        if path.is_dir() {
            return Err(Failure::wrong(format!(
                "{} is a folder; name the file in it, or serve the folder: onehop serve {}",
                path.display(),
                path.display()
            )));
        }
        if !path.exists() {
            return Err(Failure::wrong(format!(
                "there is no file {}\n  `onehop init` writes an Onehopfile for what is in a folder",
                path.display()
            )));
        }
        return Ok(ConfigurationFile { kind: kind_of(path), path: path.clone() });
    }
    find_here().ok_or_else(|| {
        Failure::wrong(format!(
            "there is no Onehopfile and no Caddyfile in this folder, nor in /etc/onehop and /etc/caddy\n  \
             name one:                 {line}\n  \
             or serve without a file:  onehop serve DIR"
        ))
    })
}

/// The file that stands in one of the usual places.
pub(crate) fn find_here() -> Option<ConfigurationFile> {
    first_of(PLACES.map(PathBuf::from))
}

/// A path that begins at the working directory.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(no_working_directory)
}

/// The working directory.
pub(crate) fn working_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(no_working_directory)
}

fn no_working_directory(error: std::io::Error) -> Failure {
    Failure::failed(format!("there is no working directory ({error}): change into a folder that is there"))
}

/// A path as one types it here.
pub(crate) fn shown_path(path: &Path) -> String {
    let here = std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok());
    here.unwrap_or(path).display().to_string()
}

fn first_of(places: impl IntoIterator<Item = PathBuf>) -> Option<ConfigurationFile> {
    let path = places.into_iter().find(|path| path.is_file())?;
    Some(ConfigurationFile { kind: kind_of(&path), path })
}

/// Reads and checks the file; what is wrong comes back drawn for standard error.
pub(crate) fn load(file: &ConfigurationFile) -> Result<Loaded, Failure> {
    let look = Look::of_standard_error();
    onehop_config::load(&file.path, file.kind, &FileSource)
        .map_err(|errors| Failure::drawn(problems::draw(&errors, look)))
}

/// Reads and checks the file for a reload; what is wrong comes back as plain text, since it also goes
/// through the control socket.
pub(crate) fn load_again(file: &ConfigurationFile, watching: &Watching) -> Result<Checked, String> {
    let loaded = onehop_config::load(&file.path, file.kind, &FileSource)
        .map_err(|errors| problems::draw(&errors, Look::Plain))?;
    let watched = Watched::of(loaded.files, &loaded.checked);
    *watching.lock().unwrap_or_else(PoisonError::into_inner) = watched;
    Ok(loaded.checked)
}

/// A place as it is shown: `:80`, `127.0.0.1:8080`, `unix//run/site.sock`.
pub(crate) fn show_address(address: &ListenAddress) -> String {
    match address {
        ListenAddress::Tcp { host: None, port } => format!(":{port}"),
        ListenAddress::Tcp { host: Some(host), port } => std::net::SocketAddr::new(*host, *port).to_string(),
        ListenAddress::Unix { path, .. } => format!("unix/{}", path.display()),
    }
}

/// The names that Caddy itself takes for a Caddyfile: `Caddyfile.production`, `site.caddyfile`.
fn kind_of(path: &Path) -> FileKind {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_caddyfile = name.starts_with("caddyfile") || name.ends_with("caddyfile");
    if is_caddyfile { FileKind::Caddyfile } else { FileKind::Onehopfile }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caddys_own_place_is_looked_at_last() {
        let root = std::env::temp_dir().join(format!("onehop-places-{}", std::process::id()));
        // As in a container: the working directory beside /etc.
        let places = PLACES.map(|place| match place.strip_prefix('/') {
            Some(system) => root.join(system),
            None => root.join("srv").join(place),
        });
        let found = || first_of(places.clone()).map(|file| file.path);
        for folder in ["srv", "etc/onehop", "etc/caddy/Caddyfile.d"] {
            std::fs::create_dir_all(root.join(folder)).expect("a folder");
        }
        assert_eq!(found(), None);
        for (number, kind) in [
            (3, FileKind::Caddyfile),
            (2, FileKind::Onehopfile),
            (1, FileKind::Caddyfile),
            (0, FileKind::Onehopfile),
        ] {
            std::fs::write(&places[number], "").expect("a file");
            assert_eq!(found().as_ref(), Some(&places[number]));
            assert_eq!(first_of(places.clone()).map(|file| file.kind), Some(kind));
        }
        std::fs::remove_dir_all(root).expect("it was there");
    }

    #[test]
    fn a_name_that_begins_or_ends_in_caddyfile_is_read_as_caddy_reads_it() {
        for (path, expected) in [
            ("Caddyfile", FileKind::Caddyfile),
            ("/etc/caddy/Caddyfile", FileKind::Caddyfile),
            ("site.Caddyfile", FileKind::Caddyfile),
            ("site.caddyfile", FileKind::Caddyfile),
            ("Caddyfile.production", FileKind::Caddyfile),
            ("Onehopfile", FileKind::Onehopfile),
            ("Caddyfile/Onehopfile", FileKind::Onehopfile),
        ] {
            assert_eq!(kind_of(Path::new(path)), expected, "{path}");
        }
    }
}
