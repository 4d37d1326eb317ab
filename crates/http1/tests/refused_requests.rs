//! The table of malformed and smuggling-shaped requests: each is refused for its reason, at every cut.

mod drive;
mod rows;

use onehop_http1::{Limits, Refusal};

use rows::{CHUNKED, CHUNKS, HOSTS, LENGTHS, LINES, REQUEST_LINES, Row, TARGETS};

/// Refused at once and at each of its cuts, with nothing seen of what stands behind it.
fn check(row: &Row, bytes: &[u8]) {
    assert_eq!(row.refusal.section(), row.section, "{}", row.name);
    let whole = drive::serve_at_once(bytes, Limits::default());
    assert_eq!(whole.refused, Some(row.refusal), "{}", row.name);
    assert!(whole.seen.is_empty(), "{}", row.name);
    assert!(whole.out.starts_with(b"HTTP/1.1 "), "{}", row.name);
    assert!(whole.out.windows(19).any(|part| part == b"Connection: close\r\n"), "{}", row.name);
    for cut in 0..bytes.len() {
        for step in [1, bytes.len()] {
            let again = drive::serve(bytes, Limits::default(), cut, step);
            assert_eq!(again.refused, whole.refused, "{} cut at {cut}, then by {step}", row.name);
            assert_eq!(again.out, whole.out, "{} cut at {cut}, then by {step}", row.name);
        }
    }
}

#[test]
fn heads_against_the_grammar_or_with_two_readings_are_refused_at_every_cut() {
    for row in [LENGTHS, LINES, REQUEST_LINES, TARGETS, HOSTS].into_iter().flatten() {
        check(row, row.bytes);
    }
}

#[test]
fn chunks_against_the_grammar_are_refused_at_every_cut() {
    for row in CHUNKS {
        check(row, &[CHUNKED, row.bytes].concat());
    }
}

#[test]
fn nothing_behind_a_refused_request_is_read() {
    for row in LENGTHS.iter().chain(LINES).chain(HOSTS) {
        let outcome = drive::serve_at_once(
            &[row.bytes, b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"].concat(),
            Limits::default(),
        );
        assert_eq!((outcome.refused, outcome.seen.len()), (Some(row.refusal), 0), "{}", row.name);
    }
}

fn with_bounds(bytes: &[u8], limits: Limits, refusal: Option<Refusal>) {
    for (cut, step) in [(usize::MAX, 1), (0, 1), (7, 3), (bytes.len() / 2, 64)] {
        let outcome = drive::serve(bytes, limits, cut, step);
        assert_eq!(outcome.refused, refusal, "cut at {cut}, then by {step}");
    }
}

#[test]
fn each_bound_of_a_head_holds_to_the_byte() {
    let request = b"GET /12345678 HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n";
    let fits = Limits { head_bytes: request.len(), target_bytes: 9, fields: 2, ..Limits::default() };
    with_bounds(request, fits, None);
    let over = Limits { head_bytes: request.len() - 1, ..fits };
    with_bounds(request, over, Some(Refusal::HeadTooLarge));
    with_bounds(request, Limits { target_bytes: 8, ..fits }, Some(Refusal::TargetTooLong));
    with_bounds(request, Limits { fields: 1, ..fits }, Some(Refusal::TooManyFields));
    let options =
        |count| format!("GET / HTTP/1.1\r\nHost: h\r\nConnection: {}\r\n\r\n", "a, ,".repeat(count));
    with_bounds(options(32).as_bytes(), Limits::default(), None);
    with_bounds(options(33).as_bytes(), Limits::default(), Some(Refusal::TooManyConnectionOptions));
    assert_eq!(Refusal::TooManyConnectionOptions.status(), 431);
    assert_eq!(Refusal::HeadTooLarge.status(), 431);
    assert_eq!(Refusal::TooManyFields.status(), 431);
    assert_eq!(Refusal::TargetTooLong.status(), 414);
}

#[test]
fn an_endless_method_target_or_head_is_refused_before_its_end() {
    let target = [b"GET /".as_slice(), &[b'a'; 70_000]].concat();
    with_bounds(&target, Limits::default(), Some(Refusal::TargetTooLong));
    let method = [b'A'; 70_000];
    with_bounds(&method, Limits::default(), Some(Refusal::MethodTooLong));
    let method = [&method[..9_000], b" / HTTP/1.1\r\nHost: h\r\n\r\n"].concat();
    with_bounds(&method, Limits::default(), Some(Refusal::MethodTooLong));
    assert_eq!(Refusal::MethodTooLong.status(), 501);
    let head = [b"GET / HTTP/1.1\r\nA: ".as_slice(), &[b'a'; 70_000]].concat();
    with_bounds(&head, Limits::default(), Some(Refusal::HeadTooLarge));
    let fields =
        [b"GET / HTTP/1.1\r\nHost: h\r\n".as_slice(), &b"A: b\r\n".repeat(Limits::FIELDS_MAX), b"\r\n"]
            .concat();
    with_bounds(&fields, Limits::default(), Some(Refusal::TooManyFields));
    with_bounds(&fields, Limits { fields: 1000, ..Limits::default() }, Some(Refusal::TooManyFields));
}

#[test]
fn each_bound_of_a_chunked_body_holds() {
    let body = |rest: &[u8]| [CHUNKED, rest].concat();
    let limits = Limits { chunk_line_bytes: 10, trailer_bytes: 8, ..Limits::default() };
    with_bounds(&body(b"1;a=bcde\r\nx\r\n0\r\n\r\n"), limits, None);
    with_bounds(&body(b"1;a=bcdef\r\nx\r\n0\r\n\r\n"), limits, Some(Refusal::ChunkLineTooLong));
    with_bounds(&body(b"1;aaaaaaaaaaaaaaaaaaaaaaaa"), limits, Some(Refusal::ChunkLineTooLong));
    with_bounds(&body(b"0\r\nA: b\r\n\r\n"), limits, None);
    with_bounds(&body(b"0\r\nA: bc\r\n\r\n"), limits, Some(Refusal::TrailersTooLarge));
    let many = [b"1;".as_slice(), &[b'a'; 200], b"\r\nx\r\n"].concat().repeat(100);
    with_bounds(&body(&many), Limits::default(), Some(Refusal::ChunkExtensionsTooLarge));
}

#[test]
fn every_refusal_has_a_label_of_its_own_and_an_error_status() {
    let names: std::collections::HashSet<_> = Refusal::ALL.iter().map(|refusal| refusal.name()).collect();
    assert_eq!(names.len(), Refusal::ALL.len());
    for refusal in Refusal::ALL {
        assert!((400..600).contains(&refusal.status()), "{refusal:?}");
        assert!(refusal.section().starts_with("RFC "), "{refusal:?}");
        assert!(
            refusal
                .name()
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        );
    }
}
