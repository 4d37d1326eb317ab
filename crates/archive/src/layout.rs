//! What a pack looks like where it is unpacked: in a folder of the machine, or in a layer of an image.
//!
//! Owns names, order and content of what lies there, so that both are the same. Never touches the disk; who unpacks
//! makes folders, chooses owners and verifies what is there.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use crate::index::{Blob, Runtime, Source, SourceKind, path_order};
use crate::slot::Location;
use crate::{Index, Pack, PackError};

/// Where the configuration's base lies, below the folder of the pack.
pub const APP: &str = "app";

/// Where the runtime lies, below the folder of the pack.
pub const RUNTIME: &str = "runtime";

/// The file that is written last: a folder without it was not finished.
pub const COMPLETE: &str = ".complete";

/// What is noted of an unpacked folder, so that it is known later whether an application wrote in it.
pub const RECORD: &str = ".unpacked";

/// The folder below which images bring what is unpacked; also root's own cache.
pub const SYSTEM_PLACE: &str = "/var/cache/onehop";

/// Hexadecimal digits of a key: 128 bits of the index's digest.
const KEY_DIGITS: usize = 32;

/// What tells one pack from others: the beginning of its index's digest.
pub fn key(location: &Location) -> String {
    let mut key = location.digest.to_string();
    key.truncate(KEY_DIGITS);
    key
}

/// The name of a pack's folder: with the user whose it is, or without for one that an image brings.
pub fn folder_name(key: &str, user: Option<u32>) -> String {
    match user {
        Some(user) => format!("onehop-pack-{user}-{key}"),
        None => format!("onehop-pack-{key}"),
    }
}

/// What stands in [`COMPLETE`].
pub fn complete(location: &Location) -> String {
    format!("{}\n", location.digest)
}

/// Whether an image has to bring an unpacked folder: there is more than the configuration's main file, which is
/// read from the pack.
pub fn has_more_than_configuration(index: &Index) -> bool {
    let is_more =
        |source: &Source| source.path != index.configuration.path && source.kind != SourceKind::Folder;
    index.runtime.is_some() || index.sources.iter().any(is_more)
}

/// Endings of files that are run or loaded, templates included.
const CODE_ENDINGS: [&str; 35] = [
    "js",
    "mjs",
    "cjs",
    "jsx",
    "ts",
    "mts",
    "cts",
    "tsx",
    "node",
    "so",
    "wasm",
    "php",
    "py",
    "pyc",
    "rb",
    "pl",
    "pm",
    "lua",
    "sh",
    "jar",
    "class",
    "dll",
    "ejs",
    "pug",
    "hbs",
    "handlebars",
    "mustache",
    "njk",
    "liquid",
    "eta",
    "twig",
    "erb",
    "vue",
    "svelte",
    "astro",
];

/// Whether an entry at this path is code: what runs is what was packed. Everything else is data, which an application may
/// change where it is unpacked.
pub fn is_code(path: &str, executable: bool) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    executable
        || path.split('/').next() != Some(APP)
        || path.split('/').any(|name| name == "node_modules")
        || name == "package.json"
        || name.contains(".so.")
        || CODE_ENDINGS.contains(&ending)
}

/// Something that is unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Below the folder of the pack: `app/server.js`, `runtime/bin/node`.
    pub path: String,
    /// What it is.
    pub kind: EntryKind<'a>,
}

/// What is unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind<'a> {
    /// A folder.
    Folder,
    /// A file.
    File(Content<'a>),
    /// A symbolic link, relative.
    Link {
        /// As written in the link.
        to: &'a str,
    },
}

/// A file's bytes as they are unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content<'a> {
    /// What it is made of.
    pub blob: &'a Blob,
    /// Somebody may execute it.
    pub executable: bool,
    /// The runtime whose file it is, and its path there: absolute paths may have to be written into it.
    pub of_runtime: Option<(&'a Runtime, &'a str)>,
}

/// Everything that is unpacked, each after the folder that it lies in; folders that are only implied are told too.
pub fn entries(index: &Index) -> Vec<Entry<'_>> {
    let mut entries = below(index, APP, &index.sources, None);
    if let Some(runtime) = &index.runtime {
        entries.extend(below(index, RUNTIME, &runtime.files, Some(runtime)));
    }
    entries
}

fn below<'a>(
    index: &'a Index,
    top: &str,
    sources: &'a [Source],
    runtime: Option<&'a Runtime>,
) -> Vec<Entry<'a>> {
    let mut folders = BTreeSet::from([top.to_owned()]);
    let mut entries = Vec::with_capacity(sources.len() + 1);
    for source in sources {
        let path = format!("{top}/{}", source.path);
        let parents = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        folders.extend(parents.map(str::to_owned));
        let kind = match &source.kind {
            SourceKind::Folder => {
                folders.insert(path);
                continue;
            }
            SourceKind::Link { to } => EntryKind::Link { to },
            SourceKind::File { content, executable } => {
                // An index was checked before: each number is one of a blob.
                let Some(blob) = index.blobs.get(*content as usize) else { continue };
                let of_runtime = runtime.map(|runtime| (runtime, source.path.as_str()));
                EntryKind::File(Content { blob, executable: *executable, of_runtime })
            }
        };
        entries.push(Entry { path, kind });
    }
    entries.extend(folders.into_iter().map(|path| Entry { path, kind: EntryKind::Folder }));
    entries.sort_by(|one, other| path_order(&one.path, &other.path));
    entries
}

