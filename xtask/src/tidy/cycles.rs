//! The modules of a crate form no cycle, so that each can be read and changed after those below it. (Cargo itself
//! refuses cycles between crates.)
//!
//! `known_cycles.txt` names the modules that are still in one. It only ever gets shorter: a module that has left its
//! cycle must leave the list.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::modules::{Counted, Modules};

/// Modules in cycles, a line each.
const KNOWN: &str = include_str!("known_cycles.txt");

const KNOWN_FILE: &str = "xtask/src/tidy/known_cycles.txt";

/// Reports cycles that are not known, and known ones that are gone.
pub(super) fn check<'a>(crates: impl IntoIterator<Item = &'a Modules>, findings: &mut Vec<Finding>) {
    check_against(KNOWN, crates, findings);
}

fn check_against<'a>(
    known: &str,
    crates: impl IntoIterator<Item = &'a Modules>,
    findings: &mut Vec<Finding>,
) {
    let mut in_cycles = BTreeSet::new();
    let listed: BTreeSet<&str> = known.lines().collect();
    for modules in crates {
        for &module in modules.cycles(Counted::ButAncestors).iter().flatten() {
            let name = modules.modules[module].name.as_str();
            in_cycles.insert(name);
            if !listed.contains(name) {
                findings.push(new_cycle(modules, module));
            }
        }
    }
    for (index, line) in known.lines().enumerate() {
        if !line.starts_with('#') && !in_cycles.contains(line) {
            findings.push(Finding {
                path: KNOWN_FILE.to_owned(),
                line: index + 1,
                reason: format!("`{line}` is in no cycle: remove this line"),
            });
        }
    }
}

fn new_cycle(modules: &Modules, module: usize) -> Finding {
    let way = modules.way_back(module);
    let steps: Vec<String> = (0..way.len())
        .map(|step| {
            let [from, to] = [way[step], way[(step + 1) % way.len()]];
            let (from, line) = (&modules.modules[from], modules.uses[from][&to]);
            format!("{}:{line} uses `{}`", from.file, modules.modules[to].name)
        })
        .collect();
    Finding {
        path: modules.modules[module].file.clone(),
        line: modules.uses[module][&way[1 % way.len()]],
        reason: format!(
            "`{}` is in a cycle of modules: {}; move what both need into a module below them",
            modules.modules[module].name,
            steps.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::*;

    #[track_caller]
    fn check(known: &str, a: &str, expected: &[(&str, usize, &str)]) {
        let files =
            [("lib.rs", "mod a;\nmod b;\n"), ("a.rs", a), ("b.rs", "use crate::a::A;\npub struct B;\n")];
        let sources = files.map(|(path, text)| Source::read(&format!("crates/x/src/{path}"), text));
        let mut findings = Vec::new();
        check_against(known, [&Modules::read("x", &sources.each_ref())], &mut findings);
        assert_eq!(findings.len(), expected.len(), "{findings:?}");
        for (finding, (path, line, reason)) in findings.iter().zip(expected) {
            assert!(
                finding.path.ends_with(path) && finding.line == *line && finding.reason.contains(reason),
                "{finding:?}"
            );
        }
    }

    #[test]
    fn a_cycle_is_reported_at_each_of_its_modules_unless_it_is_known() {
        let cyclic = "pub struct A;\n\nfn a(b: super::b::B) {}\n";
        let way = "crates/x/src/a.rs:3 uses `x::b`, crates/x/src/b.rs:1 uses `x::a`";
        check("# known\n", cyclic, &[("x/src/a.rs", 3, way), ("x/src/b.rs", 1, "`x::b` is in a cycle")]);
        check("x::a\n", cyclic, &[("x/src/b.rs", 1, "below them")]);
        check("# known\nx::a\nx::b\n", cyclic, &[]);
    }

    #[test]
    fn the_list_of_known_cycles_only_gets_shorter() {
        check("# known\nx::a\n", "pub struct A;\n", &[("known_cycles.txt", 2, "remove this line")]);
    }
}
