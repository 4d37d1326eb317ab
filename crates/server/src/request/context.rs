//! What the routes know of a request, and what they have decided about its response so far.
//!
//! Plain data: the walk through the routes ([`super::walk`]) fills it in, handlers read it. Knows no handler and no route.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Instant;

use onehop_config::checked::{Encode, HeaderStep, LogAppend, Network};
use onehop_files::store::Store;
use onehop_http1::{Method, RequestHead};
use onehop_message::error::HttpError;
use onehop_message::origin::Origin;
use onehop_message::path::{Ambiguous, RequestPath};
use onehop_message::request::{CurrentHead, Request};
use onehop_metrics::Handler;
use onehop_metrics::access_log::Logs;
use onehop_metrics::route::RouteHandler;
use onehop_upstream::member::Member;
use regex_lite::Regex;

use super::admission::RequestLimits;
use super::admission::rate::RateChecks;
use super::early_hints::EarlyHints;
use super::route::{Captures, Root};
use super::timing::Timing;
use super::tracing::OpenSpan;

/// A request on its way through the routes of its site.
pub struct RequestContext<'a> {
    /// The request, as the routes have made it so far.
    pub request: Request<'a>,
    /// The trees in memory, by number.
    pub stores: &'a [Arc<Store>],
    /// Proxies in front of every site, whose word about the client counts.
    pub(crate) trusted_proxies: &'a [Network],
    /// The client's own path has more than one reading.
    pub(crate) is_ambiguous: bool,
    /// The root of files.
    pub root: Option<&'a Root>,
    /// The file that `try_files` found, decoded, relative to the root.
    pub file_match: Option<Vec<u8>>,
    /// What expressions of matchers have captured.
    pub(crate) captures: Captures,
    /// The compression that `encode` allows.
    pub encode: Option<&'a Encode>,
    /// What the client can load while it waits.
    pub(crate) early_hints: Vec<&'a EarlyHints>,
    /// The limits that `limit` directives name, for a request that an application or an upstream answers.
    pub limits: RequestLimits,
    /// What `rate_limit` directives tell the client.
    pub(crate) rate_checks: RateChecks<'a>,
    /// Changes of header fields, to be made once the response's head is there.
    pub(crate) header_edits: Vec<HeaderEdits<'a>>,
    /// A cookie that the response sets besides those of the application: it leads later requests to the same worker.
    pub own_cookie: Option<Vec<u8>>,
    /// The handler that answers, and its route.
    pub(crate) at: RouteHandler,
    /// The upstream to which the request was sent, the last one where there were several.
    pub upstream: Option<Arc<Member>>,
    /// Why that one could not be reached, for logs.
    pub reason: Option<String>,
    /// It came before the worker that has it had answered any request.
    pub(crate) is_cold: Cell<bool>,
    /// Where its time goes, once it waits for others. In a box: what is served from memory has none.
    pub(crate) timing: Option<Box<Timing>>,
    /// `{http.request.uuid}`, once a route has used it.
    pub(crate) uuid: OnceCell<Box<str>>,
    /// The logs of the site that have the request.
    pub(crate) logs: Logs,
    /// Who the client has to be or is, where `basic_auth` applies. In a box, since few requests meet one.
    pub(crate) authentication: Option<Box<Authentication<'a>>>,
    /// What `error` says, where it has failed the request. In a box, since few requests meet one.
    pub(crate) error_message: Option<Box<[u8]>>,
    /// Bytes that the request's body may have, where `request_body` says so.
    pub(crate) body_bytes_max: Option<u64>,
    /// Its span, where a `tracing` directive applies. In a box, since few requests have one.
    pub(crate) traced: Option<Box<OpenSpan<'a>>>,
    /// Fields of `log_append`, with the values of those that are early. In a box, since few requests have one.
    pub(crate) appended: Option<Box<Appended<'a>>>,
    /// The error that the request has met. In a box, since few requests meet one and each would carry the room.
    pub failure: Option<Box<Failure>>,
}

/// Fields for the request's line in a log, in their order.
pub(crate) type Appended<'a> = Vec<(&'a LogAppend, Option<Vec<u8>>)>;

/// A `header` directive that applies to a request.
#[derive(Debug)]
pub(crate) struct HeaderEdits<'a> {
    pub(crate) step: &'a HeaderStep,
    /// The compiled expressions of its replacements, one for each change.
    pub(crate) expressions: &'a [Option<Regex>],
    /// The value of each change, filled in when the request met the directive; empty where that can wait.
    pub(crate) values: Vec<Vec<u8>>,
}