impl Content<'_> {
    /// Bytes that [`Content::copy`] writes.
    pub fn length(&self) -> u64 {
        self.blob.length
    }

    /// Writes the bytes as they are to lie below `root`, the final absolute path of the pack's folder. What was
    /// written is only right where this succeeds.
    ///
    /// # Errors
    ///
    /// It is not what was packed, cannot be written, or the root's path is too long for the room that there is.
    pub fn copy(&self, pack: &Pack, what: &str, root: &Path, to: &mut dyn Write) -> Result<(), PackError> {
        let paths = match self.of_runtime {
            Some((runtime, file)) => runtime.absolute_paths(file, &root.join(RUNTIME))?,
            None => Vec::new(),
        };
        if paths.is_empty() {
            return pack.copy(self.blob, what, to);
        }
        pack.copy(self.blob, what, &mut Patched { to, at: 0, paths: &paths })
    }
}

/// Writes other bytes at some places.
struct Patched<'a> {
    to: &'a mut dyn Write,
    at: u64,
    paths: &'a [(u64, Vec<u8>)],
}

impl Write for Patched<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let end = self.at + piece.len() as u64;
        let mut patched = piece.to_vec();
        for (offset, bytes) in self.paths {
            let (from, until) = (self.at.max(*offset), end.min(offset.saturating_add(bytes.len() as u64)));
            if from >= until {
                continue;
            }
            // Both differences are within what is held.
            let within = |at: u64, begin: u64| usize::try_from(at - begin).unwrap_or(usize::MAX);
            let target = patched.get_mut(within(from, self.at)..within(until, self.at));
            let source = bytes.get(within(from, *offset)..within(until, *offset));
            if let (Some(target), Some(source)) = (target, source) {
                target.copy_from_slice(source);
            }
        }
        self.to.write_all(&patched)?;
        self.at = end;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;
    use crate::index::Coding;

    fn file(path: &str) -> Source {
        Source { path: path.to_owned(), kind: SourceKind::File { content: 0, executable: true } }
    }

    fn index() -> Index {
        let blob = Blob { offset: 0, stored: 9, length: 9, coding: Coding::Plain, digest: Digest::default() };
        Index { blobs: vec![blob], ..Index::default() }
    }

    #[test]
    fn a_folder_comes_before_what_lies_in_it_also_where_it_is_only_implied() {
        let link = Source { path: "b/z".into(), kind: SourceKind::Link { to: "../a".into() } };
        let empty = Source { path: "c".into(), kind: SourceKind::Folder };
        let index = Index {
            sources: vec![file("a"), file("b/c/d"), file("b/c-d"), link, empty],
            runtime: Some(Runtime {
                name: "node".into(),
                version: "v1".into(),
                files: vec![file("bin/node")],
                paths: Vec::new(),
            }),
            ..index()
        };
        let paths: Vec<String> = entries(&index).into_iter().map(|entry| entry.path).collect();
        let expected = [
            "app",
            "app/a",
            "app/b",
            "app/b/c",
            "app/b/c/d",
            "app/b/c-d",
            "app/b/z",
            "app/c",
            "runtime",
            "runtime/bin",
            "runtime/bin/node",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn what_runs_is_code_and_what_an_application_may_change_is_not() {
        for path in [
            "app/server.mjs",
            "app/views/page.ejs",
            "app/package.json",
            "app/node_modules/a/data.json",
            "app/lib/libvips.so.42",
            "runtime/lib/anything",
        ] {
            assert!(is_code(path, false), "{path}");
        }
        for path in
            ["app/data/notes.db", "app/settings.json", "app/Onehopfile", "app/js", "app/.next/server/a.html"]
        {
            assert!(!is_code(path, false), "{path}");
        }
        assert!(is_code("app/bin/tool", true));
    }

    #[test]
    fn only_what_is_no_configuration_has_to_be_unpacked() {
        let mut index = Index { sources: vec![file("Onehopfile")], ..index() };
        index.configuration.path = "Onehopfile".into();
        assert!(!has_more_than_configuration(&index));
        index.sources.push(file("server.js"));
        assert!(has_more_than_configuration(&index));
    }

    #[test]
    fn bytes_are_replaced_however_they_arrive() {
        for size in 1..12 {
            let mut out = Vec::new();
            let paths = [(3, b"XYZ".to_vec()), (8, b"UV".to_vec())];
            let mut patched = Patched { to: &mut out, at: 0, paths: &paths };
            for piece in b"0123456789".chunks(size) {
                patched.write_all(piece).expect("memory");
            }
            assert_eq!(out, b"012XYZ67UV", "{size}");
        }
    }
}
