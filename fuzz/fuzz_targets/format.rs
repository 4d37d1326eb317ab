//! Any text in the usual layout: it means the same, and a second time changes nothing.
#![no_main]

use std::io;
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use onehop_config::{Entry, FileKind, Source, load};

/// One file, in which all folders and files are there.
struct One<'a>(&'a str);

impl Source for One<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        if path.ends_with("Onehopfile") { Ok(self.0.to_owned()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        Some(if path.extension().is_some() { Entry::File } else { Entry::Folder })
    }

    fn glob(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    fn env(&self, name: &str) -> Option<String> {
        name.strip_prefix('S').map(|rest| format!("{rest} {{\n\"x y\"\n}}"))
    }

    fn working_directory(&self) -> PathBuf {
        "/srv".into()
    }
}

/// The settings without the lines in which they stand; nothing where there are errors.
fn settings(text: &str) -> Option<String> {
    let loaded = load(Path::new("Onehopfile"), FileKind::Onehopfile, &One(text)).ok()?;
    let shown = format!("{:?}", loaded.checked);
    Some(
        shown
            .split("line: ")
            .map(|part| part.trim_start_matches(|letter: char| letter.is_ascii_digit()))
            .collect(),
    )
}

fuzz_target!(|text: &str| {
    let Ok(once) = onehop_config::format("Onehopfile", text) else { return };
    assert_eq!(onehop_config::format("Onehopfile", &once).as_ref(), Ok(&once));
    assert_eq!(settings(&once), settings(text));
});
