//! The data plane, in the order in which a request travels.
//!
//! [`listen`] accepts, [`conn`] makes requests of bytes, [`serve_request`] below finds the site and
//! sends the request through its routes ([`context`], [`route`]) to a handler ([`handle`]). [`admission`] refuses whoever asks
//! too often, and lets in as much of what waits for others as they can answer. What fails goes through the site's error
//! routes ([`error_route`]); [`error_response`] answers where none is configured. Never imports `control/`: what it needs is in the
//! snapshot.

pub mod admission;
mod conn;
pub mod context;
pub mod core;
pub(crate) mod error_route;
pub(crate) mod exchange;
pub mod handle;
pub mod incidents;
pub mod listen;
pub mod per_address;
pub mod route;

use std::sync::Arc;
use std::time::Instant;

use onehop_http1::{Method, RequestHead};
use onehop_message::error::HttpError;
use onehop_message::error_response;
use onehop_message::methods::Methods;
use onehop_message::origin::Origin;
use onehop_message::response::Response;
use onehop_metrics::Handler;

use admission::rate::RateChecks;
use admission::{Limiters, RequestLimits};
use context::{Callee, Halt, RequestContext};
use error_route::{ErrorId, Led};
use handle::app;
use handle::proxy::Member;
use route::{Site, Snapshot};

/// What became of a request, for counters and logs.
pub struct Served {
    /// Number of the site; `None` where no site answers that host.
    pub site: Option<usize>,
    /// Who answered.
    pub handler: Handler,
    /// The upstream that it was handed to.
    pub upstream: Option<Arc<Member>>,
    /// Why that one could not be reached, for logs.
    pub reason: Option<String>,
    /// Why nobody did.
    pub fault: Option<HttpError>,
    /// What that is called in the answer that an error route gave.
    pub error_id: Option<ErrorId>,
}

/// A request that needs the disk: the same trip has to be made where waiting is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeedsDisk {
    site: usize,
    /// When the request came.
    begun: Instant,
    /// What its way had gathered when it stopped.
    limits: RequestLimits,
    /// Zones of `rate_limit` that have counted it.
    counted: u32,
    /// What it has met since, where it is the error routes that need it.
    fault: Option<HttpError>,
}

/// What comes of a request's head.
#[expect(
    clippy::large_enum_variant,
    reason = "a call is moved once, into its future; a box would cost each an allocation"
)]
pub enum Outcome<'a> {
    /// There is an answer.
    Served(Served),
    /// There is none without the disk.
    NeedsDisk(NeedsDisk),
    /// An application or an upstream answers.
    Call(Call<'a>),
}

/// A request that somebody else answers.
pub struct Call<'a> {
    /// Number of the site.
    pub site: usize,
    /// The request as the routes have made it, and what is done to its answer.
    pub context: RequestContext<'a>,
    /// Who.
    pub callee: Callee,
}

/// A request that needs the disk on its way to somebody else.
pub(crate) struct NeedsCall {
    site: usize,
    /// When the request came.
    begun: Instant,
    counted: u32,
    fault: Option<HttpError>,
}

/// The whole trip of a request, from its head, which came at `begun`, to an answer.
pub fn serve_request<'a>(
    snapshot: &'a Snapshot,
    head: &'a RequestHead,
    origin: Origin,
    begun: Instant,
    answer: &mut Response,
) -> Outcome<'a> {
    // RFC 9110 section 9.3.6: a 2xx would promise a tunnel.
    if head.method() == Method::Connect {
        let fault = HttpError::MethodNotAllowed(snapshot.methods());
        error_response::fill(fault, answer);
        return Outcome::Served(Served::before_a_site(fault));
    }
    // The host decides everything that follows; one that nobody answers learns nothing, not even
    // whether a path exists elsewhere.
    let found = snapshot.site_number(origin.listener, head.host());
    let Some((number, site)) = found.and_then(|number| Some((number, snapshot.sites.get(number)?))) else {
        error_response::fill(HttpError::UnknownHost, answer);
        return Outcome::Served(Served::before_a_site(HttpError::UnknownHost));
    };
    let mut context = RequestContext::new(head, origin, begun, snapshot);
    // RFC 9110 section 9.3.7: about the server as a whole, whatever its routes say of a path.
    if head.path() == b"*" {
        let methods = match snapshot.methods() {
            Methods::Files => Methods::FilesAndOptions,
            methods => methods,
        };
        methods.fill(answer);
        return Outcome::Served(Served::by(number, &mut context));
    }
    match travel(&mut context, site, None, answer) {
        Travelled::Answered => Outcome::Served(Served::by(number, &mut context)),
        Travelled::NeedsDisk => {
            let failed = context.failure.as_ref().map(|failure| failure.fault);
            Outcome::NeedsDisk(NeedsDisk::of(number, &context, failed))
        }
        Travelled::Call(callee) => Outcome::Call(Call { site: number, context, callee }),
    }
}

