//! `cargo xtask tidy`: the design's rules as failing checks, each with file, line and reason.
//!
//! `source.rs` reads Rust text just well enough (comments and strings blanked, tests known, functions
//! found); `rules.rs` holds the rules; `markers.rs` looks at every text. Nothing here knows how to mend what it finds.

mod markers;
mod rules;
mod source;

use std::path::{Path, PathBuf};

use crate::{Outcome, ground};
use source::Source;

/// Something that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Path from the checkout's top folder.
    pub(crate) path: String,
    /// Line, from 1.
    pub(crate) line: usize,
    /// What is wrong and why it matters.
    pub(crate) reason: String,
}

/// Checks the whole checkout and prints what it finds.
pub(crate) fn run() -> Outcome {
    let (files, findings) = check_tree(&ground::root())?;
    for Finding { path, line, reason } in &findings {
        eprintln!("{path}:{line}: {reason}");
    }
    if findings.is_empty() {
        println!("tidy: {files} files, nothing found");
        return Ok(());
    }
    Err(format!("tidy: {} findings in {files} files", findings.len()).into())
}

fn check_tree(root: &Path) -> Outcome<(usize, Vec<Finding>)> {
    let mut paths = Vec::new();
    for folder in ["crates", "xtask", "benchmarks", "fuzz", "examples", "tests"] {
        collect(&root.join(folder), &mut paths);
    }
    paths.sort();
    let mut findings = Vec::new();
    for path in &paths {
        let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        if name.ends_with(".rs") {
            rules::check_rust(&Source::read(&name, &text), &mut findings);
        } else {
            rules::check_other(&name, &text, &mut findings);
        }
    }
    markers::check_tree(root, &mut findings);
    Ok((paths.len(), findings))
}

/// Rust files, manifests and lockfiles below a folder, without what builds and installers leave.
fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if path.is_dir() {
            if !["target", "node_modules", "dist", "corpus", "artifacts"].contains(&name.as_ref()) {
                collect(&path, paths);
            }
        } else if name.ends_with(".rs") || name == "Cargo.toml" || name == "package-lock.json" {
            paths.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkout_keeps_the_designs_rules() {
        let (files, findings) = check_tree(&ground::root()).unwrap();
        assert!(files > 10, "the checkout was not found");
        let list: Vec<String> = findings
            .iter()
            .map(|finding| format!("{}:{}: {}", finding.path, finding.line, finding.reason))
            .collect();
        assert!(list.is_empty(), "{}", list.join("\n"));
    }
}
