//! `respond`: an answer that stands in the configuration.

use onehop_config::checked::Template;
use onehop_message::response::{Body, Response};
use onehop_metrics::Handler;

use crate::request::context::{Flow, RequestContext};
use crate::request::route::{self, Into};

/// Answers with a status and a text. Where the configuration names no status, an error keeps its own.
pub(crate) fn answer(
    context: &mut RequestContext<'_>,
    status: Option<u16>,
    body: &Template,
    close: bool,
    answer: &mut Response,
) -> Flow {
    context.handler = Handler::Respond;
    let error = context.failure.as_ref().map(|failure| failure.fault.status());
    answer.status = status.or(error).unwrap_or(200);
    answer.close = close;
    let body = route::expand(body, context, Into::Text);
    if !body.is_empty() {
        answer.fields.add("Content-Type", content_type(&body));
        answer.body = Body::Bytes(body);
    }
    Flow::Answered
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
