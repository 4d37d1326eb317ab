//! An nginx.conf.
use super::surroundings::Surroundings;
use crate::trial::{Setup, TrialError};
use std::path::Path;
pub(super) fn detect(path: &Path, _surroundings: &Surroundings) -> Result<Setup, TrialError> {
    Err(TrialError::found(
        path.display(),
        "an nginx.conf is not read yet",
        "name the application: onehop try package.json",
    ))
}
pub(super) fn looks_like(_path: &Path) -> bool {
    false
}
