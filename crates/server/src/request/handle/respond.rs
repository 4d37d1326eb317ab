//! `respond`: an answer that stands in the configuration.

use onehop_config::checked::Template;

use crate::request::answer::{Answer, Body};
use crate::request::route::{self, Into};
use crate::request::trip::{Flow, Handler, Trip};

/// Answers with a status and a text.
pub(crate) fn answer(
    trip: &mut Trip<'_>,
    status: u16,
    body: &Template,
    close: bool,
    answer: &mut Answer,
) -> Flow {
    trip.handler = Handler::Respond;
    answer.status = status;
    answer.close = close;
    let body = route::expand(body, trip, Into::Text);
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
