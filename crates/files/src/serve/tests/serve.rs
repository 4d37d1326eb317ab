use super::*;
use crate::file_server;

fn tree() -> Store {
    Builder::new()
        .file_in("app.js", "0123456789", ALL)
        .file("plain.txt", "0123456789")
        .file("empty.txt", "")
        .file("photo.png", "png")
        .build()
}

/// Status, fields and body of GET with these lines, every coding allowed.
fn get(target: &str, lines: &[&str]) -> (Result<u16, HttpError>, Response, String) {
    ask("GET", target, lines, &file_server_settings(), "")
}

fn ask(
    method: &str,
    target: &str,
    lines: &[&str],
    settings: &FileServer,
    set_before: &str,
) -> (Result<u16, HttpError>, Response, String) {
    let store = tree();
    let head = head(method, target, lines);
    let mut answer = Response::default();
    answer.clear();
    answer.fields.add_lines(set_before.as_bytes());
    let served = file_server(settings, &request(&head, &store, ALL), &mut answer);
    let body = body(&store, &answer);
    (served.map(|_| answer.status), answer, body)
}

fn etag(target: &str, lines: &[&str]) -> String {
    field(&get(target, lines).1, "ETag").unwrap().to_owned()
}

#[test]
fn a_file_is_answered_with_prepared_lines() {
    let (status, answer, body) = get("/plain.txt", &[]);
    assert_eq!((status, body.as_str()), (Ok(200), "0123456789"));
    assert_eq!(
        lines(&answer),
        "ETag: \"AAAAAAAAAACgAAAAAAAAAJ\"\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nAccept-Ranges: bytes\r\n"
    );
}

#[test]
fn the_best_form_is_sent_and_every_answer_varies() {
    for (accept, coding, body) in [
        ("br, gzip", Some("br"), "br:0123456789"),
        ("gzip", Some("gzip"), "gzip:0123456789"),
        ("zstd;q=1, br;q=0.5", Some("zstd"), "zstd:0123456789"),
        ("identity", None, "0123456789"),
        ("", None, "0123456789"),
    ] {
        let (status, answer, sent) = get("/app.js", &[&format!("Accept-Encoding: {accept}")]);
        assert_eq!((status, sent.as_str()), (Ok(200), body), "{accept}");
        assert_eq!(field(&answer, "Content-Encoding"), coding, "{accept}");
        assert_eq!(field(&answer, "Vary"), Some("Accept-Encoding"), "{accept}");
    }
    let (_, answer, body) = get("/app.js", &[]);
    assert_eq!((field(&answer, "Vary"), body.as_str()), (Some("Accept-Encoding"), "0123456789"));
    let (_, answer, _) = get("/photo.png", &["Accept-Encoding: gzip"]);
    assert_eq!(field(&answer, "Vary"), None);
}

#[test]
fn each_form_has_its_own_tag() {
    let tags = [
        etag("/app.js", &[]),
        etag("/app.js", &["Accept-Encoding: br"]),
        etag("/app.js", &["Accept-Encoding: gzip"]),
        etag("/app.js", &["Accept-Encoding: zstd"]),
    ];
    for (at, tag) in tags.iter().enumerate() {
        assert!(!tags[at + 1..].contains(tag), "{tags:?}");
    }
}

#[test]
fn a_file_that_may_get_forms_varies_already() {
    let store = Builder::new().file("a.css", "x").with(|file| file.settled = false).build();
    let head = head("GET", "/a.css", &[]);
    let mut answer = Response::default();
    answered(file_server(&file_server_settings(), &request(&head, &store, ALL), &mut answer));
    assert_eq!(field(&answer, "Vary"), Some("Accept-Encoding"));
    answer.clear();
    answered(file_server(&file_server_settings(), &request(&head, &store, &[]), &mut answer));
    assert_eq!(field(&answer, "Vary"), None);
}

#[test]
fn encode_bounds_what_is_sent_coded() {
    let store = tree();
    let head = head("GET", "/app.js", &["Accept-Encoding: gzip"]);
    let types = |types: &[&str]| types.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    for (minimum, encode_types, coded) in [
        (0, types(&[]), true),
        (10, types(&[]), true),
        (11, types(&[]), false),
        (0, types(&["text/*"]), true),
        (0, types(&["text/javascript"]), true),
        (0, types(&["text/javascript*"]), true),
        (0, types(&["text/html*", "application/*"]), false),
    ] {
        let mut answer = Response::default();
        let request = FileRequest {
            encode_minimum: minimum,
            encode_types: &encode_types,
            ..request(&head, &store, ALL)
        };
        answered(file_server(&file_server_settings(), &request, &mut answer));
        assert_eq!(field(&answer, "Content-Encoding").is_some(), coded, "{minimum} {encode_types:?}");
        assert_eq!(field(&answer, "Vary").is_some(), coded, "{minimum} {encode_types:?}");
    }
}

