//! Makes a program such as Node.js portable: with its libraries in a folder of its own, it runs where nothing else is.
//!
//! Owns which libraries a program needs (`libraries.rs`, as ld.so(8) finds them), how its file is read (`elf.rs`) and
//! changed (`portable.rs`). Executes nothing, neither the program nor `ldd`, and never changes the file that it is
//! given. Equal files make equal results.

mod cache;
mod elf;
mod libraries;
mod portable;
mod store;

use std::path::{Path, PathBuf};

use crate::index::AbsolutePath;
use crate::limits::WHOLE_BYTES_MAX;
use elf::Elf;
pub use libraries::Places;
pub use store::node_version_in;

/// The folder of programs in a runtime.
pub const PROGRAMS: &str = "bin";

/// The folder of libraries in a runtime.
pub const LIBRARIES: &str = "lib";

/// A program and its libraries, changed so that they find each other wherever they lie.
#[derive(Debug)]
pub struct Portable {
    /// Architecture and system, as in [`crate::Index::target`].
    pub target: &'static str,
    /// The program's file.
    pub program: Vec<u8>,
    /// What else it needs, by name, for the folder [`LIBRARIES`]: sorted, with its loader. A static one needs nothing.
    pub libraries: Vec<Library>,
    /// What has to be written into the program when it is unpacked.
    pub paths: Vec<AbsolutePath>,
}

/// A shared library.
#[derive(Debug)]
pub struct Library {
    /// As others ask for it: `libc.so.6`.
    pub name: String,
    /// Where it was found.
    pub from: PathBuf,
    /// Its file.
    pub bytes: Vec<u8>,
}

/// Why a program cannot be taken along.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// A file cannot be read.
    #[error("{}: {why}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// It is something that cannot be made portable.
    #[error("{}: {what}", path.display())]
    Unsupported {
        /// Which file.
        path: PathBuf,
        /// What it is, or lacks.
        what: String,
    },
    /// A library is not on this machine.
    #[error(
        "{} needs the library {name}, which is not found on this machine (looked in {looked_in}): install it, \
         or name another program",
        needed_by.display()
    )]
    Missing {
        /// Which library.
        name: String,
        /// Whose.
        needed_by: PathBuf,
        /// Folders.
        looked_in: String,
    },
}

/// Makes this program portable under the name `name` (`node`).
///
/// # Errors
///
/// What it is, or what is missing.
pub fn make_portable(path: &Path, name: &str, places: &Places) -> Result<Portable, RuntimeError> {
    // Libraries beside it are found from where it really lies.
    let path = &path.canonicalize().map_err(|why| RuntimeError::Unreadable { path: path.to_owned(), why })?;
    let bytes = read(path)?;
    let unsupported = |what: String| RuntimeError::Unsupported { path: path.clone(), what };
    if bytes.starts_with(b"#!") {
        return Err(unsupported(
            "is a script, which needs the program that its first line names: name that one".into(),
        ));
    }
    let elf = Elf::parse(&bytes).map_err(unsupported)?;
    let target = elf.target().map_err(unsupported)?;
    let Some(loader) = elf.interpreter().map_err(unsupported)? else {
        // Static: whatever it needs is in it.
        return Ok(Portable { target, program: bytes, libraries: Vec::new(), paths: Vec::new() });
    };
    let mut libraries = libraries::of(path, &elf, Path::new(loader), places)?;
    let loader = libraries::file_name(Path::new(loader));
    for library in &mut libraries {
        portable::forget_folders(&mut library.bytes)
            .map_err(|what| RuntimeError::Unsupported { path: library.from.clone(), what })?;
    }
    let (program, rooms) = portable::with_rooms(&elf).map_err(unsupported)?;
    let place = |path: String, offset| AbsolutePath {
        file: format!("{PROGRAMS}/{name}"),
        path,
        offset,
        room: portable::ROOM_BYTES,
    };
    let paths =
        vec![place(format!("{LIBRARIES}/{loader}"), rooms.loader), place(LIBRARIES.to_owned(), rooms.folder)];
    Ok(Portable { target, program, libraries, paths })
}

fn read(path: &Path) -> Result<Vec<u8>, RuntimeError> {
    let failed = |why| RuntimeError::Unreadable { path: path.to_owned(), why };
    let found = std::fs::metadata(path).map_err(failed)?;
    if !found.is_file() || found.len() > WHOLE_BYTES_MAX {
        let what = format!("is no file of at most {} MiB", WHOLE_BYTES_MAX / (1024 * 1024));
        return Err(RuntimeError::Unsupported { path: path.to_owned(), what });
    }
    std::fs::read(path).map_err(failed)
}

#[cfg(test)]
mod tests;
