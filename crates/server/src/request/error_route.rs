//! What becomes of a request that failed: `handle_errors` of its site, or the plain answer.
//!
//! As in Caddy, the request takes a second way as it came, through the error routes for its status, which see what went
//! wrong as `{err.…}`. The status stays unless a route says another. Owns the way from a fault to an answer once the
//! site is known; the status and fields of an error are in `onehop_message`. Never waits and never answers twice: what fails
//! here is answered as if there were no error routes.

use std::sync::Arc;

use onehop_config::checked::Placeholder;
use onehop_message::error::HttpError;
use onehop_message::error_response;
use onehop_message::response::{Body, Response};
use onehop_metrics::Handler;

use super::context::{Callee, Flow, Halt, RequestContext};
use super::handle::error_page::{self, Pages};
use super::handle::proxy::Member;
use super::route::Site;

/// What a trip has met.
pub struct Failure {
    /// What went wrong.
    pub(crate) fault: HttpError,
    /// What it is called, where error routes are to answer it.
    pub(crate) id: Option<ErrorId>,
    /// The upstream that failed.
    pub(crate) upstream: Option<Arc<Member>>,
    /// Why it could not be reached, for logs.
    pub(crate) reason: Option<String>,
}

/// The name of one error, `{err.id}`: by it, what a person was shown is found in the access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorId(u64);

/// Where a failed request was led.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Led {
    /// The answer is there.
    Answered,
    /// A page is on disk, and this thread may not wait for it.
    NeedsDisk,
    /// Somebody else is asked for the page.
    Call(Callee),
}

/// Leads a failed request through the error routes of its site.
pub(crate) fn take<'a>(
    context: &mut RequestContext<'a>,
    site: &'a Site,
    fault: HttpError,
    answer: &mut Response,
) -> Led {
    // As in Caddy, the first error counts where its own route fails.
    if let Some(first) = context.failure.as_ref().map(|failure| failure.fault) {
        return plain(context, first, answer);
    }
    let status = fault.status();
    let is_handled = fault.may_be_handled() && site.errors.iter().any(|errors| errors.are_for(status));
    context.failure = Some(Box::new(Failure {
        fault,
        id: is_handled.then(ErrorId::new),
        upstream: context.upstream.take(),
        reason: context.reason.take(),
    }));
    if !is_handled {
        return plain(context, fault, answer);
    }
    context.begin_again();
    answer.clear();
    answer.status = status;
    let failed = context.handler;
    let walked = walk(context, site, status, answer);
    if failed != Handler::None {
        // Requests are counted with those who failed, not with those who made the page.
        context.handler = failed;
    }
    match walked {
        Ok(flow) => {
            if flow == Flow::On {
                error_page::fill(context.request.head, asked_for_pages(site, status), answer);
            }
            context.finish(answer);
            Led::Answered
        }
        Err(Halt::HttpError(_)) => plain(context, fault, answer),
        Err(Halt::NeedsDisk) => {
            answer.clear();
            Led::NeedsDisk
        }
        Err(Halt::Call(callee)) => {
            answer.clear();
            Led::Call(callee)
        }
    }
}

/// The same where nobody may be asked and nothing waited for, because there is too much to do: what cannot be answered
/// at once is answered as if there were no error routes.
pub(crate) fn take_at_once<'a>(
    context: &mut RequestContext<'a>,
    site: &'a Site,
    fault: HttpError,
    answer: &mut Response,
) {
    match take(context, site, fault, answer) {
        Led::Answered => {}
        Led::NeedsDisk | Led::Call(_) => give_up(context, answer),
    }
}

/// The answer to the first error, where nobody can be asked for a page.
pub(crate) fn give_up(context: &RequestContext<'_>, answer: &mut Response) {
    if let Some(failure) = &context.failure {
        plain(context, failure.fault, answer);
    }
}

/// Every list for this status, until one answers.
fn walk<'a>(
    context: &mut RequestContext<'a>,
    site: &'a Site,
    status: u16,
    answer: &mut Response,
) -> Result<Flow, Halt> {
    for errors in site.errors.iter().filter(|errors| errors.are_for(status)) {
        if context.walk(&errors.routes, answer)? == Flow::Answered {
            return Ok(Flow::Answered);
        }
    }
    Ok(Flow::On)
}

/// A `handle_errors` without routes asks for pages.
fn asked_for_pages(site: &Site, status: u16) -> Pages {
    let is_asked = site.errors.iter().any(|errors| errors.are_for(status) && errors.routes.is_empty());
    if is_asked { Pages::All } else { Pages::OfWaiting }
}

/// The answer without error routes.
fn plain(context: &RequestContext<'_>, fault: HttpError, answer: &mut Response) -> Led {
    error_response::fill(fault, answer);
    if matches!(answer.body, Body::Empty) {
        error_page::fill(context.request.head, Pages::OfWaiting, answer);
    }
    context.amend_error(answer);
    Led::Answered
}

/// Appends what a placeholder of error routes stands for; nothing where there is no error.
pub(crate) fn push(placeholder: &Placeholder, context: &RequestContext<'_>, out: &mut Vec<u8>) {
    let Some(failure) = &context.failure else { return };
    let status = failure.fault.status();
    match placeholder {
        Placeholder::ErrorStatus => out.extend_from_slice(status.to_string().as_bytes()),
        Placeholder::ErrorStatusText => {
            out.extend_from_slice(onehop_http1::reason(status).unwrap_or_default().as_bytes());
        }
        Placeholder::ErrorId => out.extend(failure.id.iter().flat_map(ErrorId::letters)),
        _ => {}
    }
}

impl ErrorId {
    fn new() -> Self {
        Self(fastrand::u64(..))
    }

    /// Nine letters and digits, none of which is taken for another: what Caddy's identifiers look like.
    pub(crate) fn letters(&self) -> [u8; 9] {
        const LETTERS: &[u8; 34] = b"abcdefghijkmnpqrstuvwxyz0123456789";
        let mut left = self.0;
        std::array::from_fn(|_| {
            let letter = LETTERS.get((left % 34) as usize).copied().unwrap_or(b'a');
            left /= 34;
            letter
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_nine_letters_that_are_not_taken_for_others() {
        for id in [0, 1, 34, u64::MAX] {
            let letters = ErrorId(id).letters();
            assert!(letters.iter().all(|letter| letter.is_ascii_alphanumeric() && !b"lo".contains(letter)));
        }
        assert_ne!(ErrorId(1).letters(), ErrorId(2).letters());
    }
}
