//! Any bytes as jobs of the compressing process: it ends with them or at the first that is none, and
//! answers each whole one with a form that is smaller.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onehop_files::tree::prepare_forms;

fuzz_target!(|data: &[u8]| {
    let mut results = Vec::new();
    let done = prepare_forms(data, &mut results);
    assert!(results.len() <= data.len());
    if done.is_ok() {
        assert_eq!(data.is_empty(), results.is_empty());
    }
});
