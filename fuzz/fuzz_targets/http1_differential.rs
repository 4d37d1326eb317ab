//! Raw bytes to onehop, hyper and httparse: what onehop takes, they take alike.
#![no_main]

#[path = "../../crates/http1/tests/against/mod.rs"]
mod against;
#[path = "../../crates/http1/tests/drive/mod.rs"]
mod drive;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    against::compare_with_hyper(bytes);
    against::compare_with_httparse(bytes);
});
