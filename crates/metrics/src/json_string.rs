//! Texts as JSON strings.

use std::fmt::Write as _;

/// A JSON string of any bytes; what is not UTF-8 becomes U+FFFD.
pub(crate) fn push_json(out: &mut String, bytes: &[u8]) {
    out.push('"');
    let is_plain = bytes.iter().all(|byte| matches!(byte, 0x20..=0x7e) && !matches!(byte, b'"' | b'\\'));
    match std::str::from_utf8(bytes) {
        Ok(text) if is_plain => out.push_str(text),
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
