//! Reads /etc/ld.so.cache, in which ldconfig(8) notes where libraries lie (glibc, `sysdeps/generic/dl-cache.h`).
//!
//! Never panics over what it holds; what cannot be read is not there.

use std::path::PathBuf;

use super::elf::{u32_at, u64_at};

/// What the format of today begins with; one of old may stand in front.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";

const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 24;

/// Where libraries of this name lie, for every machine that has them. Not those for some processors only.
pub(super) fn find(cache: &[u8], name: &str) -> Vec<PathBuf> {
    let Some(start) = memchr::memmem::find(cache, MAGIC) else { return Vec::new() };
    let cache = cache.get(start..).unwrap_or_default();
    let count = u32_at(cache, MAGIC.len()).unwrap_or_default() as usize;
    let entries = cache.get(HEADER_BYTES..).unwrap_or_default().chunks_exact(ENTRY_BYTES).take(count);
    let mut found = Vec::new();
    for entry in entries {
        let text = |at| text(cache, u32_at(entry, at)? as usize);
        if u64_at(entry, 16) == Some(0) && text(4) == Some(name) {
            found.extend(text(8).map(PathBuf::from));
        }
    }
    found
}

fn text(cache: &[u8], at: usize) -> Option<&str> {
    let rest = cache.get(at..)?;
    std::str::from_utf8(rest.get(..memchr::memchr(0, rest)?)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(entries: &[(&str, &str, u64)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&u32::try_from(entries.len()).expect("few").to_le_bytes());
        bytes.resize(HEADER_BYTES, 0);
        let mut strings = Vec::new();
        let base = HEADER_BYTES + entries.len() * ENTRY_BYTES;
        for (name, path, capabilities) in entries {
            bytes.extend_from_slice(&0x0303_u32.to_le_bytes());
            for string in [name, path] {
                let at = u32::try_from(base + strings.len()).expect("small");
                bytes.extend_from_slice(&at.to_le_bytes());
                strings.extend_from_slice(string.as_bytes());
                strings.push(0);
            }
            bytes.extend_from_slice(&0_u32.to_le_bytes());
            bytes.extend_from_slice(&capabilities.to_le_bytes());
        }
        bytes.extend_from_slice(&strings);
        bytes
    }

    #[test]
    fn a_library_is_found_where_ldconfig_noted_it_and_not_in_its_form_for_some_processors() {
        let cache = cache(&[
            ("libz.so.1", "/lib/glibc-hwcaps/x86-64-v3/libz.so.1", 1 << 62),
            ("libz.so.1", "/opt/lib/libz.so.1", 0),
            ("libc.so.6", "/lib/libc.so.6", 0),
        ]);
        assert_eq!(find(&cache, "libz.so.1"), [PathBuf::from("/opt/lib/libz.so.1")]);
        assert!(find(&cache, "libz.so").is_empty());
        for end in 0..cache.len() {
            find(cache.get(..end).expect("within"), "libc.so.6");
        }
    }
}
