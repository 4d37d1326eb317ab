//! Two tiny servers that answer from tables.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::stacks::tests::stack_at;

/// What a server answers to a request's head.
type Responses = dyn Fn(&str) -> Vec<u8> + Send + Sync;

pub(crate) fn serve(responses: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let responses: Arc<Responses> = Arc::new(responses);
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let responses = Arc::clone(&responses);
            std::thread::spawn(move || talk(stream, &*responses));
        }
    });
    address
}

fn talk(mut stream: TcpStream, responses: &Responses) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
        if head.ends_with(b"\r\n\r\n") {
            let response = responses(&String::from_utf8(std::mem::take(&mut head)).unwrap());
            let _ = stream.write_all(&response);
        }
    }
}

pub(crate) fn response(head: &str, status: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut text = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n").into_bytes();
    if !head.starts_with("HEAD ") {
        text.extend_from_slice(body);
    }
    text
}

/// A server of a page, a script and nothing else.
fn site(fields: &'static str) -> impl Fn(&str) -> Vec<u8> {
    move |head: &str| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        let etag = if fields.contains("nginx") { "ETag: \"1-2\"\r\n" } else { "ETag: W/\"abc\"\r\n" };
        let fields = format!("{fields}{etag}");
        if head.contains("If-None-Match: ") {
            return format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n").into_bytes();
        }
        match path.split('?').next().unwrap_or_default() {
            "/" => response(head, "200 OK", &format!("{fields}Content-Type: text/html\r\n"), b"<p>page"),
            "/a.js" => {
                response(head, "200 OK", &format!("{fields}Content-Type: text/javascript\r\n"), b"let a")
            }
            _ => response(head, "404 Not Found", "", b"no"),
        }
    }
}

fn request_both(left: SocketAddr, right: SocketAddr, paths: &[&str]) -> Sameness {
    let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    compare(&stack_at("today", left), &stack_at("onehop", right), &paths)
}

fn differences(sameness: &Sameness) -> Vec<String> {
    let lines = sameness.compared.iter().flat_map(|compared| {
        compared.differences.iter().map(move |words| format!("{}: {words}", compared.request))
    });
    lines.collect()
}

#[test]
fn servers_that_answer_the_same_have_no_difference_whatever_they_call_themselves() {
    let left = serve(site("Server: nginx\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n"));
    let right = serve(site("Server: onehop\r\nVary: Accept-Encoding\r\nKeep-Alive: timeout=5\r\n"));
    let sameness = request_both(left, right, &["/", "/a.js", "/gone"]);
    assert_eq!(differences(&sameness), Vec::<String>::new());
    assert!((10..=QUESTIONS_MAX).contains(&sameness.compared.len()), "{}", sameness.compared.len());
    assert_eq!(sameness.changing, Vec::<String>::new());
    let seen: Vec<(&str, bool, usize)> =
        sameness.paths.iter().map(|seen| (seen.path.as_str(), seen.is_served, seen.bytes)).collect();
    assert_eq!(seen, [("/", true, 7), ("/a.js", true, 5), ("/gone", false, 2)]);
    let requests: Vec<&str> = sameness.compared.iter().map(|compared| compared.request.as_str()).collect();
    for request in
        ["HEAD /", "GET / (Accept-Encoding: gzip)", "GET /a.js (If-None-Match)", "GET /?onehop=try"]
    {
        assert!(requests.contains(&request), "{requests:?}");
    }
}

#[test]
fn a_difference_is_reported_with_both_sides() {
    let left = serve(|head| {
        response(head, "200 OK", "Content-Type: text/plain\r\nX-Powered-By: Express\r\n", b"one two")
    });
    let right = serve(|head| {
        let status = if head.contains("/moved") { "404 Not Found" } else { "200 OK" };
        response(head, status, "Content-Type: text/html; charset=utf-8\r\nSet-Cookie: a=1\r\n", b"one too")
    });
    let sameness = request_both(left, right, &["/moved"]);
    let plain = &sameness.compared[0];
    assert_eq!(
        plain.differences,
        [
            "status: 200 with today, 404 with onehop",
            "body: 7 bytes with today, 7 with onehop, alike up to byte 5: `one two` and `one too`",
            "content-type: `text/plain` with today, `text/html` with onehop",
            "set-cookie: not there with today, `a` with onehop",
            "x-powered-by: `Express` with today, not there with onehop",
        ]
    );
    assert_eq!(sameness.paths[0].differs.as_deref(), Some("status: 200 with today, 404 with onehop"));
    assert!(!sameness.paths[0].is_served);
}

#[test]
fn utf_8_written_out_is_no_difference_of_text() {
    for (left, right, is_same) in [
        ("text/html", "text/html;charset=utf-8", true),
        ("text/html; charset=UTF-8", "text/html", true),
        ("application/json; charset=utf-8", "application/json", true),
        ("text/html", "text/html;charset=latin1", false),
        ("image/png", "image/png;charset=utf-8", false),
    ] {
        let site = |kind: &'static str| {
            serve(move |head: &str| response(head, "200 OK", &format!("Content-Type: {kind}\r\n"), b"one"))
        };
        let sameness = request_both(site(left), site(right), &["/"]);
        assert_eq!(differences(&sameness).is_empty(), is_same, "{left} and {right}");
    }
}

