//! `cargo xtask tidy --report` and `--graph`: the sizes of the crates, and which crate and which module sees which.
//!
//! It prints and judges nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::modules::{Counted, Modules};
use super::source::Source;

/// A crate's folder and what its manifest says.
pub(super) struct Package<'a> {
    /// `server` for `crates/server`.
    pub(super) name: &'a str,
    /// Text of Cargo.toml.
    pub(super) manifest: &'a str,
    /// What stands below `src`.
    pub(super) sources: Vec<&'a Source>,
    pub(super) modules: &'a Modules,
}

/// Each crate with those that it sees, then a table of sizes.
pub(super) fn sizes(packages: &[Package<'_>]) -> String {
    let mut text = "crates, each with those that it sees (those of its tests are left out):\n\n".to_owned();
    for package in packages {
        let seen = dependencies(package.manifest, packages);
        let _ = writeln!(
            text,
            "{:<12} {}",
            package.name,
            if seen.is_empty() { "-".to_owned() } else { seen.join(", ") }
        );
    }
    text.push_str(
        "\nwithout tests; lines with comments and blank ones, code without; public items without fields and re-exports;\nmodules in cycles, and those where uses of a parent count too:\n\n",
    );
    let _ = writeln!(
        text,
        "{:<12} {:>6} {:>6} {:>5}  {:>6} {:>7}  {:>9} {:>6} {:>7}  {:>6} {:>9} {:>12}",
        "crate",
        "lines",
        "code",
        "files",
        "median",
        "longest",
        "functions",
        "median",
        "longest",
        "public",
        "in cycles",
        "with parents"
    );
    let mut sums = [0; 7];
    for package in packages {
        let Sizes { code, files, functions, public } = Sizes::of(package);
        let lines = files.iter().sum::<usize>();
        let [in_cycles, with_parents] = [Counted::ButAncestors, Counted::All]
            .map(|counted| package.modules.cycles(counted).iter().flatten().count());
        let _ = writeln!(
            text,
            "{:<12} {lines:>6} {code:>6} {:>5}  {:>6} {:>7}  {:>9} {:>6} {:>7}  {public:>6} {in_cycles:>9} {with_parents:>12}",
            package.name,
            files.len(),
            median(&files),
            longest(&files),
            functions.len(),
            median(&functions),
            longest(&functions),
        );
        for (sum, one) in
            sums.iter_mut().zip([lines, code, files.len(), functions.len(), public, in_cycles, with_parents])
        {
            *sum += one;
        }
    }
    let [lines, code, files, functions, public, in_cycles, with_parents] = sums;
    let _ = writeln!(
        text,
        "{:<12} {lines:>6} {code:>6} {files:>5}  {:>6} {:>7}  {functions:>9} {:>6} {:>7}  {public:>6} {in_cycles:>9} {with_parents:>12}",
        "all", "", "", "", ""
    );
    text
}

/// The modules of a crate in layers, each with those that it uses. A module's layer is above those of all that it
/// uses; modules in one cycle share theirs.
pub(super) fn graph(modules: &Modules) -> String {
    let cycles = modules.cycles(Counted::All);
    let cycle_of = |module: usize| cycles.iter().position(|cycle| cycle.contains(&module));
    let mut layers: BTreeMap<usize, usize> = BTreeMap::new();
    // Each round settles at least those whose uses are settled: as many rounds as there are layers.
    while layers.len() < modules.modules.len() {
        let before = layers.len();
        for module in 0..modules.modules.len() {
            let together = cycle_of(module).map_or_else(|| vec![module], |cycle| cycles[cycle].clone());
            let below =
                together.iter().flat_map(|one| modules.uses[*one].keys()).filter(|to| !together.contains(to));
            let settled: Option<Vec<usize>> = below.map(|to| layers.get(to).copied()).collect();
            if let Some(settled) = settled {
                layers.insert(module, settled.into_iter().max().map_or(0, |layer| layer + 1));
            }
        }
        if layers.len() == before {
            break;
        }
    }
    let mut text = String::new();
    for layer in (0..=layers.values().copied().max().unwrap_or(0)).rev() {
        let _ = writeln!(text, "layer {layer}");
        for (&module, _) in layers.iter().filter(|(_, in_layer)| **in_layer == layer) {
            let names: Vec<&str> =
                modules.uses[module].keys().map(|&to| modules.modules[to].name.as_str()).collect();
            let cycle = cycle_of(module).map_or_else(String::new, |cycle| format!(" (cycle {})", cycle + 1));
            let _ = writeln!(text, "  {}{cycle} -> {}", modules.modules[module].name, names.join(", "));
        }
    }
    text
}

struct Sizes {
    code: usize,
    files: Vec<usize>,
    functions: Vec<usize>,
    public: usize,
}

impl Sizes {
    fn of(package: &Package<'_>) -> Sizes {
        let mut sizes = Sizes { code: 0, files: Vec::new(), functions: Vec::new(), public: 0 };
        let counted =
            |source: &&&Source| package.modules.modules.iter().any(|module| module.file == source.path);
        for source in package.sources.iter().filter(counted) {
            sizes.files.push(source.length_without_tests());
            let functions =
                source.functions().into_iter().filter(|function| !source.is_test[function.lines.start]);
            sizes.functions.extend(functions.map(|function| function.lines.len()));
            for (_, line) in source.code_outside_tests() {
                sizes.code += usize::from(!line.trim().is_empty());
                sizes.public += usize::from(is_public_item(line));
            }
        }
        sizes
    }
}

fn is_public_item(line: &str) -> bool {
    const ITEMS: [&str; 11] =
        ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod", "async", "unsafe"];
    let rest = line.trim_start().strip_prefix("pub ");
    rest.and_then(|rest| rest.split(' ').next()).is_some_and(|word| ITEMS.contains(&word))
}

/// Names of the packages that a manifest's own dependencies mention.
fn dependencies<'a>(manifest: &str, packages: &[Package<'a>]) -> Vec<&'a str> {
    let lines = manifest.lines().skip_while(|line| line.trim() != "[dependencies]").skip(1);
    let names: Vec<&str> = lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next()?.strip_prefix("onehop-"))
        .collect();
    packages.iter().map(|package| package.name).filter(|name| names.contains(name)).collect()
}

