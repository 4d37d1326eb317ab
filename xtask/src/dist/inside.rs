//! What is linked into the program: its crates, as cargo resolves them for the target.
//!
//! Only what ends up in the file: no build scripts' or tests' dependencies, no procedural macros.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Outcome, workspace};

use super::architecture::Architecture;

/// A crate in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression, where its manifest has one.
    pub(super) licence: Option<String>,
    pub(super) repository: Option<String>,
    /// SHA-256 of its archive in the registry, in hexadecimal; none for crates of this workspace.
    pub(super) checksum: Option<String>,
    pub(super) folder: PathBuf,
    /// Places in [`Inside::crates`].
    pub(super) needs: Vec<usize>,
}

impl Crate {
    /// Whether it comes from a registry, not from this workspace.
    pub(super) fn is_foreign(&self) -> bool {
        self.checksum.is_some()
    }
}

/// The crates of the program, sorted by name and version.
pub(super) struct Inside {
    pub(super) crates: Vec<Crate>,
    /// Version of the compiler, whose standard library is inside too.
    pub(super) rust: String,
}

impl Inside {
    /// Of the checkout's program for this architecture.
    pub(super) fn of(architecture: Architecture) -> Outcome<Inside> {
        let triple = architecture.triple();
        let words = ["metadata", "--format-version", "1", "--locked", "--filter-platform", &triple];
        let output = crate::steps::command("cargo", &words).output()?;
        if !output.status.success() {
            return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let lockfile = std::fs::read_to_string(workspace::root().join("Cargo.lock"))?;
        let rust = workspace::output_of("rustc", &["--version"]).ok_or("rustc does not run")?;
        let rust = rust.split_whitespace().nth(1).unwrap_or_default().to_owned();
        let crates = resolve(&serde_json::from_slice(&output.stdout)?, &checksums(&lockfile))?;
        Ok(Inside { crates, rust })
    }
}

/// Walks from the program along dependencies that are linked.
fn resolve(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Outcome<Vec<Crate>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let by_id = |values: Vec<Value>| -> BTreeMap<String, Value> {
        values.into_iter().map(|value| (text(&value["id"]), value)).collect()
    };
    let packages = by_id(list(&metadata["packages"]));
    let nodes = by_id(list(&metadata["resolve"]["nodes"]));
    let program = packages.iter().find(|(_, package)| package["name"] == "onehop");
    let (program, _) = program.ok_or("cargo metadata knows no package onehop")?;

    let is_macro = |id: &str| {
        list(&packages[id]["targets"])
            .iter()
            .any(|target| list(&target["kind"]).contains(&"proc-macro".into()))
    };
    let needs = |id: &str| -> Vec<String> {
        let needed = list(&nodes[id]["deps"])
            .into_iter()
            .filter(|needed| list(&needed["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()));
        needed
            .map(|needed| text(&needed["pkg"]))
            .filter(|id| packages.contains_key(id) && !is_macro(id))
            .collect()
    };
    let mut found = BTreeSet::new();
    let mut open = vec![program.clone()];
    while let Some(id) = open.pop() {
        if found.insert(id.clone()) {
            open.extend(needs(&id));
        }
    }

    let mut ids: Vec<String> = found.into_iter().collect();
    let key = |id: &String| (text(&packages[id]["name"]), text(&packages[id]["version"]));
    ids.sort_by_key(key);
    let place = |id: &String| ids.iter().position(|other| other == id);
    let crates = ids.iter().map(|id| {
        let package = &packages[id];
        let word = |name: &str| package[name].as_str().map(str::to_owned);
        let mut needs: Vec<usize> = needs(id).iter().filter_map(place).collect();
        needs.sort_unstable();
        needs.dedup();
        Crate {
            name: text(&package["name"]),
            version: text(&package["version"]),
            // Before expressions there was a slash between alternatives.
            licence: word("license").map(|licence| licence.replace(" / ", " OR ").replace('/', " OR ")),
            repository: word("repository"),
            checksum: checksums.get(&key(id)).cloned(),
            folder: Path::new(&text(&package["manifest_path"]))
                .parent()
                .map(Path::to_path_buf)
                .unwrap_or_default(),
            needs,
        }
    });
    Ok(crates.collect())
}

/// From Cargo.lock: name and version to checksum.
fn checksums(lockfile: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
        Some(line.trim_matches('"').to_owned())
    };
    let blocks = lockfile.split("[[package]]").filter_map(|block| {
        Some(((value(block, "name")?, value(block, "version")?), value(block, "checksum")?))
    });
    blocks.collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_linked_is_inside() {
        let package = |name: &str, kind: &str| {
            json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
                "manifest_path": format!("/crates/{name}/Cargo.toml"), "targets": [{ "kind": [kind] }] })
        };
        let needs = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("onehop", "bin"), package("linked", "lib"), package("macro", "proc-macro"),
                package("builder", "lib"), package("tester", "lib")],
            "resolve": { "nodes": [
                { "id": "onehop", "deps": [needs("linked", Value::Null), needs("macro", Value::Null),
                    needs("builder", "build".into()), needs("tester", "dev".into())] },
                { "id": "linked", "deps": [] },
            ] },
        });
        let lock = "[[package]]\nname = \"linked\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n";
        let crates = resolve(&metadata, &checksums(lock)).unwrap();
        let names: Vec<&str> = crates.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["linked", "onehop"]);
        assert_eq!(crates[0].licence.as_deref(), Some("MIT OR Apache-2.0"));
        assert_eq!(crates[0].checksum.as_deref(), Some("abc"));
        assert_eq!(crates[1].needs, [0]);
    }
}
