//! Any bytes as frames of the worker protocol, from both sides on both connections: no panic, no byte beyond the
//! frame is needed for it, and what is written again means the same and, where nothing is shorter, is the same.
#![no_main]

#[path = "../../crates/wire/tests/again/mod.rs"]
mod again;

use libfuzzer_sys::fuzz_target;
use onehop_wire::{ConnectionKind, Sender, decode};

fuzz_target!(|bytes: &[u8]| {
    for from in [Sender::Server, Sender::Worker] {
        for connection in [ConnectionKind::Control, ConnectionKind::Data] {
            let mut rest = bytes;
            while let Ok(Some((_, taken))) = decode(rest, from, connection) {
                one(&rest[..taken], from, connection);
                rest = &rest[taken..];
            }
        }
    }
});

fn one(bytes: &[u8], from: Sender, connection: ConnectionKind) {
    let Ok(Some((frame, taken))) = decode(bytes, from, connection) else {
        panic!("a frame needs what follows it")
    };
    assert_eq!(taken, bytes.len());
    assert_eq!(decode(&bytes[..taken - 1], from, connection), Ok(None));
    let Ok(written) = again::write(&frame) else { return };
    assert!(written.len() <= taken);
    assert_eq!(written == bytes, again::is_canonical(&frame, bytes, from));
    let Ok(Some((second, length))) = decode(&written, from, connection) else {
        panic!("unreadable when written")
    };
    assert_eq!(length, written.len());
    assert_eq!((second.slot, second.generation, second.end), (frame.slot, frame.generation, frame.end));
    assert_eq!(again::write(&second).as_ref(), Ok(&written));
}
