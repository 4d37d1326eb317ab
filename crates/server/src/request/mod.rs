//! The data plane, in the order in which a request travels.
//!
//! [`listen`] accepts, [`conn`] makes requests of bytes, [`find_site`] below finds the site of a request. Its
//! [`Routing`] walks the site's routes ([`walk`], [`route`]) to the target that answers and calls the handler ([`handle`]).
//! [`admission`] rejects clients that ask too often, and admits as many of the requests that wait for an application, an
//! upstream or the disk as these can answer. A request that fails takes its site's error routes; [`error_route`] answers
//! where there are none. Never imports `control/`: what it needs is in the snapshot.

pub mod admission;
mod blocking;
mod conn;
pub mod context;
pub mod core;
pub mod early_hints;
mod error_route;
pub mod handle;
pub mod incidents;
pub mod listen;
mod passwords;
pub mod per_address;
mod replacement;
mod response_edits;
pub mod retained;
pub mod route;
pub mod timing;
pub mod tracing;
pub mod visits;
mod walk;

use std::sync::Arc;
use std::time::Instant;

use onehop_acme::MemoryChallenges;
use onehop_http1::{Method, RequestHead};
use onehop_message::error::HttpError;
use onehop_message::error_response;
use onehop_message::methods::Methods;
use onehop_message::origin::Origin;
use onehop_message::response::{Body, Response};
use onehop_message::trace_context::SpanContext;
use onehop_metrics::Handler;
use onehop_metrics::access_log::{Logs, USER_ID};
use onehop_metrics::route::RouteHandler;
use onehop_metrics::site::Delivery;
use onehop_upstream::member::Member;

use admission::Limiters;
use blocking::{BlockingResult, BlockingWork};
use context::{ErrorId, Failure, RequestContext};
use handle::proxy::max_forwards;
use handle::{Handled, app, file, redirect, respond};
use route::{Backend, Site, Snapshot, Target};
use timing::Timing;
use tracing::{OpenSpan, Traced};
use walk::{Step, Walk};

/// What became of a request, for counters and logs.
pub struct Served {
    /// Number of the site; `None` where no site answers that host.
    pub site: Option<usize>,
    /// The handler that answered, and its route.
    pub at: RouteHandler,
    /// The upstream to which the request was sent.
    pub upstream: Option<Arc<Member>>,
    /// Why that one could not be reached, for logs.
    pub reason: Option<String>,
    /// The error that the response is about.
    pub error: Option<HttpError>,
    /// Its name in the response that an error route gave.
    pub error_id: Option<ErrorId>,
    /// How the response is delivered.
    pub delivery: Delivery,
    /// Where its time went, if it waited for others.
    pub timing: Option<Box<Timing>>,
    /// What `{http.request.uuid}` was.
    pub uuid: Option<Box<str>>,
    /// Its span, where a `tracing` directive applies.
    pub traced: Option<(Box<SpanContext>, Box<Traced>)>,
    /// What routes say of its line in logs. In a box, since most of them say nothing.
    pub log: Option<Box<LogChoice>>,
}

/// What routes say of a request's line in logs.
#[derive(Debug)]
pub struct LogChoice {
    /// The logs of the site that have it.
    pub logs: Logs,
    /// Fields of `log_append`.
    pub appended: Vec<(String, Vec<u8>)>,
}

/// What a request waits for.
#[derive(Debug)]
pub(crate) enum Wait {
    /// A thread that may block has to do this.
    Blocking(Box<BlockingWork>),
    /// An application or an upstream answers.
    Backend(Backend),
}

/// Where an issuer of certificates looks for the answer to its challenge (RFC 8555 section 8.3).
const CHALLENGES: &[u8] = b"/.well-known/acme-challenge/";

/// Answers an issuer's HTTP-01 challenge, whatever the routes say; false where there is no such challenge.
fn answer_challenge(head: &RequestHead, challenges: &MemoryChallenges, response: &mut Response) -> bool {
    let text =
        |bytes: Option<&[u8]>| bytes.and_then(|bytes| std::str::from_utf8(bytes).ok().map(str::to_owned));
    let (Some(token), Some(host)) = (text(head.path().strip_prefix(CHALLENGES)), text(head.host())) else {
        return false;
    };
    let Some(answer) = challenges.http_01(&token, &host) else { return false };
    response.status = 200;
    response.fields.add("Content-Type", b"text/plain");
    response.body = Body::Bytes(answer.into_bytes());
    true
}

