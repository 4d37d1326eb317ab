//! Whether a program runs where nothing else is: it names no loader (ELF, "Program Header", `PT_INTERP`).
//!
//! Only reads the beginning of the program, bounded.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of an ELF header of 64-bit files, and of one of its program headers.
const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;

/// Program headers of one file; linkers write a dozen.
const SEGMENTS_MAX: u16 = 128;

/// Bytes of a loader's path, as `PATH_MAX` of Linux.
const PATH_BYTES_MAX: u64 = 4096;

/// The kind of a segment that names the loader.
const INTERPRETER: u32 = 3;

/// The loader that the program in front of the file asks for. What is no 64-bit little-endian ELF file asks for none.
pub(super) fn loader(file: &File, length: u64) -> io::Result<Option<String>> {
    let mut header = [0; HEADER_BYTES];
    if length < HEADER_BYTES as u64 {
        return Ok(None);
    }
    file.read_exact_at(&mut header, 0)?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(None);
    }
    let table = number(&header, 32, 8);
    let (size, count) = (number(&header, 54, 2), number(&header, 56, 2));
    if size != SEGMENT_BYTES as u64 {
        return Ok(None);
    }
    for segment in 0..count.min(u64::from(SEGMENTS_MAX)) {
        let Some(at) = table.checked_add(segment * size) else { break };
        let mut bytes = [0; SEGMENT_BYTES];
        if at.checked_add(size).is_none_or(|end| end > length) {
            break;
        }
        file.read_exact_at(&mut bytes, at)?;
        if number(&bytes, 0, 4) != u64::from(INTERPRETER) {
            continue;
        }
        let (offset, stored) = (number(&bytes, 8, 8), number(&bytes, 32, 8).min(PATH_BYTES_MAX));
        if offset.checked_add(stored).is_none_or(|end| end > length) {
            break;
        }
        let mut path = vec![0; usize::try_from(stored).unwrap_or(0)];
        file.read_exact_at(&mut path, offset)?;
        let path: Vec<u8> = path.into_iter().take_while(|byte| *byte != 0).collect();
        return Ok(Some(path.escape_ascii().to_string()));
    }
    Ok(None)
}

/// A little-endian number of up to eight bytes; zero where it is not there.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let bytes = bytes.get(at..at + length).unwrap_or_default();
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_program_that_asks_for_a_loader_is_distinguished_from_one_that_does_not() {
        let mut program = vec![0; 300];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        program[32] = 64;
        program[54] = 56;
        program[56] = 1;
        let of = |program: &[u8]| {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(program).expect("written");
            loader(&file, program.len() as u64).expect("readable")
        };
        assert_eq!(of(&program), None);
        program[64] = 3;
        program[64 + 8] = 200;
        program[64 + 32] = 8;
        program[200..208].copy_from_slice(b"/lib/ld\0");
        assert_eq!(of(&program).as_deref(), Some("/lib/ld"));
        program[64 + 14] = 9;
        assert_eq!(of(&program), None, "it would stand outside of the file");
        assert_eq!(of(b"#!/bin/sh"), None);
        assert_eq!(of(&program[..70]), None);
    }
}
