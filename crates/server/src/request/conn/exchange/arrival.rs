//! Bodies that arrive before their requests take a place: a place is for work, not for waiting on a client.
//!
//! A request whose body came with its head passes here at no cost. One that is known to fit is held until it is whole. One
//! whose length is not known, that does not fit, or whose client waits to be asked for it (RFC 9110 section 10.1.1), is
//! streamed, and takes its place at once: so many at a time that others find places, too. Beyond that, what fits is
//! held, and the rest waits for its turn to be streamed. Where nothing bounds requests there is no place to wait for.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use onehop_config::checked::Network;
use onehop_http1::BodyLength;
use onehop_limits::client::network;
use onehop_message::error::HttpError;
use onehop_message::trusted_proxies::Trust;

use crate::limits::{PROXY_QUEUE_WAIT, REQUEST_BUFFER_BYTES_MAX, STREAM_LOOK_PERIOD};
use crate::request::admission::{Acquired, Permits};
use crate::request::context::RequestContext;
use crate::request::route::{Backend, Snapshot};
use onehop_connection::limits::SLOW_SLOTS_PART;
use onehop_connection::slow_clients::{OwnerId, Reservation, Resource};
use onehop_connection::{ExchangeIo, RequestBody};
use onehop_workers::limits::APP_RETRY_AFTER_SECONDS;

/// What is to be known of who answers.
struct Terms<'s> {
    holder: OwnerId,
    /// Requests that it, or what stands before it, takes at a time.
    places: u64,
    /// Bytes of one body that are held.
    bytes: usize,
    /// For how long a request waits for its turn, and how it is answered then.
    wait: (Duration, HttpError),
    trusted: &'s [Network],
}

/// Waits for the body, where the request would otherwise have a place only to wait for it, and asks to be let in again
/// then.
pub(super) async fn arrive<'g>(
    acquired: Acquired<'g>,
    backend: Backend,
    context: &RequestContext<'_>,
    snapshot: &Snapshot,
    io: &ExchangeIo<'_>,
    upload: &mut RequestBody<'_, '_>,
) -> Result<Acquired<'g>, HttpError> {
    if upload.has_arrived() {
        return Ok(acquired);
    }
    let Some(terms) = terms(backend, snapshot, &acquired) else { return Ok(acquired) };
    let address = Trust::of(terms.trusted, &context.request.origin)
        .client(&context.request.head, &context.request.origin);
    let address = address.map(|address: IpAddr| network(Some(address)));
    let slow = io.core().slow_clients();
    let stream = || {
        let most = (terms.places / SLOW_SLOTS_PART).max(1);
        let held = slow.take(Resource::Streams(terms.holder), address, 1, most);
        let may = held.is_some();
        io.keep_streaming(held);
        may
    };
    let expects_continue = upload.expects_continue();
    let fits = matches!(upload.length(), BodyLength::Known(length) if length <= terms.bytes as u64);
    if (!fits || expects_continue) && stream() {
        return Ok(acquired);
    }
    let limiters = acquired.undo(Instant::now())?;
    let again = || Ok(Permits::acquire(limiters, io.core().number, Instant::now()));
    if !expects_continue {
        let most = io.core().client_buffers_max();
        let mut buffered: Option<Reservation> = None;
        let may_hold = |bytes: usize| match &mut buffered {
            Some(held) => held.grow(bytes as u64, most),
            None => {
                buffered = slow.take(Resource::Bytes, address, bytes as u64, most);
                buffered.is_some()
            }
        };
        let is_whole = upload.buffer_whole(terms.bytes, may_hold).await?;
        io.keep_buffered(buffered);
        if is_whole {
            return again();
        }
    }
    let (wait, late) = terms.wait;
    let begun = Instant::now();
    while !stream() {
        if begun.elapsed() > wait {
            return Err(late);
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(STREAM_LOOK_PERIOD) => {}
            () = upload.gone() => return Err(HttpError::ClientGone),
        }
    }
    again()
}

/// `None`: its bodies are streamed at once, because there are no places to wait for, or because the file says so.
fn terms<'s>(backend: Backend, snapshot: &'s Snapshot, acquired: &Acquired<'_>) -> Option<Terms<'s>> {
    let bound = acquired.places();
    match backend {
        Backend::App(number) => {
            let pool = snapshot.apps.get(number as usize)?;
            let bytes = pool
                .app
                .request_buffers
                .map_or(REQUEST_BUFFER_BYTES_MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
            Some(Terms {
                holder: OwnerId::of(pool),
                places: bound.unwrap_or(u64::MAX).min(pool.slots().max(1)),
                bytes,
                wait: (
                    pool.app.queue_wait,
                    HttpError::AppQueueTimeout { retry_after: APP_RETRY_AFTER_SECONDS },
                ),
                trusted: &pool.app.trusted_proxies,
            })
            .filter(|terms| terms.bytes > 0)
        }
        Backend::Proxy(number) => {
            let proxy = snapshot.proxies.get(number as usize)?;
            let ceilings = proxy.members.iter().map(|member| member.peer.settings.connections_max);
            let connections = ceilings.sum::<Option<usize>>().map(|places| places as u64);
            let places = bound.into_iter().chain(connections).min()?;
            let asked = usize::try_from(proxy.settings.request_buffer_bytes).unwrap_or(usize::MAX);
            Some(Terms {
                holder: OwnerId::of(proxy),
                places,
                bytes: asked.max(REQUEST_BUFFER_BYTES_MAX),
                wait: (PROXY_QUEUE_WAIT, HttpError::UpstreamQueueTimeout),
                trusted: &proxy.settings.trusted_proxies,
            })
        }
    }
}
