//! Compressors of bodies on their way: quick levels, because each body is used once.
//!
//! Each compressor counts in [`CompressorMemory`], which bounds them all. Never chooses a coding.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use onehop_config::checked::Encoding;

use crate::limits::{
    BROTLI_COMPRESSOR_BYTES, COMPRESSORS_BYTES_MAX, GZIP_COMPRESSOR_BYTES, ZSTD_COMPRESSOR_BYTES,
    ZSTD_COMPRESSOR_WINDOW_BYTES,
};

/// The coding of a body that comes piece by piece.
pub enum StreamCoding {
    /// The body is sent as it is.
    Identity,
    /// There is no body, but with one it would be compressed, and its length would not be known.
    Announced,
    /// The body is compressed as it comes.
    Compressed(Box<Compressor>),
}

/// A body that is compressed as it comes.
pub struct Compressor {
    encoder: Encoder,
    /// Counted while it lives.
    _held: MemoryShare,
}

/// A compressor.
enum Encoder {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
}

impl Compressor {
    /// A compressor for a body of this length, if that is known. `None` if there is no room for it, or the system has no
    /// memory.
    pub fn new(encoding: Encoding, length: Option<u64>, memory: &Arc<CompressorMemory>) -> Option<Self> {
        let _held = memory.take(compressor_bytes(encoding, length))?;
        let encoder = Encoder::new(encoding, BROTLI_BUFFER_BYTES, length).ok()?;
        Some(Self { encoder, _held })
    }

    /// Takes bytes; returns compressed ones, if there are any yet.
    pub fn push(&mut self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        self.encoder.writer().write_all(bytes).map_err(failed)?;
        Ok(self.encoder.take())
    }

    /// Returns everything that was pushed and not yet returned.
    pub fn flush(&mut self) -> std::io::Result<Vec<u8>> {
        self.encoder.writer().flush().map_err(failed)?;
        Ok(self.encoder.take())
    }

    /// Ends the coding; returns the rest.
    pub fn finish(self) -> std::io::Result<Vec<u8>> {
        self.encoder.finish().map_err(failed)
    }
}

/// An error by which a compressor's failure is known among those of the client's socket.
fn failed(error: std::io::Error) -> std::io::Error {
    std::io::Error::new(FAILURE, error)
}

/// The kind of every compressor's failure. No socket's error is of this kind.
pub const FAILURE: std::io::ErrorKind = std::io::ErrorKind::InvalidData;

impl Encoder {
    fn new(encoding: Encoding, brotli_buffer_bytes: usize, length: Option<u64>) -> std::io::Result<Self> {
        Ok(match encoding {
            Encoding::Gzip => Self::Gzip(gzip()),
            Encoding::Brotli => Self::Brotli(Box::new(brotli_writer(brotli_buffer_bytes))),
            Encoding::Zstd => Self::Zstd(zstd_encoder(length)?),
        })
    }

    fn finish(self) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Brotli(encoder) => Ok(encoder.into_inner()),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Gzip(encoder) => encoder,
            Self::Brotli(encoder) => encoder,
            Self::Zstd(encoder) => encoder,
        }
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Brotli(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
        })
    }
}

/// The memory that the compressors of bodies on their way hold, of all cores, and what they may hold.
pub struct CompressorMemory {
    held: CachePadded<AtomicU64>,
    bytes_max: AtomicU64,
}

impl Default for CompressorMemory {
    fn default() -> Self {
        Self { held: CachePadded::new(AtomicU64::new(0)), bytes_max: AtomicU64::new(COMPRESSORS_BYTES_MAX) }
    }
}

impl CompressorMemory {
    /// Changes how much they may hold; compressors in use stay.
    pub fn set_bytes_max(&self, bytes: u64) {
        self.bytes_max.store(bytes, Ordering::Relaxed);
    }

