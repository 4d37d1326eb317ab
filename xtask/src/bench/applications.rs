//! The applications of benchmarks/servers beside their packages, as an application's folder is.

use std::path::PathBuf;

use crate::{Outcome, install, workspace};

/// The folder, with the files as they are now.
pub(crate) fn folder() -> Outcome<PathBuf> {
    let place = install::javascript_rival("frameworks")?;
    let source = workspace::root().join("benchmarks/servers");
    for name in ["work.mjs", "handler.mjs"] {
        std::fs::copy(source.join("app").join(name), place.join(name))?;
    }
    for entry in std::fs::read_dir(source.join("frameworks"))? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "mjs") {
            std::fs::copy(entry.path(), place.join(entry.file_name()))?;
        }
    }
    Ok(place)
}
