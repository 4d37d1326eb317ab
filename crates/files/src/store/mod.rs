//! The memory store: one directory tree as it was at one moment.
//!
//! Owns the bytes that answers are made of. Immutable once published; shared by every core and by
//! successive snapshots (an unchanged file is the same `Arc`). Never touches the file system: [`crate::tree`]
//! builds stores.

pub mod budget;
pub mod packed;
pub mod variant;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use hashbrown::HashMap;
use onehop_config::checked::Encoding;

use crate::store::budget::Held;
use crate::store::packed::PackedVariants;

/// One directory tree as it was at one moment.
#[derive(Debug, Default, Clone)]
pub struct Store {
    /// The root as configured, absolute.
    pub root: PathBuf,
    /// Files by number; a number is only good for this store.
    pub files: Vec<Arc<File>>,
    /// Folders by number. 0 is the root.
    pub folders: Vec<Arc<Folder>>,
    /// From a normalised path (decoded, no slash at either end, `""` for the root) to what stands there.
    pub index: HashMap<Box<[u8]>, Node, foldhash::fast::FixedState>,
    /// Sums.
    pub totals: Totals,
    /// The root with every link resolved when the store was read: where files on disk are opened, so
    /// that a release link that is swapped does not mix two releases.
    pub resolved_root: PathBuf,
    /// What was left out.
    pub skipped: Skipped,
    /// Hashed assets of earlier builds that this one lacks, sorted by path; their numbers follow those of `files`.
    pub kept: Arc<[Arc<File>]>,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// Index into [`Store::files`].
    File(u32),
    /// Index into [`Store::folders`].
    Folder(u32),
}

/// Sums over a store.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes held in memory as they are.
    pub stored_bytes: u64,
    /// Bytes held in memory in compressed forms.
    pub compressed_bytes: u64,
    /// Files that are streamed from disk, or from a pack, because the memory bound or the file bound is reached.
    pub on_disk: usize,
}

/// Entries of a tree that are not served.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// How many.
    pub count: usize,
    /// The first of them: path below the root and the reason.
    pub listed: Vec<(PathBuf, SkipReason)>,
}

/// Why an entry is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// A symbolic link that leaves the root.
    LeavesRoot,
    /// A symbolic link to nothing.
    BrokenLink,
    /// A symbolic link to a folder that holds it.
    LinkLoop,
    /// A socket, pipe or device.
    Special,
    /// We may not read it.
    Unreadable,
}

/// One file.
#[derive(Debug, Clone)]
pub struct File {
    /// Path below the root, as in [`Store::index`].
    pub path: Box<[u8]>,
    /// Media type with charset where it has one.
    pub content_type: Box<str>,
    /// Last change, whole seconds.
    pub modified: SystemTime,
    /// Bytes as they are.
    pub length: u64,
    /// Content hash that tells versions apart; of a file on disk its mtime and length.
    pub hash: u128,
    /// The bytes; `None`: streamed from disk.
    pub identity: Option<Variant>,
    /// Compressed forms, only those that are smaller.
    pub gzip: Option<Variant>,
    /// See `gzip`.
    pub brotli: Option<Variant>,
    /// See `gzip`.
    pub zstd: Option<Variant>,
    /// The name holds a content hash, so that the file never changes under it.
    pub hashed_name: bool,
    /// Size, mtime with nanoseconds, inode and device when it was read: whether to read it again.
    pub stamp: Stamp,
    /// Compression has been tried; what is absent is not coming.
    pub settled: bool,
    /// Where its forms lie in a pack; then the ones above are `None`.
    pub packed: Option<Arc<PackedVariants>>,
}

/// One form of a file: its bytes and what its answers carry.
#[derive(Debug, Clone)]
pub struct Variant {
    /// The bytes.
    pub bytes: Arc<[u8]>,
    /// Strong entity tag with its quotes (RFC 9110 section 8.8.3); differs from form to form.
    pub etag: Arc<str>,
    /// Their share of the memory bound.
    pub held: Option<Arc<Held>>,
    /// The field lines of its answers, the ETag's first. Made by [`Variant::new`] and nowhere else.
    pub lines: Arc<[u8]>,
}

