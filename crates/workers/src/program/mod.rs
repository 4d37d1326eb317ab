//! Programs that speak HTTP: a request goes out on a connection of this core's, or on a stream of one, its response comes
//! back.
//!
//! [`request_head`] writes the request's head, [`delegate`] says what becomes of the answer; what happens in between is
//! `onehop_upstream::exchange`. A request that went out counts as begun: it is sent again only where a kept
//! connection turns out to have been closed meanwhile, nothing of an response came, and the method means the same twice
//! as once; or where the program says that it did not begin it (RFC 9113 section 8.7).

mod delegate;
mod request_head;

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use onehop_config::checked::{AppAddress, AppProtocol, AppRun};
use onehop_message::error::HttpError;
use onehop_message::response::Response;

use crate::call::{Call, HeldSlot};
use crate::limits::{PROGRAM_DIAL_TIMEOUT, PROGRAM_IDLE_MAX, PROGRAM_IDLE_TIMEOUT, SERVER_CONCURRENCY};
use crate::{ConnectionEvent, Transport, Worker, file};
use delegate::Program;
use onehop_connection::{Ended, RequestBody, ResponseWriter, Sent};
use onehop_upstream::exchange::{
    self, Broke, ClientSide, Exchange, HeadFrom, Received, Timeouts, is_idempotent,
};
use onehop_upstream::peer::{Endpoint, Peer, PeerSettings, Versions};
use onehop_upstream::pool::Pools;
use onehop_upstream::{Link, Reuse};

/// Why an exchange came to nothing.
pub enum Failed {
    /// There is no way to the program; the request was not begun.
    Unreachable,
    /// Anything else.
    HttpError(HttpError),
}

/// One request and its response.
pub async fn exchange(
    call: &Call<'_>,
    pools: &Rc<Pools>,
    slot: HeldSlot<'_>,
    request_body: &mut RequestBody<'_, '_>,
    writer: &mut ResponseWriter<'_, '_>,
    response: &mut Response,
) -> Result<Ended, Failed> {
    let worker = Arc::clone(&slot.worker);
    let Transport::Http { address, uid } = &worker.transport else { return Err(Failed::Unreachable) };
    let peer = worker.upstream(|| upstream_of(address, *uid, call.pool.app.protocol));
    let mut program = Program::new(call, slot);
    let timeouts = Timeouts {
        head: Some(call.pool.app.timeout),
        head_from: HeadFrom::LastOfClient,
        read: None,
        write: None,
        asking: None,
    };
    let may_be_sent_twice = call.is_complete && is_idempotent(call.request.head.method());
    let reuse = if may_be_sent_twice { Reuse::Any } else { Reuse::Alive };
    let connected = connect(call, pools, peer, reuse, request_body, writer).await;
    if matches!(connected, Err(Failed::Unreachable)) {
        report_unreachable(call, &worker);
    }
    let mut connection = connected?;
    let mut is_second = false;
    loop {
        let mut exchange = Exchange {
            pools,
            request: call.request,
            edits: call.edits,
            connection: &connection,
            opening: &call.opening,
            is_complete: call.is_complete,
            timeouts,
        };
        let client =
            ClientSide { request_body: &mut *request_body, writer: &mut *writer, response: &mut *response };
        let outcome = exchange::run(&mut exchange, &mut program, client).await;
        let broke = match outcome.result {
            Ok(received) => {
                worker.was_heard(Instant::now());
                if outcome.is_reusable {
                    pools.give_back(peer, connection);
                }
                return match received {
                    Received::Ended(ended) => Ok(ended),
                    Received::Instead => send_file(call, &mut program, response).await,
                };
            }
            Err(broke) => broke,
        };
        let is_stale = matches!(broke, Broke::Silently) && connection.is_kept() && may_be_sent_twice;
        let is_refused = matches!(broke, Broke::Refused) && outcome.has_whole_body;
        // The program's side learns at once that nobody waits for the rest.
        drop(connection);
        if is_second || !(is_stale || is_refused) || writer.state() != Sent::Nothing {
            return Err(Failed::HttpError(broke.fault::<Program<'_>>()));
        }
        is_second = true;
        response.clear();
        let fresh = connect(call, pools, peer, Reuse::Never, request_body, writer).await;
        connection = fresh.map_err(|failed| match failed {
            // It may have been begun, so it goes nowhere else.
            Failed::Unreachable if is_stale => Failed::HttpError(HttpError::WorkerDied),
            failed => failed,
        })?;
    }
}

/// The response is a file that the program has named.
async fn send_file(
    call: &Call<'_>,
    program: &mut Program<'_>,
    response: &mut Response,
) -> Result<Ended, Failed> {
    let wanted = program.wanted.take().ok_or(Failed::HttpError(HttpError::WorkerBroken))?;
    file::open(call.request, call.pool, wanted, response).await.map_err(Failed::HttpError)?;
    call.edits.finish(response);
    Ok(Ended::Complete)
}

/// A connection, kept or new.
async fn connect(
    call: &Call<'_>,
    pools: &Rc<Pools>,
    peer: &Arc<Peer>,
    reuse: Reuse,
    request_body: &mut RequestBody<'_, '_>,
    writer: &ResponseWriter<'_, '_>,
) -> Result<Link, Failed> {
    writer.expect_handler_within(PROGRAM_DIAL_TIMEOUT.min(call.pool.app.timeout));
    let late = poll_fn(|context| if writer.poll_late(context) { Poll::Ready(()) } else { Poll::Pending });
    tokio::select! {
        biased;
        connected = pools.get(peer, reuse) => connected.map_err(|_| Failed::Unreachable),
        () = request_body.gone(), if call.is_complete => Err(Failed::HttpError(HttpError::ClientGone)),
        () = late => Err(Failed::Unreachable),
    }
}

/// One that somebody else starts is looked at now, and not asked until it is back. One of ours tells its own
/// end; refusing connections for a moment is no reason to end it.
fn report_unreachable(call: &Call<'_>, worker: &Worker) {
    if matches!(call.pool.app.run, AppRun::Elsewhere { .. }) {
        let reason = "it takes no connections".to_owned();
        worker.report(ConnectionEvent::Lost { core: call.core.number, reason, is_broken: false });
    }
}

/// A program on this machine: its connections are made when they are needed, and kept for a while.
fn upstream_of(address: &AppAddress, uid: Option<u32>, protocol: AppProtocol) -> Arc<Peer> {
    let (label, endpoint) = match address {
        AppAddress::Tcp(address) => (address.to_string(), Endpoint::Address(*address)),
        AppAddress::Unix(path) => (format!("unix/{}", path.display()), Endpoint::Unix(path.clone(), uid)),
    };
    let settings = PeerSettings {
        versions: if protocol == AppProtocol::Http2 { Versions::Http2 } else { Versions::Http1 },
        // Requests that come while a connection is opened share it.
        queue: (SERVER_CONCURRENCY, PROGRAM_DIAL_TIMEOUT),
        dial_timeout: PROGRAM_DIAL_TIMEOUT,
        idle_timeout: PROGRAM_IDLE_TIMEOUT,
        idle_max: PROGRAM_IDLE_MAX,
        ..PeerSettings::default()
    };
    Peer::nearby(label, endpoint, settings)
}