#[test]
fn preconditions_are_evaluated_in_the_order_of_the_rfc() {
    let tag = etag("/plain.txt", &[]);
    let same = "Sun, 06 Nov 1994 08:49:37 GMT";
    let earlier = "Sun, 06 Nov 1994 08:49:36 GMT";
    let later = "Sunday, 06-Nov-94 08:49:38 GMT";
    let none_match = format!("If-None-Match: {tag}");
    let weak_none_match = format!("If-None-Match: \"x\", W/{tag}");
    let matches = format!("If-Match: {tag}");
    let weak_matches = format!("If-Match: W/{tag}");
    let modified_since = |date: &str| format!("If-Modified-Since: {date}");
    let unmodified_since = |date: &str| format!("If-Unmodified-Since: {date}");
    let failed = Err(HttpError::PreconditionFailed);
    for (lines, expected) in [
        (vec![none_match.clone()], Ok(304)),
        (vec![weak_none_match], Ok(304)),
        (vec!["If-None-Match: *".into()], Ok(304)),
        (vec!["If-None-Match: \"x\"".into()], Ok(200)),
        (vec!["If-None-Match: \"x\"".into(), none_match.clone()], Ok(304)),
        (vec![modified_since(same)], Ok(304)),
        (vec![modified_since(later)], Ok(304)),
        (vec![modified_since(earlier)], Ok(200)),
        (vec![modified_since("never")], Ok(200)),
        // If-None-Match wins over the date (RFC 9110 section 13.1.3).
        (vec!["If-None-Match: \"x\"".into(), modified_since(later)], Ok(200)),
        (vec![none_match.clone(), modified_since(earlier)], Ok(304)),
        (vec![matches.clone()], Ok(200)),
        (vec!["If-Match: *".into()], Ok(200)),
        (vec!["If-Match: \"x\"".into()], failed),
        // Strong comparison (RFC 9110 section 13.1.1).
        (vec![weak_matches], failed),
        (vec![unmodified_since(same)], Ok(200)),
        (vec![unmodified_since(later)], Ok(200)),
        (vec![unmodified_since(earlier)], failed),
        (vec![unmodified_since("never")], Ok(200)),
        // If-Match wins over the date (RFC 9110 section 13.1.4).
        (vec![matches.clone(), unmodified_since(earlier)], Ok(200)),
        (vec!["If-Match: \"x\"".into(), none_match.clone()], failed),
        (vec![matches, none_match], Ok(304)),
        (vec![unmodified_since(earlier), modified_since(later)], failed),
    ] {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(get("/plain.txt", &lines).0, expected, "{lines:?}");
    }
}

#[test]
fn not_modified_carries_what_a_cache_may_update_and_no_more() {
    let tag = etag("/app.js", &["Accept-Encoding: br"]);
    let (status, answer, body) = get("/app.js", &["Accept-Encoding: br", &format!("If-None-Match: {tag}")]);
    assert_eq!((status, body.as_str()), (Ok(304), ""));
    assert_eq!(lines(&answer), format!("ETag: {tag}\r\nVary: Accept-Encoding\r\n"));
}

#[test]
fn the_tag_of_another_form_is_not_a_match() {
    let tag = etag("/app.js", &["Accept-Encoding: br"]);
    let (status, ..) = get("/app.js", &["Accept-Encoding: gzip", &format!("If-None-Match: {tag}")]);
    assert_eq!(status, Ok(200));
}

#[test]
fn a_range_is_a_part_of_the_file() {
    for (range, status, content_range, expected) in [
        ("bytes=2-4", 206, Some("bytes 2-4/10"), "234"),
        ("bytes=-3", 206, Some("bytes 7-9/10"), "789"),
        ("bytes=8-", 206, Some("bytes 8-9/10"), "89"),
        ("bytes=0-", 206, Some("bytes 0-9/10"), "0123456789"),
        ("bytes=0-1,1-3", 206, Some("bytes 0-3/10"), "0123"),
        ("lines=1-2", 200, None, "0123456789"),
    ] {
        let (answered, answer, body) = get("/plain.txt", &[&format!("Range: {range}")]);
        assert_eq!((answered, body.as_str()), (Ok(status), expected), "{range}");
        assert_eq!(field(&answer, "Content-Range"), content_range, "{range}");
        assert_eq!(field(&answer, "Accept-Ranges"), Some("bytes"), "{range}");
    }
    for range in ["bytes=10-", "bytes=x", "bytes=5-4", "bytes=-0"] {
        let (status, ..) = get("/plain.txt", &[&format!("Range: {range}")]);
        assert_eq!(status, Err(HttpError::RangeNotSatisfiable { length: 10 }), "{range}");
    }
    assert_eq!(get("/empty.txt", &["Range: bytes=0-"]).0, Ok(200));
}

#[test]
fn a_range_is_taken_of_the_form_that_is_sent() {
    let (status, answer, body) = get("/app.js", &["Accept-Encoding: gzip", "Range: bytes=0-5"]);
    assert_eq!((status, body.as_str()), (Ok(206), "gzip:0"));
    assert_eq!(field(&answer, "Content-Range"), Some("bytes 0-5/15"));
    assert_eq!(field(&answer, "Content-Encoding"), Some("gzip"));
}

