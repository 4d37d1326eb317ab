//! Where a path of the settings lies: below the base, or elsewhere on the machine.

use std::path::Path;

use super::base::{Base, PathLocation};
use super::error::{ContentsError, Named};
use super::notes::Notes;

/// A path of the settings below the base; what lies elsewhere on the machine is noted.
///
/// # Errors
///
/// It leads out of the base, or lies in it and was written as an absolute path.
pub fn below(
    base: &Base,
    path: &Path,
    what: Named,
    notes: &mut Notes,
) -> Result<Option<String>, ContentsError> {
    match base.locate(path) {
        PathLocation::Within(below) => Ok(Some(below)),
        PathLocation::Outside(path) => {
            notes.needs_outside(path.display().to_string());
            Ok(None)
        }
        PathLocation::LeadsOut(path) => {
            Err(ContentsError::LeadsOut { what, path, base: base.folder().to_owned() })
        }
        PathLocation::WrittenAbsolute(below) => {
            let written = base.shown(&PathLocation::WrittenAbsolute(below.clone()));
            Err(ContentsError::WrittenAbsolute { what, written, below })
        }
    }
}
