//! Files in memory, and archives of them whose bytes follow from the files alone: sorted, one time, owned by root.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use flate2::{Compression, GzBuilder};

use crate::Outcome;

/// A ustar header has room for so many bytes of a path.
const PATH_BYTES_MAX: usize = 100;

/// A file in a tree.
pub(super) struct File {
    pub(super) mode: u32,
    pub(super) bytes: Vec<u8>,
}

/// Files by their paths, which have no slash in front.
#[derive(Default)]
pub(super) struct Tree(pub(super) BTreeMap<String, File>);

impl Tree {
    /// Adds a file that everybody may read.
    pub(super) fn add(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.to_owned(), File { mode: 0o644, bytes: bytes.into() });
    }

    /// Adds a file that everybody may run.
    pub(super) fn add_program(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.to_owned(), File { mode: 0o755, bytes: bytes.into() });
    }

    /// The folders in which its files lie.
    pub(super) fn folders(&self) -> BTreeSet<&str> {
        let mut folders = BTreeSet::new();
        for path in self.0.keys() {
            let slashes = path.match_indices('/');
            folders.extend(slashes.filter_map(|(place, _)| path.get(..place)));
        }
        folders
    }

    /// As `.tar.gz`, with `prefix` before each path. Folders have entries of their own where `with_folders`.
    pub(super) fn tar_gz(&self, prefix: &str, with_folders: bool, epoch: u64) -> Outcome<Vec<u8>> {
        let mut tar = tar::Builder::new(Vec::new());
        if with_folders {
            tar.append(&header(prefix, tar::EntryType::Directory, 0o755, 0, epoch)?, &[][..])?;
            for folder in self.folders() {
                let path = format!("{prefix}{folder}/");
                tar.append(&header(&path, tar::EntryType::Directory, 0o755, 0, epoch)?, &[][..])?;
            }
        }
        for (path, file) in &self.0 {
            let path = format!("{prefix}{path}");
            let length = file.bytes.len() as u64;
            tar.append(&header(&path, tar::EntryType::Regular, file.mode, length, epoch)?, &file.bytes[..])?;
        }
        gzip(&tar.into_inner()?)
    }
}

/// The crate's own `set_path` drops the `./` in front that dpkg's tools expect.
fn header(path: &str, kind: tar::EntryType, mode: u32, length: u64, epoch: u64) -> Outcome<tar::Header> {
    let mut header = tar::Header::new_ustar();
    let name = header.as_ustar_mut().ok_or("a header that is no ustar header")?;
    let room = name.name.get_mut(..path.len()).filter(|_| path.len() < PATH_BYTES_MAX);
    room.ok_or_else(|| format!("{path} is too long for an archive"))?.copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(length);
    header.set_mtime(epoch);
    header.set_uid(0);
    header.set_gid(0);
    header.set_username("root")?;
    header.set_groupname("root")?;
    header.set_device_major(0)?;
    header.set_device_minor(0)?;
    header.set_cksum();
    Ok(header)
}

/// Without a name, a time or a system, as `gzip -9n`.
pub(super) fn gzip(bytes: &[u8]) -> Outcome<Vec<u8>> {
    let mut gzip = GzBuilder::new().mtime(0).operating_system(3).write(Vec::new(), Compression::best());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?)
}
