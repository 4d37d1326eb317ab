//! A Caddyfile.
use super::surroundings::Surroundings;
use crate::trial::{Setup, TrialError};
use std::path::Path;
pub(super) fn detect(path: &Path, _surroundings: &Surroundings) -> Result<Setup, TrialError> {
    Err(TrialError::found(
        path.display(),
        "a Caddyfile is not read yet",
        "name the application: onehop try package.json",
    ))
}
