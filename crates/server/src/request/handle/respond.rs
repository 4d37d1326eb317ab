//! `respond`: a response that the configuration gives.

use onehop_config::checked::Template;
use onehop_message::response::{Body, Response};
use onehop_metrics::Handler;

use crate::request::context::RequestContext;
use crate::request::route::{self, Into};

/// Answers with a status and a text. Where the configuration names no status, an error keeps its own.
pub(crate) fn respond(
    context: &mut RequestContext<'_>,
    status: Option<u16>,
    body: &Template,
    close: bool,
    response: &mut Response,
) {
    context.at.handler = Handler::Respond;
    response.status = status.or(context.error_status()).unwrap_or(200);
    response.close = close;
    let body = route::expand(body, context, Into::Text);
    if !body.is_empty() {
        response.fields.add("Content-Type", content_type(&body));
        response.body = Body::Bytes(body);
    }
}

/// What Caddy says of a text without a type: JSON where it is JSON, else plain text.
fn content_type(body: &[u8]) -> &'static [u8] {
    let may_be_json = matches!(body.first(), Some(b'{' | b'['));
    if may_be_json && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() {
        b"application/json"
    } else {
        b"text/plain; charset=utf-8"
    }
}
