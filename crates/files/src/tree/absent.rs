//! What is left out of a tree because the server itself writes it: it would be read again with every line of a log.

use std::fs;
use std::path::{Path, PathBuf};

/// Of absolute patterns as `hide` has them: those of files in this root or below it. Links in either path are followed first.
#[must_use]
pub fn absent_below(root: &Path, patterns: &[String]) -> Vec<String> {
    let root = without_links(root);
    let folder_and_name = patterns.iter().filter_map(|pattern| pattern.rsplit_once('/'));
    let placed = folder_and_name.map(|(folder, name)| (without_links(Path::new(folder)), name));
    let below = placed.filter(|(folder, _)| folder.starts_with(&root));
    below.map(|(folder, name)| format!("{}/{name}", folder.to_string_lossy().trim_end_matches('/'))).collect()
}

/// Where a path leads. What does not exist yet is taken as written.
fn without_links(path: &Path) -> PathBuf {
    for there in path.ancestors() {
        if let Ok(real) = fs::canonicalize(there) {
            return path.strip_prefix(there).map_or(real.clone(), |rest| real.join(rest));
        }
    }
    path.to_path_buf()
}
