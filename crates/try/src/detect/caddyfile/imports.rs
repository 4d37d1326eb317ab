//! Which snippets a site imports, by itself, through other snippets or through files.
//!
//! Where that cannot be known (a pattern, an argument, a file that cannot be read) all of them count.

use std::collections::HashSet;
use std::path::Path;

use super::text::{TextLine, read};
use crate::detect::files::{TEXT_BYTES_MAX, normal, read_bounded};

/// Files that are looked into; a Caddyfile that imports more than that has all its snippets looked at.
const FILES_MAX: usize = 100;

/// The snippets that these lines import, in the order of the file.
pub(super) fn imported<'a>(site: &[TextLine], snippets: &[&'a TextLine], path: &Path) -> Vec<&'a TextLine> {
    let folder = path.parent().unwrap_or(path);
    let mut seen: HashSet<String> = HashSet::new();
    let mut pending = names(site);
    let mut files = 0;
    while let Some(name) = pending.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        if let Some(snippet) = snippets.iter().find(|snippet| called(snippet) == name) {
            pending.extend(names(snippet.inner()));
            continue;
        }
        files += 1;
        let text = read_bounded(&normal(&folder.join(&name)), TEXT_BYTES_MAX).ok();
        let lines = text.filter(|_| files <= FILES_MAX).and_then(|text| read(&text).ok());
        let Some(lines) = lines else { return snippets.to_vec() };
        pending.extend(names(&lines));
    }
    snippets.iter().filter(|snippet| seen.contains(called(snippet))).copied().collect()
}

/// The name of a snippet.
fn called(snippet: &TextLine) -> &str {
    snippet.word(0).trim_matches(['(', ')'])
}

/// What lines import, and what the blocks in them do.
fn names(lines: &[TextLine]) -> Vec<String> {
    let mut names = Vec::new();
    let mut pending: Vec<&TextLine> = lines.iter().collect();
    while let Some(line) = pending.pop() {
        if line.word(0) == "import" {
            names.push(line.word(1).to_owned());
        }
        pending.extend(line.inner());
    }
    names
}
