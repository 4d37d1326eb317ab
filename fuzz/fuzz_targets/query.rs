//! Changed queries: never a panic, what is removed is found by no reader, and what was written reads as itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onehop_message::query::Parameters;
use onehop_message::uri::query_values;

fuzz_target!(|data: (&[u8], &[u8], &[u8])| {
    let (query, name, value) = data;
    let mut parameters = Parameters::read(query);
    parameters.rename(name, b"other");
    assert!(name == b"other" || query_values(&parameters.write(), name).next().is_none());
    parameters.set(name, value);
    parameters.add(name, value);
    let written = parameters.write();
    let values: Vec<_> = query_values(&written, name).collect();
    assert_eq!(values, [value, value]);
    assert_eq!(Parameters::read(&written).write(), written);
    assert!(written.iter().all(|byte| !matches!(byte, b';' | b'\r' | b'\n') || query.contains(byte)));
    parameters.remove(name);
    assert_eq!(query_values(&parameters.write(), name).count(), 0);
});
