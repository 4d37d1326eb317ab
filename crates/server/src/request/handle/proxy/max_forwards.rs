//! `Max-Forwards`: how many proxies a request of OPTIONS or TRACE may still pass (RFC 9110 section 7.6.2). Other methods
//! may have the field, and it means nothing to them.

use onehop_http1::{Method, RequestHead};
use onehop_message::error::HttpError;
use onehop_message::methods::Methods;
use onehop_message::response::Response;

/// The name, in any case.
pub(super) const NAME: &str = "max-forwards";

/// How many more proxies may pass the request on, this one among them. `None` where the field is missing, given twice, or
/// no number. One that does not fit is as good as the largest.
fn left(head: &RequestHead) -> Option<u64> {
    if !matches!(head.method(), Method::Options | Method::Trace) {
        return None;
    }
    let mut values = head.find_all(NAME);
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = value.iter().map(|digit| u64::from(digit - b'0'));
    Some(digits.fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(digit)))
}

/// What the next server is told, where that is to be counted.
pub(super) fn counted_down(head: &RequestHead) -> Option<u64> {
    left(head)?.checked_sub(1)
}

/// Whether this proxy has to response the request.
pub(crate) fn ends_here(head: &RequestHead) -> bool {
    left(head) == Some(0)
}

/// Answers as the final recipient. TRACE is not implemented: an response to it would show fields that a page's script must
/// not see (RFC 9110 section 9.3.8).
pub(crate) fn respond(head: &RequestHead, response: &mut Response) -> Result<(), HttpError> {
    if head.method() == Method::Trace {
        return Err(HttpError::MethodNotAllowed(Methods::Any));
    }
    Methods::Any.fill(response);
    Ok(())
}