#[test]
fn several_ranges_are_parts_of_one_answer() {
    let (status, answer, body) = get("/plain.txt", &["Range: bytes=0-1, 4-5,-1"]);
    assert_eq!(status, Ok(206));
    let boundary =
        field(&answer, "Content-Type").unwrap().strip_prefix("multipart/byteranges; boundary=").unwrap();
    assert_eq!(answer.fields.iter().filter(|(name, _)| *name == b"Content-Type").count(), 1);
    assert_eq!(field(&answer, "Content-Range"), None);
    let part = |range: &str, bytes: &str| {
        format!(
            "--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes {range}/10\r\n\r\n{bytes}\r\n"
        )
    };
    assert_eq!(
        body,
        format!("{}{}{}--{boundary}--\r\n", part("0-1", "01"), part("4-5", "45"), part("9-9", "9"))
    );
}

#[test]
fn if_range_guards_a_range() {
    let tag = etag("/plain.txt", &[]);
    for (if_range, status) in [
        (tag.clone(), 206),
        (format!("W/{tag}"), 200),
        ("\"x\"".to_owned(), 200),
        ("Sun, 06 Nov 1994 08:49:37 GMT".to_owned(), 206),
        ("Sun, 06 Nov 1994 08:49:38 GMT".to_owned(), 200),
        ("Sun, 06 Nov 1994 08:49:36 GMT".to_owned(), 200),
        ("x".to_owned(), 200),
    ] {
        let (answered, ..) = get("/plain.txt", &["Range: bytes=0-1", &format!("If-Range: {if_range}")]);
        assert_eq!(answered, Ok(status), "{if_range}");
    }
    // A range that cannot be satisfied counts only where If-Range holds.
    assert_eq!(get("/plain.txt", &["Range: bytes=99-", "If-Range: \"x\""]).0, Ok(200));
    // A date does not tell the forms of a file apart.
    let lines = ["Range: bytes=0-1", "If-Range: Sun, 06 Nov 1994 08:49:37 GMT"];
    assert_eq!(get("/app.js", &lines).0, Ok(200));
}

#[test]
fn only_get_has_ranges() {
    let settings = file_server_settings();
    let (status, answer, _) = ask("HEAD", "/plain.txt", &["Range: bytes=0-1"], &settings, "");
    assert_eq!((status, field(&answer, "Content-Range")), (Ok(200), None));
}

#[test]
fn a_configured_status_leaves_no_room_for_others() {
    let tag = etag("/plain.txt", &[]);
    let none_match = format!("If-None-Match: {tag}");
    let settings = |status| FileServer { status: Some(status), ..file_server_settings() };
    let ask = |status, lines: &[&str]| ask("GET", "/plain.txt", lines, &settings(status), "").0;
    assert_eq!(ask(404, &[]), Ok(404));
    assert_eq!(ask(404, &[&none_match]), Ok(404));
    assert_eq!(ask(404, &["If-Match: \"x\""]), Ok(404));
    assert_eq!(ask(404, &["Range: bytes=0-1"]), Ok(404));
    assert_eq!(ask(200, &["Range: bytes=0-1"]), Ok(200));
    assert_eq!(ask(203, &[&none_match]), Ok(304));
}

#[test]
fn what_a_header_step_has_set_stands() {
    let settings = file_server_settings();
    let set = "Content-Type: text/x-own\r\nX-Own: 1\r\nLast-Modified: now\r\n";
    let (_, answer, _) = ask("GET", "/plain.txt", &[], &settings, set);
    assert_eq!(
        lines(&answer),
        "Content-Type: text/x-own\r\nX-Own: 1\r\nETag: \"AAAAAAAAAACgAAAAAAAAAJ\"\r\n\
         Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nAccept-Ranges: bytes\r\n"
    );
    let set = "ETag: \"own\"\r\nContent-Type: text/x-own\r\nX-Own: 1\r\n";
    let (status, answer, _) = ask("GET", "/plain.txt", &["If-None-Match: \"own\""], &settings, set);
    assert_eq!((status, lines(&answer)), (Ok(304), "ETag: \"own\"\r\nX-Own: 1\r\n"));
}

#[test]
fn a_file_that_is_not_in_memory_is_left_to_the_disk() {
    let store = Builder::new()
        .file("big.css", "x")
        .with(|file| {
            file.identity = None;
            file.length = 1 << 40;
        })
        .build();
    let head = head("GET", "/big.css", &["Accept-Encoding: gzip"]);
    let mut answer = Response::default();
    let settings =
        FileServer { precompressed: vec![Encoding::Brotli, Encoding::Gzip], ..file_server_settings() };
    let served = file_server(&settings, &request(&head, &store, &[]), &mut answer);
    let Ok(Served::OnDisk(on_disk)) = served else { panic!("{served:?}") };
    assert_eq!(
        (on_disk.path.as_slice(), on_disk.content_type.as_str()),
        (b"big.css".as_slice(), "text/css; charset=utf-8")
    );
    assert_eq!(on_disk.sidecars, [Encoding::Gzip]);
    assert!(on_disk.varies);
}
