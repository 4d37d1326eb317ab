//! Paths of requests: never a panic, and what is let through is plain and means the same when it is
//! read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onehop_files::path;

fuzz_target!(|data: &[u8]| {
    let _ = path::parse_decoded(data);
    let Ok(parsed) = path::parse(data) else { return };
    let name = parsed.bytes.as_ref();
    assert!(!name.contains(&0) && !name.contains(&b'\\'));
    assert!(!name.starts_with(b"/") && !name.ends_with(b"/"));
    for segment in name.split(|b| *b == b'/') {
        assert!(name.is_empty() || !matches!(segment, b"" | b"." | b".."));
    }
    let mut encoded = b"/".to_vec();
    path::percent_encode(name, &mut encoded);
    let again = path::parse(&encoded).expect("an encoded name is a path");
    assert_eq!(again.bytes.as_ref(), name);
    assert_eq!(again.dotfile, parsed.dotfile);
});
