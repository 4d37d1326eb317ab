//! Compressed forms of one file.
//!
//! Owns levels and windows. Works in steps, so that it can be stopped, and gives up as soon as the form
//! is not worth keeping. Peak memory of one file: brotli's and zstd's workspaces at their best levels,
//! which are bounded by the file's size and by `COMPRESS_BEST_BYTES_MAX`; the output never exceeds
//! the file.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brotli::enc::BrotliEncoderParams;
use flate2::{Compression, GzBuilder};
use onehop_config::checked::Encoding;
use zstd::zstd_safe::CParameter;

use crate::limits::{
    COMPRESS_BEST_BYTES_MAX, COMPRESS_SAVING_BYTES_MIN, COMPRESS_SAVING_PERCENT_MIN, COMPRESS_STEP_BYTES,
    ZSTD_WINDOW_LOG_MAX,
};
use crate::store::{File, Variant};

/// The form of `bytes` in a coding; `None` if it is not small enough or the work was cancelled.
pub(super) fn compressed(bytes: &[u8], encoding: Encoding, cancelled: &AtomicBool) -> Option<Vec<u8>> {
    let best = bytes.len() <= COMPRESS_BEST_BYTES_MAX;
    let room = Room { written: Vec::new(), max: longest(bytes.len())? };
    let done = match encoding {
        Encoding::Gzip => gzip(bytes, best, room, cancelled),
        Encoding::Brotli => brotli(bytes, best, room, cancelled),
        Encoding::Zstd => zstd(bytes, best, room, cancelled),
    };
    done.ok().map(|room| room.written)
}

/// Gives a file the forms of an earlier one with the same content.
pub(super) fn take_over(file: &mut File, earlier: &File) {
    let same_lines = file.modified == earlier.modified && file.content_type == earlier.content_type;
    let renewed = |form: &Option<Variant>, encoding: Option<Encoding>| {
        let form = form.as_ref()?;
        if same_lines {
            return Some(form.clone());
        }
        let bytes = Arc::clone(&form.bytes);
        let renewed = Variant::new(bytes, encoding, &file.content_type, file.modified, file.hash);
        Some(Variant { held: form.held.clone(), ..renewed })
    };
    file.identity = renewed(&earlier.identity, None);
    file.gzip = renewed(&earlier.gzip, Some(Encoding::Gzip));
    file.brotli = renewed(&earlier.brotli, Some(Encoding::Brotli));
    file.zstd = renewed(&earlier.zstd, Some(Encoding::Zstd));
    file.settled = earlier.settled;
}

/// Bytes that a form may have to be kept.
fn longest(length: usize) -> Option<usize> {
    let share = length / 100 * COMPRESS_SAVING_PERCENT_MIN;
    length.checked_sub(share.max(COMPRESS_SAVING_BYTES_MIN))
}

fn gzip(bytes: &[u8], best: bool, room: Room, cancelled: &AtomicBool) -> io::Result<Room> {
    let level = if best { Compression::best() } else { Compression::default() };
    // No name and no time: the same bytes give the same form.
    let mut encoder = GzBuilder::new().write(room, level);
    feed(bytes, &mut encoder, cancelled)?;
    encoder.finish()
}

fn brotli(bytes: &[u8], best: bool, room: Room, cancelled: &AtomicBool) -> io::Result<Room> {
    let params = BrotliEncoderParams {
        quality: if best { 11 } else { 6 },
        lgwin: brotli_window_log(bytes.len()),
        size_hint: bytes.len(),
        ..BrotliEncoderParams::default()
    };
    let max = room.max;
    let mut encoder = brotli::CompressorWriter::with_params(room, COMPRESS_STEP_BYTES, &params);
    feed(bytes, &mut encoder, cancelled)?;
    let room = encoder.into_inner();
    // The end of the stream is written without a result.
    if room.max < max { Err(too_long()) } else { Ok(room) }
}

/// The smallest window that holds the file (RFC 7932 section 9.1: 2^n - 16), 22 at most: workspaces
/// grow with it.
fn brotli_window_log(length: usize) -> i32 {
    (16..22).find(|log| length <= (1 << log) - 16).unwrap_or(22)
}

fn zstd(bytes: &[u8], best: bool, room: Room, cancelled: &AtomicBool) -> io::Result<Room> {
    let mut encoder = zstd::stream::write::Encoder::new(room, if best { 19 } else { 9 })?;
    if bytes.len() > 1 << ZSTD_WINDOW_LOG_MAX {
        encoder.set_parameter(CParameter::WindowLog(ZSTD_WINDOW_LOG_MAX))?;
    }
    encoder.include_checksum(false)?;
    encoder.include_contentsize(true)?;
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    feed(bytes, &mut encoder, cancelled)?;
    encoder.finish()
}

