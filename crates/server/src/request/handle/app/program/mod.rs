//! Programs that speak HTTP/1.1: a request goes out on a connection of this core's, its answer comes back.
//!
//! [`ask`] writes the request's head, [`upload`] the body, [`download`] takes the answer, [`tunnel`] what
//! follows an upgrade. The connections are `request/upstream/`. A request that went out counts as begun:
//! it is sent again only where a kept connection turns out to have been closed meanwhile, nothing of an
//! answer came, and the method means the same twice as once.

mod ask;
mod download;
mod tunnel;
mod upload;

use std::cell::Cell;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use onehop_config::checked::AppRun;
use onehop_http1::Method;
use tokio::sync::Notify;

use super::pool::{LaneReport, Seat, Worker};
use super::{Call, Place};
use crate::limits::UPSTREAM_DIAL_DEADLINE;
use crate::request::answer::Answer;
use crate::request::conn::exchange::{Download, Sent, Upload};
use crate::request::handle::Ended;
use crate::request::rescue::Fault;
use crate::request::trip::Trip;
use crate::request::upstream::connection::{Buffers, Connection};
use crate::request::upstream::peer::Peer;
use crate::request::upstream::pool::{self, Wish};
use download::Received;

/// Why an exchange came to nothing.
pub(super) enum Failed {
    /// There is no way to the program; the request was not begun.
    Unreachable,
    /// Anything else.
    Fault(Fault),
}

/// Why one attempt came to nothing.
enum Broke {
    /// The connection ended before anything of an answer came.
    Silently,
    Fault(Fault),
}

/// What the halves of one exchange tell each other, and what decides whether the connection is kept.
#[derive(Default)]
struct Signals {
    /// The program has asked for the body.
    continued: Notify,
    /// The body was not sent in the order that both sides can rely on.
    is_spoilt: Cell<bool>,
}

/// The client's side of an exchange.
struct Way<'e, 'u, 'uc, 'd, 'dc> {
    upload: &'e mut Upload<'u, 'uc>,
    download: &'e mut Download<'d, 'dc>,
    answer: &'e mut Answer,
}

/// One request and its answer.
pub(super) async fn exchange(
    call: &Call<'_>,
    trip: &Trip<'_>,
    place: Place<'_>,
    upload: &mut Upload<'_, '_>,
    download: &mut Download<'_, '_>,
    answer: &mut Answer,
) -> Result<Ended, Failed> {
    let worker = Arc::clone(&place.worker);
    let Some(peer) = &worker.peer else { return Err(Failed::Unreachable) };
    let mut place = Some(place);
    let upstreams = &call.core.upstreams;
    let may_be_sent_twice = call.is_complete && is_idempotent(trip.head.method());
    let wish = if may_be_sent_twice { Wish::Any } else { Wish::Alive };
    let connected = connect(call, peer, wish, upload, download).await;
    if matches!(connected, Err(Failed::Unreachable)) {
        report_unreachable(call, &worker);
    }
    let mut connection = connected?;
    loop {
        let signals = Signals::default();
        let mut buffers = upstreams.lease();
        let way = Way { upload: &mut *upload, download: &mut *download, answer: &mut *answer };
        let ended = attempt(call, &connection, trip, &mut place, &mut buffers, way, &signals).await;
        let unread = buffers.input.unread().len();
        upstreams.give_back_buffers(buffers);
        let broke = match ended {
            Ok(ended) => {
                if !signals.is_spoilt.get() && connection.reuse(unread) {
                    pool::give_back(call.core, peer, connection);
                }
                return Ok(ended);
            }
            Err(broke) => broke,
        };
        let is_stale = matches!(broke, Broke::Silently) && connection.is_used();
        // The program's side learns at once that nobody waits for the rest.
        drop(connection);
        if is_stale && may_be_sent_twice && download.state() == Sent::Nothing {
            answer.clear();
            // It may have been begun, so it goes nowhere else.
            let fresh = connect(call, peer, Wish::Fresh, upload, download).await;
            connection = fresh.map_err(|failed| match failed {
                Failed::Unreachable => Failed::Fault(Fault::WorkerDied),
                Failed::Fault(fault) => Failed::Fault(fault),
            })?;
            continue;
        }
        let fault = match broke {
            Broke::Silently => Fault::WorkerDied,
            Broke::Fault(fault) => fault,
        };
        // After the head an error can only be a break.
        return match download.state() {
            Sent::Nothing => Err(Failed::Fault(fault)),
            _ => Ok(Ended::Broken(fault)),
        };
    }
}

/// Sends a request on a connection and takes its answer.
async fn attempt<'a>(
    call: &'a Call<'_>,
    connection: &Connection,
    trip: &Trip<'_>,
    place: &mut Option<Place<'a>>,
    buffers: &mut Buffers,
    way: Way<'_, '_, '_, '_, '_>,
    signals: &Signals,
) -> Result<Ended, Broke> {
    let Way { upload, download, answer } = way;
    ask::write(trip, call.trust, connection, upload, buffers).map_err(|_| Broke::Fault(Fault::WorkerDied))?;
    let seat = place.as_ref().map_or(Seat(0), |place| place.worker.seat);
    let Buffers { input, output, head, .. } = buffers;
    let received = {
        let uploading = upload::send(upload, connection, output, call, signals);
        let taking = download::Taking { trip, call, seat, connection, input, head, signals };
        let downloading = download::receive(taking, download, answer, place);
        tokio::select! {
            // The request goes first; reading before would only be a call in vain.
            biased;
            fault = uploading => Err(Broke::Fault(fault)),
            received = downloading => received,
        }
    };
    match received? {
        Received::Ended(ended) => Ok(ended),
        Received::Upgraded => {
            let patience = call.core.shared.timeouts.body_progress;
            let is_told = matches!(call.pool.app.run, AppRun::Handler { .. });
            tunnel::run(connection, input, upload, download, patience, is_told).await;
            Ok(Ended::Tunnelled)
        }
    }
}

/// A connection, kept or new.
async fn connect(
    call: &Call<'_>,
    peer: &Arc<Peer>,
    wish: Wish,
    upload: &mut Upload<'_, '_>,
    download: &Download<'_, '_>,
) -> Result<Connection, Failed> {
    download.expect_handler_within(UPSTREAM_DIAL_DEADLINE.min(call.pool.app.timeout));
    let late = poll_fn(|context| if download.poll_late(context) { Poll::Ready(()) } else { Poll::Pending });
    tokio::select! {
        biased;
        connected = pool::get(call.core, peer, wish) => connected.map_err(|_| Failed::Unreachable),
        () = upload.gone(), if call.is_complete => Err(Failed::Fault(Fault::ClientGone)),
        () = late => Err(Failed::Unreachable),
    }
}

/// One that somebody else starts is looked at now, and not asked until it is back. One of ours tells its own
/// end; refusing connections for a moment is no reason to end it.
fn report_unreachable(call: &Call<'_>, worker: &Worker) {
    if matches!(call.pool.app.run, AppRun::Elsewhere { .. }) {
        let reason = "it takes no connections".to_owned();
        worker.report(LaneReport::Lost { core: call.core.number, reason, is_broken: false });
    }
}

/// RFC 9110 section 9.2.2. Of a method that is not known nothing is known.
fn is_idempotent(method: Method) -> bool {
    match method {
        Method::Get | Method::Head | Method::Put | Method::Delete | Method::Options | Method::Trace => true,
        Method::Post | Method::Patch | Method::Connect | Method::Other => false,
    }
}
