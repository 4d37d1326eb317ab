//! Reads a pack: finds its location, verifies its index, and hands out its pieces.
//!
//! What is held of the file is its descriptor. An index is read once and belongs to whoever asked; pieces are read
//! when they are asked for, and verified where they are read whole.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::digest::Hasher;
use crate::error::PackError;
use crate::index::{Blob, Coding, Index};
use crate::limits::{
    ENTRIES_MAX, INDEX_BYTES_MAX, PIECE_BYTES, PROGRAM_BYTES_MAX, WHOLE_BYTES_MAX, ZSTD_WINDOW_LOG,
};
use crate::slot::{LOCATION_BYTES, Location, mark};
use crate::{Digest, validate};

/// A pack that is open.
#[derive(Debug)]
pub struct Pack {
    file: File,
    location: Location,
}

impl Pack {
    /// Opens any file and reads its index.
    ///
    /// # Errors
    ///
    /// Why it is no pack that can be used.
    pub fn open(path: &Path) -> Result<(Self, Index), PackError> {
        let file = File::open(path)?;
        let location = find_location(&file)?;
        let (pack, index) = Self::with_location(file, location)?;
        pack.verify_slot()?;
        Ok((pack, index))
    }

    /// Opens the file of this very program, which knows its location ([`crate::own_location`]).
    ///
    /// # Errors
    ///
    /// The file is not what was packed.
    pub fn with_location(file: File, location: Location) -> Result<(Self, Index), PackError> {
        let found = file.metadata()?.len();
        if found < location.total {
            return Err(PackError::Truncated { expected: location.total, found });
        }
        if found > location.total {
            return Err(PackError::Longer { expected: location.total, found });
        }
        let end = location.index_offset.checked_add(location.index_length);
        if location.index_length > INDEX_BYTES_MAX
            || location.program > location.index_offset
            || end.and_then(|end| end.checked_add(LOCATION_BYTES as u64)) != Some(location.total)
        {
            return Err(PackError::Damaged("its parts do not fit its length".to_owned()));
        }
        // The location is in the file twice, in the program and at the end: both must agree.
        let mut end = [0; LOCATION_BYTES];
        file.read_exact_at(&mut end, location.total - LOCATION_BYTES as u64)?;
        if end != location.to_bytes() {
            return Err(PackError::Changed { what: "its end".to_owned() });
        }
        let bytes = read_exact(&file, location.index_offset, location.index_length)?;
        if Digest::of(&bytes) != location.digest {
            return Err(PackError::Changed { what: "its index".to_owned() });
        }
        let index = parse(&bytes, &location)?;
        Ok((Self { file, location }, index))
    }

    /// Whether a file ends as packs do: a quick look, which verifies nothing.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn is_at_end_of(file: &File) -> io::Result<bool> {
        let length = file.metadata()?.len();
        let Some(at) = length.checked_sub(LOCATION_BYTES as u64) else { return Ok(false) };
        let mut bytes = [0; LOCATION_BYTES];
        file.read_exact_at(&mut bytes, at)?;
        Ok(bytes.starts_with(&mark()))
    }

    /// Where its parts lie.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Whether the program in front knows the same location. A running pack reads the location from there.
    fn verify_slot(&self) -> Result<(), PackError> {
        let changed = |what: &str| PackError::Changed { what: what.to_owned() };
        let at = find_mark(&self.file, self.location.program)?.ok_or_else(|| changed("its program"))?;
        let mut slot = [0; LOCATION_BYTES];
        self.file.read_exact_at(&mut slot, at)?;
        if slot == self.location.to_bytes() { Ok(()) } else { Err(changed("the place in its program")) }
    }

    /// Another descriptor of the open file, for what is sent in parts: a blob lies at its offset.
    ///
    /// # Errors
    ///
    /// The process has all descriptors that it may have.
    pub fn try_clone_file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The whole piece as stored, verified.
    ///
    /// # Errors
    ///
    /// It is not what was packed, or larger than is read as a whole.
    pub fn stored(&self, blob: &Blob, what: &str) -> Result<Vec<u8>, PackError> {
        if blob.stored > WHOLE_BYTES_MAX {
            return Err(PackError::TooMuch(format!("{what} is too large to be read as a whole")));
        }
        let bytes = read_exact(&self.file, blob.offset, blob.stored)?;
        if Digest::of(&bytes) != blob.digest {
            return Err(PackError::Changed { what: what.to_owned() });
        }
        Ok(bytes)
    }

    /// The whole content, verified and as it was before it was packed.
    ///
    /// # Errors
    ///
    /// As [`Pack::stored`].
    pub fn content(&self, blob: &Blob, what: &str) -> Result<Vec<u8>, PackError> {
        if blob.length > WHOLE_BYTES_MAX {
            return Err(PackError::TooMuch(format!("{what} is too large to be read as a whole")));
        }
        let mut bytes = Vec::new();
        self.copy(blob, what, &mut bytes)?;
        Ok(bytes)
    }

    /// Bytes of a piece as stored, from `at` on, unverified: for what is sent in parts.
    ///
    /// # Errors
    ///
    /// Bytes are missing.
    pub fn read_at(&self, blob: &Blob, at: u64, into: &mut [u8]) -> io::Result<()> {
        let end = at.checked_add(into.len() as u64);
        if end.is_none_or(|end| end > blob.stored) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.read_exact_at(into, blob.offset.saturating_add(at))
    }

    /// Writes the content, as it was before it was packed, in pieces. What was written is only right where this
    /// succeeds: it is verified at the end.
    ///
    /// # Errors
    ///
    /// It is not what was packed, or cannot be written.
    pub fn copy(&self, blob: &Blob, what: &str, to: &mut dyn Write) -> Result<(), PackError> {
        let changed = || PackError::Changed { what: what.to_owned() };
        let mut stored = Stored { pack: self, blob, at: 0, hasher: Hasher::default() };
        let mut piece = vec![0; PIECE_BYTES];
        let mut left = blob.length;
        {
            let mut decoder;
            let from: &mut dyn Read = match blob.coding {
                Coding::Plain => &mut stored,
                Coding::Zstd => {
                    let mut made = zstd::stream::read::Decoder::new(&mut stored)?;
                    made.window_log_max(ZSTD_WINDOW_LOG)?;
                    decoder = made.single_frame();
                    &mut decoder
                }
            };
            loop {
                // A frame that is no frame is content that was changed.
                let read = match from.read(&mut piece) {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) if blob.coding == Coding::Zstd => return Err(changed()),
                    Err(error) => return Err(error.into()),
                };
                left = left.checked_sub(read as u64).ok_or_else(changed)?;
                to.write_all(piece.get(..read).unwrap_or_default())?;
            }
        }
        // What the decoder did not need is verified, too.
        io::copy(&mut stored, &mut io::sink())?;
        if left == 0 && stored.hasher.finish() == blob.digest { Ok(()) } else { Err(changed()) }
    }

    /// Verifies a piece without keeping it.
    ///
    /// # Errors
    ///
    /// It is not what was packed.
    pub fn verify(&self, blob: &Blob, what: &str) -> Result<(), PackError> {
        let mut stored = Stored { pack: self, blob, at: 0, hasher: Hasher::default() };
        io::copy(&mut stored, &mut io::sink())?;
        if stored.hasher.finish() == blob.digest {
            Ok(())
        } else {
            Err(PackError::Changed { what: what.to_owned() })
        }
    }

    /// Writes the program in front, as it was before it was packed: its slot is empty.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn copy_program(&self, to: &mut dyn Write) -> Result<(), PackError> {
        let mut bytes = read_exact(&self.file, 0, self.location.program.min(PROGRAM_BYTES_MAX))?;
        let at = memchr::memmem::find(&bytes, &mark()).ok_or(PackError::Foreign)? + mark().len();
        bytes.get_mut(at..at + LOCATION_BYTES - mark().len()).ok_or(PackError::Foreign)?.fill(0);
        Ok(to.write_all(&bytes)?)
    }
}

