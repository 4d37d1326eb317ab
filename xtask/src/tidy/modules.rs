//! The modules of a crate, a file each, and which of them uses which.
//!
//! A module uses another if it imports or names an item that the other's file defines. Imports are followed to the
//! item: what `mod.rs` passes on (`pub use child::Item`) is the child's, whoever names it, and passing it on is no use
//! by `mod.rs`. Declaring a child is none either. Tests are left out. It is no compiler: it must never fail on code
//! that compiles.
//!
//! In cycles, uses of a module's own ancestors do not count: Rust nests modules so that a child sees what its parent
//! defines, private items included, and the parent that calls its children is how a folder begins. What a child
//! reaches by way of its parent's functions is therefore not found; cycles between folders and between siblings are.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Source;
use super::tokens::{self, Names};

/// Re-exports of re-exports that are followed.
const STEPS_MAX: usize = 16;

/// A module and the file that holds it.
#[derive(Debug)]
pub(super) struct Module {
    /// `request::conn`, with the crate's folder before it: `server::request::conn`.
    pub(super) name: String,
    /// Path from the checkout's top folder.
    pub(super) file: String,
    names: Names,
}

/// The modules of one crate.
#[derive(Debug)]
pub(super) struct Modules {
    pub(super) modules: Vec<Module>,
    /// For each module those that it uses, with the first line where it does.
    pub(super) uses: Vec<BTreeMap<usize, usize>>,
}

/// Which uses make a cycle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    ButAncestors,
    All,
}

/// Where a path leads.
#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    /// Something that this module's file defines.
    Item(usize),
}

impl Modules {
    /// Reads the files below the `src` of a crate, whose folder is called `name`.
    pub(super) fn read(name: &str, sources: &[&Source]) -> Modules {
        let mut modules: Vec<Module> = sources
            .iter()
            .filter_map(|source| {
                let name = module_name(name, &source.path)?;
                Some(Module { name, file: source.path.clone(), names: tokens::names(source) })
            })
            .collect();
        let only_in_tests: BTreeSet<String> = modules
            .iter()
            .flat_map(|module| {
                module.names.test_modules.iter().map(|test| format!("{}::{test}", module.name))
            })
            .collect();
        let is_test = |name: &str| {
            let below =
                |test: &String| name.strip_prefix(test.as_str()).is_some_and(|rest| rest.starts_with("::"));
            only_in_tests.contains(name) || only_in_tests.iter().any(below)
        };
        modules.retain(|module| !is_test(&module.name));
        modules.sort_by(|one, other| one.name.cmp(&other.name));
        let mut read = Modules { uses: vec![BTreeMap::new(); modules.len()], modules };
        read.uses = (0..read.modules.len()).map(|module| read.uses_of(module)).collect();
        read
    }

    fn uses_of(&self, module: usize) -> BTreeMap<usize, usize> {
        let mut uses = BTreeMap::new();
        let mut add = |target: usize, line: usize| {
            if target != module {
                let first = uses.entry(target).or_insert(line);
                *first = line.min(*first);
            }
        };
        let names = &self.modules[module].names;
        for import in names.imports.iter().filter(|import| !import.is_passed_on) {
            match self.in_scope(module, &import.path.segments, 0) {
                Some(Target::Item(target)) => add(target, import.path.line),
                // A module's name alone is no use; what is named through it is found below.
                Some(Target::Module(target)) if import.name.is_none() => add(target, import.path.line),
                _ => {}
            }
        }
        for path in &names.paths {
            if let Some(Target::Item(target)) = self.in_scope(module, &path.segments, 0) {
                add(target, path.line);
            }
        }
        uses
    }

    /// Where a path leads that stands in a module; `None` if out of the crate.
    fn in_scope(&self, module: usize, path: &[String], steps: usize) -> Option<Target> {
        match path.first()?.as_str() {
            "crate" => self.within(0, &path[1..], steps),
            "self" | "super" => self.within(module, path, steps),
            _ => self.lookup(module, path, steps),
        }
    }

