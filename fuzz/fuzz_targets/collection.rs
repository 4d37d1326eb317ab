//! Any file as a collection of requests: it is read or refused, in words, and what is read can be sent.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use onehop_bench::collection::{ReadOptions, read_bytes};
use onehop_http1::{AskHead, BodyLength, ClientCodec, Limits};

fuzz_target!(|data: &[u8]| {
    let variables = vec![
        ("URL".to_owned(), "http://localhost:1".to_owned()),
        ("A".to_owned(), "{{B}}{{$guid}}".to_owned()),
    ];
    let options = ReadOptions { variables, environment: None };
    // No file is there: what a collection names is never opened.
    match read_bytes(data, "collection", Path::new("/nowhere/at/all"), &options) {
        Ok(collection) => {
            assert!(!collection.requests.is_empty());
            for request in &collection.requests {
                let fields = request.field_lines().expect("a request that was read can be sent");
                // The codec checks the lines once more.
                let (method, url) = (request.method.as_bytes(), request.url.path.as_bytes());
                let head = AskHead {
                    method,
                    target: url,
                    fields: &fields,
                    body: BodyLength::None,
                    upgrade: false,
                    trailers: false,
                };
                ClientCodec::new(Limits::default())
                    .write_request_head(&mut Vec::new(), head)
                    .expect("a head");
                assert!(
                    request.url.path.starts_with('/')
                        && request.url.path.bytes().all(|byte| byte.is_ascii_graphic())
                );
            }
            assert!(collection.notes.iter().all(|note| !note.contains(char::is_control)));
        }
        Err(error) => assert!(!error.to_string().contains(|letter: char| letter.is_control())),
    }
});
