//! `cargo xtask tidy`: the design's rules as failing checks, each with file, line and reason.
//!
//! `source.rs` reads Rust text just well enough (comments and strings blanked, tests known, functions
//! found); `rules.rs` holds the rules for one file; `cycles.rs` that of a crate's modules, whose graph `modules.rs` reads;
//! `retired_words.rs` looks at names, `paths.rs` at those in ARCHITECTURE.md, `markers.rs` at every text, `links.rs` at links of pages; `report.rs` prints sizes and graphs. Nothing here changes what it finds.

mod cycles;
mod finding;
mod links;
mod markers;
mod modules;
mod paths;
mod report;
mod retired_words;
mod rules;
mod source;
mod tokens;

use std::path::{Path, PathBuf};

use crate::workspace::Options;
use crate::{Outcome, workspace};
use finding::Finding;
use modules::Modules;
use report::Package;
use source::Source;

/// Checks the whole checkout and prints what it finds, or prints sizes or a graph.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let (wants_report, graph) = (options.flag("--report"), options.value("--graph")?);
    options.finish()?;
    let tree = Tree::read(&workspace::root())?;
    if wants_report {
        print!("{}", report::sizes(&tree.packages()));
        return Ok(());
    }
    if let Some(name) = graph {
        let found = tree.crates.iter().find(|(crate_name, _)| *crate_name == name);
        let (_, modules) = found.ok_or_else(|| workspace::WrongUsage(format!("no such crate: {name}")))?;
        print!("{}", report::graph(modules));
        return Ok(());
    }
    let findings = tree.check(&workspace::root());
    for Finding { path, line, reason } in &findings {
        eprintln!("{path}:{line}: {reason}");
    }
    let files = tree.sources.len() + tree.others.len();
    if findings.is_empty() {
        println!("tidy: {files} files, nothing found");
        return Ok(());
    }
    Err(format!("tidy: {} findings in {files} files", findings.len()).into())
}

/// What of a checkout the rules look at.
struct Tree {
    sources: Vec<Source>,
    /// Manifests and lockfiles: path and text.
    others: Vec<(String, String)>,
    /// Folder's name of each crate, with its modules.
    crates: Vec<(String, Modules)>,
}

impl Tree {
    fn read(root: &Path) -> Outcome<Tree> {
        let mut paths = Vec::new();
        for folder in ["crates", "xtask", "benchmarks", "experiments", "fuzz", "examples", "tests"] {
            collect(&root.join(folder), &mut paths);
        }
        paths.sort();
        let mut tree = Tree { sources: Vec::new(), others: Vec::new(), crates: Vec::new() };
        for path in &paths {
            let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
            let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
            match name.ends_with(".rs") {
                true => tree.sources.push(Source::read(&name, &text)),
                false => tree.others.push((name, text)),
            }
        }
        tree.crates = tree
            .manifests()
            .map(|(name, ..)| (name.to_owned(), Modules::read(name, &tree.sources_of(name))))
            .collect();
        Ok(tree)
    }

    /// Folder's name and manifest of each crate.
    fn manifests(&self) -> impl Iterator<Item = (&str, &str)> {
        self.others.iter().filter_map(|(path, text)| {
            let folder = path.strip_suffix("/Cargo.toml")?;
            let name = folder.strip_prefix("crates/").unwrap_or(folder);
            (folder == "xtask" || (name != folder && !name.contains('/'))).then_some((name, text.as_str()))
        })
    }

    fn sources_of(&self, name: &str) -> Vec<&Source> {
        let folder = if name == "xtask" { "xtask/src/".to_owned() } else { format!("crates/{name}/src/") };
        self.sources.iter().filter(|source| source.path.starts_with(&folder)).collect()
    }

    fn packages(&self) -> Vec<Package<'_>> {
        let crates = self.manifests().zip(&self.crates);
        crates
            .map(|((name, manifest), (_, modules))| Package {
                name,
                manifest,
                sources: self.sources_of(name),
                modules,
            })
            .collect()
    }

    fn check(&self, root: &Path) -> Vec<Finding> {
        let mut findings = Vec::new();
        for source in &self.sources {
            rules::check_rust(source, &mut findings);
        }
        for (path, text) in &self.others {
            rules::check_other(path, text, &mut findings);
        }
        cycles::check(self.crates.iter().map(|(_, modules)| modules), &mut findings);
        retired_words::check(&self.sources, &mut findings);
        paths::check(root, &self.sources, &mut findings);
        markers::check_tree(root, &mut findings);
        findings
    }
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
        let tree = Tree::read(&workspace::root()).unwrap();
        assert!(tree.sources.len() > 10 && tree.crates.len() > 5, "the checkout was not found");
        let findings = tree.check(&workspace::root());
        let list: Vec<String> = findings
            .iter()
            .map(|finding| format!("{}:{}: {}", finding.path, finding.line, finding.reason))
            .collect();
        assert!(list.is_empty(), "{}", list.join("\n"));
    }
}
