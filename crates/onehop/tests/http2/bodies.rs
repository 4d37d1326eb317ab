//! Bodies in both directions and the windows that they have to fit into.

use onehop_testkit::Folder;
use onehop_testkit::http2::{Frame, Http2, code, flag, kind, setting};
use onehop_testkit::upstream::Upstream;

use crate::subject::{MIB, Subject, clear, content, encrypted};

fn with_file(globals: &str, bytes: usize) -> (Subject, Vec<u8>) {
    let content = content(bytes);
    let folder = Folder::new();
    folder.write("files/large.bin", &content);
    folder.write("files/small.txt", "small");
    (Subject::start_in(folder, globals, &clear("\troot files\n\tfile_server")), content)
}

/// Tells the length and the sum of what it is sent.
fn summing() -> Upstream {
    Upstream::answering(|request| {
        let text = sum(&request.body);
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
    })
}

fn sum(body: &[u8]) -> String {
    format!("{} {}", body.len(), body.iter().map(|byte| u64::from(*byte)).sum::<u64>())
}

#[test]
fn a_large_download_from_memory_arrives_whole() {
    let (subject, content) = with_file("", 20 * MIB);
    assert!(subject.connect().get("/large.bin").body == content);
    let mut client = subject.connect_with(&[(setting::INITIAL_WINDOW_SIZE, 4 << 20)]);
    client.let_more_come(0, 8 << 20);
    assert!(client.get("/large.bin").body == content);
}

#[test]
fn a_large_download_from_disk_arrives_whole() {
    let (subject, content) = with_file("\tmemory 64MiB files 1MiB", 20 * MIB);
    let stored = subject.onehop.process.wait_for_event("stored");
    assert_eq!(stored["on_disk"].as_u64(), Some(1), "{stored}");
    assert!(subject.connect().get("/large.bin").body == content);
}

#[test]
fn a_download_fits_small_windows() {
    let (subject, content) = with_file("", MIB / 4);
    for octets in [1, 1000, 16_385] {
        let mut client = subject.connect_with(&[(setting::INITIAL_WINDOW_SIZE, octets)]);
        let end = if octets == 1 { 200 } else { content.len() };
        let range = format!("bytes=0-{}", end - 1);
        let answer = client.ask("GET", "/large.bin", &[("range", &range)]);
        assert!(answer.body == content[..end], "{} bytes in windows of {octets}", answer.body.len());
    }
}

#[test]
fn a_head_needs_no_window() {
    let (subject, _) = with_file("", 8);
    let mut client = subject.connect_with(&[(setting::INITIAL_WINDOW_SIZE, 0)]);
    client.takes_all = false;
    assert!(client.ask("HEAD", "/small.txt", &[]).is_whole);
    let stream = client.request("GET", "/small.txt", &[], true);
    let head = client.wait_on(stream, "a head", |answer| answer.status != 0);
    assert_eq!((head.status, head.body.len(), head.is_over()), (200, 0, false));
    client.let_more_come(stream, 2);
    client.wait_on(stream, "a part", |answer| answer.body == b"sm");
    // The setting changes windows of streams that are there, too, to less than nothing (RFC 9113 section 6.9.2).
    client.change_windows(10);
    assert_eq!(client.answer(stream).text(), "small");
    let stream = client.request("GET", "/small.txt", &[], true);
    assert_eq!(client.answer(stream).text(), "small");
    client.change_windows(0);
    let stream = client.request("GET", "/small.txt", &[], true);
    client.wait_on(stream, "a head", |answer| answer.status != 0);
    client.let_more_come(stream, 5);
    assert_eq!(client.answer(stream).text(), "small");
}

#[test]
fn a_stream_that_is_not_read_holds_up_no_other() {
    let (subject, content) = with_file("", 2 * MIB);
    let mut client = subject.connect_with(&[(setting::INITIAL_WINDOW_SIZE, 10_000)]);
    client.takes_all = false;
    let slow = client.request("GET", "/large.bin", &[], true);
    client.wait_on(slow, "a full window", |answer| answer.body.len() == 10_000);
    for _ in 0..20 {
        assert_eq!(client.get("/small.txt").text(), "small");
    }
    assert_eq!(client.seen(slow).body.len(), 10_000);
    client.takes_all = true;
    client.let_more_come(0, 10_000);
    client.let_more_come(slow, 10_000);
    assert!(client.answer(slow).body == content);
}

