//! `onehop pack --oci`: the image of a pack that was made, beside it or alone.
//!
//! Owns the file on disk: it appears under its name when it is whole. What stands in it is the archive crate's.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use onehop_archive::oci::{self, ImageError, Reference, Settings};

use super::output::{Program, folder_of};
use crate::arguments::OciArguments;
use crate::failure::Failure;
use crate::units::bytes;

/// An image that lies where it was asked for.
#[derive(Debug)]
pub(super) struct Image {
    /// Its file.
    pub(super) path: PathBuf,
    /// For a person: what it is called, how large it is.
    pub(super) summary: String,
    /// What will probably not be as it was meant.
    pub(super) warnings: Vec<String>,
}

/// Writes the image of this pack, if one was asked for. `name` is that of the executable.
pub(super) fn write(pack: &Path, name: &str, asked: &OciArguments) -> Result<Option<Image>, Failure> {
    let Some(path) = &asked.image else { return Ok(None) };
    let settings = Settings {
        reference: asked.tag.clone().unwrap_or_else(|| Reference::of_program(name)),
        labels: asked.labels.iter().cloned().collect(),
        created: created(std::env::var("SOURCE_DATE_EPOCH").ok())?,
    };
    let unfinished = unfinished(path);
    let written = make(pack, &settings, &unfinished);
    let written = written.and_then(|written| {
        fs::rename(&unfinished, path)?;
        Ok(written)
    });
    let written = written.map_err(|error| {
        // It may never have been there.
        let _ = fs::remove_file(&unfinished);
        match error {
            ImageError::Io(_) => Failure::failed(format!("{}: {error}", path.display())),
            error => failure(error),
        }
    })?;
    let summary = format!(
        "{}, {}, {} for linux/{}",
        path.display(),
        bytes(written.bytes),
        settings.reference.short(),
        written.architecture,
    );
    Ok(Some(Image { path: path.clone(), summary, warnings: written.warnings }))
}

/// Whether the program can stand in an image, before anything is written.
pub(super) fn may_hold(program: &Program) -> Result<(), Failure> {
    oci::can_hold(&program.file, &program.target).map(drop).map_err(failure)
}

fn failure(error: ImageError) -> Failure {
    match error {
        ImageError::Dynamic { .. } | ImageError::Target(_) => Failure::wrong(error.to_string()),
        ImageError::Pack { .. } | ImageError::Io(_) => Failure::failed(error.to_string()),
    }
}

fn make(pack: &Path, settings: &Settings, unfinished: &Path) -> Result<oci::Written, ImageError> {
    let mut out = File::create(unfinished)?;
    let written = oci::write(pack, settings, &folder_of(unfinished), &mut out)?;
    out.sync_all()?;
    Ok(written)
}

/// Beside the file that it will be, so that renaming it is one step.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

/// The time that reproducible builds agree on (reproducible-builds.org, SOURCE_DATE_EPOCH).
fn created(epoch: Option<String>) -> Result<Option<u64>, Failure> {
    let Some(epoch) = epoch.filter(|epoch| !epoch.is_empty()) else { return Ok(None) };
    epoch.parse().map(Some).map_err(|_| {
        Failure::wrong(format!("SOURCE_DATE_EPOCH is {epoch:?}; it has to be seconds since 1970, or unset"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_is_not_finished_lies_beside_its_place() {
        let path = unfinished(Path::new("out/app.tar"));
        assert_eq!(path.parent(), Some(Path::new("out")));
        assert!(path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".app.tar.")));
    }

    #[test]
    fn a_time_that_is_none_is_said_to_be_wrong() {
        assert_eq!(created(None).expect("no time"), None);
        assert_eq!(created(Some("1700000000".into())).expect("a time"), Some(1_700_000_000));
        assert!(created(Some("yesterday".into())).is_err());
    }
}
