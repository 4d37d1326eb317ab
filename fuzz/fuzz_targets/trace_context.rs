//! `traceparent`: never a panic, and what is read is an id.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onehop_message::trace_context::trace_id;

fuzz_target!(|data: &[u8]| {
    let Some(id) = trace_id(data) else { return };
    assert!(id.len() == 32 && id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')));
});
