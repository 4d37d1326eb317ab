//! `redir`: sends the client to another address.

use onehop_config::checked::{Part, RedirectKind, Template};
use onehop_message::html;
use onehop_message::response::{Body, Response};
use onehop_metrics::Handler;

use crate::request::context::RequestContext;
use crate::request::route::{self, Into};

/// Answers with a Location, or with a page that goes there.
pub(crate) fn redirect(
    context: &mut RequestContext<'_>,
    to: &Template,
    kind: RedirectKind,
    response: &mut Response,
) {
    context.at.handler = Handler::Redirect;
    let to = on_own_host(to, route::expand(to, context, Into::HeaderValue));
    match kind {
        RedirectKind::Status(status) => {
            response.status = status;
            response.fields.add("Location", &to);
        }
        RedirectKind::Html => {
            response.status = 200;
            response.fields.add("Content-Type", b"text/html; charset=utf-8");
            response.body = Body::Bytes(page(&to));
        }
    }
}

/// A path that is made of the request stays a path: `//host` is a reference to another host (RFC 3986 section 4.2), and
/// browsers read `/\host` likewise and skip tabs. What the configuration itself begins with `//` is meant so.
fn on_own_host(template: &Template, to: Vec<u8>) -> Vec<u8> {
    let is_meant = matches!(template.parts.first(), Some(Part::Text(text)) if text.starts_with("//"));
    if is_meant || !to.starts_with(b"/") {
        return to;
    }
    let outer = to.iter().take_while(|byte| matches!(byte, b'/' | b'\\' | b'\t')).count();
    [b"/", to.get(outer..).unwrap_or_default()].concat()
}

fn page(to: &[u8]) -> Vec<u8> {
    let to = html::escape(&String::from_utf8_lossy(to));
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Moved</title>\n\
         <meta http-equiv=\"refresh\" content=\"0; URL='{to}'\">\n\
         <p>This page has moved to <a href=\"{to}\">{to}</a>.\n"
    )
    .into_bytes()
}
