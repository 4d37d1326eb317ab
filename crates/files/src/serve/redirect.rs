//! Redirects to a folder with, or a file without, the slash at its end.
//!
//! The base is the path that the browser sent, since that is what it resolves relative links against;
//! and nothing is redirected whose last segment was rewritten, or a redirect could lead back to itself.

use onehop_message::html;
use onehop_message::response::{Body, Response};
use onehop_message::uri::percent_decode;

use crate::path::percent_encode;

/// Whether the path was rewritten in its last segment.
pub(super) fn same_last_segment(original: &[u8], current: &[u8]) -> bool {
    let (original, current) = (last_segment(original), last_segment(current));
    original == current || percent_decode(original) == percent_decode(current)
}

/// Answers 308 to a path, keeping the query.
pub(super) fn permanent(path: &[u8], query: Option<&[u8]>, answer: &mut Response) {
    // `//host` and `/\host` name another host for a browser.
    let outer = path.iter().position(|b| !matches!(b, b'/' | b'\\')).unwrap_or(path.len());
    let mut location = b"/".to_vec();
    push_plain(&path[outer..], &mut location);
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        location.push(b'?');
        push_plain(query, &mut location);
    }
    answer.status = 308;
    answer.fields.set("Location", &location);
    // For clients that do not follow by themselves (RFC 9110 section 15.4.9).
    answer.fields.set("Content-Type", b"text/html; charset=utf-8");
    let target = html::escape(&String::from_utf8_lossy(&location));
    answer.body = Body::Bytes(format!("<a href=\"{target}\">Permanent Redirect</a>.\n\n").into_bytes());
}

/// The path with a slash at its end.
pub(super) fn with_slash(path: &[u8]) -> Vec<u8> {
    [path, b"/"].concat()
}

/// Adds what is percent-encoded already, and encodes what may not stand in a field value or is taken
/// for something else.
fn push_plain(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            0x21..=0x7e if !matches!(byte, b'\\' | b'"' | b'<' | b'>') => out.push(*byte),
            other => percent_encode(&[*other], out),
        }
    }
}

fn last_segment(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|b| *b != b'/').map_or(0, |at| at + 1);
    if end == 0 && !path.is_empty() {
        return b"/";
    }
    path[..end].rsplit(|b| *b == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(path: &str, query: Option<&str>) -> String {
        let mut answer = Response::default();
        permanent(path.as_bytes(), query.map(str::as_bytes), &mut answer);
        assert_eq!(answer.status, 308);
        String::from_utf8(answer.fields.get("Location").unwrap().to_vec()).unwrap()
    }

    #[test]
    fn a_redirect_stays_on_its_host() {
        assert_eq!(location("/docs/", None), "/docs/");
        assert_eq!(location("/docs/", Some("a=b&c")), "/docs/?a=b&c");
        assert_eq!(location("/docs/", Some("")), "/docs/");
        assert_eq!(location("//evil.example/", None), "/evil.example/");
        assert_eq!(location("/\\evil.example/", None), "/evil.example/");
        assert_eq!(location("/\\/\\evil.example/", None), "/evil.example/");
        assert_eq!(location("/a%20b/", None), "/a%20b/");
        assert_eq!(location("/é\\\r\n/", Some("\"")), "/%C3%A9%5C%0D%0A/?%22");
        assert_eq!(location("/", None), "/");
    }

    #[test]
    fn a_redirect_says_where_to_in_a_page_too() {
        let mut answer = Response::default();
        permanent(b"/a'b/", Some(b"c&d"), &mut answer);
        let Body::Bytes(body) = answer.body else { panic!("a page") };
        assert_eq!(body, b"<a href=\"/a&#39;b/?c&amp;d\">Permanent Redirect</a>.\n\n");
    }

    #[test]
    fn a_rewritten_path_is_distinguished_from_its_own() {
        for (original, current, same) in [
            ("/docs", "/docs", true),
            ("/docs/", "/docs", true),
            ("/a/docs", "/docs", true),
            ("/docs", "/other", false),
            ("/docs", "/docs/index.html", false),
            ("/", "/", true),
            ("/docs", "/", false),
            ("/docs", "", false),
            ("/d%6fcs", "/docs", true),
        ] {
            assert_eq!(
                same_last_segment(original.as_bytes(), current.as_bytes()),
                same,
                "{original} {current}"
            );
        }
    }
}
