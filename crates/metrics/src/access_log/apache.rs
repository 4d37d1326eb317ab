//! Lines in Apache's formats `common` and `combined`, which GoAccess, AWStats and others read.
//!
//! <https://httpd.apache.org/docs/2.4/logs.html#accesslog>: host, identity, user, time, request line, status, bytes; with
//! `combined` also `Referer` and `User-Agent`. What is missing is `-`.

use std::io::Write as _;
use std::time::SystemTime;

use super::{Entry, USER_ID, time};
use crate::json_string::{is_plain, push_address, push_number};

/// Adds the line of a request.
pub(super) fn line(entry: &Entry<'_>, is_combined: bool, at: SystemTime, out: &mut Vec<u8>) {
    match entry.client {
        Some(client) => push_address(out, client),
        None => out.push(b'-'),
    }
    out.extend_from_slice(b" - ");
    match entry.appended(USER_ID) {
        // A space would end the field.
        Some(user) => push_escaped(
            out,
            &user.iter().map(|byte| if *byte == b' ' { b'_' } else { *byte }).collect::<Vec<_>>(),
        ),
        None => out.push(b'-'),
    }
    out.extend_from_slice(b" [");
    time::push_common_log(out, at);
    out.extend_from_slice(b"] \"");
    match entry.head {
        Some(head) => {
            push_escaped(out, head.method_bytes());
            out.push(b' ');
            push_escaped(out, head.target());
            out.push(b' ');
            out.extend_from_slice(head.version().name().as_bytes());
        }
        None => out.push(b'-'),
    }
    out.extend_from_slice(b"\" ");
    push_number(out, entry.response.status.into());
    out.push(b' ');
    match entry.sent {
        0 => out.push(b'-'),
        sent => push_number(out, sent),
    }
    if is_combined {
        for name in ["referer", "user-agent"] {
            let value = entry.head.and_then(|head| {
                head.fields().find(|(field, _)| field.eq_ignore_ascii_case(name.as_bytes()))
            });
            out.extend_from_slice(b" \"");
            push_escaped(out, value.map_or(b"-", |(_, value)| value));
            out.push(b'"');
        }
    }
    out.push(b'\n');
}

/// As nginx escapes: a reader of lines needs no rule for a backslash before a quote.
pub(super) fn push_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    if is_plain(bytes) {
        return out.extend_from_slice(bytes);
    }
    for &byte in bytes {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => _ = write!(out, "\\x{byte:02X}"),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_client_sends_ends_a_field_or_a_line() {
        let mut out = Vec::new();
        push_escaped(&mut out, b"a\"b\\c\nd\x7f\xc3\xa9 e");
        assert_eq!(out, br"a\x22b\x5Cc\x0Ad\x7F\xC3\xA9 e");
    }
}
