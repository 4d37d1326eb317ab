//! Any text as an Onehopfile, which may import itself: a load ends, and its problems point into
//! the text.
#![no_main]

use std::io;
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use onehop_config::{Entry, FileKind, Source, load};

/// Every file that is asked for has this text.
struct Everywhere<'a>(&'a str);

impl Source for Everywhere<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        // A few names exist, so that both branches of an import are taken.
        if path.to_string_lossy().len() < 12 {
            Ok(self.0.to_owned())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        // All that can be there, and nothing.
        match path.to_string_lossy().len() % 4 {
            0 => None,
            1 => Some(Entry::Folder),
            2 => Some(Entry::Special),
            _ => Some(Entry::File),
        }
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(vec![pattern.with_file_name("a"), pattern.with_file_name("b")])
    }

    fn env(&self, name: &str) -> Option<String> {
        name.strip_prefix('S').map(|rest| format!("{rest} {{\n\"x y\"\n}}"))
    }

    fn working_directory(&self) -> PathBuf {
        "/srv".into()
    }
}

fuzz_target!(|text: &str| {
    for kind in [FileKind::Onehopfile, FileKind::Caddyfile] {
        let problems = match load(Path::new("Onehopfile"), kind, &Everywhere(text)) {
            Ok(loaded) => loaded.warnings,
            Err(errors) => errors,
        };
        for problem in problems {
            assert!(problem.file.text.get(problem.span.clone()).is_some());
            assert!(!problem.to_string().is_empty());
        }
    }
});