/// Finds the site of a request. `Err`: none serves it, and the response is complete; with the error that it is about.
pub(crate) fn find_site<'a>(
    snapshot: &'a Snapshot,
    head: &RequestHead,
    origin: &Origin,
    challenges: &MemoryChallenges,
    response: &mut Response,
) -> Result<(usize, &'a Site), Option<HttpError>> {
    if !origin.tls && head.path().starts_with(CHALLENGES) && answer_challenge(head, challenges, response) {
        return Err(None);
    }
    // RFC 9110 section 9.3.6: a 2xx would promise a tunnel.
    if head.method() == Method::Connect {
        let error = HttpError::MethodNotAllowed(snapshot.methods());
        error_response::fill(error, response);
        return Err(Some(error));
    }
    // The host decides everything that follows; the client of an unknown one learns nothing, not even
    // whether a path exists elsewhere.
    let found = snapshot.site_number(origin.listener, head.host());
    let found = found.and_then(|number| Some((number, snapshot.sites.get(number)?)));
    // RFC 9110 section 15.5.20: the connection was negotiated under another policy, so its client may not be one that this
    // site lets in.
    // Nor may one be that came before a reload encrypted the listener.
    let is_encrypted = snapshot.tls.is_encrypted(origin.listener);
    let negotiated = |(number, site): &(usize, &Site)| {
        origin.tls == is_encrypted
            && (!is_encrypted
                || site.policy_number() == origin.policy
                || is_from_before(snapshot, origin, *number, site))
    };
    found.filter(negotiated).ok_or_else(|| {
        error_response::fill(HttpError::UnknownHost, response);
        Some(HttpError::UnknownHost)
    })
}

/// Whether a connection was negotiated for this very site, whose settings a reload has changed since. Where the site lets in
/// everybody, that is no reason to end it.
fn is_from_before(snapshot: &Snapshot, origin: &Origin, number: usize, site: &Site) -> bool {
    let name = origin.session.as_ref().map(|session| session.server_name.as_bytes());
    let is_open = site.tls.as_ref().is_some_and(|tls| tls.policy.client_auth.is_none());
    is_open && name.is_some_and(|name| snapshot.site_number(origin.listener, Some(name)) == Some(number))
}

/// A request on its way through the routes of its site.
pub(crate) struct Routing<'a> {
    snapshot: &'a Snapshot,
    /// Number of the site.
    number: usize,
    site: &'a Site,
    walk: Walk<'a>,
    /// The request as the routes have made it, and what they say about its response.
    pub(crate) context: RequestContext<'a>,
}

impl<'a> Routing<'a> {
    /// A request whose head was complete at `received`, before the routes of its site. In place: it is large, and each
    /// move a copy.
    #[inline(always)]
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        (number, site): (usize, &'a Site),
        head: &'a RequestHead,
        origin: Origin,
        received: Instant,
    ) -> Self {
        Self {
            snapshot,
            number,
            site,
            walk: Walk::new(&site.routes),
            context: RequestContext::new(head, origin, received, &snapshot.stores, &snapshot.trusted_proxies),
        }
    }

    /// Walks the routes and calls the handler, until the response is complete (`None`) or the request has to wait.
    pub(crate) fn begin(&mut self, response: &mut Response) -> Option<Wait> {
        // RFC 9110 section 9.3.7: about the server as a whole, whatever its routes say of a path.
        if self.context.request.head.path() == b"*" {
            let methods = match self.snapshot.methods() {
                Methods::Files => Methods::FilesAndOptions,
                methods => methods,
            };
            methods.fill(response);
            return None;
        }
        // A path with two readings takes no route; its error routes may need the root.
        if self.context.is_ambiguous {
            self.context.root = walk::first_root(&self.site.routes);
            return self.fail(HttpError::BadPath, response);
        }
        self.advance(response)
    }

    fn advance(&mut self, response: &mut Response) -> Option<Wait> {
        match self.walk_on(response) {
            Ok(wait) => wait,
            Err(error) => self.fail(error, response),
        }
    }

