//! Content hashes, of which entity tags are made.
//!
//! XXH3 with 128 bits: entity tags tell versions apart, they prove nothing to an adversary, and who
//! can write into the root needs no collision. Never reads a file.

use xxhash_rust::xxh3::xxh3_128;

use crate::store::Stamp;

/// Hash of a file's bytes.
pub(super) fn of_bytes(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

/// Stands in for the hash of a file that is too large to be read: its last change in nanoseconds
/// above its length.
pub(super) fn of_stamp(stamp: &Stamp) -> u128 {
    let nanoseconds = i128::from(stamp.modified.0) * 1_000_000_000 + i128::from(stamp.modified.1);
    ((nanoseconds as u128) << 64) | u128::from(stamp.length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_on_disk_is_distinguished_by_its_length_and_its_nanoseconds() {
        let one = Stamp { length: 5, modified: (1_700_000_000, 1), ..Stamp::default() };
        let later = Stamp { modified: (1_700_000_000, 2), ..one };
        let longer = Stamp { length: 6, ..one };
        assert_ne!(of_stamp(&one), of_stamp(&later));
        assert_ne!(of_stamp(&one), of_stamp(&longer));
    }
}
