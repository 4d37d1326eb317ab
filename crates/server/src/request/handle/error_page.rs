//! The small pages of errors, above all of those that go away by waiting: 429, 502, 503 and 504.
//!
//! For sites whose file has no page of its own, or asks for these with a `handle_errors` without routes. HTML for those
//! who name it in `Accept`, a problem (RFC 9457) for those who name JSON; whoever names neither gets no body, as from
//! Caddy. Says what the status says and nothing of what happened inside.

use std::cmp::Ordering;

use onehop_files::accept_encoding::split_quality;
use onehop_http1::{Known, RequestHead};
use onehop_message::response::{Body, Response};

/// What a client wants to be told in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Html,
    Json,
    Problem,
}

/// Which statuses have pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageScope {
    /// Those that go away by waiting.
    OfWaiting,
    /// All errors: the file asks for it.
    All,
}

/// Gives a response its page, where its status has one and the client takes it.
pub(crate) fn fill(head: &RequestHead, pages: PageScope, response: &mut Response) {
    let sentence = match (sentence(response.status), pages) {
        (Some(sentence), _) => sentence,
        (None, PageScope::All) => "This request could not be answered.",
        (None, PageScope::OfWaiting) => return,
    };
    let Some(language) = language(head) else { return };
    let title = onehop_http1::reason(response.status).unwrap_or_default();
    let status = response.status;
    let media_type: &[u8] = match language {
        Language::Html => b"text/html; charset=utf-8",
        Language::Json => b"application/json",
        Language::Problem => b"application/problem+json",
    };
    response.fields.set("Content-Type", media_type);
    // It is good for this moment and this client.
    response.fields.set("Cache-Control", b"no-store");
    let page = match language {
        Language::Html => format!(
            "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n\
             <meta name=viewport content=\"width=device-width\">\n<title>{title}</title>\n\
             <style>:root{{color-scheme:light dark}}body{{font:16px/1.5 system-ui,sans-serif;\
             max-width:36rem;margin:15vh auto;padding:0 1rem}}</style>\n\
             <h1>{title}</h1>\n<p>{sentence}\n<p><small>{status}</small>\n"
        ),
        Language::Json | Language::Problem => {
            format!("{{\"status\":{status},\"title\":\"{title}\",\"detail\":\"{sentence}\"}}\n")
        }
    };
    response.body = Body::Bytes(page.into_bytes());
}

/// For people; also a JSON string and HTML as it is.
fn sentence(status: u16) -> Option<&'static str> {
    Some(match status {
        429 => "These were too many requests in too short a time. Wait a moment, then try again.",
        502 => "The part of this site that should have answered has failed. Try again in a moment.",
        503 => "This site cannot answer just now. Try again in a moment.",
        504 => "The part of this site that should have answered took too long. Try again in a moment.",
        _ => return None,
    })
}

/// RFC 9110 section 12.5.1, of names alone: `*/*` is what command lines and scripts send that want a status.
/// JSON is taken where it is liked at least as much as HTML.
fn language(head: &RequestHead) -> Option<Language> {
    let (mut html, mut json, mut problem) = (0, 0, 0);
    for element in head.get_all(Known::Accept).flat_map(|value| value.split(|byte| *byte == b',')) {
        let (name, quality) = split_quality(element);
        let quality = quality.unwrap_or(0);
        let liked = match name {
            name if name.eq_ignore_ascii_case(b"text/html") => &mut html,
            name if name.eq_ignore_ascii_case(b"application/json") => &mut json,
            name if name.eq_ignore_ascii_case(b"application/problem+json") => &mut problem,
            _ => continue,
        };
        *liked = quality.max(*liked);
    }
    match (json.max(problem), html) {
        (0, 0) => None,
        (structured, html) if structured.cmp(&html) == Ordering::Less => Some(Language::Html),
        _ if problem >= json => Some(Language::Problem),
        _ => Some(Language::Json),
    }
}

#[cfg(test)]
mod tests {
    use onehop_http1::{Limits, ServerCodec};

    use super::*;

    fn answer_to(status: u16, pages: PageScope, accept: Option<&str>) -> Response {
        let field = accept.map(|accept| format!("Accept: {accept}\r\n")).unwrap_or_default();
        let mut head = RequestHead::new();
        let bytes = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{field}\r\n");
        let read = ServerCodec::new(Limits::default()).read_head(bytes.as_bytes(), &mut head);
        assert_eq!(read, Ok(Some(bytes.len())));
        let mut response = Response { status, ..Response::default() };
        fill(&head, pages, &mut response);
        response
    }

    fn content_type(accept: Option<&str>) -> Option<String> {
        let response = answer_to(503, PageScope::OfWaiting, accept);
        response.fields.get("Content-Type").map(|value| String::from_utf8_lossy(value).into_owned())
    }

    #[test]
    fn a_page_is_in_what_the_client_names() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        let cases = [
            (None, None),
            (Some("*/*"), None),
            (Some("image/png"), None),
            (Some("text/html;q=0"), None),
            (Some(browser), Some("text/html; charset=utf-8")),
            (Some("application/json, text/plain, */*"), Some("application/json")),
            (Some("Application/JSON"), Some("application/json")),
            (Some("application/problem+json, application/json"), Some("application/problem+json")),
            (Some("application/problem+json;q=0.5, application/json"), Some("application/json")),
            (Some("text/html, application/json;q=0.9"), Some("text/html; charset=utf-8")),
            (Some("text/html, application/json"), Some("application/json")),
        ];
        for (accept, expected) in cases {
            assert_eq!(content_type(accept).as_deref(), expected, "{accept:?}");
        }
    }

    fn check_pages(status: u16, pages: PageScope) {
        let body = |accept| match answer_to(status, pages, Some(accept)).body {
            Body::Bytes(page) => String::from_utf8(page).unwrap(),
            other => panic!("{status}: {other:?}"),
        };
        let page = body("text/html");
        assert!(page.contains(&format!("<small>{status}</small>")), "{page}");
        let problem: serde_json::Value = serde_json::from_str(&body("application/json")).unwrap();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["title"], onehop_http1::reason(status).unwrap());
    }

    #[test]
    fn only_statuses_that_ask_to_wait_have_a_page() {
        for status in [400, 404, 405, 421, 500] {
            let response = answer_to(status, PageScope::OfWaiting, Some("text/html"));
            assert!(matches!(response.body, Body::Empty), "{status}");
            check_pages(status, PageScope::All);
        }
        for status in [429, 502, 503, 504] {
            check_pages(status, PageScope::OfWaiting);
        }
    }
}
