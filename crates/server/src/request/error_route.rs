//! The response to a request that failed: `handle_errors` of its site, or the plain response.
//!
//! As in Caddy, the request takes the error routes for its status as it came; they see the error as `{err.…}`. The status
//! stays unless a route says another. The walk through these routes is [`super::Routing::fail`]; here is what a response
//! gets where none of them answers. The status and fields of an error are in `onehop_message`.

use onehop_message::error::HttpError;
use onehop_message::error_response;
use onehop_message::response::{Body, Response};

use super::context::RequestContext;
use super::handle::error_page::{self, PageScope};
use super::route::Site;

/// Whether a site has error routes for this error.
pub(super) fn has_routes(site: &Site, error: HttpError) -> bool {
    error.may_be_handled() && site.errors.iter().any(|errors| errors.are_for(error.status()))
}

/// Fills the page of an error whose error routes answered nothing. A `handle_errors` without routes asks for pages.
pub(super) fn fill_page(context: &RequestContext<'_>, site: &Site, status: u16, response: &mut Response) {
    let asks = site.errors.iter().any(|errors| errors.are_for(status) && errors.routes.is_empty());
    let pages = if asks { PageScope::All } else { PageScope::OfWaiting };
    error_page::fill(&context.request.head, pages, response);
}

/// Fills the response of an error without error routes.
pub(super) fn fill_plain(context: &RequestContext<'_>, error: HttpError, response: &mut Response) {
    error_response::fill(error, response);
    if matches!(response.body, Body::Empty) {
        error_page::fill(&context.request.head, PageScope::OfWaiting, response);
    }
    context.finish_error(response);
}