    /// Where a path leads that begins inside of a module. What cannot be found there is made by a macro there.
    fn within(&self, module: usize, path: &[String], steps: usize) -> Option<Target> {
        match path.first().map(String::as_str) {
            None => Some(Target::Module(module)),
            Some("self") => self.within(module, &path[1..], steps),
            Some("super") => self.within(self.parent(module)?, &path[1..], steps),
            Some(_) => self.lookup(module, path, steps).or(Some(Target::Item(module))),
        }
    }

    fn lookup(&self, module: usize, path: &[String], steps: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        if steps > STEPS_MAX {
            return None;
        }
        let Module { name, names, .. } = &self.modules[module];
        if let Some(child) = self.find(&format!("{name}::{first}")) {
            return self.within(child, rest, steps);
        }
        if names.items.contains(first) {
            return Some(Target::Item(module));
        }
        let named = names.imports.iter().filter(|import| import.name.as_ref() == Some(first));
        let found = named.filter_map(|import| self.in_scope(module, &import.path.segments, steps + 1)).next();
        if let Some(found) = found {
            return match found {
                Target::Module(target) => self.within(target, rest, steps + 1),
                Target::Item(_) => Some(found),
            };
        }
        names.imports.iter().filter(|import| import.name.is_none()).find_map(|import| {
            match self.in_scope(module, &import.path.segments, steps + 1)? {
                Target::Module(target) if target != module => self.lookup(target, path, steps + 1),
                _ => None,
            }
        })
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.modules.binary_search_by(|module| module.name.as_str().cmp(name)).ok()
    }

    fn parent(&self, module: usize) -> Option<usize> {
        self.find(self.modules[module].name.rsplit_once("::")?.0)
    }

    /// Groups of modules that reach each other, each of two or more.
    pub(super) fn cycles(&self, counted: Counted) -> Vec<Vec<usize>> {
        let reached: Vec<BTreeSet<usize>> =
            (0..self.modules.len()).map(|module| self.reached_from(module, counted)).collect();
        let mut cycles: Vec<Vec<usize>> = Vec::new();
        for module in 0..self.modules.len() {
            if cycles.iter().any(|cycle| cycle.contains(&module)) || !reached[module].contains(&module) {
                continue;
            }
            let others = reached[module].iter().copied().filter(|&other| reached[other].contains(&module));
            cycles.push(others.collect());
        }
        cycles
    }

    fn reached_from(&self, module: usize, counted: Counted) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut waiting: Vec<usize> = self.counted(module, counted).collect();
        while let Some(next) = waiting.pop() {
            if reached.insert(next) {
                waiting.extend(self.counted(next, counted));
            }
        }
        reached
    }

    fn counted(&self, module: usize, counted: Counted) -> impl Iterator<Item = usize> {
        let name = &self.modules[module].name;
        let is_ancestor = |target: usize| {
            name.strip_prefix(&self.modules[target].name).is_some_and(|rest| rest.starts_with("::"))
        };
        let uses = self.uses[module].keys().copied();
        uses.filter(move |&target| counted == Counted::All || !is_ancestor(target))
    }

    /// A shortest way from a module back to itself, without the module at its end.
    pub(super) fn way_back(&self, module: usize) -> Vec<usize> {
        let mut ways = vec![vec![module]];
        let mut seen = BTreeSet::new();
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                for next in self.counted(way[way.len() - 1], Counted::ButAncestors) {
                    if next == module {
                        return way;
                    }
                    if seen.insert(next) {
                        longer.push([way.as_slice(), &[next]].concat());
                    }
                }
            }
            ways = longer;
        }
        Vec::new()
    }
}

