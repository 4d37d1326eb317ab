//! Where configuration text comes from. Owns the seam to the file system and the environment.
//!
//! The rest of the crate reads only through [`Source`]; nothing else here may touch the disk.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::limits::FILE_BYTES_MAX;

/// Which of the two kinds of file is read: they share grammar and differ in what paths mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Relative paths start at the folder of the file.
    Onehopfile,
    /// Relative paths start at the working directory, as Caddy has it.
    Caddyfile,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A socket, a device and the like.
    Special,
}

/// What a load may ask of its surroundings.
pub trait Source {
    /// The whole text of a file.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// What stands at a path, links followed; nothing where there is nothing or it cannot be seen.
    fn entry(&self, path: &Path) -> Option<Entry>;
    /// The files whose paths fit a pattern with `*` and `?`, sorted; empty where none does.
    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>>;
    /// The value of an environment variable.
    fn env(&self, name: &str) -> Option<String>;
    /// The working directory, absolute.
    fn working_directory(&self) -> PathBuf;
    /// A folder whose own path says nothing to a person, since it stands for another: names are made of what lies below
    /// it, then of [`Source::name_of_stand_in`].
    fn stand_in(&self) -> Option<PathBuf> {
        None
    }
    /// What the folder for which [`Source::stand_in`] stands says ([`crate::telling_folder`]); asked only where a name is made of it.
    fn name_of_stand_in(&self) -> Option<String> {
        None
    }
}

/// One file's text under the name that messages give it.
#[derive(PartialEq, Eq)]
pub struct SourceText {
    /// Its path, as it was asked for.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Where each line begins, in bytes.
    line_starts: Vec<usize>,
}

impl SourceText {
    /// A file's text with its name.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let after_newlines =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(after_newlines).collect();
        Self { name: name.into(), text, line_starts }
    }

    /// Line and column (in characters) of a byte, each from 1.
    pub(crate) fn line_and_column(&self, at: usize) -> (u32, u32) {
        let line = self.line_starts.partition_point(|start| *start <= at);
        let start = line.checked_sub(1).and_then(|index| self.line_starts.get(index)).copied().unwrap_or(0);
        let column = self.text.get(start..at).unwrap_or_default().chars().count() + 1;
        (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
    }
}

impl fmt::Debug for SourceText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text would drown every message that contains a place.
        formatter.debug_struct("SourceText").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The real file system and environment.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileSource;

impl Source for FileSource {
    fn read(&self, path: &Path) -> io::Result<String> {
        if std::fs::metadata(path)?.len() > FILE_BYTES_MAX as u64 {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the file is too large for a configuration",
            ));
        }
        std::fs::read_to_string(path)
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        let kind = std::fs::metadata(path).ok()?;
        Some(match () {
            () if kind.is_file() => Entry::File,
            () if kind.is_dir() => Entry::Folder,
            () => Entry::Special,
        })
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let mut found = vec![PathBuf::new()];
        for component in pattern.components() {
            let name = component.as_os_str().to_string_lossy();
            if !name.contains(['*', '?']) {
                for path in &mut found {
                    path.push(component);
                }
                continue;
            }
            found = found.iter().flat_map(|folder| matching_entries(folder, &name)).collect();
        }
        found.retain(|path| path.exists());
        found.sort();
        Ok(found)
    }

    fn env(&self, name: &str) -> Option<String> {
        // Names that the system cannot hold would panic in some versions of the library.
        if name.is_empty() || name.contains(['=', '\0']) {
            return None;
        }
        std::env::var(name).ok()
    }

    fn working_directory(&self) -> PathBuf {
        std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
    }
}

/// Entries of a folder that fit; none where it cannot be read, as a shell has it.
fn matching_entries(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = std::fs::read_dir(listed) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| name_fits(pattern, &entry.file_name().to_string_lossy()))
        .map(|entry| folder.join(entry.file_name()))
        .collect()
}

/// Whether a file name fits a pattern in which `*` stands for any text and `?` for one character.
pub fn name_fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut in_pattern) = (0, 0);
    // Where to go on when the last star has to take one character more.
    let mut retry: Option<(usize, usize)> = None;
    while at < name.len() {
        match pattern.get(in_pattern) {
            Some('*') => {
                retry = Some((in_pattern + 1, at));
                in_pattern += 1;
            }
            Some(wanted) if *wanted == '?' || name.get(at) == Some(wanted) => {
                in_pattern += 1;
                at += 1;
            }
            _ => match retry {
                Some((after_star, from)) => {
                    retry = Some((after_star, from + 1));
                    in_pattern = after_star;
                    at = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(in_pattern).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::{FILE_BYTES_MAX, FileSource, Source, name_fits};

    #[test]
    fn a_pattern_finds_sorted_files_and_a_file_too_large_is_not_read() {
        let folder = std::env::temp_dir().join(format!("onehop-config-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("sites")).unwrap();
        for name in ["b.conf", "a.conf", "c.txt"] {
            std::fs::write(folder.join("sites").join(name), name).unwrap();
        }
        let found = FileSource.glob(&folder.join("sites/*.conf")).unwrap();
        assert_eq!(found, [folder.join("sites/a.conf"), folder.join("sites/b.conf")]);
        assert_eq!(FileSource.glob(&folder.join("nowhere/*.conf")).unwrap().len(), 0);
        assert_eq!(FileSource.read(&found[0]).unwrap(), "a.conf");
        std::fs::File::create(folder.join("large")).unwrap().set_len(FILE_BYTES_MAX as u64 + 1).unwrap();
        assert!(FileSource.read(&folder.join("large")).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_star_stands_for_any_text_and_a_question_mark_for_one_character() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*.conf", "a.conf", true),
            ("*.conf", "a.confx", false),
            ("a*b*c", "a-b-b-c", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("", "a", false),
        ] {
            assert_eq!(name_fits(pattern, name), expected, "{pattern} against {name}");
        }
    }
}
