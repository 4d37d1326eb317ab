//! Links of Markdown pages lead to files and headings that exist.
//!
//! Looks at links to files of the checkout, not at those to other sites.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use super::finding::Finding;

/// Checks the links of one page.
pub(super) fn check(root: &Path, path: &str, text: &str, findings: &mut Vec<Finding>) {
    check_text(path, text, &|path| root.join(path).exists(), &read_in(root), findings);
}

/// Reads a page of the checkout.
fn read_in(root: &Path) -> impl Fn(&Path) -> String {
    move |path| std::fs::read_to_string(root.join(path)).unwrap_or_default()
}

fn check_text(
    path: &str,
    text: &str,
    exists: &dyn Fn(&Path) -> bool,
    read: &dyn Fn(&Path) -> String,
    findings: &mut Vec<Finding>,
) {
    for (index, line) in prose(text) {
        for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains(':') {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let page = if file.is_empty() { PathBuf::from(path) } else { beside(path, file) };
            let is_page = page.extension().is_some_and(|extension| extension == "md");
            let reason = if !exists(&page) {
                format!("the link to `{target}` leads to no file")
            } else if is_page && !heading.is_empty() && !has_heading(&read(&page), heading) {
                format!("the link to `{target}` leads to no heading")
            } else {
                continue;
            };
            findings.push(Finding { path: path.to_owned(), line: index + 1, reason });
        }
    }
}

/// Lines outside of code blocks, with their index.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

/// A path relative to the folder of a page, from the checkout's top folder.
fn beside(page: &str, file: &str) -> PathBuf {
    let mut path = Path::new(page).parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir => _ = path.pop(),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

/// Whether a page has a heading with this name, as GitHub derives names from headings.
fn has_heading(page: &str, name: &str) -> bool {
    let mut counts: HashMap<String, usize> = HashMap::new();
    prose(page).any(|(_, line)| {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            return false;
        }
        let kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
        let slug: String = title.trim().to_lowercase().chars().filter(kept).collect();
        let slug = slug.replace(' ', "-");
        let count = counts.entry(slug.clone()).or_default();
        let found = if *count == 0 { slug == name } else { format!("{slug}-{count}") == name };
        *count += 1;
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: &str = "# Other\n\n## The `limit` of an app\n\n## Twice\n\n## Twice\n";

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut findings = Vec::new();
        let exists = |path: &Path| [Path::new("docs/other.md"), Path::new("README.md")].contains(&path);
        check_text("docs/guide/page.md", text, &exists, &|_| OTHER.to_owned(), &mut findings);
        assert_eq!(findings.len(), expected.len(), "{findings:?}");
        for (finding, part) in findings.iter().zip(expected) {
            assert!(finding.reason.contains(part), "{}", finding.reason);
        }
    }

    #[test]
    fn a_link_leads_to_a_file_that_exists() {
        check("[a](../other.md) and [b](../../README.md)\n", &[]);
        check("[a](other.md) and [b](../README.md)\n", &["`other.md` leads to no file", "no file"]);
        check("[a](https://example.com/other.md)\n```\n[a](gone.md)\n```\n", &[]);
    }

    #[test]
    fn a_link_leads_to_a_heading_that_exists() {
        check("[a](../other.md#the-limit-of-an-app), [b](../other.md#twice-1)\n", &[]);
        check("[a](../other.md#limit), [b](../other.md#twice-2)\n", &["no heading", "no heading"]);
    }
}
