//! Canonical paths: never a panic, and a path that was read reads as itself, without dot segments.
#![no_main]

use std::borrow::Cow;

use libfuzzer_sys::fuzz_target;
use onehop_message::path::RequestPath;

fuzz_target!(|data: &[u8]| {
    let Ok(path) = RequestPath::read(Cow::Borrowed(data)) else { return };
    let again = RequestPath::read(Cow::Borrowed(path.sent())).expect("it was read before");
    assert_eq!(again, path);
    for segment in path.merged().split(|byte| *byte == b'/') {
        assert!(!matches!(segment, b"." | b".."));
    }
    assert!(!path.merged().contains(&b'\\') && !path.merged().contains(&0));
    let _ = path.without_prefix("/a/b%2f");
});
