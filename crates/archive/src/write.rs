//! Makes a pack: the program, blobs behind it, the index, and the location of it all.
//!
//! Writes what it is given in the order in which it is given, once for each content, so that equal calls make equal
//! files. Never reads the clock.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use zstd::zstd_safe::CParameter;

use crate::digest::Hasher;
use crate::error::PackError;
use crate::index::{Blob, BlobNumber, Coding, Index};
use crate::limits::{
    BLOBS_MAX, COMPRESS_JOB_BYTES, COMPRESS_WORKERS_MAX, ENTRIES_MAX, INDEX_BYTES_MAX, PIECE_BYTES,
    PROGRAM_ALIGNMENT, PROGRAM_BYTES_MAX, WHOLE_BYTES_MAX, ZSTD_WINDOW_LOG,
};
use crate::slot::{LOCATION_BYTES, Location, mark};
use crate::{Digest, validate};

/// A pack that is being made.
#[derive(Debug)]
pub struct Writer {
    out: File,
    at: u64,
    program: u64,
    /// Where in the program its slot is.
    slot: u64,
    blobs: Vec<Blob>,
    /// By digest of what is stored, and how.
    known: HashMap<(Digest, Coding), BlobNumber>,
}

/// What was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Where its parts lie.
    pub location: Location,
    /// How many blobs it has.
    pub blobs: usize,
}

impl Writer {
    /// Copies the program to the beginning of an empty file. A program that is a pack itself leaves its own pack behind.
    ///
    /// # Errors
    ///
    /// The program is no onehop, or the system refuses.
    pub fn begin(mut program: impl Read, out: File) -> Result<Self, PackError> {
        let mut bytes = Vec::new();
        program.by_ref().take(PROGRAM_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > PROGRAM_BYTES_MAX {
            return Err(PackError::Foreign);
        }
        let slot = find_slot(&bytes)?;
        let own = slot_in(&bytes, slot).ok_or(PackError::Foreign)?;
        if let Some(location) = Location::parse(&own)? {
            let program = usize::try_from(location.program).map_err(|_| PackError::Foreign)?;
            bytes.truncate(program);
        }
        let pristine = bytes.get_mut(slot + mark().len()..slot + LOCATION_BYTES).ok_or(PackError::Foreign)?;
        pristine.fill(0);
        let program = bytes.len() as u64;
        bytes.resize(usize::try_from(program.next_multiple_of(PROGRAM_ALIGNMENT)).unwrap_or(usize::MAX), 0);
        (&out).write_all(&bytes).map_err(PackError::Unwritable)?;
        let at = bytes.len() as u64;
        Ok(Self { out, at, program, slot: slot as u64, blobs: Vec::new(), known: HashMap::new() })
    }

    /// Stores these bytes as they are.
    ///
    /// # Errors
    ///
    /// The pack holds too many, or the system refuses.
    pub fn add(&mut self, bytes: &[u8]) -> Result<BlobNumber, PackError> {
        self.store(bytes, bytes.len() as u64, Coding::Plain)
    }

    /// Stores these bytes as one zstd frame where that is smaller. The same bytes that were stored plainly before are
    /// not stored again.
    ///
    /// # Errors
    ///
    /// As [`Writer::add`].
    pub fn add_compressed(&mut self, bytes: &[u8], level: i32) -> Result<BlobNumber, PackError> {
        if let Some(number) = self.known.get(&(Digest::of(bytes), Coding::Plain)) {
            return Ok(*number);
        }
        let workers =
            std::thread::available_parallelism().map_or(1, |cores| cores.get().min(COMPRESS_WORKERS_MAX));
        let frame = compress(bytes, level, workers)?;
        if frame.len() < bytes.len() {
            self.store(&frame, bytes.len() as u64, Coding::Zstd)
        } else {
            self.add(bytes)
        }
    }

    /// Stores what can be read, as it is, in pieces: for files that are too large to be held.
    ///
    /// # Errors
    ///
    /// As [`Writer::add`].
    pub fn add_stream(&mut self, mut from: impl Read) -> Result<BlobNumber, PackError> {
        let offset = self.at;
        let mut hasher = Hasher::default();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = match from.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let bytes = piece.get(..read).unwrap_or_default();
            hasher.update(bytes);
            self.out.write_all(bytes).map_err(PackError::Unwritable)?;
            self.at += read as u64;
        }
        let digest = hasher.finish();
        if let Some(number) = self.known.get(&(digest, Coding::Plain)) {
            // It is there already: what was written is written over.
            self.at = offset;
            self.out.seek(SeekFrom::Start(offset))?;
            return Ok(*number);
        }
        let stored = self.at - offset;
        self.note(Blob { offset, stored, length: stored, coding: Coding::Plain, digest })
    }

