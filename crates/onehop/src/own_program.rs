//! Where this very program is: to open its own pack, to run it again, and to be found under its name.
//!
//! Notes it once at the start, before anything changes folders. Never looks for another program.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static NOTED: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Notes where the program lies. The first of all calls.
pub(crate) fn note() {
    let _ = NOTED.set(look());
}

/// What runs this very program again, even when its file has been replaced by a newer one; where there is no /proc (an empty
/// chroot), the file that it was executed from.
pub(crate) fn path() -> PathBuf {
    let by_kernel = Path::new(BY_KERNEL);
    if by_kernel.exists() {
        return by_kernel.to_path_buf();
    }
    name().unwrap_or(by_kernel).to_path_buf()
}

/// Where its file lay at the start, absolute and without links where that can be known.
pub(crate) fn name() -> Option<&'static Path> {
    NOTED.get_or_init(look).as_deref()
}

/// How a person calls it: `onehop`, or the file of the pack that it is.
pub(crate) fn called() -> String {
    match (onehop_archive::own_location(), name()) {
        (Ok(Some(_)), Some(name)) => name.display().to_string(),
        _ => "onehop".to_owned(),
    }
}

/// Its own file.
pub(crate) fn open() -> io::Result<File> {
    File::open(path())
}

const BY_KERNEL: &str = "/proc/self/exe";

fn look() -> Option<PathBuf> {
    // The kernel's own word; without /proc, the word that it was given.
    std::fs::read_link(BY_KERNEL).ok().filter(|path| path.is_absolute()).or_else(|| {
        let word = OsStr::from_bytes(rustix::param::linux_execfn().to_bytes());
        if word.is_empty() {
            return None;
        }
        let absolute = std::path::absolute(Path::new(word)).ok()?;
        Some(std::fs::canonicalize(&absolute).unwrap_or(absolute))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_knows_its_own_file() {
        let own = std::env::current_exe().expect("there is /proc here");
        assert_eq!(name(), Some(own.as_path()));
        assert_eq!(
            open().expect("it is there").metadata().expect("open").len(),
            own.metadata().expect("there").len()
        );
    }

    #[test]
    fn what_the_kernel_was_given_is_the_same_file() {
        let word = OsStr::from_bytes(rustix::param::linux_execfn().to_bytes());
        let own = std::env::current_exe().expect("there is /proc here");
        assert_eq!(Path::new(word).file_name(), own.file_name());
    }
}
