//! Which packages of `node_modules` an application needs to run.
//!
//! Owns the rules by which Node finds a package: in the nearest `node_modules` upwards, where links lead. Only asks for
//! folders and reads `package.json`; what goes into the pack is gathered by `sources.rs`.

use std::path::Path;

use serde_json::Value;

use super::base::{join, parent};

/// Bytes of a `package.json`.
const PACKAGE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// A dependency, as a package names it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dependency {
    /// `express`, `@scope/name`.
    pub(super) name: String,
    /// It has to be there.
    pub(super) is_required: bool,
}

/// What a package needs to run, sorted; an error where its `package.json` is none.
pub(super) fn dependencies(package: &Path) -> Result<Vec<Dependency>, String> {
    let value = read(package)?;
    let names = |field: &str| {
        let fields = value.get(field).and_then(Value::as_object);
        fields.into_iter().flatten().map(|(name, _)| name.clone()).filter(|name| is_name(name))
    };
    let optional: Vec<String> = names("optionalDependencies").chain(names("peerDependencies")).collect();
    let mut all: Vec<Dependency> = names("dependencies")
        // npm writes optional ones among the others, too.
        .filter(|name| !optional.contains(name))
        .map(|name| Dependency { name, is_required: true })
        .chain(optional.iter().map(|name| Dependency { name: name.clone(), is_required: false }))
        .collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all.dedup_by(|one, other| one.name == other.name);
    Ok(all)
}

/// The name that a package gives itself, without its scope.
pub fn name_of(package: &Path) -> Option<String> {
    let value = read(package).ok()?;
    let name = value.get("name")?.as_str()?;
    let name = name.rsplit('/').next()?;
    let is_sound = !name.is_empty()
        && !name.starts_with(['.', '-'])
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    is_sound.then(|| name.to_owned())
}

fn read(package: &Path) -> Result<Value, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", package.display());
    let length = std::fs::metadata(package).map_err(|error| failed(&error))?.len();
    if length > PACKAGE_BYTES_MAX {
        return Err(failed(&"is too large for a package.json"));
    }
    let bytes = std::fs::read(package).map_err(|error| failed(&error))?;
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    serde_json::from_slice(text).map_err(|error| failed(&error))
}

/// One name, or a scope and a name, and nothing that leads elsewhere.
fn is_name(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let are_names =
        parts.iter().all(|part| !part.is_empty() && *part != "." && *part != ".." && !part.contains('\0'));
    are_names && parts.len() <= 2 && (parts.len() == 1 || name.starts_with('@'))
}

/// Where Node would find a package that is asked for from this folder, below the base
/// (<https://nodejs.org/api/modules.html#loading-from-node_modules-folders>); as it is named, links not followed.
pub(super) fn find(base: &Path, from: &str, name: &str) -> Option<String> {
    let mut folder = Some(from);
    while let Some(at) = folder {
        if at.rsplit('/').next() != Some("node_modules") {
            let path = join(at, &format!("node_modules/{name}"));
            if base.join(&path).is_dir() {
                return Some(path);
            }
        }
        folder = parent(at);
    }
    None
}

/// Where it would be found above the base, where no pack reaches.
pub(super) fn find_above(base: &Path, name: &str) -> Option<std::path::PathBuf> {
    base.ancestors().skip(1).map(|folder| folder.join("node_modules").join(name)).find(|path| path.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_required_and_what_may_be_missing_is_not() {
        let folder = std::env::temp_dir().join(format!("onehop-prune-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let package = folder.join("package.json");
        let text = r#"{"name": "@me/shop", "dependencies": {"b": "1", "a": "1", "../x": "1", "o": "1"},
            "optionalDependencies": {"o": "1"}, "peerDependencies": {"p": "1"}, "devDependencies": {"d": "1"}}"#;
        std::fs::write(&package, text).expect("written");
        let found = dependencies(&package).expect("sound");
        let found: Vec<(&str, bool)> = found.iter().map(|one| (one.name.as_str(), one.is_required)).collect();
        assert_eq!(found, [("a", true), ("b", true), ("o", false), ("p", false)]);
        assert_eq!(name_of(&package).as_deref(), Some("shop"));
        std::fs::write(&package, "{").expect("written");
        assert!(dependencies(&package).is_err());
        std::fs::remove_dir_all(folder).expect("it was there");
    }
}
