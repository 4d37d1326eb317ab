//! Hints without a server: requests are made of heads, responses of fields.

use std::time::Instant;

use onehop_config::checked;
use onehop_http1::ServerCodec;
use onehop_message::origin::Origin;

use super::*;
use crate::limits::CODEC_LIMITS;

fn head(target: &str, fields: &str) -> RequestHead {
    let text = format!("GET {target} HTTP/1.1\r\nHost: example.com\r\n{fields}\r\n");
    let mut head = RequestHead::new();
    ServerCodec::new(CODEC_LIMITS).read_head(text.as_bytes(), &mut head).unwrap().unwrap();
    head
}

fn context<'a>(head: &'a RequestHead, hints: &'a EarlyHints) -> RequestContext<'a> {
    let mut context = RequestContext::new(head, Origin::plain(None, 0), Instant::now(), &[], &[]);
    context.early_hints.push(hints);
    context.at.handler = Handler::Proxy;
    context
}

fn response(status: u16, fields: &[(&str, &str)]) -> Response {
    let mut response = Response { status, ..Response::default() };
    fields.iter().for_each(|(name, value)| response.fields.add(name, value.as_bytes()));
    response
}

fn hints(links: &[&str], learn: bool) -> EarlyHints {
    let links = links.iter().map(|link| (*link).to_owned()).collect();
    EarlyHints::new(&checked::EarlyHints { links, learn })
}

/// What a request for `/` is hinted.
fn hinted(hints: &EarlyHints) -> Vec<String> {
    let head = head("/", "");
    let fields = fields(&context(&head, hints)).unwrap_or_default();
    fields.iter().map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
}

/// What requests for `/` get after this exchange.
fn hinted_after(target: &str, request: &str, status: u16, fields: &[(&str, &str)]) -> Vec<String> {
    let hints = hints(&[], true);
    learn(&context(&head(target, request), &hints), &response(status, fields));
    hinted(&hints)
}

const LINK: (&str, &str) = ("Link", "</app.css>; rel=preload; as=style");

#[test]
fn what_is_written_is_sent_each_time() {
    assert_eq!(hinted(&hints(&["</a.css>; rel=preload; as=style", "</b>; rel=preload"], false)).len(), 2);
    assert_eq!(hinted(&hints(&[], true)), [""; 0]);
}

#[test]
fn only_links_that_browsers_load_early_are_learned_and_only_how() {
    for (value, expected) in [
        (LINK.1, &[LINK.1][..]),
        ("</a.css>;rel=preload;as=\"style\";nonce=abc;title=x", &["</a.css>; rel=preload; as=\"style\""]),
        (
            "<https://cdn.example>; crossorigin; rel=\"preconnect\"",
            &["<https://cdn.example>; crossorigin; rel=\"preconnect\""],
        ),
        (
            "</m.mjs>; rel=modulepreload, </next>; rel=next, </p>; rel=prefetch",
            &["</m.mjs>; rel=modulepreload"],
        ),
        ("</a", &[]),
    ] {
        assert_eq!(hinted_after("/", "", 200, &[("link", value)]), expected, "{value}");
    }
}

#[test]
fn what_may_be_about_one_client_teaches_nothing() {
    let public = ("Cache-Control", "max-age=60, Public");
    for (request, fields, is_learned) in [
        ("", &[LINK][..], true),
        ("", &[LINK, ("Cache-Control", "no-cache")], true),
        ("", &[LINK, ("Cache-Control", "max-age=0, PRIVATE")], false),
        ("", &[LINK, ("Cache-Control", "public"), ("Cache-Control", "private=\"x\"")], false),
        ("", &[LINK, ("Cache-Control", "no-store")], false),
        ("", &[LINK, ("Set-Cookie", "session=1")], false),
        ("", &[LINK, ("Set-Cookie", "session=1"), public], true),
        ("Cookie: session=1\r\n", &[LINK], false),
        ("Cookie: session=1\r\n", &[LINK, public], true),
        ("Authorization: Basic eA==\r\n", &[LINK, public], false),
    ] {
        let hinted = hinted_after("/", request, 200, fields);
        assert_eq!(!hinted.is_empty(), is_learned, "{request}{fields:?}");
    }
}

#[test]
fn our_own_cookie_for_the_worker_says_nothing_about_a_client() {
    let (hints, head) = (hints(&[], true), head("/", ""));
    let mut context = context(&head, &hints);
    context.own_cookie = Some(b"worker=1".to_vec());
    learn(&context, &response(200, &[LINK, ("Set-Cookie", "worker=1")]));
    assert_eq!(hinted(&hints), [LINK.1]);
}

#[test]
fn only_pages_that_are_there_teach_and_only_those_without_a_query() {
    assert_eq!(hinted_after("/?token=secret", "", 200, &[LINK]), [""; 0]);
    for status in [203, 301, 304, 404, 500] {
        assert_eq!(hinted_after("/", "", status, &[LINK]), [""; 0], "{status}");
    }
    assert_eq!(hinted_after("/other", "", 200, &[LINK]), [""; 0]);
}

#[test]
fn a_request_with_a_query_gets_the_hints_of_its_path() {
    let hints = hints(&[], true);
    learn(&context(&head("/", ""), &hints), &response(200, &[LINK]));
    let head = head("/?page=2", "");
    assert!(fields(&context(&head, &hints)).is_some());
}

#[test]
fn a_url_that_is_written_is_not_learned_beside_it() {
    let hints = hints(&["</app.css>; rel=preload; as=style; fetchpriority=high"], true);
    learn(&context(&head("/", ""), &hints), &response(200, &[LINK, ("Link", "</b>; rel=preload")]));
    assert_eq!(
        hinted(&hints),
        ["</app.css>; rel=preload; as=style; fetchpriority=high", "</b>; rel=preload"]
    );
}

#[test]
fn what_is_learned_of_one_page_is_bounded() {
    let many: Vec<String> = (0..100).map(|number| format!("</{number}>; rel=preload")).collect();
    assert_eq!(hinted_after("/", "", 200, &[("Link", &many.join(", "))]).len(), LEARNED_LINKS_MAX);
    let long = format!("</{}>; rel=preload", "x".repeat(LEARNED_LINKS_BYTES_MAX));
    assert_eq!(hinted_after("/", "", 200, &[LINK, ("Link", &long), ("Link", "</b>; rel=preload")]), [LINK.1]);
    let path = format!("/{}", "x".repeat(LEARNED_KEY_BYTES_MAX));
    let (hints, head) = (hints(&[], true), head(&path, ""));
    learn(&context(&head, &hints), &response(200, &[LINK]));
    assert!(fields(&context(&head, &hints)).is_none());
}

#[test]
fn a_response_that_a_file_or_the_configuration_gives_teaches_nothing() {
    let (hints, head) = (hints(&[], true), head("/", ""));
    let mut context = context(&head, &hints);
    context.at.handler = Handler::Respond;
    learn(&context, &response(200, &[LINK]));
    assert_eq!(hinted(&hints), [""; 0]);
}