/// The crate's folder and the file's path as a module's: `crates/server/src/request/mod.rs` is `server::request`.
fn module_name(name: &str, file: &str) -> Option<String> {
    let (_, path) = file.split_once("/src/")?;
    let mut segments: Vec<&str> = path.strip_suffix(".rs")?.split('/').collect();
    let is_test = segments.contains(&"tests");
    if matches!(segments.as_slice(), [.., "mod"] | ["lib" | "main"]) {
        segments.pop();
    }
    segments.insert(0, name);
    (!is_test && segments.get(1) != Some(&"bin")).then(|| segments.join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each use as `a -> b`, without the crate's name.
    fn uses(files: &[(&str, &str)]) -> Vec<String> {
        let modules = read(files);
        let short = |module: usize| modules.modules[module].name.clone();
        let all = modules.uses.iter().enumerate();
        all.flat_map(|(from, to)| to.keys().map(move |&to| (from, to)))
            .map(|(from, to)| format!("{} -> {}", short(from), short(to)))
            .collect()
    }

    fn read(files: &[(&str, &str)]) -> Modules {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::read(&format!("crates/x/src/{path}"), text)).collect();
        Modules::read("x", &sources.iter().collect::<Vec<_>>())
    }

    #[test]
    fn what_is_passed_on_is_used_where_it_is_defined() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\npub use a::Child;\npub use b::*;\n"),
            ("a/mod.rs", "mod child;\npub(crate) use child::Child;\npub(crate) struct Own;\n"),
            ("a/child.rs", "use super::Own;\npub struct Child(Own);\n"),
            ("b.rs", "use crate::Child;\npub fn b(child: Child) {}\n"),
            (
                "c.rs",
                "use crate::{a, b as other};\nfn c() {\n    other::b(a::Own);\n    std::fs::read(crate::b);\n}\n",
            ),
        ];
        assert_eq!(
            uses(&files),
            ["x::a::child -> x::a", "x::b -> x::a::child", "x::c -> x::a", "x::c -> x::b"]
        );
        assert!(read(&files).cycles(Counted::All).is_empty());
    }

    #[test]
    fn a_cycle_is_found_with_its_shortest_way() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\nuse a::A;\nfn f(a: A) {}\n"),
            ("a.rs", "use crate::b::B;\npub(crate) struct A;\n"),
            ("b.rs", "use super::c;\npub(crate) struct B(c::C);\n"),
            (
                "c.rs",
                "pub(crate) struct C;\nfn c(a: crate::a::A) {}\n#[cfg(test)]\nmod tests {\n    use crate::f;\n}\n",
            ),
        ];
        let modules = read(&files);
        assert_eq!(modules.cycles(Counted::ButAncestors), [[1, 2, 3]]);
        assert_eq!(modules.way_back(2), [2, 3, 1]);
        assert_eq!(modules.uses[2], BTreeMap::from([(3, 2)]));
    }

    #[test]
    fn a_parent_that_calls_a_child_which_uses_its_types_is_no_cycle_of_its_own() {
        let files = [
            ("lib.rs", "mod a;\n"),
            ("a/mod.rs", "mod child;\npub(crate) struct A;\nfn f() {\n    child::g();\n}\n"),
            ("a/child.rs", "use super::A;\npub(super) fn g() {}\n"),
        ];
        let modules = read(&files);
        assert!(modules.cycles(Counted::ButAncestors).is_empty());
        assert_eq!(modules.cycles(Counted::All), [[1, 2]]);
    }

    #[test]
    fn modules_of_tests_are_left_out() {
        let files = [
            ("main.rs", "mod a;\n#[cfg(test)]\nmod testing;\npub(crate) fn f() {}\n"),
            ("testing/mod.rs", "use crate::f;\n"),
            ("testing/below.rs", "use crate::f;\n"),
            ("a.rs", "use crate::f;\nfn g() {\n    f();\n}\n"),
            ("a/tests.rs", "use super::g;\n"),
        ];
        assert_eq!(uses(&files), ["x::a -> x"]);
    }
}
