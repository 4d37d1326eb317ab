//! Accept-Encoding fields: never a panic, and a coding that the client refuses is never chosen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onehop_config::checked::Encoding;
use onehop_files::accept_encoding::Accepted;

fuzz_target!(|data: &[u8]| {
    let offered = [Encoding::Brotli, Encoding::Zstd, Encoding::Gzip];
    let accepted = Accepted::parse(data.split(|b| *b == b'\n'));
    let chosen = accepted.choose(offered);
    for encoding in offered {
        assert!(accepted.quality(encoding) <= 1000);
    }
    if let Some(chosen) = chosen {
        assert!(accepted.quality(chosen) > 0);
        assert!(offered.iter().all(|other| accepted.quality(*other) <= accepted.quality(chosen)));
        assert_eq!(accepted.choose([chosen]), Some(chosen));
    }
});
