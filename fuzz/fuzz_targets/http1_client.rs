//! Raw bytes to a proxy's connection: no panic, and no difference between one read and many.
#![no_main]

#[path = "../../crates/http1/tests/drive_client/mod.rs"]
mod drive_client;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u8, u8, &[u8])| {
    let (kind, cut, step, bytes) = input;
    let method = ["GET", "HEAD", "POST", "CONNECT"][usize::from(kind % 4)];
    let upgrade = kind & 4 != 0;
    let whole = drive_client::read(&mut drive_client::asked(method, upgrade), bytes, usize::MAX, 1);
    let again = drive_client::read(
        &mut drive_client::asked(method, upgrade),
        bytes,
        usize::from(cut),
        usize::from(step),
    );
    assert_eq!(whole, again);
});