    fn walk_on(&mut self, response: &mut Response) -> Result<Option<Wait>, HttpError> {
        loop {
            let handled = match self.walk.next(&mut self.context)? {
                Step::Lookup(lookup) => Handled::NeedsBlocking(Box::new(BlockingWork::Lookup(lookup))),
                Step::Password(check) => Handled::NeedsBlocking(Box::new(BlockingWork::Password(check))),
                Step::Target(Target::Backend(backend)) if !self.ends_here(*backend) => {
                    return self.call(*backend, response).map(Some);
                }
                Step::Target(target) => handle(target, &mut self.context, response)?,
                Step::End => self.answer_unmatched(response)?,
            };
            match handled {
                Handled::Responded => break,
                Handled::PassedOn => self.context.pass_on(),
                Handled::NeedsBlocking(read) => return Ok(Some(Wait::Blocking(read))),
            }
        }
        self.complete(response);
        Ok(None)
    }

    /// Continues with what was read from disk, where the routes stopped.
    pub(crate) fn resume(&mut self, read: BlockingResult, response: &mut Response) -> Option<Wait> {
        match read {
            BlockingResult::Found(found) => self.walk.found(found),
            BlockingResult::Admitted(user) => {
                if let Some(authentication) = &mut self.context.authentication {
                    authentication.user = Some(user);
                }
            }
            BlockingResult::PassedOn => self.context.pass_on(),
            BlockingResult::Error(error) => return self.fail(error, response),
            BlockingResult::Responded => {
                self.complete(response);
                return None;
            }
        }
        self.advance(response)
    }

    /// Answers a request that failed: walks the error routes of its site, as [`Self::begin`] walks the others.
    pub(crate) fn fail(&mut self, error: HttpError, response: &mut Response) -> Option<Wait> {
        let context = &mut self.context;
        context.restore_failed_handler();
        if error == HttpError::Unauthorized {
            context
                .header_edits
                .extend(context.authentication.take().map(|authentication| authentication.challenge));
        }
        // As in Caddy, the first error counts where its own route fails.
        if context.failure.is_some() {
            self.answer_plainly(response);
            return None;
        }
        let has_routes = error_route::has_routes(self.site, error);
        context.failure = Some(Box::new(Failure {
            error,
            id: has_routes.then(ErrorId::new),
            at: context.at,
            upstream: context.upstream.take(),
            reason: context.reason.take(),
        }));
        if !has_routes {
            self.answer_plainly(response);
            return None;
        }
        context.reset_for_errors();
        response.clear();
        response.status = error.status();
        self.walk = Walk::of_errors(self.site, error.status());
        self.advance(response)
    }

    /// Answers a request that is not admitted. Nothing is waited for, because there is too much to do: an error page that
    /// is not at hand is left out. A request whose error page is what is not admitted keeps its first error.
    pub(crate) fn reject(&mut self, error: HttpError, response: &mut Response) -> Served {
        if !error.is_shed() {
            self.context.failure = None;
        }
        self.fail_at_once(error, response);
        self.served()
    }

    /// Answers a request that failed without waiting for anything.
    pub(crate) fn fail_at_once(&mut self, error: HttpError, response: &mut Response) {
        if self.fail(error, response).is_some() {
            self.answer_plainly(response);
        }
    }

    /// Answers with the error that the request has met, without error routes.
    pub(crate) fn answer_plainly(&self, response: &mut Response) {
        if let Some(failure) = &self.context.failure {
            error_route::fill_plain(&self.context, failure.error, response);
        }
    }

