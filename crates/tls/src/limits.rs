//! Every bound of this crate, with its unit and its reason.

/// Bytes of one file with certificates or a key. A bundle of all public roots has 250 KiB.
pub const PEM_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Bytes of a client certificate's serial number that is written as decimal digits. RFC 5280 section 4.1.2.2 allows 20; making
/// digits of a very long number takes long.
pub const SERIAL_BYTES_MAX: usize = 64;

/// Compressed certificate chains that are kept for each policy: two forms of 64 chains. rustls searches them one after the
/// other, so that more would cost each handshake.
pub const COMPRESSED_CHAINS_MAX: usize = 128;

/// Session tickets that a client gets with a full handshake of TLS 1.3. Each is for one connection
/// (RFC 8446 appendix C.4), and a browser opens two at once.
pub const TICKETS_PER_HANDSHAKE: usize = 2;
