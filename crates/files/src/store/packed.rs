//! Files of a pack: a form is read and proved when it is first asked for, and lies in memory from then on.
//!
//! Owns the way from a blob to a form. What the memory bound does not allow, and what is larger than one answer should
//! wait for, is proved once and then streamed from the pack. Only threads that may block come here; an answer with a
//! form that was asked for before never does. Never sends bytes of a form that is not what was packed.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use onehop_archive::index::{Blob, BlobNumber, Index};
use onehop_archive::{Pack, PackError};
use onehop_config::checked::Encoding;
use onehop_message::error::{HttpError, is_exhaustion};
use onehop_message::response::Disk;
use rustix::io::Errno;

use crate::limits::PACKED_FORM_BYTES_MAX;
use crate::store::budget::MemoryBudget;
use crate::store::{File, Variant};

/// Hears why a file of the pack is not served; for a person.
pub type Tell = Arc<dyn Fn(String) + Send + Sync>;

/// Where the forms of one tree lie.
pub struct PackedSource {
    /// The open pack.
    pub pack: Arc<Pack>,
    /// Its index, which knows where blobs lie.
    pub index: Arc<Index>,
    /// The tree's root below the base, for messages.
    pub root: String,
    /// Bytes that may be held.
    pub budget: MemoryBudget,
    /// Hears of what cannot be served.
    pub tell: Tell,
}

/// The forms of a file, each in its blob.
#[derive(Debug)]
pub struct PackedVariants {
    source: Arc<PackedSource>,
    identity: PackedForm,
    gzip: Option<PackedForm>,
    brotli: Option<PackedForm>,
    zstd: Option<PackedForm>,
}

/// A form that is loaded when it is asked for.
#[derive(Debug)]
struct PackedForm {
    blob: BlobNumber,
    /// What is known of it: [`PROVED`], [`CHANGED`], [`REPORTED`].
    known: AtomicU8,
    loaded: OnceLock<Box<Variant>>,
}

/// It is what was packed.
const PROVED: u8 = 1;
/// It is not, and will not be.
const CHANGED: u8 = 2;
/// That it cannot be served was said.
const REPORTED: u8 = 4;

/// A form for whose sake a thread may have waited.
pub(crate) enum Loaded<'a> {
    /// It is in memory.
    Here(&'a Variant),
    /// It stays in the pack.
    Apart(Disk),
}

impl PackedVariants {
    /// The forms of a file of the index.
    pub fn new(
        source: Arc<PackedSource>,
        identity: BlobNumber,
        [gzip, brotli, zstd]: [Option<BlobNumber>; 3],
    ) -> Self {
        let form = |blob: BlobNumber| PackedForm { blob, known: AtomicU8::new(0), loaded: OnceLock::new() };
        let (gzip, brotli, zstd) = (gzip.map(form), brotli.map(form), zstd.map(form));
        Self { source, identity: form(identity), gzip, brotli, zstd }
    }

    /// A form that was asked for before and lies in memory.
    pub(crate) fn loaded(&self, encoding: Option<Encoding>) -> Option<&Variant> {
        self.get(encoding)?.loaded.get().map(|form| &**form)
    }

    /// Whether there is such a form, wherever it lies.
    pub(crate) fn has(&self, encoding: Option<Encoding>) -> bool {
        self.get(encoding).is_some()
    }

    /// Whether there is any compressed form.
    pub(crate) fn has_coded(&self) -> bool {
        self.gzip.is_some() || self.brotli.is_some() || self.zstd.is_some()
    }

    /// Bytes of the forms that were loaded: as they are, and compressed.
    pub fn loaded_bytes(&self) -> (u64, u64) {
        let bytes = |encoding| self.loaded(encoding).map_or(0, |form| form.bytes.len() as u64);
        let coded = [Encoding::Gzip, Encoding::Brotli, Encoding::Zstd].map(|encoding| bytes(Some(encoding)));
        (bytes(None), coded.iter().sum())
    }

    /// Reads and proves a form of `file`, whose forms these are. Blocks.
    pub(crate) fn load(&self, file: &File, encoding: Option<Encoding>) -> Result<Loaded<'_>, HttpError> {
        let form = self.get(encoding).ok_or(HttpError::FileUnreadable)?;
        let source = &*self.source;
        let blob = source.index.blobs.get(form.blob as usize).ok_or(HttpError::FileUnreadable)?;
        if form.known.load(Ordering::Relaxed) & CHANGED != 0 {
            return Err(HttpError::FileUnreadable);
        }
        let name = || source.name(file);
        let failed = |error: PackError| form.failed(source, &name(), &error);
        let held =
            (blob.stored <= PACKED_FORM_BYTES_MAX).then(|| source.budget.take(blob.stored, 0)).flatten();
        let Some(held) = held else {
            if form.known.load(Ordering::Relaxed) & PROVED == 0 {
                source.pack.verify(blob, &name()).map_err(failed)?;
                form.known.fetch_or(PROVED, Ordering::Relaxed);
            }
            return source.stream(blob).map(Loaded::Apart).map_err(failed);
        };
        let bytes = source.pack.stored(blob, &name()).map_err(failed)?;
        // Of two that come at once one wins, and the other's share is given back.
        let loaded = form.loaded.get_or_init(|| {
            let made = Variant::new(bytes.into(), encoding, &file.content_type, file.modified, file.hash);
            Box::new(made.holding(held))
        });
        Ok(Loaded::Here(loaded))
    }

    fn get(&self, encoding: Option<Encoding>) -> Option<&PackedForm> {
        match encoding {
            None => Some(&self.identity),
            Some(Encoding::Gzip) => self.gzip.as_ref(),
            Some(Encoding::Brotli) => self.brotli.as_ref(),
            Some(Encoding::Zstd) => self.zstd.as_ref(),
        }
    }
}

impl PackedSource {
    fn name(&self, file: &File) -> String {
        let path = String::from_utf8_lossy(&file.path);
        if self.root.is_empty() { path.into_owned() } else { format!("{}/{path}", self.root) }
    }

    fn stream(&self, blob: &Blob) -> Result<Disk, PackError> {
        Ok(Disk { file: Arc::new(self.pack.try_clone_file()?), offset: blob.offset, length: blob.stored })
    }
}

impl PackedForm {
    /// What a failure means to the client; says once what it is.
    fn failed(&self, source: &PackedSource, name: &str, error: &PackError) -> HttpError {
        if let PackError::Io(error) = error
            && Errno::from_io_error(error).is_some_and(is_exhaustion)
        {
            return HttpError::NoDescriptors;
        }
        let known = if matches!(error, PackError::Io(_)) { REPORTED } else { REPORTED | CHANGED };
        if self.known.fetch_or(known, Ordering::Relaxed) & REPORTED == 0 {
            (source.tell)(format!(
                "{name} cannot be served, and is answered with 500: {} {error}",
                source.index.name
            ));
        }
        HttpError::FileUnreadable
    }
}

impl fmt::Debug for PackedSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PackedSource").field("root", &self.root).finish_non_exhaustive()
    }
}
