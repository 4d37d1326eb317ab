//! Sums of bytes, and the list that `sha256sum --check` reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use md5::Md5;
use sha2::{Digest as _, Sha256};

/// SHA-256 (FIPS 180-4).
pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The same in hexadecimal.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&sha256(bytes))
}

/// MD5 in hexadecimal, for dpkg's list of what it installed. No defence against anybody.
pub(super) fn md5_hex(bytes: &[u8]) -> String {
    let digest: [u8; 16] = Md5::digest(bytes).into();
    hex(&digest)
}

/// A line a file, sorted by name.
pub(super) fn lines(files: &BTreeMap<String, Vec<u8>>) -> String {
    files.iter().fold(String::new(), |mut text, (name, bytes)| {
        let _ = writeln!(text, "{}  {name}", sha256_hex(bytes));
        text
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
