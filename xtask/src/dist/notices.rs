//! The licences of what is linked into the program, which those licences ask to be handed on.
//!
//! Read from the crates as cargo unpacked them; each text stands once, below the names of those who use it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::inside::{Crate, Inside};
use super::release::Release;

/// musl is a part of Rust's target and no crate.
const MUSL: &str = include_str!("../../../packaging/notices/musl.txt");

/// How a file with a licence is called, in capitals.
const NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Folders below a crate's own: C sources that it brings along have theirs.
const DEPTH_MAX: usize = 3;

/// The longest text of a licence; what is longer is something else. Bytes.
const TEXT_BYTES_MAX: u64 = 256 << 10;

/// The whole file.
pub(super) fn write(release: &Release, inside: &Inside) -> String {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut list = String::new();
    for found in inside.crates.iter().filter(|found| found.is_foreign()) {
        let Crate { name, version, licence, folder, .. } = found;
        let licence = licence.as_deref().unwrap_or("see below");
        let _ = writeln!(list, "  {name} {version}: {licence}");
        let mut of_crate = Vec::new();
        collect(folder, 0, &mut of_crate);
        for (place, text) in of_crate {
            texts.entry(text).or_default().push(format!("{name} {version} ({place})"));
        }
    }
    texts.entry(MUSL.to_owned()).or_default().push("musl (COPYRIGHT)".to_owned());
    let mut ordered: Vec<(Vec<String>, String)> =
        texts.into_iter().map(|(text, users)| (users, text)).collect();
    ordered.sort();

    let mut whole = format!(
        "onehop {} is licensed under Apache-2.0. It contains the code of others:\n\n{list}  \
         rust-std {}: MIT OR Apache-2.0\n  musl: MIT\n",
        release.version, inside.rust
    );
    for (users, text) in ordered {
        let _ = write!(whole, "\n{}\n{}\n\n{}\n", "=".repeat(78), users.join("\n"), text.trim_matches('\n'));
    }
    whole
}

/// Paths below the crate and texts, sorted by path.
fn collect(folder: &Path, depth: usize, texts: &mut Vec<(String, String)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let start = texts.len();
        let Ok(facts) = path.symlink_metadata() else { continue };
        if facts.is_dir() && depth < DEPTH_MAX {
            collect(&path, depth + 1, texts);
        } else if facts.is_file()
            && is_licence(&name)
            && facts.len() <= TEXT_BYTES_MAX
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            texts.push((name.clone(), text.replace("\r\n", "\n")));
            continue;
        }
        for (place, _) in texts.iter_mut().skip(start) {
            *place = format!("{name}/{place}");
        }
    }
}

/// `LICENSE`, `LICENSE-MIT`, `COPYING.txt`; not `license.rs`.
fn is_licence(name: &str) -> bool {
    let capitals = name.to_uppercase();
    let is_text = !capitals.contains('.') || capitals.ends_with(".TXT") || capitals.ends_with(".MD");
    is_text && NAMES.iter().any(|start| capitals.starts_with(start))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_licence_that_many_share_stands_once_and_sources_are_no_licences() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path: PathBuf = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("a/LICENSE-MIT", "the same words\n");
        write("a/src/license.rs", "fn not_a_licence() {}");
        write("b/LICENSE", "the same words\n");
        write("b/vendored/c/COPYING", "words of C\n");
        let found = |name: &str| Crate {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: Some("MIT".to_owned()),
            repository: None,
            checksum: Some("abc".to_owned()),
            folder: folder.path().join(name),
            needs: Vec::new(),
        };
        let inside = Inside { crates: vec![found("a"), found("b")], rust: "1.95.0".to_owned() };
        let text = write_for_test(&inside);
        assert_eq!(text.matches("the same words").count(), 1, "{text}");
        assert!(text.contains("a 1.0.0 (LICENSE-MIT)\nb 1.0.0 (LICENSE)\n\nthe same words"), "{text}");
        assert!(text.contains("b 1.0.0 (vendored/c/COPYING)\n\nwords of C"), "{text}");
        assert!(!text.contains("not_a_licence") && text.contains("Rich Felker"));
    }

    fn write_for_test(inside: &Inside) -> String {
        super::write(&crate::dist::tests::release(), inside)
    }
}
