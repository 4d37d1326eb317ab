//! What the server and its compressing process write to each other.
//!
//! Owns the frames: a job is a coding (one byte), a length (eight, little-endian) and so many bytes; a
//! result is a length and so many bytes, or [`NO_FORM`] instead of the length. Never believes a length
//! before it is checked, and never reads beyond a frame.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use onehop_config::checked::Encoding;

use crate::limits::STORED_FILE_BYTES_MAX;

/// The length of a result without bytes: no form is worth keeping.
const NO_FORM: u64 = u64::MAX;

/// Writes a file and the coding that is wanted of it.
pub(super) fn write_job(output: &mut impl Write, encoding: Encoding, bytes: &[u8]) -> io::Result<()> {
    let mut head = [0; 9];
    head[0] = match encoding {
        Encoding::Gzip => 1,
        Encoding::Brotli => 2,
        Encoding::Zstd => 3,
    };
    head[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    output.write_all(&head)?;
    output.write_all(bytes)?;
    output.flush()
}

/// Reads a job; `None` where the input ends before one begins.
pub(super) fn read_job(input: &mut impl Read) -> io::Result<Option<(Encoding, Vec<u8>)>> {
    let mut coding = [0];
    match input.read_exact(&mut coding) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let encoding = match coding {
        [1] => Encoding::Gzip,
        [2] => Encoding::Brotli,
        [3] => Encoding::Zstd,
        [other] => return Err(broken(format!("a job of the unknown coding {other}"))),
    };
    let length = read_length(input)?;
    if length > STORED_FILE_BYTES_MAX {
        return Err(broken(format!("a job of {length} bytes, at most {STORED_FILE_BYTES_MAX}")));
    }
    // Grows with what really comes: a length alone takes no memory.
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((encoding, bytes)))
}

/// Writes what became of a job.
pub(super) fn write_result(output: &mut impl Write, form: Option<&[u8]>) -> io::Result<()> {
    let length = form.map_or(NO_FORM, |form| form.len() as u64);
    output.write_all(&length.to_le_bytes())?;
    output.write_all(form.unwrap_or_default())?;
    output.flush()
}

/// Reads what became of a job on so many bytes: a form is always smaller.
pub(super) fn read_result(input: &mut impl Read, file_bytes: usize) -> io::Result<Option<Arc<[u8]>>> {
    let length = read_length(input)?;
    if length == NO_FORM {
        return Ok(None);
    }
    let length = usize::try_from(length).ok().filter(|length| *length < file_bytes);
    let Some(length) = length else {
        return Err(broken(format!("a form that is not smaller than its {file_bytes} bytes")));
    };
    // In memory of exactly that size from the start: there is no second copy.
    let mut form: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
    // Nobody else has it yet.
    match Arc::get_mut(&mut form) {
        Some(space) => input.read_exact(space)?,
        None => return Err(io::Error::other("a new allocation is shared")),
    }
    Ok(Some(form))
}

fn read_length(input: &mut impl Read) -> io::Result<u64> {
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    Ok(u64::from_le_bytes(length))
}

fn broken(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_arrives_as_it_was_sent() {
        let mut sent = Vec::new();
        for encoding in [Encoding::Gzip, Encoding::Brotli, Encoding::Zstd] {
            write_job(&mut sent, encoding, b"some bytes").expect("room");
        }
        let mut input = &sent[..];
        for encoding in [Encoding::Gzip, Encoding::Brotli, Encoding::Zstd] {
            let job = read_job(&mut input).expect("a whole frame");
            assert_eq!(job, Some((encoding, b"some bytes".to_vec())));
        }
        assert_eq!(read_job(&mut input).expect("an end between frames"), None);
    }

    #[test]
    fn a_result_arrives_as_it_was_sent() {
        for form in [None, Some(&b""[..]), Some(b"small")] {
            let mut sent = Vec::new();
            write_result(&mut sent, form).expect("room");
            let result = read_result(&mut &sent[..], 6).expect("a whole frame");
            assert_eq!(result.as_deref(), form);
        }
    }

    #[test]
    fn a_broken_job_is_an_error_and_takes_no_memory() {
        let job = |coding: u8, length: u64| {
            let mut frame = vec![coding];
            frame.extend_from_slice(&length.to_le_bytes());
            frame.extend_from_slice(b"four");
            read_job(&mut &frame[..]).expect_err("refused").kind()
        };
        assert_eq!(job(0, 4), ErrorKind::InvalidData);
        assert_eq!(job(4, 4), ErrorKind::InvalidData);
        assert_eq!(job(1, u64::MAX), ErrorKind::InvalidData);
        assert_eq!(job(1, STORED_FILE_BYTES_MAX + 1), ErrorKind::InvalidData);
        assert_eq!(job(1, STORED_FILE_BYTES_MAX), ErrorKind::UnexpectedEof);
        assert_eq!(job(1, 5), ErrorKind::UnexpectedEof);
        let cut = read_job(&mut &[1, 4, 0, 0][..]).expect_err("cut off");
        assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_form_that_is_not_smaller_than_its_file_is_nonsense() {
        let result = |length: u64| {
            let mut frame = length.to_le_bytes().to_vec();
            frame.extend_from_slice(b"four");
            read_result(&mut &frame[..], 6).map_err(|error| error.kind())
        };
        assert_eq!(result(4).expect("smaller").as_deref(), Some(&b"four"[..]));
        assert_eq!(result(5), Err(ErrorKind::UnexpectedEof));
        assert_eq!(result(6), Err(ErrorKind::InvalidData));
        assert_eq!(result(u64::MAX - 1), Err(ErrorKind::InvalidData));
        let cut = read_result(&mut &[4, 0, 0][..], 6).map_err(|error| error.kind());
        assert_eq!(cut, Err(ErrorKind::UnexpectedEof));
    }
}