impl<'a> Call<'a> {
    /// The limiters on its route.
    pub(crate) fn limiters(&self) -> Limiters<'a> {
        limiters(self.site, &self.context, self.callee)
    }

    /// Makes the answer of one that is not let in.
    pub(crate) fn shed(mut self, fault: HttpError, answer: &mut Response) -> Served {
        match self.context.snapshot.sites.get(self.site) {
            Some(site) => error_route::take_at_once(&mut self.context, site, fault, answer),
            None => error_response::fill(fault, answer),
        }
        Served::by(self.site, &mut self.context)
    }
}

/// The limiters on the route of a request to an application or an upstream.
pub(crate) fn limiters<'a>(site: usize, context: &RequestContext<'a>, callee: Callee) -> Limiters<'a> {
    let snapshot = context.snapshot;
    let site = snapshot.sites.get(site).map(|site| &*site.limiters);
    let pool = match callee {
        Callee::App(number) => snapshot.apps.get(number as usize),
        Callee::Proxy(_) => None,
    };
    Limiters::new(site, context.limits, pool).with_affinity(site, |pool| app::affinity(context, pool))
}

impl Served {
    /// Refused before it was known whom it is for.
    fn before_a_site(fault: HttpError) -> Self {
        Self {
            site: None,
            handler: Handler::None,
            upstream: None,
            reason: None,
            fault: Some(fault),
            error_id: None,
        }
    }

    /// What a trip has come to. Where it has failed, those who failed are told of, not the maker of the page.
    pub(crate) fn by(site: usize, context: &mut RequestContext<'_>) -> Self {
        let (upstream, reason) = (context.upstream.take(), context.reason.take());
        let (site, handler) = (Some(site), context.handler);
        let Some(failure) = context.failure.take() else {
            return Self { site, handler, upstream, reason, fault: None, error_id: None };
        };
        let (upstream, reason) = match failure.upstream {
            Some(first) => (Some(first), failure.reason),
            None => (upstream, reason),
        };
        Self { site, handler, upstream, reason, fault: Some(failure.fault), error_id: failure.id }
    }
}

impl NeedsDisk {
    /// A trip has stopped; or its error routes need the disk for this fault.
    pub(crate) fn of(site: usize, context: &RequestContext<'_>, fault: Option<HttpError>) -> Self {
        Self {
            site,
            begun: context.request.received,
            limits: context.limits,
            counted: context.rate_checks.counted(),
            fault,
        }
    }

