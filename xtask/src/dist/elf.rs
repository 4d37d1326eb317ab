//! The little of an ELF file that says where it runs: its machine, and whether it needs a loader.
//!
//! 64 bits and little-endian, as all that onehop is built for (System V ABI, ELF header and program header).

use std::ops::Range;

const MAGIC: &[u8] = b"\x7fELF\x02\x01";
/// Type of the program header that names the loader: with it, a program is not static.
const PT_INTERP: u32 = 3;

/// What a program says of itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// `e_machine`.
    pub(super) machine: u16,
    /// Path of the loader, where there is one.
    pub(super) interpreter: Option<String>,
}

impl Facts {
    /// Reads them; the error says what is wrong with the file.
    pub(super) fn of(file: &[u8]) -> Result<Facts, String> {
        let cut = || "the file ends within its ELF headers".to_owned();
        if !file.starts_with(MAGIC) {
            return Err("not a 64-bit little-endian ELF program".to_owned());
        }
        let machine = number(file, 0x12..0x14).ok_or_else(cut)? as u16;
        let table = number(file, 0x20..0x28).ok_or_else(cut)? as usize;
        let size = number(file, 0x36..0x38).ok_or_else(cut)? as usize;
        let count = number(file, 0x38..0x3a).ok_or_else(cut)? as usize;
        let mut interpreter = None;
        // At most 65,535: the count has 16 bits.
        for index in 0..count {
            let start = table.checked_add(index * size).ok_or_else(cut)?;
            let header = file.get(start..).ok_or_else(cut)?;
            if number(header, 0..4).ok_or_else(cut)? as u32 != PT_INTERP {
                continue;
            }
            let at = number(header, 0x08..0x10).ok_or_else(cut)? as usize;
            let length = number(header, 0x20..0x28).ok_or_else(cut)? as usize;
            let end = at.checked_add(length).ok_or_else(cut)?;
            let name = file.get(at..end).ok_or_else(cut)?;
            interpreter = Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned());
        }
        Ok(Facts { machine, interpreter })
    }
}

/// A little-endian number of at most eight bytes.
fn number(bytes: &[u8], place: Range<usize>) -> Option<u64> {
    let bytes = bytes.get(place)?;
    Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::architecture::Architecture;

    #[test]
    fn this_test_is_a_program_for_this_machine_wherever_it_is_cut() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let facts = Facts::of(&own).unwrap();
        assert_eq!(facts.machine, Architecture::of_this_machine().unwrap().elf_machine());
        for length in 0..512 {
            let _ = Facts::of(&own[..length]);
        }
        assert!(Facts::of(&own[..0x30]).is_err());
        assert!(Facts::of(b"#!/bin/sh\n").is_err());
    }
}
