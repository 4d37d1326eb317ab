//! `traceparent` of W3C Trace Context (<https://www.w3.org/TR/trace-context/>, level 1, and level 2 of 2024): which trace a
//! request belongs to.
//!
//! Without `tracing` onehop takes no part in a trace: both fields are passed on as they came, which section 3.4 wants of one that
//! changes neither. It reads the trace's id, so that a slow request is found by it. With `tracing` the request is a span of its
//! own, a [`SpanContext`]. A field that is malformed is ignored, as sections 3.2.2.3 and 3.2.2.4 say, and never an error.

/// The length of version 00 (section 3.2.2): `00-TRACE-PARENT-FLAGS`.
const LENGTH: usize = 55;

/// The flags that are passed on, of those that section 3.2.2.5 of level 2 knows: sampled, and that the trace's id is random.
const KNOWN_FLAGS: u8 = 0b11;
const SAMPLED: u8 = 0b01;

/// What `traceparent` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent<'a> {
    /// The trace: 32 lower-case hexadecimal digits.
    pub trace_id: &'a str,
    /// The caller's span: 16 of them.
    pub span_id: &'a str,
    flags: u8,
}

/// The request's span in its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace.
    pub trace_id: u128,
    /// The request's own span.
    pub span_id: u64,
    /// The caller's span; `None`: the trace begins here.
    pub parent: Option<u64>,
    flags: u8,
}

/// Reads the field; `None` where it is malformed.
pub fn read(traceparent: &[u8]) -> Option<TraceParent<'_>> {
    let [version, trace, parent, flags] = [(0, 2), (3, 35), (36, 52), (53, 55)]
        .map(|(from, to)| traceparent.get(from..to).filter(|part| is_lower_hex(part)));
    let dashes = [2, 35, 52].iter().all(|at| traceparent.get(*at) == Some(&b'-'));
    let (version, trace, parent) = (version?, trace?, parent?);
    let flags = u8::from_str_radix(std::str::from_utf8(flags?).ok()?, 16).ok()?;
    // Section 3.2.2.1: version ff is invalid. Section 3.2.4: of a higher version than 00 the first parts are read,
    // where what follows them begins with a dash.
    let is_complete = match traceparent.get(LENGTH..)? {
        [] => true,
        [next, ..] => version != b"00" && *next == b'-',
    };
    // Sections 3.2.2.3 and 3.2.2.4: all zeroes are invalid.
    let is_set = |id: &[u8]| id.iter().any(|digit| *digit != b'0');
    let is_valid = dashes && is_complete && version != b"ff" && is_set(trace) && is_set(parent);
    let text = |part| std::str::from_utf8(part).ok().filter(|_| is_valid);
    Some(TraceParent { trace_id: text(trace)?, span_id: text(parent)?, flags })
}

/// The trace that `traceparent` names, 32 lower-case hexadecimal digits; `None` where it is malformed.
pub fn trace_id(traceparent: &[u8]) -> Option<&str> {
    read(traceparent).map(|parent| parent.trace_id)
}

impl SpanContext {
    /// A span below the caller's, or the first of a new trace with a random id. `is_sampled` decides for a trace, by what its caller
    /// has decided, if it has one, and by the 56 random bits of its id (level 2, section 3.2.2.4).
    pub fn begin(
        parent: Option<TraceParent<'_>>,
        random: (u128, u64),
        is_sampled: impl FnOnce(Option<bool>, u64) -> bool,
    ) -> Self {
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (trace_id, caller, flags) = match parent {
            Some(parent) => {
                let trace = u128::from_str_radix(parent.trace_id, 16).unwrap_or(random.0.max(1));
                (trace, number(parent.span_id), parent.flags & KNOWN_FLAGS)
            }
            None => (random.0.max(1), None, KNOWN_FLAGS ^ SAMPLED),
        };
        let of_caller = caller.map(|_| flags & SAMPLED != 0);
        let random_part = (trace_id & ((1 << 56) - 1)) as u64;
        let sampled = if is_sampled(of_caller, random_part) { SAMPLED } else { 0 };
        Self { trace_id, span_id: random.1.max(1), parent: caller, flags: (flags & !SAMPLED) | sampled }
    }

    /// Whether this span is exported. Applications and upstreams see the same flag.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The value of the `traceparent` field that applications and upstreams get, of version 00.
    pub fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }

    /// Whether a field of the request is passed on: its `traceparent` is replaced, and its `tracestate` is nothing without a valid
    /// one (section 3.3.1.1).
    pub fn passes(&self, name: &[u8]) -> bool {
        !name.eq_ignore_ascii_case(TRACEPARENT.as_bytes())
            && (self.parent.is_some() || !name.eq_ignore_ascii_case(b"tracestate"))
    }
}

/// The field's name, as it is sent (section 3.2.1).
pub const TRACEPARENT: &str = "traceparent";

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
    fn a_span_continues_the_trace_of_its_caller_or_begins_one() {
        let caller = format!("00-{TRACE}-b7ad6b7169203331-01");
        let span = SpanContext::begin(read(caller.as_bytes()), (7, 9), |caller, _| caller.expect("decided"));
        assert_eq!(span.traceparent(), format!("00-{TRACE}-0000000000000009-01"));
        assert_eq!(span.parent, Some(0xb7ad_6b71_6920_3331));
        assert!(span.is_sampled() && span.passes(b"tracestate") && !span.passes(b"TraceParent"));

        // A flag that is not known is not passed on (section 3.2.2.5.3 of level 2).
        let unsampled = format!("00-{TRACE}-b7ad6b7169203331-fe");
        let span =
            SpanContext::begin(read(unsampled.as_bytes()), (7, 9), |caller, _| caller.expect("decided"));
        assert_eq!(span.traceparent(), format!("00-{TRACE}-0000000000000009-02"));

        let begun = SpanContext::begin(None, (7 << 56 | 5, 9), |caller, part| caller.is_none() && part == 5);
        assert_eq!(begun.traceparent(), format!("00-{:032x}-0000000000000009-03", 7_u128 << 56 | 5));
        assert!(begun.parent.is_none() && !begun.passes(b"tracestate") && begun.passes(b"x-trace"));
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
