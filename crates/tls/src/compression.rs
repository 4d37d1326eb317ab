//! Compressed certificates (RFC 8879), with the compressors that bodies have.

use std::io::Write;

use rustls::CertificateCompressionAlgorithm;
use rustls::compress::{CertCompressor, CompressionFailed, CompressionLevel};

/// What is offered, in the order of preference. What was compressed is kept ([`crate::limits::COMPRESSED_CHAINS_MAX`]).
pub(crate) const COMPRESSORS: [&dyn CertCompressor; 2] = [&Brotli, &Zlib];

/// 22 is the largest window without an extension (RFC 7932 section 9.1); a chain is smaller.
const BROTLI_WINDOW_BITS: u32 = 22;
const BROTLI_QUALITY: u32 = 9;
const BROTLI_BUFFER_BYTES: usize = 4096;

#[derive(Debug)]
struct Brotli;

impl CertCompressor for Brotli {
    fn compress(&self, input: Vec<u8>, _: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        let mut encoder = brotli::CompressorWriter::new(
            Vec::new(),
            BROTLI_BUFFER_BYTES,
            BROTLI_QUALITY,
            BROTLI_WINDOW_BITS,
        );
        encoder.write_all(&input).map_err(|_| CompressionFailed)?;
        Ok(encoder.into_inner())
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Brotli
    }
}

#[derive(Debug)]
struct Zlib;

impl CertCompressor for Zlib {
    fn compress(&self, input: Vec<u8>, _: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&input).map_err(|_| CompressionFailed)?;
        encoder.finish().map_err(|_| CompressionFailed)
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Zlib
    }
}
