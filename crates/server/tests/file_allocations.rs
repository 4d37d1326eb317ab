//! A file from memory is answered without a single allocation: what is on the path of nearly every
//! request must not depend on an allocator's mood.

mod sample;

use onehop_server::request::answer::Answer;
use onehop_server::request::handle::files;

use sample::{CODINGS, file_server, head, request, spa, store};

#[test]
fn a_file_from_memory_is_answered_without_an_allocation() {
    let store = store();
    let browser = "Accept: */*\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n";
    let navigation = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";
    let tag =
        store.file(0).and_then(|file| file.identity.as_ref()).map(|form| form.etag.clone()).expect("a form");
    let none_match = format!("If-None-Match: {tag}\r\nIf-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT\r\n");
    let (spa, file_server) = (spa(), file_server());
    let alive = allocation_counter::measure(|| drop(std::hint::black_box(vec![0_u8; 100])));
    assert_eq!(alive.count_total, 1, "the counter counts");
    for (target, lines, status) in [
        ("/", "", 200),
        ("/index.html", browser, 200),
        ("/", none_match.as_str(), 304),
        ("/assets/index-B3xKq9aZ.js", browser, 200),
        ("/users/7/settings", navigation, 200),
    ] {
        let head = head(target, lines);
        let request = request(&head, &store, CODINGS);
        let mut answer = Answer::default();
        // The first answer of a connection makes room for fields; the others use it again.
        let _ = files::spa(&spa, &request, &mut answer);
        let counted = allocation_counter::measure(|| {
            answer.clear();
            let _ = files::spa(&spa, &request, &mut answer);
        });
        assert_eq!((answer.status, counted.count_total), (status, 0), "spa {target} {lines}");
        if target.starts_with("/users") {
            continue;
        }
        let counted = allocation_counter::measure(|| {
            answer.clear();
            let _ = files::file_server(&file_server, &request, &mut answer);
        });
        assert_eq!((answer.status, counted.count_total), (status, 0), "file_server {target} {lines}");
    }
}
