//! Texts and numbers as they stand in lines: quickly, because each request writes some forty of them.

use std::fmt::Write as _;
use std::net::IpAddr;

/// Digits that [`push_filled`] writes at most: those of nanoseconds.
const DIGITS_MAX: usize = 9;

/// Bytes that [`is_plain`] looks at together.
type Word = [u8; 8];

/// Whether all bytes are printable ASCII without quotation marks and backslashes, so that no format escapes any of them.
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks();
    // The last word overlaps the one before: most texts have a rest, and few have less than a word.
    match bytes.last_chunk() {
        Some(last) if !rest.is_empty() => words.iter().all(is_plain_word) && is_plain_word(last),
        Some(_) => words.iter().all(is_plain_word),
        None => bytes.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')),
    }
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

/// A JSON string of any bytes; what is not UTF-8 becomes U+FFFD.
pub(crate) fn push_json(out: &mut String, bytes: &[u8]) {
    out.push('"');
    match std::str::from_utf8(bytes) {
        Ok(text) if is_plain(bytes) => out.push_str(text),
        _ => push_characters(out, bytes),
    }
    out.push('"');
}

fn push_characters(out: &mut String, bytes: &[u8]) {
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // C0, DEL and C1: terminals and readers of lines act on all of them.
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
}

/// A number.
pub(crate) fn push_number(out: &mut String, number: u64) {
    out.push_str(itoa::Buffer::new().format(number));
}

/// A number with zeroes in front, `digits` in all, nine at most.
pub(crate) fn push_filled(out: &mut String, number: u32, digits: usize) {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(number);
    let missing = digits.min(DIGITS_MAX).saturating_sub(text.len());
    out.push_str("000000000".get(..missing).unwrap_or_default());
    out.push_str(text);
}

/// An address.
pub(crate) fn push_address(out: &mut String, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            for (number, part) in address.octets().into_iter().enumerate() {
                if number > 0 {
                    out.push('.');
                }
                push_number(out, part.into());
            }
        }
        IpAddr::V6(address) => _ = write!(out, "{address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_plain_or_is_escaped() {
        for byte in 0..=u8::MAX {
            let is_printable = (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
            assert_eq!(is_plain(&[b'a', byte]), is_printable, "{byte:#x}");
            let mut out = String::new();
            push_json(&mut out, &[byte]);
            assert_eq!(out.len() == 3, is_printable, "{byte:#x}: {out}");
            // At every position of texts of every length up to two words and a rest.
            for (length, place) in (1..20).flat_map(|length| (0..length).map(move |place| (length, place))) {
                for other in [b' ', b'a', b'~'] {
                    let mut text = vec![other; length];
                    text[place] = byte;
                    assert_eq!(is_plain(&text), is_printable, "{byte:#x} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn numbers_and_addresses_are_as_rust_writes_them() {
        let mut out = String::new();
        push_filled(&mut out, 7, 6);
        push_filled(&mut out, 999_999_999, 9);
        push_number(&mut out, u64::MAX);
        push_address(&mut out, IpAddr::from([192, 0, 2, 255]));
        push_address(&mut out, IpAddr::from([0_u16, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(out, format!("000007999999999{}192.0.2.255::1", u64::MAX));
    }
}
