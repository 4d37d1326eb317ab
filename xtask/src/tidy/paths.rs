//! Paths and names in ARCHITECTURE.md exist, so that the text cannot go stale.
//!
//! A name in backticks that begins with a folder of the checkout is a path. In the section [`SECTION`] each item of a list
//! has a path and, behind it, names that this file defines; no list has more than [`ITEMS_MAX`] items, because a reader
//! holds no more in mind.

use std::path::Path;

use super::finding::Finding;
use super::source::{Source, word_in};

const FILE: &str = "ARCHITECTURE.md";

/// The section that follows requests through files.
const SECTION: &str = "## Three requests";

/// Files that the path of one request may have.
const ITEMS_MAX: usize = 12;

/// What a path begins with.
const FOLDERS: [&str; 8] =
    ["benchmarks/", "crates/", "docs/", "examples/", "fuzz/", "sdk/", "tests/", "xtask/"];

/// What stands before a name where it is defined.
const DEFINITIONS: [&str; 7] = ["fn", "struct", "enum", "trait", "const", "function", "class"];

/// Reports paths and names that are not there.
pub(super) fn check(root: &Path, sources: &[Source], findings: &mut Vec<Finding>) {
    let Ok(text) = std::fs::read_to_string(root.join(FILE)) else { return };
    check_text(&text, &|path| root.join(path).exists(), &|path| lines_of(root, sources, path), findings);
}

/// The code of a file; of one that is no Rust, all its text.
fn lines_of(root: &Path, sources: &[Source], path: &str) -> Vec<String> {
    match sources.iter().find(|source| source.path == path) {
        Some(source) => source.code.clone(),
        None => std::fs::read_to_string(root.join(path))
            .map(|text| text.lines().map(str::to_owned).collect())
            .unwrap_or_default(),
    }
}

fn check_text(
    text: &str,
    exists: &dyn Fn(&str) -> bool,
    lines_of: &dyn Fn(&str) -> Vec<String>,
    findings: &mut Vec<Finding>,
) {
    let mut report = |line: usize, reason: String| {
        findings.push(Finding { path: FILE.to_owned(), line: line + 1, reason });
    };
    let (mut is_fenced, mut is_followed, mut items, mut file) = (false, false, 0, None);
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced {
            continue;
        }
        if line.starts_with('#') {
            is_followed = line == SECTION || (is_followed && line.starts_with("###"));
        }
        let is_item = is_followed && line.starts_with("- ");
        if is_item {
            items += 1;
            file = None;
        } else if !line.starts_with(' ') {
            (items, file) = (0, None);
        }
        if items > ITEMS_MAX {
            report(index, format!("the path of a request has more than {ITEMS_MAX} files"));
        }
        for name in line.split('`').skip(1).step_by(2) {
            if FOLDERS.iter().any(|folder| name.starts_with(folder)) {
                if !exists(name) {
                    report(index, format!("`{name}` does not exist"));
                }
                file = Some(name);
            } else if let (true, Some(file)) = (items > 0, file)
                && !is_defined(&lines_of(file), name)
            {
                report(index, format!("`{name}` is not defined in {file}"));
            }
        }
        if is_item && file.is_none() {
            report(index, "an item of a request's path names no file".to_owned());
        }
    }
}

/// Whether all parts of `Type::function` are defined, or implemented, in these lines.
fn is_defined(lines: &[String], name: &str) -> bool {
    name.trim_end_matches("()").split("::").all(|part| {
        lines.iter().any(|line| {
            word_in(line, part).is_some_and(|place| {
                let before = line[..place].split_whitespace().next_back().unwrap_or_default();
                DEFINITIONS.contains(&before) || line.trim_start().starts_with("impl")
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(usize, &str)]) {
        let mut findings = Vec::new();
        let exists = |path: &str| path == "crates/x/src/a.rs";
        let lines = |_: &str| vec!["impl Pool {".to_owned(), "    pub fn take(&self) {".to_owned()];
        check_text(text, &exists, &lines, &mut findings);
        let found: Vec<_> = findings.iter().map(|finding| (finding.line, finding.reason.as_str())).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((line, reason), (expected_line, part)) in found.iter().zip(expected) {
            assert!(line == expected_line && reason.contains(part), "line {line}: {reason}");
        }
    }

    #[test]
    fn a_path_that_does_not_exist_is_found_outside_of_code() {
        check("`crates/x/src/a.rs` and `crates/x/src/b.rs`\n", &[(1, "b.rs")]);
        check("```\n`crates/x/src/b.rs`\n```\n", &[]);
    }

    #[test]
    fn a_name_behind_a_path_is_one_that_the_file_defines() {
        let section = |item: &str| format!("{SECTION}\n\n- {item}\n");
        check(&section("`crates/x/src/a.rs`: `Pool::take` takes one"), &[]);
        check(&section("`crates/x/src/a.rs`: `Pool::give` gives one"), &[(3, "Pool::give")]);
        check(&section("`take` takes one"), &[(3, "no file")]);
    }

    #[test]
    fn a_path_of_thirteen_files_is_too_long() {
        let items = "- `crates/x/src/a.rs`: `take`\n".repeat(13);
        check(&format!("{SECTION}\n{items}"), &[(14, "more than 12")]);
    }
}
