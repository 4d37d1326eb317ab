//! Any `Link` field is read in order, and a link that is written anew is read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onehop_message::link::links;

fuzz_target!(|value: &[u8]| {
    let is_plain = |(name, _): &(&[u8], &[u8])| !name.contains(&b'"');
    for link in links(value) {
        let mut again = [b"<", link.target, b">"].concat();
        // The server passes on parameters of some names alone, and none of those has a quote.
        for (name, text) in link.parameters().filter(is_plain) {
            again.extend_from_slice(b"; ");
            again.extend_from_slice(name);
            if !text.is_empty() {
                again.push(b'=');
                again.extend_from_slice(text);
            }
        }
        let [read] = links(&again).collect::<Vec<_>>()[..] else {
            panic!("one link became others: {again:?}")
        };
        assert_eq!(read.target, link.target);
        assert!(read.parameters().eq(link.parameters().filter(is_plain)), "{again:?}");
    }
});
