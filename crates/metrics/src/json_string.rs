//! Texts and numbers as they stand in lines: quickly, because each request writes some forty of them.

use std::fmt::Write as _;
use std::net::IpAddr;

/// Digits that [`push_filled`] writes at most: those of nanoseconds.
const DIGITS_MAX: usize = 9;

/// Whether all bytes are printable ASCII without quotation marks and backslashes, so that no format escapes any of them. Without a
/// branch for each byte, the compiler compares many at once.
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    let is_plain = |byte: u8| (byte.wrapping_sub(b' ') < 0x5f) & (byte != b'"') & (byte != b'\\');
    bytes.iter().fold(true, |all, byte| all & is_plain(*byte))
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
