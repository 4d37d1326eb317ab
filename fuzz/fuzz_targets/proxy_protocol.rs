//! Headers of the PROXY protocol: never a panic, and one reading however the bytes arrive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onehop_message::proxy_protocol::{Beginning, HEADER_BYTES_MAX, read};

fuzz_target!(|bytes: &[u8]| {
    let whole = read(bytes);
    // What a connection begins with is known by then.
    assert!(bytes.len() < HEADER_BYTES_MAX || whole != Ok(Beginning::Incomplete));
    if let Ok(Beginning::Header { length, .. }) = whole {
        assert!(length <= bytes.len() && length <= HEADER_BYTES_MAX);
        assert_eq!(read(&bytes[..length]), whole);
    }
    for end in 0..bytes.len().min(HEADER_BYTES_MAX) {
        let part = read(&bytes[..end]);
        assert!(part == Ok(Beginning::Incomplete) || part == whole);
    }
});
