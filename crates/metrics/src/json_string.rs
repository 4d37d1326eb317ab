//! Texts and numbers as they stand in lines: quickly, because each request writes some forty of them.

use std::io::Write as _;
use std::net::IpAddr;

/// Digits that [`push_filled`] writes at most: those of nanoseconds.
const DIGITS_MAX: usize = 9;

/// Bytes that are looked at together where a text has as many: a vector register of every machine.
type Block = [u8; 16];

/// The same for shorter texts.
type Word = [u8; 8];

/// Whether all bytes are printable ASCII without quotation marks and backslashes, so that no format escapes any of them.
#[inline]
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    // The last part overlaps the one before it, so that texts of no length are read byte by byte.
    if let Some(last) = bytes.last_chunk::<16>() {
        let (blocks, _) = bytes.as_chunks();
        return blocks.iter().all(is_plain_block) & is_plain_block(last);
    }
    match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => is_plain_word(first) & is_plain_word(last),
        _ => is_plain_short(bytes),
    }
}

fn is_plain_byte(byte: u8) -> bool {
    byte.wrapping_sub(b' ') < 0x7f - b' ' && byte != b'"' && byte != b'\\'
}

/// Without a branch for each byte, so that the compiler compares all at once.
#[inline(always)]
fn is_plain_block(block: &Block) -> bool {
    block.iter().fold(true, |is_plain, byte| is_plain & is_plain_byte(*byte))
}

/// The tests for a byte of zero and for one below another, for eight bytes at once (Bit Twiddling Hacks, "Determine if a word has
/// a byte less than n"): exact where only yes or no counts.
fn is_plain_word(word: &Word) -> bool {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let word = u64::from_ne_bytes(*word);
    let below = |word: u64, byte: u8| word.wrapping_sub(EACH * u64::from(byte)) & !word;
    let is = |byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    (word | below(word, b' ') | is(b'"') | is(b'\\') | is(0x7f)) & HIGH == 0
}

/// A text of less than a word.
fn is_plain_short(bytes: &[u8]) -> bool {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(&[a, b, c, d]), Some(&[e, f, g, h])) => is_plain_word(&[a, b, c, d, e, f, g, h]),
        _ => bytes.iter().all(|byte| is_plain_byte(*byte)),
    }
}

/// A JSON string of any bytes; what is not UTF-8 becomes U+FFFD.
#[inline]
pub(crate) fn push_json(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    push_json_text(out, bytes);
    out.push(b'"');
}

/// The same without its quotation marks.
#[inline]
pub(crate) fn push_json_text(out: &mut Vec<u8>, bytes: &[u8]) {
    if is_plain(bytes) {
        out.extend_from_slice(bytes);
    } else {
        push_escaped_json(out, bytes);
    }
}

/// Most of these are tags of entities, in quotation marks: what needs no escape is copied in one piece.
#[inline(never)]
fn push_escaped_json(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| !is_plain_byte(*byte)) {
        let (plain, after) = rest.split_at(at);
        out.extend_from_slice(plain);
        rest = match after {
            [b'"', after @ ..] => {
                out.extend_from_slice(b"\\\"");
                after
            }
            [b'\\', after @ ..] => {
                out.extend_from_slice(b"\\\\");
                after
            }
            _ => return push_characters(out, after),
        };
    }
    out.extend_from_slice(rest);
}

fn push_characters(out: &mut Vec<u8>, bytes: &[u8]) {
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            // C0, DEL and C1: terminals and readers of lines act on all of them.
            control if control.is_control() => _ = write!(out, "\\u{:04x}", control as u32),
            other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// A number.
pub(crate) fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A number with zeroes in front, `digits` in all, nine at most.
pub(crate) fn push_filled(out: &mut Vec<u8>, number: u32, digits: usize) {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(number);
    let missing = digits.min(DIGITS_MAX).saturating_sub(text.len());
    out.extend_from_slice(b"000000000".get(..missing).unwrap_or_default());
    out.extend_from_slice(text.as_bytes());
}

/// An address.
pub(crate) fn push_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            for (number, part) in address.octets().into_iter().enumerate() {
                if number > 0 {
                    out.push(b'.');
                }
                push_number(out, part.into());
            }
        }
        IpAddr::V6(address) => _ = write!(out, "{address}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_byte_is_plain_or_is_escaped() {
        for byte in 0..=u8::MAX {
            let is_printable = (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
            assert_eq!(is_plain(&[b'a', byte]), is_printable, "{byte:#x}");
            let mut out = Vec::new();
            push_json(&mut out, &[byte]);
            assert_eq!(out.len() == 3, is_printable, "{byte:#x}: {out:?}");
            // At every position of texts of every length up to two blocks and a rest.
            for (length, place) in (1..36).flat_map(|length| (0..length).map(move |place| (length, place))) {
                for other in [b' ', b'a', b'~'] {
                    let mut text = vec![other; length];
                    text[place] = byte;
                    assert_eq!(is_plain(&text), is_printable, "{byte:#x} at {place} of {length}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_one_string_of_json(bytes in prop_oneof![vec(any::<u8>(), 0..50), "\\PC{0,50}".prop_map(String::into_bytes)]) {
            let mut out = Vec::new();
            push_json(&mut out, &bytes);
            prop_assert!(!out.iter().any(|byte| matches!(byte, 0..0x20 | 0x7f)));
            let read: String = serde_json::from_slice(&out).expect("JSON");
            prop_assert_eq!(read, String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn numbers_and_addresses_are_as_rust_writes_them() {
        let mut out = Vec::new();
        push_filled(&mut out, 7, 6);
        push_filled(&mut out, 999_999_999, 9);
        push_number(&mut out, u64::MAX);
        push_address(&mut out, IpAddr::from([192, 0, 2, 255]));
        push_address(&mut out, IpAddr::from([0_u16, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(out, format!("000007999999999{}192.0.2.255::1", u64::MAX).into_bytes());
    }
}
