//! What a merge leaves behind: text of both sides between markers.
//!
//! Looks at every text of the checkout, as documentation is merged more often than code; `links.rs` looks at the links of
//! the pages among them.

use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::links;

/// Larger files are no text that somebody merges by hand. Bytes.
const TEXT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Folders of what is built, installed or kept by git.
const LEFT_OUT: [&str; 6] = [".git", "target", "node_modules", "dist", "corpus", "artifacts"];

/// What a marker's line begins with, with a name behind it. The line of `=` between them may be a heading.
const MARKERS: [&str; 2] = ["<<<<<<< ", ">>>>>>> "];

/// Every file below a folder.
pub(super) fn check_tree(root: &Path, findings: &mut Vec<Finding>) {
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Ok(found) = entry.metadata() else { continue };
            let path = entry.path();
            if found.is_dir() && !LEFT_OUT.contains(&entry.file_name().to_string_lossy().as_ref()) {
                folders.push(path);
            } else if found.is_file()
                && found.len() <= TEXT_BYTES_MAX
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
                check(&name, &text, findings);
                if name.ends_with(".md") {
                    links::check(root, &name, &text, findings);
                }
            }
        }
    }
}

fn check(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        if MARKERS.iter().any(|marker| line.starts_with(marker)) {
            findings.push(Finding {
                path: path.to_owned(),
                line: index + 1,
                reason:
                    "a merge was not finished here: keep what is right of both sides, and remove its markers"
                        .to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_that_was_not_finished_is_found_in_any_text() {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path();
        let below = folder.join("docs/guide");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::create_dir_all(folder.join("target")).unwrap();
        let text = format!("# Title\n\n{}HEAD\none\n=======\ntwo\n{}other\n", MARKERS[0], MARKERS[1]);
        std::fs::write(below.join("page.md"), &text).unwrap();
        std::fs::write(folder.join("target/page.md"), &text).unwrap();
        std::fs::write(folder.join("sound.md"), "Title\n=======\n    <<<<<<< shown\n").unwrap();
        let mut findings = Vec::new();
        check_tree(folder, &mut findings);
        let found: Vec<_> = findings.iter().map(|finding| (finding.path.as_str(), finding.line)).collect();
        assert_eq!(found, [("docs/guide/page.md", 3), ("docs/guide/page.md", 7)]);
    }
}
