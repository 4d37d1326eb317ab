//! `traceparent` of W3C Trace Context (<https://www.w3.org/TR/trace-context/>, level 1, and level 2 of 2024): which trace a
//! request belongs to.
//!
//! onehop takes no part in a trace: both fields are passed on as they came, which section 3.4 wants of one that changes
//! neither. It reads the trace's id, so that a slow request is found by it. One that is malformed is ignored, as sections
//! 3.2.2.3 and 3.2.2.4 say, and never an error.

/// The length of version 00 (section 3.2.2): `00-TRACE-PARENT-FLAGS`.
const LENGTH: usize = 55;

/// The trace that `traceparent` names, 32 lower-case hexadecimal digits; `None` where it is malformed.
pub fn trace_id(traceparent: &[u8]) -> Option<&str> {
    let [version, trace, parent, flags] = [(0, 2), (3, 35), (36, 52), (53, 55)]
        .map(|(from, to)| traceparent.get(from..to).filter(|part| is_lower_hex(part)));
    let dashes = [2, 35, 52].iter().all(|at| traceparent.get(*at) == Some(&b'-'));
    let (version, trace, parent) = (version?, trace?, parent?);
    flags?;
    // Section 3.2.2.1: version ff is invalid. Section 3.2.4: of a higher version than 00 the first parts are read,
    // where what follows them begins with a dash.
    let is_complete = match traceparent.get(LENGTH..)? {
        [] => true,
        [next, ..] => version != b"00" && *next == b'-',
    };
    // Sections 3.2.2.3 and 3.2.2.4: all zeroes are invalid.
    let is_set = |id: &[u8]| id.iter().any(|digit| *digit != b'0');
    let is_valid = dashes && is_complete && version != b"ff" && is_set(trace) && is_set(parent);
    std::str::from_utf8(trace).ok().filter(|_| is_valid)
}

fn is_lower_hex(part: &[u8]) -> bool {
    part.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn the_trace_is_read_as_the_specification_says() {
        let good = format!("00-{TRACE}-b7ad6b7169203331-01");
        for (text, expected) in [
            (good.clone(), true),
            (format!("00-{TRACE}-b7ad6b7169203331-00"), true),
            // A flag that is not known yet (section 3.2.2.5).
            (format!("00-{TRACE}-b7ad6b7169203331-ff"), true),
            (format!("cc-{TRACE}-b7ad6b7169203331-01"), true),
            (format!("cc-{TRACE}-b7ad6b7169203331-01-more"), true),
            (format!("cc-{TRACE}-b7ad6b7169203331-01.more"), false),
            (format!("ff-{TRACE}-b7ad6b7169203331-01"), false),
            (format!("{good}-more"), false),
            (format!("{good} "), false),
            (good.to_uppercase(), false),
            (good[..54].to_owned(), false),
            (good.replace('-', "_"), false),
            (format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)), false),
            (format!("00-{TRACE}-{}-01", "0".repeat(16)), false),
            (format!("0g-{TRACE}-b7ad6b7169203331-01"), false),
            (String::new(), false),
        ] {
            assert_eq!(trace_id(text.as_bytes()), expected.then_some(TRACE), "{text:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_ignored() {
        let mut bytes = format!("00-{TRACE}-b7ad6b7169203331-01").into_bytes();
        for at in 0..bytes.len() {
            let before = std::mem::replace(&mut bytes[at], 0xff);
            assert_eq!(trace_id(&bytes), None, "byte {at}");
            bytes[at] = before;
        }
    }
}