fn median(lengths: &[usize]) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

fn longest(lengths: &[usize]) -> usize {
    lengths.iter().copied().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_leave_tests_out_and_name_the_crates_that_are_seen() {
        let texts = [
            (
                "crates/a/src/lib.rs",
                "//! A.\n\npub fn f() {\n    g();\n}\npub(crate) fn g() {}\npub struct S {\n    pub field: u8,\n}\n#[cfg(test)]\nmod testing;\n",
            ),
            ("crates/a/src/testing.rs", "pub fn t() {}\n"),
            ("crates/b/src/lib.rs", "mod m;\nuse m::M;\n"),
            ("crates/b/src/m.rs", "pub struct M;\n"),
        ];
        let sources = texts.map(|(path, text)| Source::read(path, text));
        let modules = [
            Modules::read("a", &[&sources[0], &sources[1]]),
            Modules::read("b", &[&sources[2], &sources[3]]),
        ];
        let manifest = "[dependencies]\nonehop-a.workspace = true\nserde = \"1\"\n\n[dev-dependencies]\nonehop-b = \"1\"\n";
        let packages = [
            Package {
                name: "a",
                manifest: "",
                sources: vec![&sources[0], &sources[1]],
                modules: &modules[0],
            },
            Package { name: "b", manifest, sources: vec![&sources[2], &sources[3]], modules: &modules[1] },
        ];
        let text = sizes(&packages);
        let row = |name: &str| {
            let words =
                text.lines().rev().find(|line| line.starts_with(name)).expect("a row").split_whitespace();
            words.collect::<Vec<_>>()
        };
        assert_eq!(row("a "), ["a", "9", "7", "1", "9", "9", "2", "3", "3", "2", "0", "0"]);
        assert_eq!(row("all"), ["all", "12", "10", "3", "2", "3", "0", "0"]);
        assert!(text.contains("\nb            a\n"), "{text}");
        assert_eq!(graph(&modules[1]), "layer 1\n  b -> b::m\nlayer 0\n  b::m -> \n");
    }
}
