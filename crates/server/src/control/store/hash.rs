//! Content hashes and the entity tags made of them.
//!
//! XXH3 with 128 bits: entity tags tell versions apart, they prove nothing to an adversary, and who
//! can write into the root needs no collision. Never reads a file.

use std::fmt::Write as _;

use onehop_config::checked::Encoding;
use xxhash_rust::xxh3::xxh3_128;

use crate::request::handle::files::store::Stamp;

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

/// Strong entity tag of one form of a file, with its quotes. A form has a tag of its own because its
/// bytes differ (RFC 9110 section 8.8.3.3); the suffix is Caddy's.
pub(super) fn entity_tag(hash: u128, encoding: Option<Encoding>) -> String {
    let mut tag = String::with_capacity(40);
    tag.push('"');
    let mut rest = hash;
    for _ in 0..DIGITS {
        tag.push(char::from(ALPHABET[(rest & 31) as usize]));
        rest >>= 5;
    }
    let suffix = match encoding {
        None => "",
        Some(Encoding::Gzip) => "-gzip",
        Some(Encoding::Brotli) => "-br",
        Some(Encoding::Zstd) => "-zstd",
    };
    // Writing to a String cannot fail.
    let _ = write!(tag, "{suffix}\"");
    tag
}

/// 26 × 5 bits hold 128.
const DIGITS: usize = 26;

/// RFC 4648 base32, lower case.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_a_tag_of_its_own() {
        let hash = of_bytes(b"content");
        let forms = [None, Some(Encoding::Gzip), Some(Encoding::Brotli), Some(Encoding::Zstd)];
        let tags: std::collections::HashSet<_> = forms.iter().map(|form| entity_tag(hash, *form)).collect();
        assert_eq!(tags.len(), forms.len());
        for tag in tags {
            assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() >= 28, "{tag}");
        }
    }

    #[test]
    fn every_bit_of_the_hash_is_in_the_tag() {
        let tags: std::collections::HashSet<_> = (0..128).map(|bit| entity_tag(1 << bit, None)).collect();
        assert_eq!(tags.len(), 128);
    }
}