#[test]
fn what_changes_by_itself_is_reported_and_is_no_difference() {
    let counting = || {
        let count = AtomicU64::new(0);
        move |head: &str| {
            let body = format!("visit {}", count.fetch_add(1, Ordering::Relaxed));
            response(head, "200 OK", "", body.as_bytes())
        }
    };
    let (left, right) = (serve(counting()), serve(counting()));
    let sameness = request_both(left, right, &["/"]);
    assert_eq!(differences(&sameness), Vec::<String>::new());
    assert_eq!(sameness.changing[0], "GET /: the body changes from one answer to the next by itself");

    // One that stands still beside one that does not is a difference: it may be a copy.
    let still = serve(|head| response(head, "200 OK", "", b"visit 0"));
    let sameness = request_both(serve(counting()), still, &["/"]);
    assert_eq!(
        sameness.compared[0].differences,
        ["the body changes from one answer to the next with today, not with onehop"]
    );
    assert!(sameness.paths[0].differs.is_some());
}

#[test]
fn a_compressed_answer_is_compared_by_what_it_says() {
    let zipped = |text: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    };
    let coded = move |body: &'static [u8]| {
        move |head: &str| match head.contains("Accept-Encoding: gzip") {
            true => {
                response(head, "200 OK", "Content-Encoding: gzip\r\nVary: accept-encoding\r\n", &zipped(body))
            }
            false => response(head, "200 OK", "", b"text"),
        }
    };
    let plain = || serve(|head| response(head, "200 OK", "", b"text"));
    assert_eq!(differences(&request_both(plain(), serve(coded(b"text")), &["/"])), Vec::<String>::new());
    let found = differences(&request_both(plain(), serve(coded(b"test")), &["/"]));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("GET / (Accept-Encoding: gzip): body: 4 bytes"), "{found:?}");
    let broken = serve(|head| response(head, "200 OK", "Content-Encoding: gzip\r\n", b"text"));
    let found = differences(&request_both(plain(), broken, &["/"]));
    assert!(found[0].contains("onehop: it does not decode"), "{found:?}");
}

#[test]
fn a_redirect_to_its_own_port_is_the_same_and_to_another_place_is_not() {
    let to_itself = || {
        serve(|head| {
            let host = head.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
            response(head, "301 Moved", &format!("Location: http://{host}/a/\r\n"), b"")
        })
    };
    let (left, right) = (to_itself(), to_itself());
    assert_eq!(differences(&request_both(left, right, &["/a"])), Vec::<String>::new());
    let with_port = |port: u16| {
        move |head: &str| {
            response(head, "301 Moved", &format!("Location: http://localhost:{port}/a/\r\n"), b"")
        }
    };
    let elsewhere = request_both(to_itself(), serve(with_port(1)), &["/a"]);
    assert!(differences(&elsewhere)[0].contains("location: `http://HOST/a/` with today, `http://HOST:1/a/`"));
}

#[test]
fn a_side_that_does_not_answer_is_a_difference_of_weight() {
    let mute = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let answering = serve(|head| response(head, "200 OK", "", b"text"));
    let sameness = request_both(answering, mute, &["/"]);
    let words = sameness.paths[0].differs.as_deref().unwrap();
    assert!(words.starts_with("an answer (200) with today, no answer (no connection"), "{words}");
}

#[test]
fn an_error_page_of_nginx_itself_is_compared_by_its_status_alone() {
    let nginx = || {
        let page =
            b"<html><body><center><h1>404 Not Found</h1></center>\r\n<hr><center>nginx/1.22.1</center>";
        serve(|head| response(head, "404 Not Found", "Content-Type: text/html\r\n", page))
    };
    let empty = |status: &'static str| serve(move |head| response(head, status, "", b""));
    assert_eq!(differences(&request_both(nginx(), empty("404 Not Found"), &["/"])), Vec::<String>::new());
    let found = differences(&request_both(nginx(), empty("403 Forbidden"), &["/"]));
    assert_eq!(found[0], "GET /: status: 404 with today, 403 with onehop");
}

#[test]
fn attributes_of_a_cookie_are_compared_and_its_value_is_not() {
    let cookie = |cookie: &'static str| serve(move |head| response(head, "200 OK", cookie, b"text"));
    let one = || cookie("Set-Cookie: id=1; Path=/; HttpOnly; Expires=Mon, 01 Jan 2024 00:00:00 GMT\r\n");
    let two = cookie("Set-Cookie: id=2; path=/; expires=Tue, 02 Jan 2024 00:00:00 GMT; httponly\r\n");
    assert_eq!(differences(&request_both(one(), two, &["/"])), Vec::<String>::new());
    let secure = cookie("Set-Cookie: id=1; Path=/; HttpOnly; Secure; Expires=x\r\n");
    let found = differences(&request_both(one(), secure, &["/"]));
    let words = "GET /: set-cookie: `id; expires; httponly; path=/` with today, `id; expires; httponly; path=/; secure` with onehop";
    assert_eq!(found[0], words);
}

#[test]
fn what_is_not_there_is_asked_for_below_each_folder() {
    let missing = |status: &'static str| {
        serve(move |head| match head.contains("/app/onehop-try") {
            true => response(head, status, "", b""),
            false => response(head, "200 OK", "", b"text"),
        })
    };
    let found = differences(&request_both(missing("200 OK"), missing("404 Not Found"), &["/", "/app/"]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("GET /app/onehop-try-asks"), "{found:?}");
}