    /// The limiters on the request's route, as far as that is known.
    pub(crate) fn limiters(&self, wait: Option<&Wait>) -> Limiters<'a> {
        let pool = match wait {
            Some(Wait::Backend(Backend::App(number))) => self.snapshot.apps.get(*number as usize),
            _ => None,
        };
        let site = &*self.site.limiters;
        Limiters::new(site, self.context.limits, pool)
            .with_affinity(site, |pool| app::affinity(&self.context, pool))
    }

    /// What became of the request. An error counts for the handler and upstream that failed, not for those of the page.
    pub(crate) fn served(&mut self) -> Served {
        let context = &mut self.context;
        let (log, traced) = (log_choice(context), traced(context));
        let (upstream, reason) = (context.upstream.take(), context.reason.take());
        let (site, at) = (Some(self.number), context.at);
        let delivery = if context.is_cold.get() { Delivery::Cold } else { Delivery::Whole };
        let (timing, uuid) = (context.timing.take(), context.uuid.take());
        let traced = context.request.span.take().zip(traced);
        let (error, error_id) = (None, None);
        let served =
            Served { site, at, upstream, reason, error, error_id, delivery, timing, uuid, traced, log };
        let Some(failure) = context.failure.take() else { return served };
        let (upstream, reason) = match failure.upstream {
            Some(first) => (Some(first), failure.reason),
            None => (served.upstream, served.reason),
        };
        Served { upstream, reason, error: Some(failure.error), error_id: failure.id, ..served }
    }

    /// `Max-Forwards` makes this server the last one.
    fn ends_here(&self, backend: Backend) -> bool {
        matches!(backend, Backend::Proxy(_)) && max_forwards::ends_here(&self.context.request.head)
    }

    /// Hands the request over to an application or an upstream.
    fn call(&mut self, backend: Backend, response: &mut Response) -> Result<Wait, HttpError> {
        self.context.at.handler = backend.handler();
        if self.context.request.path.is_network_path() {
            // Matchers saw one path; the application could see another one, behind the name of a host.
            return Err(HttpError::BadPath);
        }
        self.context.restore_failed_handler();
        response.clear();
        Ok(Wait::Backend(backend))
    }

    /// No route has answered: an empty 200, as in Caddy, or a small error page.
    fn answer_unmatched(&self, response: &mut Response) -> Result<Handled, HttpError> {
        match self.context.error_status() {
            Some(status) => error_route::fill_page(&self.context, self.site, status, response),
            None => self.context.know_method()?,
        }
        Ok(Handled::Responded)
    }

    fn complete(&mut self, response: &mut Response) {
        self.context.restore_failed_handler();
        self.context.finish(response);
    }
}

/// What is exported of the request; attributes have the values of now.
fn traced(context: &mut RequestContext<'_>) -> Option<Box<Traced>> {
    let OpenSpan { name, settings } = *context.traced.take()?;
    let attributes = settings.attributes.iter();
    let attributes =
        attributes.map(|(name, value)| (name.clone(), route::expand(value, context, route::Into::Text)));
    Some(Box::new(Traced { name, attributes: attributes.collect(), export: Arc::clone(&settings.export) }))
}

/// What routes have said of the request's line in logs; fields have the values of now.
fn log_choice(context: &mut RequestContext<'_>) -> Option<Box<LogChoice>> {
    let (logs, appended) = (context.logs, context.appended.take());
    let span = context.request.span.as_deref();
    if logs == Logs::USUAL && appended.is_none() && span.is_none() && context.authentication.is_none() {
        return None;
    }
    // The names that Caddy gives them.
    let ids = span.into_iter().flat_map(|span| {
        let (trace, own) = (format!("{:032x}", span.trace_id), format!("{:016x}", span.span_id));
        [("traceID".to_owned(), trace.into_bytes()), ("spanID".to_owned(), own.into_bytes())]
    });
    let fields = appended.into_iter().flat_map(|fields| *fields).map(|(append, early)| {
        let value = early.unwrap_or_else(|| route::expand(&append.value, context, route::Into::Text));
        (append.key.clone(), value)
    });
    let user = context.user().map(|user| (USER_ID.to_owned(), user.as_bytes().to_vec()));
    Some(Box::new(LogChoice { logs, appended: ids.chain(user).chain(fields).collect() }))
}

/// Calls the handler of a target.
fn handle(
    target: &Target,
    context: &mut RequestContext<'_>,
    response: &mut Response,
) -> Result<Handled, HttpError> {
    match target {
        Target::Redirect { to, kind } => redirect::redirect(context, to, *kind, response),
        Target::Respond { status, body, close } => {
            context.know_method()?;
            respond::respond(context, *status, body, *close, response);
        }
        Target::FileServer { settings, on_disk, root } => {
            return file::file_server(context, (settings, on_disk), root.as_ref(), response);
        }
        Target::Spa { settings, store } => return file::spa(context, settings, *store, response),
        // The others wait for what they call.
        Target::Backend(_) => {
            context.at.handler = Handler::Proxy;
            max_forwards::respond(&context.request.head, response)?;
        }
    }
    Ok(Handled::Responded)
}

impl Backend {
    fn handler(self) -> Handler {
        match self {
            Self::App(_) => Handler::App,
            Self::Proxy(_) => Handler::Proxy,
        }
    }
}

impl Served {
    /// Answered before its site was known.
    pub(crate) fn before_a_site(error: Option<HttpError>) -> Self {
        Self {
            site: None,
            at: Handler::None.into(),
            upstream: None,
            reason: None,
            error,
            error_id: None,
            delivery: Delivery::Whole,
            timing: None,
            uuid: None,
            traced: None,
            log: None,
        }
    }
}
