//! Writes trees and sources into a pack, in their order, and keeps the index of it.

use std::fs::File;
use std::io;
use std::path::Path;

use onehop_archive::index::{BlobNumber, Index, Served, Source, SourceKind, Tree};
use onehop_archive::limits::WHOLE_BYTES_MAX;
use onehop_archive::{PackError, Writer};
use onehop_files::store::Variant;
use onehop_files::tree::Prepared;

use super::base::Base;
use super::data::DataRules;
use super::glob::Patterns;
use super::progress::Progress;
use super::runtime::Found;
use super::sources::{Entries, Entry, Name};
use super::trees::{self, Wanted};
use crate::failure::Failure;

/// How hard zstd tries on what is unpacked: half the time of the level above for 1 % more.
const ZSTD_LEVEL: i32 = 9;

/// A pack on its way.
pub(super) struct Writing {
    writer: Writer,
    /// The file, for a person.
    shown: String,
    /// What is in it.
    pub(super) index: Index,
    /// Bytes of what was packed, as they were.
    pub(super) bytes: Bytes,
}

/// How much was packed. Bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Bytes {
    /// Of served files, as they are.
    pub(super) served: u64,
    /// Of served files and their compressed forms.
    pub(super) with_forms: u64,
    /// Of sources, as they are.
    pub(super) sources: u64,
}

impl Writing {
    /// With the program in front written already.
    pub(super) fn new(writer: Writer, shown: String, index: Index) -> Self {
        Self { writer, shown, index, bytes: Bytes::default() }
    }

    /// Adds a tree.
    pub(super) fn tree(
        &mut self,
        wanted: &Wanted,
        prepared: &Prepared,
        excluded: &Patterns,
        rules: &DataRules,
    ) -> Result<(), Failure> {
        let mut files = Vec::new();
        for file in trees::packed(wanted, prepared, excluded, rules) {
            let place = prepared.place(file);
            let identity = match &file.identity {
                Some(form) => self.writer.add(&form.bytes).map_err(|error| failed(&self.shown, error))?,
                None => self.stream(&place)?,
            };
            self.bytes.served += file.length;
            self.bytes.with_forms += file.length;
            files.push(Served {
                path: file.path.to_vec(),
                hash: file.hash,
                identity,
                gzip: self.form(file.gzip.as_ref())?,
                brotli: self.form(file.brotli.as_ref())?,
                zstd: self.form(file.zstd.as_ref())?,
            });
        }
        let folders = prepared.store.folders.iter().map(|folder| folder.path.to_vec());
        let mut folders: Vec<Vec<u8>> = folders.filter(|path| !path.is_empty()).collect();
        folders
            .retain(|path| !excluded.holds(&super::base::join(&wanted.root, &String::from_utf8_lossy(path))));
        folders.sort();
        self.index.trees.push(Tree {
            root: wanted.root.clone(),
            dotfiles: wanted.wish.dotfiles,
            follow_outside: wanted.wish.follow_outside,
            folders,
            files,
        });
        Ok(())
    }

    fn form(&mut self, form: Option<&Variant>) -> Result<Option<BlobNumber>, Failure> {
        let Some(form) = form else { return Ok(None) };
        self.bytes.with_forms += form.bytes.len() as u64;
        self.writer.add(&form.bytes).map(Some).map_err(|error| failed(&self.shown, error))
    }

    /// Adds all that is unpacked. What is served, too, is not stored again.
    pub(super) fn sources(
        &mut self,
        base: &Base,
        entries: Entries,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let all = entries.len();
        for (done, (Name(path), entry)) in entries.into_iter().enumerate() {
            progress.show(done, all, || "sources packed".to_owned());
            let kind = match entry {
                Entry::Folder => SourceKind::Folder,
                Entry::Link { to } => SourceKind::Link { to },
                Entry::StandIn(text) => {
                    let content = self
                        .writer
                        .add_compressed(text.as_bytes(), ZSTD_LEVEL)
                        .map_err(|error| failed(&self.shown, error))?;
                    SourceKind::File { content, executable: false }
                }
                Entry::File { executable } => {
                    SourceKind::File { content: self.source(&base.at(&path))?, executable }
                }
            };
            self.index.sources.push(Source { path, kind });
        }
        Ok(())
    }

    /// Adds what runs applications.
    pub(super) fn runtime(&mut self, found: Found) -> Result<(), Failure> {
        self.index.runtime = Some(found.store(&mut self.writer).map_err(|error| failed(&self.shown, error))?);
        Ok(())
    }

    fn source(&mut self, place: &Path) -> Result<BlobNumber, Failure> {
        let unreadable = |error: io::Error| {
            Failure::failed(format!(
                "cannot read {}: {error}\n  leave it out with --exclude, or let this user read it",
                place.display()
            ))
        };
        let length = std::fs::metadata(place).map_err(unreadable)?.len();
        self.bytes.sources += length;
        if length > WHOLE_BYTES_MAX {
            return self.stream(place);
        }
        let content = std::fs::read(place).map_err(unreadable)?;
        self.writer.add_compressed(&content, ZSTD_LEVEL).map_err(|error| failed(&self.shown, error))
    }

    fn stream(&mut self, place: &Path) -> Result<BlobNumber, Failure> {
        let file = File::open(place)
            .map_err(|error| Failure::failed(format!("cannot read {}: {error}", place.display())))?;
        self.writer.add_stream(file).map_err(|error| failed(&self.shown, error))
    }

    /// Writes the index behind it all.
    pub(super) fn finish(self) -> Result<Index, Failure> {
        let (index, shown) = (self.index.clone(), self.shown);
        self.writer.finish(self.index).map_err(|error| failed(&shown, error))?;
        Ok(index)
    }
}

pub(super) fn failed(shown: &str, error: PackError) -> Failure {
    match error {
        PackError::Unwritable(error) => {
            let advice = match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "; make room, or name another place with -o FILE"
                }
                _ => "",
            };
            Failure::failed(format!("cannot write {shown}: {error}{advice}"))
        }
        PackError::Io(error) => Failure::failed(format!("what is packed cannot be read: {error}")),
        error => Failure::failed(format!("cannot be packed: {error}")),
    }
}