    /// The limiters on its route, as far as that is known.
    pub(crate) fn limiters(self, snapshot: &Snapshot) -> Limiters<'_> {
        Limiters::new(snapshot.sites.get(self.site).map(|site| &*site.limiters), self.limits, None)
    }

    /// Makes the answer of one that is not let in, or has gone. What its way gathers is gathered once more, which needs
    /// no disk up to where it stopped.
    pub(crate) fn shed(
        self,
        snapshot: &Snapshot,
        head: &RequestHead,
        origin: Origin,
        fault: HttpError,
        answer: &mut Response,
    ) -> Served {
        // One that had failed already, and whose page is on disk, is told that.
        let fault = self.fault.filter(|_| fault.is_shed()).unwrap_or(fault);
        let mut context = RequestContext::new(head, origin, self.begun, snapshot);
        context.rate_checks = RateChecks::repeated(self.counted, self.fault);
        match snapshot.sites.get(self.site) {
            Some(site) => match travel(&mut context, site, Some(fault), answer) {
                Travelled::Answered => {}
                Travelled::NeedsDisk | Travelled::Call(_) => error_route::give_up(&context, answer),
            },
            None => error_response::fill(fault, answer),
        }
        Served::by(self.site, &mut context)
    }

    /// Makes the trip again on a thread that may wait for the disk, with everything it needs owned. Says too what its whole
    /// way has gathered.
    #[expect(
        clippy::disallowed_methods,
        reason = "files that are not in memory are what a core's few blocking threads are for"
    )]
    pub(crate) async fn on_blocking_thread(
        self,
        snapshot: &Arc<Snapshot>,
        head: &RequestHead,
        origin: Origin,
        answer: &mut Response,
    ) -> Result<(Served, NeedsDisk), NeedsCall> {
        let Self { site: number, fault, counted, begun, .. } = self;
        let snapshot = Arc::clone(snapshot);
        let head = head.clone();
        let made = tokio::task::spawn_blocking(move || {
            let mut answer = Response::default();
            answer.clear();
            let site = snapshot.sites.get(number)?;
            let mut context = RequestContext::new(&head, origin, begun, &snapshot);
            context.may_block = true;
            context.rate_checks = RateChecks::repeated(counted, fault);
            let travelled = travel(&mut context, site, fault, &mut answer);
            let counted = context.rate_checks.counted();
            Some((answer, travelled, Served::by(number, &mut context), counted, context.limits))
        });
        match made.await {
            Ok(Some((made, Travelled::Answered, served, _, limits))) => {
                *answer = made;
                Ok((served, NeedsDisk { limits, ..self }))
            }
            // Where it failed on that thread, it is the error routes that call.
            Ok(Some((_, Travelled::Call(_), served, counted, _))) => {
                Err(NeedsCall { site: number, begun, counted, fault: fault.or(served.fault) })
            }
            // The thread is gone, or asked for what it already has: a defect of ours.
            Ok(Some((_, Travelled::NeedsDisk, ..)) | None) | Err(_) => {
                error_response::fill(HttpError::FileUnreadable, answer);
                let served = Served::before_a_site(HttpError::FileUnreadable);
                Ok((Served { site: Some(number), ..served }, self))
            }
        }
    }
}

impl NeedsCall {
    /// Makes the trip once more, on the core: it has just been made, so what it looks for on disk is in the
    /// kernel's memory.
    pub(crate) fn call<'a>(&self, snapshot: &'a Snapshot, head: &'a RequestHead, origin: Origin) -> Call<'a> {
        let mut context = RequestContext::new(head, origin, self.begun, snapshot);
        context.may_block = true;
        context.rate_checks = RateChecks::repeated(self.counted, self.fault);
        let travelled = snapshot
            .sites
            .get(self.site)
            .map(|site| travel(&mut context, site, self.fault, &mut Response::default()));
        let callee = match travelled {
            Some(Travelled::Call(callee)) => callee,
            // The disk has changed in between; nobody has that number.
            Some(Travelled::Answered | Travelled::NeedsDisk) | None => Callee::App(u32::MAX),
        };
        Call { site: self.site, context, callee }
    }
}

/// Where a trip has led.
enum Travelled {
    Answered,
    NeedsDisk,
    Call(Callee),
}

/// Sends a request through a site's routes; where it has failed since then, on through its error routes.
fn travel<'a>(
    context: &mut RequestContext<'a>,
    site: &'a Site,
    since: Option<HttpError>,
    answer: &mut Response,
) -> Travelled {
    let halt = match (context.make(&site.routes, answer), since) {
        // What was gathered on the way, the root above all, holds for error routes too.
        (_, Some(fault)) => Halt::HttpError(fault),
        (Ok(()), None) => return Travelled::Answered,
        (Err(halt), None) => halt,
    };
    match halt {
        Halt::HttpError(fault) => match error_route::take(context, site, fault, answer) {
            Led::Answered => Travelled::Answered,
            Led::NeedsDisk => Travelled::NeedsDisk,
            Led::Call(callee) => Travelled::Call(callee),
        },
        Halt::NeedsDisk => {
            answer.clear();
            Travelled::NeedsDisk
        }
        Halt::Call(callee) => {
            answer.clear();
            Travelled::Call(callee)
        }
    }
}
