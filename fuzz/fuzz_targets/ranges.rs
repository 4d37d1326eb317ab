//! Range fields: never a panic, and what is wanted lies in the file and is never more than it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onehop_files::limits::RANGES_MAX;
use onehop_files::ranges::{self, Wanted};

fuzz_target!(|input: (u64, &[u8])| {
    let (length, value) = input;
    let parts = match ranges::parse(value, length) {
        Wanted::Whole | Wanted::None => return,
        Wanted::Part(part) => vec![part],
        Wanted::Parts(parts) => {
            assert!((2..=RANGES_MAX).contains(&parts.len()));
            parts
        }
    };
    let mut total = 0_u64;
    for (at, part) in parts.iter().enumerate() {
        assert!(part.start < part.end && part.end <= length);
        total += part.end - part.start;
        assert!(parts[at + 1..].iter().all(|other| other.end <= part.start || other.start >= part.end));
    }
    assert!(total <= length);
});