    fn take(self: &Arc<Self>, bytes: u64) -> Option<MemoryShare> {
        let held = MemoryShare { memory: Arc::clone(self), bytes };
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        // Dropping the share gives its bytes back.
        (before.saturating_add(bytes) <= self.bytes_max.load(Ordering::Relaxed)).then_some(held)
    }
}

/// The share of one compressor.
struct MemoryShare {
    memory: Arc<CompressorMemory>,
    bytes: u64,
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes of memory that a compressor takes.
fn compressor_bytes(encoding: Encoding, length: Option<u64>) -> u64 {
    match encoding {
        Encoding::Gzip => GZIP_COMPRESSOR_BYTES,
        Encoding::Brotli => BROTLI_COMPRESSOR_BYTES,
        // A body that is shorter than the window needs no more of it.
        Encoding::Zstd => {
            ZSTD_COMPRESSOR_BYTES
                + length.unwrap_or(ZSTD_COMPRESSOR_WINDOW_BYTES).min(ZSTD_COMPRESSOR_WINDOW_BYTES)
        }
    }
}

/// Bytes that brotli gathers before it compresses them.
const BROTLI_BUFFER_BYTES: usize = 16 * 1024;

/// Compresses a body that is complete in memory.
pub fn compress(body: &[u8], encoding: Encoding) -> std::io::Result<Vec<u8>> {
    let mut encoder = Encoder::new(encoding, body.len().max(1), Some(body.len() as u64))?;
    encoder.writer().write_all(body)?;
    encoder.finish()
}

fn gzip() -> flate2::write::GzEncoder<Vec<u8>> {
    const LEVEL: u32 = 5;
    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(LEVEL))
}

fn brotli_writer(buffer_bytes: usize) -> brotli::CompressorWriter<Vec<u8>> {
    const QUALITY: u32 = 4;
    const WINDOW_LOG: u32 = 18;
    brotli::CompressorWriter::new(Vec::new(), buffer_bytes, QUALITY, WINDOW_LOG)
}

/// The window is the level's own, which is smaller for a body that is known to be short.
fn zstd_encoder(length: Option<u64>) -> std::io::Result<zstd::Encoder<'static, Vec<u8>>> {
    const LEVEL: i32 = 3;
    let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
    encoder.set_pledged_src_size(length)?;
    Ok(encoder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressors_take_no_more_than_their_memory_and_give_it_back() {
        let memory = Arc::new(CompressorMemory::default());
        let one = compressor_bytes(Encoding::Zstd, None);
        memory.set_bytes_max(2 * one);
        let compressor = || Compressor::new(Encoding::Zstd, None, &memory);
        let (first, second) = (compressor(), compressor());
        assert!(first.is_some() && second.is_some());
        assert!(compressor().is_none());
        drop(first);
        assert!(compressor().is_some());
        let third = compressor();
        assert!(third.is_some() && compressor().is_none());
        drop((second, third));
        assert_eq!(memory.held.load(Ordering::Relaxed), 0);
    }

    /// RFC 8878 section 3.1.1.1.2: the window of a frame.
    fn zstd_window(frame: &[u8]) -> u64 {
        assert_eq!(frame[..4], [0x28, 0xb5, 0x2f, 0xfd]);
        let is_single_segment = frame[4] & 0x20 != 0;
        assert!(!is_single_segment);
        let (exponent, mantissa) = (u64::from(frame[5] >> 3), u64::from(frame[5] & 7));
        let base = 1 << (10 + exponent);
        base + base / 8 * mantissa
    }

    #[test]
    fn a_zstd_body_has_the_window_of_its_level() {
        let memory = Arc::new(CompressorMemory::default());
        let mut compressor = Compressor::new(Encoding::Zstd, None, &memory).unwrap();
        let mut coded = compressor.push(&b"a line of text\n".repeat(1 << 19)).unwrap();
        coded.extend(compressor.finish().unwrap());
        assert_eq!(zstd_window(&coded), ZSTD_COMPRESSOR_WINDOW_BYTES);
        assert_eq!(zstd::decode_all(&*coded).unwrap().len(), 15 << 19);
    }
}
