//! `traceparent`: never a panic, what is read is an id, and what is passed on can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onehop_message::trace_context::{SpanContext, read};

fuzz_target!(|data: &[u8]| {
    let parent = read(data);
    if let Some(parent) = parent {
        let id = parent.trace_id;
        assert!(id.len() == 32 && id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')));
    }
    let span = SpanContext::begin(parent, (1, 2), |decided, part| decided.unwrap_or(part % 2 == 0));
    let field = span.traceparent();
    let passed = read(field.as_bytes()).expect("whoever gets it can read it");
    assert!(parent.is_none_or(|parent| parent.trace_id == passed.trace_id));
});
