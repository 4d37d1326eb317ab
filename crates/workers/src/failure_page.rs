//! The page that a browser shows while a developer works on an application and its newest state does not start.
//!
//! Only with `--watch`: an error's text is for its author. Only for navigations, whose responses people look at.

use onehop_http1::{Known, Method, RequestHead};
use onehop_message::html;
use onehop_message::response::{Body, Response};

/// Whether a person would see the response.
pub fn is_navigation(head: &RequestHead) -> bool {
    head.method() == Method::Get
        && head.get(Known::Accept).is_some_and(|accept| accept.windows(9).any(|part| part == b"text/html"))
}

/// Fills a response with the page.
pub fn fill(app: &str, failure: &str, response: &mut Response) {
    response.clear();
    response.status = 500;
    response.fields.add("Content-Type", b"text/html; charset=utf-8");
    response.fields.add("Cache-Control", b"no-store");
    let (app, failure) = (html::escape(app), lines(failure));
    let page = format!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta http-equiv=refresh content=2>\n\
         <title>{app} does not start</title>\n\
         <style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:3rem auto;padding:0 1rem;\
         color:#1b1b1f;background:#fff}}pre{{font:14px/1.5 ui-monospace,monospace;padding:1rem;\
         overflow:auto;background:#f6f1f1;border-left:4px solid #c0392b;white-space:pre-wrap}}\
         @media(prefers-color-scheme:dark){{body{{color:#e8e8ea;background:#17171a}}\
         pre{{background:#241d1d}}}}</style>\n\
         <h1>{app} does not start</h1>\n<pre>{failure}</pre>\n\
         <p>Other requests are answered by the state before it, if there is one. This page looks again \
         every two seconds.\n"
    );
    response.body = Body::Bytes(page.into_bytes());
}

/// The escaped lines of a message. A tab would become the replacement character.
fn lines(text: &str) -> String {
    text.lines().map(|line| html::escape(&line.replace('\t', "    "))).collect::<Vec<_>>().join("\n")
}
