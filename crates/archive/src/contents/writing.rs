//! Writes trees and sources into a pack, in their order, and keeps the index of it.

use std::fs::File;
use std::io;
use std::path::Path;

use super::base::Base;
use super::error::ContentsError;
use super::sources::{Entries, Entry, Name};
use super::trees::{Choice, ServedTree};
use crate::Writer;
use crate::index::{BlobNumber, Index, Served, Source, SourceKind, Tree};
use crate::limits::WHOLE_BYTES_MAX;
use crate::runtime::Portable;

/// How hard zstd tries on what is unpacked: half the time of the level above for 1 % more.
const ZSTD_LEVEL: i32 = 9;

/// A pack on its way.
pub struct Writing {
    writer: Writer,
    /// What is in it.
    pub index: Index,
    /// Bytes of what was packed, as they were.
    pub bytes: Bytes,
}

/// How much was packed. Bytes.
#[derive(Debug, Default, Clone, Copy)]
pub struct Bytes {
    /// Of served files, as they are.
    pub served: u64,
    /// Of served files and their compressed forms.
    pub with_forms: u64,
    /// Of sources, as they are.
    pub sources: u64,
}

impl Writing {
    /// With the program in front written already.
    pub fn new(writer: Writer, index: Index) -> Self {
        Self { writer, index, bytes: Bytes::default() }
    }

    /// Adds a tree.
    ///
    /// # Errors
    ///
    /// Something cannot be read or written.
    pub fn tree(&mut self, tree: ServedTree<'_>, choice: Choice<'_>) -> Result<(), ContentsError> {
        let mut chosen: Vec<_> =
            tree.files.iter().filter(|file| choice.takes(tree.root, file.path)).collect();
        chosen.sort_by(|one, other| one.path.cmp(other.path));
        let mut files = Vec::new();
        for file in chosen {
            let identity = match file.identity {
                Some(bytes) => self.writer.add(bytes)?,
                None => self.stream(&file.place)?,
            };
            self.bytes.served += file.length;
            self.bytes.with_forms += file.length;
            files.push(Served {
                path: file.path.to_vec(),
                hash: file.hash,
                identity,
                gzip: self.form(file.gzip)?,
                brotli: self.form(file.brotli)?,
                zstd: self.form(file.zstd)?,
            });
        }
        let mut folders = tree.folders;
        folders.retain(|path| choice.takes_folder(tree.root, path));
        folders.sort();
        self.index.trees.push(Tree {
            root: tree.root.to_owned(),
            dotfiles: tree.dotfiles,
            follow_outside: tree.follow_outside,
            folders,
            files,
        });
        Ok(())
    }

    fn form(&mut self, form: Option<&[u8]>) -> Result<Option<BlobNumber>, ContentsError> {
        let Some(form) = form else { return Ok(None) };
        self.bytes.with_forms += form.len() as u64;
        self.writer.add(form).map(Some).map_err(ContentsError::Write)
    }

    /// Adds all that is unpacked. What is served, too, is not stored again.
    ///
    /// # Errors
    ///
    /// Something cannot be read or written.
    pub fn sources(
        &mut self,
        base: &Base,
        entries: Entries,
        progress: &dyn Fn(usize, usize),
    ) -> Result<(), ContentsError> {
        let all = entries.len();
        for (done, (Name(path), entry)) in entries.into_iter().enumerate() {
            progress(done, all);
            let kind = match entry {
                Entry::Folder => SourceKind::Folder,
                Entry::Link { to } => SourceKind::Link { to },
                Entry::StandIn(text) => {
                    let content = self.writer.add_compressed(text.as_bytes(), ZSTD_LEVEL)?;
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
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn runtime(&mut self, portable: Portable, name: &str, version: String) -> Result<(), ContentsError> {
        self.index.runtime = Some(portable.store(name, version, &mut self.writer)?);
        Ok(())
    }

    fn source(&mut self, place: &Path) -> Result<BlobNumber, ContentsError> {
        let unreadable = |error: io::Error| ContentsError::UnreadableSource { path: place.to_owned(), error };
        let length = std::fs::metadata(place).map_err(unreadable)?.len();
        self.bytes.sources += length;
        if length > WHOLE_BYTES_MAX {
            return self.stream(place);
        }
        let content = std::fs::read(place).map_err(unreadable)?;
        self.writer.add_compressed(&content, ZSTD_LEVEL).map_err(ContentsError::Write)
    }

    fn stream(&mut self, place: &Path) -> Result<BlobNumber, ContentsError> {
        let file =
            File::open(place).map_err(|error| ContentsError::Unreadable { path: place.to_owned(), error })?;
        self.writer.add_stream(file).map_err(ContentsError::Write)
    }

    /// Writes the index behind it all.
    ///
    /// # Errors
    ///
    /// Something cannot be read or written.
    pub fn finish(self) -> Result<Index, ContentsError> {
        let index = self.index.clone();
        self.writer.finish(self.index)?;
        Ok(index)
    }
}