/// A `basic_auth` that applies to a request.
#[derive(Debug)]
pub(crate) struct Authentication<'a> {
    /// Who has proved to be that user.
    pub(crate) user: Option<String>,
    /// What says in the response that a password is missing.
    pub(crate) challenge: HeaderEdits<'a>,
}

/// The error that a request has met.
pub struct Failure {
    /// The error.
    pub(crate) error: HttpError,
    /// Its name, where error routes answer it.
    pub(crate) id: Option<ErrorId>,
    /// The handler that failed, and its route.
    pub(crate) at: RouteHandler,
    /// The upstream that failed.
    pub(crate) upstream: Option<Arc<Member>>,
    /// Why it could not be reached, for logs.
    pub(crate) reason: Option<String>,
}

/// The name of one error, `{err.id}`: it leads from an error page to the line in the access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorId(u64);

impl<'a> RequestContext<'a> {
    /// Makes the context of a request that has met no route yet.
    pub fn new(
        head: &'a RequestHead,
        origin: Origin,
        received: Instant,
        stores: &'a [Arc<Store>],
        trusted_proxies: &'a [Network],
    ) -> Self {
        let own_path = own_path(head);
        let is_ambiguous = own_path.is_err();
        Self {
            request: Request {
                head: CurrentHead::new(head),
                origin,
                received,
                path: own_path.unwrap_or(RequestPath::ROOT),
                query: head.query().map(Cow::Borrowed),
                span: None,
            },
            stores,
            trusted_proxies,
            is_ambiguous,
            root: None,
            file_match: None,
            captures: Captures::default(),
            encode: None,
            early_hints: Vec::new(),
            limits: RequestLimits::default(),
            rate_checks: RateChecks::default(),
            header_edits: Vec::new(),
            own_cookie: None,
            at: Handler::None.into(),
            upstream: None,
            reason: None,
            is_cold: Cell::new(false),
            timing: None,
            uuid: OnceCell::new(),
            logs: Logs::USUAL,
            authentication: None,
            error_message: None,
            body_bytes_max: None,
            traced: None,
            appended: None,
            failure: None,
        }
    }

    /// Refuses a method that the server does not know, where the server itself answers (RFC 9110 section 9.1). An error
    /// page is for any method.
    pub(super) fn know_method(&self) -> Result<(), HttpError> {
        let is_known = self.request.head.method() != Method::Other || self.failure.is_some();
        if is_known { Ok(()) } else { Err(HttpError::NotImplemented) }
    }

    /// Prepares the request for the error routes of its site. Its path and query are again as they came. The root and the
    /// file that was found stay, and so do its own fields and those changes of the response's that do not wait for a handler.
    pub(super) fn reset_for_errors(&mut self) {
        let received = self.request.head.received();
        self.request.path = own_path(received).unwrap_or(RequestPath::ROOT);
        self.request.query = received.query().map(Cow::Borrowed);
        self.encode = None;
        self.early_hints.clear();
        self.own_cookie = None;
        self.header_edits.retain(|edits| !edits.step.deferred);
    }

    /// Who the client has proved to be.
    pub(crate) fn user(&self) -> Option<&str> {
        self.authentication.as_ref()?.user.as_deref()
    }

    /// The status of the error that the response is about.
    pub(crate) fn error_status(&self) -> Option<u16> {
        self.failure.as_ref().map(|failure| failure.error.status())
    }

    /// The handler that failed and its route, if one did.
    fn failed_at(&self) -> RouteHandler {
        self.failure.as_ref().map_or(Handler::None.into(), |failure| failure.at)
    }

    /// The handler has left the request to the routes behind it.
    pub(super) fn pass_on(&mut self) {
        self.at = self.failed_at();
    }

    /// Counts the request with the handler that failed, not with the one that made the error page.
    pub(super) fn restore_failed_handler(&mut self) {
        let failed = self.failed_at();
        if failed.handler != Handler::None {
            self.at = failed;
        }
    }

    /// The path of a root that is in memory.
    pub(crate) fn root_in_memory(&self, root: &Root) -> Option<&[u8]> {
        let number = root.store(false).or_else(|| root.store(true))?;
        self.stores.get(number as usize).map(|store| store.root.as_os_str().as_bytes())
    }
}

/// The path of the request's target; an error where it has more than one reading.
fn own_path(head: &RequestHead) -> Result<RequestPath<'_>, Ambiguous> {
    RequestPath::read(Cow::Borrowed(head.path()))
}

impl ErrorId {
    pub(super) fn new() -> Self {
        Self(fastrand::u64(..))
    }

    /// Nine letters and digits that cannot be mistaken for each other, as in Caddy's identifiers.
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
