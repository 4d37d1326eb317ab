//! Writes layers: tar files, compressed, whose entries belong to root and have one time.
//!
//! A layer goes to an unnamed file as it is made, and both digests that an image needs of it are made on the way.
//! Nothing of a layer is held.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::{DATA_FOLDER, USER};
use crate::digest::Hasher;
use crate::layout::{self, EntryKind};
use crate::{Digest, Index, Pack, PackError};

/// What registries send mostly is compressed already; more effort would not make it smaller.
const COMPRESSION_LEVEL: u32 = 6;

/// Bytes in a block of a tar file (POSIX.1-2017, pax, "ustar Interchange Format").
const BLOCK_BYTES: u64 = 512;

/// The system in gzip's header: unknown, so that it is the same wherever it is made (RFC 1952 section 2.3.1).
const UNKNOWN_SYSTEM: u8 = 255;

/// A layer that is written.
#[derive(Debug)]
pub(super) struct Layer {
    /// Its compressed bytes.
    pub(super) file: File,
    /// How many they are.
    pub(super) stored: u64,
    /// SHA-256 of the compressed bytes.
    pub(super) digest: Digest,
    /// SHA-256 of the tar file: its `diff_id`.
    pub(super) uncompressed: Digest,
    /// What it holds, for the image's history.
    pub(super) holds: &'static str,
}

/// What the pack would unpack, laid out at the place where it looks for it.
pub(super) fn unpacked(pack: &Pack, index: &Index, scratch: &Path, created: u64) -> Result<Layer, PackError> {
    let mut tar = begin(scratch)?;
    let mut place = String::new();
    for part in layout::SYSTEM_PLACE.split('/').filter(|part| !part.is_empty()) {
        place.push_str(part);
        folder(&mut tar, &place, 0o755, created)?;
        place.push('/');
    }
    let root = format!("{place}{}", layout::folder_name(&layout::key(pack.location()), None));
    folder(&mut tar, &root, 0o555, created)?;
    let absolute = Path::new("/").join(&root);
    for entry in layout::entries(index) {
        let path = format!("{root}/{}", entry.path);
        match entry.kind {
            EntryKind::Folder => folder(&mut tar, &path, 0o555, created)?,
            EntryKind::Link { to } => link(&mut tar, &path, to, created)?,
            EntryKind::File(content) => {
                let mode = if content.executable { 0o555 } else { 0o444 };
                // Its bytes are pushed, not pulled: the header alone, then they.
                let mut header = header(EntryType::Regular, mode, created);
                header.set_size(content.length());
                tar.append_data(&mut header, &path, io::empty())?;
                content.copy(pack, &entry.path, &absolute, tar.get_mut())?;
                pad(tar.get_mut(), content.length())?;
            }
        }
    }
    let complete = layout::complete(pack.location());
    let path = format!("{root}/{}", layout::COMPLETE);
    file(&mut tar, &path, 0o444, created, complete.len() as u64, complete.as_bytes())?;
    Ok(finish(tar, "what the pack would unpack")?)
}

/// The pack, and the little that programs expect of a system.
pub(super) fn program(
    mut pack: &File,
    length: u64,
    name: &str,
    scratch: &Path,
    created: u64,
) -> io::Result<Layer> {
    let mut tar = begin(scratch)?;
    let users =
        format!("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/tmp:/sbin/nologin\n");
    let groups = format!("root:x:0:\nnonroot:x:{USER}:\n");
    folder(&mut tar, "etc", 0o755, created)?;
    file(&mut tar, "etc/group", 0o644, created, groups.len() as u64, groups.as_bytes())?;
    file(&mut tar, "etc/passwd", 0o644, created, users.len() as u64, users.as_bytes())?;
    folder(&mut tar, "tmp", 0o1777, created)?;
    folder(&mut tar, "var", 0o755, created)?;
    folder(&mut tar, "var/lib", 0o755, created)?;
    data_folder(&mut tar, created)?;
    pack.seek(SeekFrom::Start(0))?;
    file(&mut tar, name, 0o555, created, length, pack.take(length))?;
    finish(tar, "the pack, users, /tmp, the data directory")
}

/// A file whose bytes can be read. Fewer of them are an error.
pub(super) fn file<W: Write>(
    tar: &mut Builder<W>,
    path: &str,
    mode: u32,
    created: u64,
    length: u64,
    from: impl Read,
) -> io::Result<()> {
    let mut header = header(EntryType::Regular, mode, created);
    header.set_size(length);
    let mut from = Exactly { from, left: length };
    tar.append_data(&mut header, path, &mut from)?;
    if from.left == 0 { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// A folder.
pub(super) fn folder<W: Write>(tar: &mut Builder<W>, path: &str, mode: u32, created: u64) -> io::Result<()> {
    let mut header = header(EntryType::Directory, mode, created);
    tar.append_data(&mut header, format!("{path}/"), io::empty())
}

/// The data directory, of the image's user: an engine copies owner and mode to a new volume.
fn data_folder<W: Write>(tar: &mut Builder<W>, created: u64) -> io::Result<()> {
    let mut header = header(EntryType::Directory, 0o700, created);
    header.set_uid(u64::from(USER));
    header.set_gid(u64::from(USER));
    tar.append_data(&mut header, format!("{}/", DATA_FOLDER.trim_start_matches('/')), io::empty())
}

fn link<W: Write>(tar: &mut Builder<W>, path: &str, to: &str, created: u64) -> io::Result<()> {
    tar.append_link(&mut header(EntryType::Symlink, 0o777, created), path, to)
}

/// Of root, at that time.
fn header(kind: EntryType, mode: u32, created: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(created);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header
}

fn pad(to: &mut impl Write, length: u64) -> io::Result<()> {
    let missing = length.next_multiple_of(BLOCK_BYTES) - length;
    io::copy(&mut io::repeat(0).take(missing), to).map(drop)
}

/// Counts down.
struct Exactly<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.by_ref().take(self.left).read(into)?;
        self.left -= read as u64;
        Ok(read)
    }
}

/// Hashes and counts what passes.
struct Hashed<W> {
    to: W,
    hasher: Hasher,
    bytes: u64,
}

impl<W> Hashed<W> {
    fn new(to: W) -> Self {
        Self { to, hasher: Hasher::default(), bytes: 0 }
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let written = self.to.write(piece)?;
        self.hasher.update(piece.get(..written).unwrap_or_default());
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The tar file, hashed, compressed, hashed again.
type LayerWriter = Hashed<GzEncoder<Hashed<BufWriter<File>>>>;

fn begin(scratch: &Path) -> io::Result<Builder<LayerWriter>> {
    let out = Hashed::new(BufWriter::new(tempfile::tempfile_in(scratch)?));
    let gzip =
        GzBuilder::new().operating_system(UNKNOWN_SYSTEM).write(out, Compression::new(COMPRESSION_LEVEL));
    Ok(Builder::new(Hashed::new(gzip)))
}

fn finish(tar: Builder<LayerWriter>, holds: &'static str) -> io::Result<Layer> {
    let plain = tar.into_inner()?;
    let uncompressed = plain.hasher.finish();
    let compressed = plain.to.finish()?;
    let file = compressed.to.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(Layer { file, stored: compressed.bytes, digest: compressed.hasher.finish(), uncompressed, holds })
}