impl Index {
    /// Parses the bytes of an index and checks it against its location. To read a file, open a [`Pack`], which also
    /// verifies the bytes.
    ///
    /// # Errors
    ///
    /// It cannot be read, or says what cannot be.
    pub fn parse(bytes: &[u8], location: &Location) -> Result<Self, PackError> {
        parse(bytes, location)
    }
}

/// Reads an index and checks it.
fn parse(bytes: &[u8], location: &Location) -> Result<Index, PackError> {
    let damaged = |error: postcard::Error| {
        PackError::Damaged(match error {
            // Which of the two is not told: postcard keeps no words.
            postcard::Error::SerdeDeCustom => {
                format!("its index is none, or has more than {ENTRIES_MAX} files")
            }
            error => format!("its index cannot be read ({error})"),
        })
    };
    let index: Index = postcard::from_bytes(bytes).map_err(damaged)?;
    validate::check(&index, location)?;
    Ok(index)
}

/// A piece as stored, which is hashed as it is read.
struct Stored<'a> {
    pack: &'a Pack,
    blob: &'a Blob,
    at: u64,
    hasher: Hasher,
}

impl Read for Stored<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.blob.stored - self.at).unwrap_or(usize::MAX);
        let take = left.min(into.len());
        let Some(into) = into.get_mut(..take).filter(|into| !into.is_empty()) else { return Ok(0) };
        self.pack.file.read_exact_at(into, self.blob.offset + self.at)?;
        self.hasher.update(into);
        self.at += take as u64;
        Ok(take)
    }
}

fn read_exact(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// The location at the end of a file; where it is missing, why.
fn find_location(file: &File) -> Result<Location, PackError> {
    let length = file.metadata()?.len();
    if let Some(at) = length.checked_sub(LOCATION_BYTES as u64) {
        let mut bytes = [0; LOCATION_BYTES];
        file.read_exact_at(&mut bytes, at)?;
        if bytes.starts_with(&mark())
            && let Some(location) = Location::parse(&bytes)?
        {
            return Ok(location);
        }
    }
    // A pack that lost its end still says in front what it was.
    let at = find_mark(file, length)?.ok_or(PackError::Foreign)?;
    let mut slot = [0; LOCATION_BYTES];
    file.read_exact_at(&mut slot, at)?;
    Location::parse(&slot)?.ok_or(PackError::Empty)
}

/// Finds the first mark that has room for a location behind it, within the first `length` bytes of a file.
fn find_mark(file: &File, length: u64) -> io::Result<Option<u64>> {
    let length = length.min(PROGRAM_BYTES_MAX);
    let mark = mark();
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    while let Some(left) = length.checked_sub(at).filter(|left| *left >= LOCATION_BYTES as u64) {
        let take = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let bytes = piece.get_mut(..take).unwrap_or_default();
        file.read_exact_at(bytes, at)?;
        if let Some(found) = memchr::memmem::find(bytes, &mark) {
            let found = at + found as u64;
            return Ok((length - found >= LOCATION_BYTES as u64).then_some(found));
        }
        // One that stands across the end of this piece is found in the next.
        at += (take - mark.len() + 1) as u64;
    }
    Ok(None)
}
