//! Paths as text: nothing here looks at a file.

use std::path::{Component, Path, PathBuf};

/// A path as the Onehopfile writes it: `./…` below the folder, else whole.
pub fn below(folder: &Path, path: &Path) -> String {
    match path.strip_prefix(folder) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => format!("./{}", rest.display()),
        Err(_) => path.display().to_string(),
    }
}

/// The path without `.` and `..` in it, as text: no link is looked at.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}