fn feed(bytes: &[u8], encoder: &mut impl Write, cancelled: &AtomicBool) -> io::Result<()> {
    for step in bytes.chunks(COMPRESS_STEP_BYTES) {
        if cancelled.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        encoder.write_all(step)?;
    }
    Ok(())
}

/// Takes what is written as long as it is worth keeping; afterwards `max` is 0.
struct Room {
    written: Vec<u8>,
    max: usize,
}

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.written.len() + bytes.len() > self.max {
            self.written = Vec::new();
            self.max = 0;
            return Err(too_long());
        }
        self.written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn too_long() -> io::Error {
    io::Error::other("not worth keeping")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    const EVERY: [Encoding; 3] = [Encoding::Gzip, Encoding::Brotli, Encoding::Zstd];

    fn text(length: usize) -> Vec<u8> {
        let words = ["function ", "return ", "const ", "value", " = ", "(", ");\n", "export ", "0x1f"];
        let mut state = 7_u32;
        let mut text = Vec::new();
        while text.len() < length {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.extend_from_slice(words[(state >> 24) as usize % words.len()].as_bytes());
        }
        text.truncate(length);
        text
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u64;
        std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .take(length)
        .collect()
    }

    fn plain(form: &[u8], encoding: Encoding) -> Vec<u8> {
        let mut plain = Vec::new();
        match encoding {
            Encoding::Gzip => flate2::read::GzDecoder::new(form).read_to_end(&mut plain).map(|_| ()),
            Encoding::Brotli => brotli::Decompressor::new(form, 4096).read_to_end(&mut plain).map(|_| ()),
            Encoding::Zstd => zstd::stream::copy_decode(form, &mut plain),
        }
        .expect("a complete form");
        plain
    }

    #[test]
    fn a_form_unpacks_to_the_file() {
        let never = AtomicBool::new(false);
        for length in [300, 65_535, 65_536, 65_537, 700_000] {
            let bytes = text(length);
            for encoding in EVERY {
                let form = compressed(&bytes, encoding, &never).expect("text shrinks");
                assert_eq!(plain(&form, encoding), bytes, "{encoding:?} of {length}");
            }
        }
    }

    #[test]
    fn a_file_above_the_best_levels_unpacks_too_and_its_zstd_window_is_at_most_8_mib() {
        let never = AtomicBool::new(false);
        let bytes = text(9 * 1024 * 1024);
        for encoding in EVERY {
            let form = compressed(&bytes, encoding, &never).expect("text shrinks");
            assert!(plain(&form, encoding) == bytes, "{encoding:?}");
            if encoding == Encoding::Zstd {
                // RFC 8878 section 3.1.1.1.2: exponent in the upper five bits, mantissa below.
                assert_eq!(form[..4], [0x28, 0xb5, 0x2f, 0xfd]);
                let single_segment = form[4] & 0x20 != 0;
                let (exponent, mantissa) = (u32::from(form[5] >> 3), u64::from(form[5] & 7));
                let window = (1_u64 << (10 + exponent)) / 8 * (8 + mantissa);
                assert!(!single_segment && window <= 8 << 20, "window of {window}");
            }
        }
    }

    #[test]
    fn a_zstd_form_is_one_frame_that_tells_its_length() {
        let bytes = text(100_000);
        let form = compressed(&bytes, Encoding::Zstd, &AtomicBool::new(false)).expect("text shrinks");
        assert_eq!(zstd::zstd_safe::get_frame_content_size(&form).ok().flatten(), Some(100_000));
        assert_eq!(zstd::zstd_safe::find_frame_compressed_size(&form).ok(), Some(form.len()));
    }

    #[test]
    fn a_form_that_saves_little_is_not_kept() {
        let never = AtomicBool::new(false);
        for encoding in EVERY {
            assert_eq!(compressed(&noise(100_000), encoding, &never), None, "{encoding:?}");
            assert_eq!(compressed(b"short", encoding, &never), None, "{encoding:?}");
        }
        assert_eq!(longest(1_000), Some(936));
        assert_eq!(longest(100_000), Some(95_000));
    }

    #[test]
    fn a_cancelled_form_is_not_finished() {
        for encoding in EVERY {
            assert_eq!(compressed(&text(100_000), encoding, &AtomicBool::new(true)), None);
        }
    }
}
