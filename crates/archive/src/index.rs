//! What a pack says of itself: the table of its blobs, and the files that are made of them.
//!
//! Paths are below the base: the folder of the Onehopfile when it was packed, the folder into which sources are
//! unpacked when it runs. They have no slash at either end and no `.` or `..`; `sound.rs` checks that.

use std::cmp::Ordering;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::limits::{ABSOLUTE_PATHS_MAX, BLOBS_MAX, ENTRIES_MAX};
use crate::{Digest, PackError, bounded};

/// Everything that a pack holds, in order: two packs of the same folder have equal ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Index {
    /// Who made it: `onehop 0.1.0`.
    pub made_by: String,
    /// The name that it was given: of its executable, without its folder.
    pub name: String,
    /// Architecture and system of the program in front: `x86_64-linux`.
    pub target: String,
    /// The configuration's main file, among `sources`.
    pub configuration: Configuration,
    /// Pieces of the file.
    #[serde(deserialize_with = "bounded::list::<_, _, BLOBS_MAX>")]
    pub blobs: Vec<Blob>,
    /// Trees that sites serve, prepared.
    #[serde(deserialize_with = "bounded::trees")]
    pub trees: Vec<Tree>,
    /// What is unpacked to run applications, and what the configuration reads: sorted by [`path_order`].
    #[serde(deserialize_with = "bounded::list::<_, _, ENTRIES_MAX>")]
    pub sources: Vec<Source>,
    /// What runs them, where it is embedded.
    pub runtime: Option<Runtime>,
    /// Names of variables that applications take from the environment, since the files that set them were left
    /// out; sorted.
    #[serde(deserialize_with = "bounded::list::<_, _, ENTRIES_MAX>")]
    pub variables: Vec<String>,
    /// Absolute paths outside of the base that the configuration names: they have to be on the machine.
    #[serde(deserialize_with = "bounded::list::<_, _, ENTRIES_MAX>")]
    pub outside: Vec<String>,
    /// Addresses that the configuration listened on when it was packed, as `onehop run` shows them.
    #[serde(deserialize_with = "bounded::list::<_, _, ENTRIES_MAX>")]
    pub listens: Vec<String>,
    /// Names of variables that the configuration itself asks for and has no default for; sorted.
    #[serde(deserialize_with = "bounded::list::<_, _, ENTRIES_MAX>")]
    pub asks_for: Vec<String>,
    /// What the folder of the configuration was called, where applications are called after it; else empty.
    pub folder: String,
}

/// The configuration's main file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Configuration {
    /// Its path below the base.
    pub path: String,
    /// Read as a Caddyfile.
    pub caddyfile: bool,
}

/// A piece of the file: its stored bytes are verified by `digest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// Where it begins, in bytes from the beginning of the file.
    pub offset: u64,
    /// Bytes as stored.
    pub stored: u64,
    /// Bytes as they are once a `Coding::Zstd` is undone; else as `stored`.
    pub length: u64,
    /// How it is stored.
    pub coding: Coding,
    /// Of the stored bytes.
    pub digest: Digest,
}

/// How a blob is stored. The compressed forms of a site's files are `Plain`: they are sent as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Coding {
    /// As it is.
    Plain,
    /// One zstd frame (RFC 8878), for what is unpacked.
    Zstd,
}

/// A blob by its place in [`Index::blobs`].
pub type BlobNumber = u32;

/// A tree that is served, with what makes it another tree than one of the same root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// Its root below the base; empty: the base itself.
    pub root: String,
    /// Names that begin with a dot are served too.
    pub dotfiles: bool,
    /// Links that leave the root were followed.
    pub follow_outside: bool,
    /// Folders below the root, sorted; the root is none.
    #[serde(deserialize_with = "bounded::list::<_, _, ENTRIES_MAX>")]
    pub folders: Vec<Vec<u8>>,
    /// Files, sorted by path.
    #[serde(deserialize_with = "bounded::list::<_, _, ENTRIES_MAX>")]
    pub files: Vec<Served>,
}

/// A file that is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Path below the root, as in a URL once decoded.
    pub path: Vec<u8>,
    /// Hash of its content, of which its entity tags are made (as the server's store makes it).
    pub hash: u128,
    /// The bytes as they are.
    pub identity: BlobNumber,
    /// Compressed forms, those that are smaller.
    pub gzip: Option<BlobNumber>,
    /// See `gzip`.
    pub brotli: Option<BlobNumber>,
    /// See `gzip`.
    pub zstd: Option<BlobNumber>,
}

/// A file, folder or link that is unpacked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Below the base; for a runtime, below its own folder.
    pub path: String,
    /// What it is.
    pub kind: SourceKind,
}

/// What is unpacked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceKind {
    /// A folder, which may be empty.
    Folder,
    /// A file.
    File {
        /// Its bytes.
        content: BlobNumber,
        /// Somebody may execute it.
        executable: bool,
    },
    /// A symbolic link to something below the base.
    Link {
        /// Relative, as written in the link.
        to: String,
    },
}

/// A program that runs applications, with the libraries that it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runtime {
    /// `node` or `bun`.
    pub name: String,
    /// As it tells it: `v20.19.0`.
    pub version: String,
    /// Its files: `bin/node`, `lib/libc.so.6`.
    #[serde(deserialize_with = "bounded::list::<_, _, ENTRIES_MAX>")]
    pub files: Vec<Source>,
    /// Where absolute paths have to be written once it is known where it is unpacked.
    #[serde(deserialize_with = "bounded::list::<_, _, ABSOLUTE_PATHS_MAX>")]
    pub paths: Vec<AbsolutePath>,
}

/// Room in a runtime's file for the absolute path of another: the kernel wants that of a program's loader
/// (`PT_INTERP`, System V ABI), and the loader that of its libraries, and both are only known where they are
/// unpacked. Zeros stand there in the pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbsolutePath {
    /// The file among the runtime's: `bin/node`.
    pub file: String,
    /// Whose path is written, among the runtime's files: `lib/ld-linux-x86-64.so.2`.
    pub path: String,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// Room there, in bytes, with the zero at its end.
    pub room: u64,
}

impl Runtime {
    /// What is written into one of its files when it lies in this folder: where, and bytes that fill the room there.
    ///
    /// # Errors
    ///
    /// The folder's path is too long.
    pub fn absolute_paths(&self, file: &str, folder: &Path) -> Result<Vec<(u64, Vec<u8>)>, PackError> {
        let places = self.paths.iter().filter(|place| place.file == file);
        let written = places.map(|place| {
            let mut bytes = folder.join(&place.path).into_os_string().into_vec();
            if bytes.len() as u64 >= place.room {
                return Err(PackError::TooMuch(format!(
                    "{} is too long a path for {}, which takes {} bytes: unpack it elsewhere",
                    folder.display(),
                    self.name,
                    place.room - 1
                )));
            }
            bytes.resize(usize::try_from(place.room).unwrap_or_default(), 0);
            Ok((place.offset, bytes))
        });
        written.collect()
    }
}

/// The order of paths in an index: name by name, so that what lies in a folder follows it at once.
pub fn path_order(one: &str, other: &str) -> Ordering {
    one.split('/').cmp(other.split('/'))
}
