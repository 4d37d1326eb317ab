//! The data plane, in the order in which a request travels.
//!
//! [`listen`] accepts, [`conn`] makes requests of bytes, [`serve_request`] below finds the site and
//! sends the request through its routes ([`trip`], [`route`]), where [`admit`] may refuse it, to a handler
//! ([`handle`]); [`rescue`] answers where none could. Never imports `control/`: what it needs is in the snapshot.

pub mod admit;
pub mod answer;
mod conn;
pub mod core;
pub mod handle;
mod hop;
pub mod listen;
pub mod origin;
pub mod rescue;
pub(crate) mod reserve;
pub mod route;
pub mod trip;
pub mod upstream;

use std::sync::Arc;

use onehop_http1::{Method, RequestHead};

use admit::rate::Asked;
use answer::Answer;
use handle::proxy::Member;
use origin::Origin;
use rescue::Fault;
use route::{Route, Snapshot};
use trip::{Callee, Halt, Handler, Trip};

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
    pub fault: Option<Fault>,
}

/// A request that needs the disk: the same trip has to be made where waiting is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeedsDisk {
    site: usize,
    /// Zones of `rate_limit` that have counted it.
    counted: u32,
}

/// What comes of a request's head.
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
    pub trip: Trip<'a>,
    /// Who.
    pub callee: Callee,
}

/// A request that needs the disk on its way to somebody else.
pub(crate) struct NeedsCall {
    site: usize,
    counted: u32,
}

/// The whole trip of a request, from its head to an answer.
pub fn serve_request<'a>(
    snapshot: &'a Snapshot,
    head: &'a RequestHead,
    origin: Origin,
    answer: &mut Answer,
) -> Outcome<'a> {
    // RFC 9110 section 9.3.6: a 2xx would promise a tunnel.
    if head.method() == Method::Connect {
        rescue::rescue(Fault::MethodNotAllowed, answer);
        let fault = Some(Fault::MethodNotAllowed);
        return Outcome::Served(Served {
            site: None,
            handler: Handler::None,
            upstream: None,
            reason: None,
            fault,
        });
    }
    // The host decides everything that follows; one that nobody answers learns nothing, not even
    // whether a path exists elsewhere.
    let found = snapshot.site_number(origin.listener, head.host());
    let Some((number, site)) = found.and_then(|number| Some((number, snapshot.sites.get(number)?))) else {
        rescue::rescue(Fault::UnknownHost, answer);
        return Outcome::Served(Served {
            site: None,
            handler: Handler::None,
            upstream: None,
            reason: None,
            fault: Some(Fault::UnknownHost),
        });
    };
    let mut trip = Trip::new(head, origin, snapshot);
    match travel(&mut trip, &site.routes, answer) {
        Travelled::Answered(fault) => Outcome::Served(Served {
            site: Some(number),
            handler: trip.handler,
            upstream: None,
            reason: None,
            fault,
        }),
        Travelled::NeedsDisk => {
            Outcome::NeedsDisk(NeedsDisk { site: number, counted: trip.asked.counted() })
        }
        Travelled::Call(callee) => Outcome::Call(Call { site: number, trip, callee }),
    }
}

impl NeedsDisk {
    /// Makes the trip again on a thread that may wait for the disk, with everything it needs owned.
    #[expect(
        clippy::disallowed_methods,
        reason = "files that are not in memory are what a core's few blocking threads are for"
    )]
    pub(crate) async fn on_blocking_thread(
        self,
        snapshot: &Arc<Snapshot>,
        head: &RequestHead,
        origin: Origin,
        answer: &mut Answer,
    ) -> Result<Served, NeedsCall> {
        let snapshot = Arc::clone(snapshot);
        let head = head.clone();
        let made = tokio::task::spawn_blocking(move || {
            let mut answer = Answer::default();
            answer.clear();
            let routes = snapshot.sites.get(self.site).map(|site| Arc::clone(&site.routes));
            let routes = routes.unwrap_or_default();
            let mut trip = Trip::new(&head, origin, &snapshot);
            trip.may_block = true;
            trip.asked = Asked::again(self.counted);
            let travelled = travel(&mut trip, &routes, &mut answer);
            let (handler, counted) = (trip.handler, trip.asked.counted());
            drop(trip);
            (answer, travelled, handler, counted)
        });
        let (made, handler, fault) = match made.await {
            Ok((made, Travelled::Answered(fault), handler, _)) => (made, handler, fault),
            Ok((_, Travelled::Call(_), _, counted)) => return Err(NeedsCall { site: self.site, counted }),
            // The thread is gone, or asked for what it already has: a defect of ours.
            Ok((_, Travelled::NeedsDisk, ..)) | Err(_) => {
                let mut made = Answer::default();
                rescue::rescue(Fault::FileUnreadable, &mut made);
                (made, Handler::None, Some(Fault::FileUnreadable))
            }
        };
        *answer = made;
        Ok(Served { site: Some(self.site), handler, upstream: None, reason: None, fault })
    }
}

impl NeedsCall {
    /// Makes the trip once more, on the core: it has just been made, so what it looks for on disk is in the
    /// kernel's memory.
    pub(crate) fn call<'a>(&self, snapshot: &'a Snapshot, head: &'a RequestHead, origin: Origin) -> Call<'a> {
        let mut trip = Trip::new(head, origin, snapshot);
        trip.may_block = true;
        trip.asked = Asked::again(self.counted);
        let routes = snapshot.sites.get(self.site).map(|site| &*site.routes).unwrap_or_default();
        let callee = match travel(&mut trip, routes, &mut Answer::default()) {
            Travelled::Call(callee) => callee,
            // The disk has changed in between; nobody has that number.
            Travelled::Answered(_) | Travelled::NeedsDisk => Callee::App(u32::MAX),
        };
        Call { site: self.site, trip, callee }
    }
}

/// Where a trip has led.
enum Travelled {
    Answered(Option<Fault>),
    NeedsDisk,
    Call(Callee),
}

/// Sends a request through a site's routes.
fn travel<'a>(trip: &mut Trip<'a>, routes: &'a [Route], answer: &mut Answer) -> Travelled {
    match trip.make(routes, answer) {
        Ok(()) => Travelled::Answered(None),
        Err(Halt::Fault(fault)) => {
            rescue::rescue(fault, answer);
            trip.amend_error(answer);
            Travelled::Answered(Some(fault))
        }
        Err(Halt::NeedsDisk) => {
            answer.clear();
            Travelled::NeedsDisk
        }
        Err(Halt::Call(callee)) => {
            answer.clear();
            Travelled::Call(callee)
        }
    }
}