#[test]
fn streams_share_a_connection_fairly() {
    let (subject, content) = with_file("", 4 * MIB);
    let mut client = subject.connect();
    let streams: Vec<u32> = (0..8).map(|_| client.request("GET", "/large.bin", &[], true)).collect();
    client.answer(streams[0]);
    let least = streams.iter().map(|stream| client.seen(*stream).body.len()).min().expect("streams");
    assert!(least >= content.len() / 8, "one has {least} of {} bytes when another is done", content.len());
    for stream in streams {
        assert!(client.answer(stream).body == content, "stream {stream}");
    }
}

#[test]
fn an_upload_beyond_the_windows_arrives_whole() {
    let upstream = summing();
    let directives = format!("\treverse_proxy {}", upstream.address());
    let body = content(5 * MIB);
    let upload = |client: &mut Http2| {
        let stream = client.request("POST", "/", &[], false);
        client.upload(stream, &body, true);
        assert_eq!(client.answer(stream).text(), sum(&body));
        let length = body.len().to_string();
        let stream = client.request("POST", "/", &[("content-length", &length)], false);
        client.upload(stream, &body[..MIB], false);
        client.upload(stream, &body[MIB..], true);
        assert_eq!(client.answer(stream).text(), sum(&body));
    };
    upload(&mut Subject::start(&directives).connect());
    let subject = Subject::start_in(Folder::new(), "", &encrypted(&directives));
    upload(&mut subject.connect_tls("localhost"));
}

#[test]
fn an_upload_that_pauses_holds_up_no_other() {
    let upstream = summing();
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    let slow = client.request("POST", "/", &[], false);
    client.upload(slow, b"a beginning", false);
    for _ in 0..5 {
        let stream = client.request("POST", "/", &[], false);
        client.upload(stream, &content(200_000), true);
        assert_eq!(client.answer(stream).text(), sum(&content(200_000)));
    }
    client.upload(slow, b" and an end", true);
    assert_eq!(client.answer(slow).text(), sum(b"a beginning and an end"));
}

#[test]
fn a_padded_body_arrives_without_its_padding() {
    let upstream = summing();
    let subject = Subject::start(&format!("\treverse_proxy {}", upstream.address()));
    let mut client = subject.connect();
    let stream = client.request("POST", "/", &[("content-length", "5")], false);
    client.send(&Frame::new(kind::DATA, flag::PADDED, stream, *b"\x03abc\0\0\0"));
    client.send(&Frame::new(kind::DATA, flag::PADDED | flag::END_STREAM, stream, *b"\x00de"));
    assert_eq!(client.answer(stream).text(), sum(b"abcde"));
}

#[test]
fn a_body_that_nobody_reads_does_not_use_up_the_connections_window() {
    let subject = Subject::start("\trespond enough 413");
    let mut client = subject.connect();
    for _ in 0..30 {
        let stream = client.request("POST", "/", &[], false);
        client.upload(stream, &content(50_000), true);
        let answer = client.answer(stream);
        assert_eq!((answer.status, answer.text()), (413, "enough"));
    }
}

#[test]
fn a_short_upload_that_is_answered_before_its_end_may_go_on_to_it() {
    let subject = Subject::start("\trespond enough 413");
    let mut client = subject.connect();
    let stream = client.request("POST", "/", &[("content-length", "200000")], false);
    let answer = client.wait_on(stream, "a response", |answer| answer.is_whole);
    assert_eq!((answer.status, answer.text()), (413, "enough"));
    assert!(client.upload(stream, &content(200_000), true), "it fits into the window of a stream");
    // What is said of the stream comes before the next response.
    client.get("/");
    assert_eq!(client.seen(stream).reset, None);
}

#[test]
fn a_long_upload_that_is_answered_before_its_end_is_asked_to_stop() {
    let subject = Subject::start("\trespond enough 413");
    let mut client = subject.connect();
    for fields in [&[][..], &[("content-length", "300000")]] {
        let stream = client.request("POST", "/", fields, false);
        let answer = client.wait_on(stream, "a reset", |answer| answer.reset.is_some());
        assert_eq!((answer.text(), answer.is_whole), ("enough", true));
        assert_eq!(answer.reset, Some(code::NO_ERROR), "RFC 9113 section 8.1");
    }
}