    /// Writes the index and the location of it all. What `index.blobs` was does not count.
    ///
    /// # Errors
    ///
    /// The index is not sound, or the system refuses.
    pub fn finish(mut self, mut index: Index) -> Result<Summary, PackError> {
        index.blobs = std::mem::take(&mut self.blobs);
        let blobs = index.blobs.len();
        // What is written over may have been longer.
        self.out.set_len(self.at)?;
        let bytes = postcard::to_stdvec(&index).map_err(|error| PackError::Damaged(error.to_string()))?;
        if bytes.len() as u64 > INDEX_BYTES_MAX {
            return Err(PackError::TooMuch(format!(
                "its index would have more than {INDEX_BYTES_MAX} bytes"
            )));
        }
        let location = Location {
            program: self.program,
            index_offset: self.at,
            index_length: bytes.len() as u64,
            total: self.at + bytes.len() as u64 + LOCATION_BYTES as u64,
            digest: Digest::of(&bytes),
        };
        validate::check(&index, &location)?;
        let out = &mut self.out;
        let written = out.write_all(&bytes).and_then(|()| out.write_all(&location.to_bytes()));
        let written = written.and_then(|()| out.write_all_at(&location.to_bytes(), self.slot));
        written.map_err(PackError::Unwritable)?;
        Ok(Summary { location, blobs })
    }

    fn store(&mut self, stored: &[u8], length: u64, coding: Coding) -> Result<BlobNumber, PackError> {
        let digest = Digest::of(stored);
        if let Some(number) = self.known.get(&(digest, coding)) {
            return Ok(*number);
        }
        let offset = self.at;
        self.out.write_all(stored).map_err(PackError::Unwritable)?;
        self.at += stored.len() as u64;
        self.note(Blob { offset, stored: stored.len() as u64, length, coding, digest })
    }

    fn note(&mut self, blob: Blob) -> Result<BlobNumber, PackError> {
        let number = u32::try_from(self.blobs.len()).ok().filter(|number| (*number as usize) < BLOBS_MAX);
        let number = number
            .ok_or_else(|| PackError::TooMuch(format!("more than {ENTRIES_MAX} files cannot be packed")))?;
        self.known.insert((blob.digest, blob.coding), number);
        self.blobs.push(blob);
        Ok(number)
    }
}

/// One zstd frame of known length, without a checksum: digests prove more. How many threads work does not show in it:
/// what is cut into jobs is so even for one (zstd.h at `ZSTD_c_nbWorkers`).
pub(crate) fn compress(bytes: &[u8], level: i32, workers: usize) -> io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(level)?;
    if bytes.len() as u64 <= WHOLE_BYTES_MAX {
        compressor.set_parameter(CParameter::WindowLog(ZSTD_WINDOW_LOG))?;
    }
    if bytes.len() > COMPRESS_JOB_BYTES as usize {
        compressor.set_parameter(CParameter::NbWorkers(u32::try_from(workers).unwrap_or(1).max(1)))?;
        compressor.set_parameter(CParameter::JobSize(COMPRESS_JOB_BYTES))?;
    }
    compressor.compress(bytes)
}

/// Where the mark stands, which must be exactly once in front of what was packed before.
fn find_slot(program: &[u8]) -> Result<usize, PackError> {
    let mark = mark();
    let mut found = memchr_all(program, &mark);
    let first = found.next().ok_or(PackError::Foreign)?;
    let own = slot_in(program, first).ok_or(PackError::Foreign)?;
    let end = match Location::parse(&own)? {
        Some(location) => location.program,
        None => program.len() as u64,
    };
    match found.next() {
        Some(second) if (second as u64) < end => Err(PackError::Foreign),
        _ => Ok(first),
    }
}

fn slot_in(program: &[u8], at: usize) -> Option<[u8; LOCATION_BYTES]> {
    program.get(at..at.checked_add(LOCATION_BYTES)?)?.try_into().ok()
}

fn memchr_all<'a>(bytes: &'a [u8], mark: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    memchr::memmem::find_iter(bytes, mark)
}
