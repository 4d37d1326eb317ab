//! Raw bytes to a server connection: no panic, and no difference between one read and many.
#![no_main]

#[path = "../../crates/http1/tests/drive/mod.rs"]
mod drive;

use libfuzzer_sys::fuzz_target;
use onehop_http1::Limits;

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (cut, step, bytes) = input;
    for limits in [
        Limits::default(),
        Limits { head_bytes: 60, target_bytes: 4, fields: 3, chunk_line_bytes: 6, trailer_bytes: 8 },
    ] {
        let whole = drive::serve_at_once(bytes, limits);
        let again = drive::serve(bytes, limits, usize::from(cut), usize::from(step));
        assert_eq!(whole, again);
    }
});
