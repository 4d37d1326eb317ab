//! The modules of a crate form no cycle, so that each can be read and changed after those below it. (Cargo itself
//! refuses cycles between crates.)

use super::finding::Finding;
use super::modules::{Counted, Modules};

/// Reports each module that is in a cycle.
pub(super) fn check<'a>(crates: impl IntoIterator<Item = &'a Modules>, findings: &mut Vec<Finding>) {
    for modules in crates {
        let in_cycles = modules.cycles(Counted::ButAncestors).into_iter().flatten();
        findings.extend(in_cycles.map(|module| cycle_of(modules, module)));
    }
}

fn cycle_of(modules: &Modules, module: usize) -> Finding {
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
    fn check_crate(a: &str, expected: &[(&str, usize, &str)]) {
        let files =
            [("lib.rs", "mod a;\nmod b;\n"), ("a.rs", a), ("b.rs", "use crate::a::A;\npub struct B;\n")];
        let sources = files.map(|(path, text)| Source::read(&format!("crates/x/src/{path}"), text));
        let mut findings = Vec::new();
        check([&Modules::read("x", &sources.each_ref())], &mut findings);
        assert_eq!(findings.len(), expected.len(), "{findings:?}");
        for (finding, (path, line, reason)) in findings.iter().zip(expected) {
            assert!(
                finding.path.ends_with(path) && finding.line == *line && finding.reason.contains(reason),
                "{finding:?}"
            );
        }
    }

    #[test]
    fn a_cycle_is_reported_at_each_of_its_modules() {
        let cyclic = "pub struct A;\n\nfn a(b: super::b::B) {}\n";
        let way = "crates/x/src/a.rs:3 uses `x::b`, crates/x/src/b.rs:1 uses `x::a`";
        check_crate(cyclic, &[("x/src/a.rs", 3, way), ("x/src/b.rs", 1, "`x::b` is in a cycle")]);
        check_crate("pub struct A;\n", &[]);
    }
}