/// What tells a changed file from an unchanged one without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Bytes.
    pub length: u64,
    /// Seconds and nanoseconds of the last change of content.
    pub modified: (i64, u32),
    /// Seconds and nanoseconds of the last change of the inode.
    pub changed: (i64, u32),
    /// Device and inode number.
    pub identity: (u64, u64),
}

/// One folder.
#[derive(Debug)]
pub struct Folder {
    /// Path below the root, as in [`Store::index`].
    pub path: Box<[u8]>,
    /// Last change.
    pub modified: SystemTime,
    /// What it holds, by name.
    pub entries: Vec<(Box<[u8]>, Node)>,
}

impl Store {
    /// What stands at a normalised path.
    pub fn get(&self, path: &[u8]) -> Option<Node> {
        // Most visits begin at the root, and everybody knows what stands there.
        if path.is_empty() && !self.folders.is_empty() {
            return Some(Node::Folder(0));
        }
        self.index.get(path).copied()
    }

    /// What answers a request for a normalised path: the latest build, else a hashed asset of an earlier one.
    pub fn find(&self, path: &[u8]) -> Option<Node> {
        self.get(path).or_else(|| {
            let place = self.kept.binary_search_by(|file| (*file.path).cmp(path)).ok()?;
            Some(Node::File(u32::try_from(self.files.len() + place).ok()?))
        })
    }

    /// Bytes of forms that were loaded from a pack: as they are, and compressed.
    pub fn loaded_bytes(&self) -> (u64, u64) {
        let packed = self.files.iter().filter_map(|file| file.packed.as_ref());
        packed
            .map(|packed| packed.loaded_bytes())
            .fold((0, 0), |(plain, coded), (more_plain, more_coded)| (plain + more_plain, coded + more_coded))
    }

    /// Bytes of files that are kept of earlier builds: as they are, and compressed.
    pub fn kept_bytes(&self) -> (u64, u64) {
        let length = |form: &Option<Variant>| form.as_ref().map_or(0, |form| form.bytes.len() as u64);
        let coded = |file: &Arc<File>| length(&file.gzip) + length(&file.brotli) + length(&file.zstd);
        let plain = self.kept.iter().map(|file| length(&file.identity)).sum();
        (plain, self.kept.iter().map(coded).sum())
    }

    /// A file by number.
    pub fn file(&self, number: u32) -> Option<&Arc<File>> {
        let number = number as usize;
        self.files.get(number).or_else(|| self.kept.get(number.checked_sub(self.files.len())?))
    }
}

impl File {
    /// The form in a coding, if it lies in memory; `None` asks for the bytes as they are.
    pub fn form(&self, encoding: Option<Encoding>) -> Option<&Variant> {
        let own = match encoding {
            None => self.identity.as_ref(),
            Some(Encoding::Gzip) => self.gzip.as_ref(),
            Some(Encoding::Brotli) => self.brotli.as_ref(),
            Some(Encoding::Zstd) => self.zstd.as_ref(),
        };
        match (own, &self.packed) {
            (None, Some(packed)) => packed.loaded(encoding),
            _ => own,
        }
    }

    /// Whether there is a form in a coding, in memory or in a pack.
    pub fn has_form(&self, encoding: Option<Encoding>) -> bool {
        match &self.packed {
            Some(packed) => packed.has(encoding),
            None => self.form(encoding).is_some(),
        }
    }

    /// Whether there is a compressed form, in memory or in a pack.
    pub(crate) fn has_coded_form(&self) -> bool {
        self.brotli.is_some()
            || self.gzip.is_some()
            || self.zstd.is_some()
            || self.packed.as_ref().is_some_and(|packed| packed.has_coded())
    }
}
