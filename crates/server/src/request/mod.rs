//! The data plane, in the order in which a request travels.
//!
//! [`listen`] accepts, [`conn`] makes requests of bytes, [`serve_request`] below finds the site and
//! sends the request through its routes ([`trip`], [`route`]) to a handler ([`handle`]), [`rescue`]
//! answers where none could. Never imports `control/`: what it needs is in the snapshot.

pub mod answer;
mod conn;
pub mod core;
pub mod handle;
pub mod listen;
pub mod origin;
pub mod rescue;
pub mod route;
pub mod trip;

use std::sync::Arc;

use onehop_http1::{Method, RequestHead};

use answer::Answer;
use origin::Origin;
use rescue::Fault;
use route::{Route, Snapshot};
use trip::{Halt, Handler, Trip};

/// What became of a request, for counters and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Number of the site; `None` where no site answers that host.
    pub site: Option<usize>,
    /// Who answered.
    pub handler: Handler,
    /// Why nobody did.
    pub fault: Option<Fault>,
}

/// A request that needs the disk: the same trip has to be made where waiting is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeedsDisk {
    site: usize,
}

/// The whole trip of a request, from its head to an answer.
pub fn serve_request(
    snapshot: &Snapshot,
    head: &RequestHead,
    origin: Origin,
    answer: &mut Answer,
) -> Result<Served, NeedsDisk> {
    // RFC 9110 section 9.3.6: a 2xx would promise a tunnel.
    if head.method() == Method::Connect {
        rescue::rescue(Fault::MethodNotAllowed, answer);
        return Ok(Served { site: None, handler: Handler::None, fault: Some(Fault::MethodNotAllowed) });
    }
    // The host decides everything that follows; one that nobody answers learns nothing, not even
    // whether a path exists elsewhere.
    let Some(site) = snapshot.site_number(origin.listener, head.host()) else {
        rescue::rescue(Fault::UnknownHost, answer);
        return Ok(Served { site: None, handler: Handler::None, fault: Some(Fault::UnknownHost) });
    };
    let Some(routes) = snapshot.sites.get(site).map(|site| &site.routes) else {
        return Err(NeedsDisk { site });
    };
    match travel(snapshot, routes, head, origin, false, answer) {
        Ok((handler, fault)) => Ok(Served { site: Some(site), handler, fault }),
        Err(()) => Err(NeedsDisk { site }),
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
    ) -> Served {
        let snapshot = Arc::clone(snapshot);
        let head = head.clone();
        let made = tokio::task::spawn_blocking(move || {
            let mut answer = Answer::default();
            answer.clear();
            let routes = snapshot.sites.get(self.site).map(|site| Arc::clone(&site.routes));
            let ended = travel(&snapshot, &routes.unwrap_or_default(), &head, origin, true, &mut answer);
            (answer, ended)
        });
        let (made, (handler, fault)) = match made.await {
            Ok((made, Ok(ended))) => (made, ended),
            // The thread is gone, or asked for what it already has: a defect of ours.
            Ok((_, Err(()))) | Err(_) => {
                let mut made = Answer::default();
                rescue::rescue(Fault::FileUnreadable, &mut made);
                (made, (Handler::None, Some(Fault::FileUnreadable)))
            }
        };
        *answer = made;
        Served { site: Some(self.site), handler, fault }
    }
}

/// Sends a request through a site's routes. `Err`: it needs the disk and may not wait for it.
fn travel(
    snapshot: &Snapshot,
    routes: &[Route],
    head: &RequestHead,
    origin: Origin,
    may_block: bool,
    answer: &mut Answer,
) -> Result<(Handler, Option<Fault>), ()> {
    let mut trip = Trip::new(head, origin, snapshot);
    trip.may_block = may_block;
    match trip.make(routes, answer) {
        Ok(()) => Ok((trip.handler, None)),
        Err(Halt::Fault(fault)) => {
            rescue::rescue(fault, answer);
            trip.amend_error(answer);
            Ok((trip.handler, Some(fault)))
        }
        Err(Halt::NeedsDisk) => {
            answer.clear();
            Err(())
        }
    }
}
