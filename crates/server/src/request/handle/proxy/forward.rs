//! One attempt: a connection to the chosen upstream, the request on it, its response.
//!
//! Where a kept connection dies before a byte of an response, a request that means the same twice as once and is still
//! held as a whole is sent once more, on a fresh connection to the same upstream. Tells the upstream's health what was
//! met.

use std::sync::Arc;
use std::time::Instant;

use onehop_message::error::{ErrorSource, HttpError, is_exhaustion};
use onehop_message::forwarding::asks_for_upgrade;
use rustix::io::Errno;

use super::Call;
use super::delegate::Forwarding;
use super::retry::Failed;
use crate::limits::PROXY_CONTINUE_WAIT;
use crate::request::context::RequestContext;
use onehop_connection::Ended;
use onehop_connection::RequestBody;
use onehop_upstream::WaitingClient;
use onehop_upstream::exchange::{
    self, Broke, ClientSide, Exchange, HeadFrom, Received, Timeouts, is_idempotent,
};
use onehop_upstream::member::Member;
use onehop_upstream::{ConnectError, Link, Reuse};

/// Sends a request to an upstream and its response to the client.
pub(super) async fn send(
    call: &Call<'_>,
    context: &RequestContext<'_>,
    member: &Arc<Member>,
    begun: Instant,
    client: ClientSide<'_, '_, '_, '_, '_>,
) -> Result<Ended, Failed> {
    let ClientSide { request_body, writer, response } = client;
    let _in_flight = member.begin();
    let settings = &call.proxy.settings;
    let mut forwarding = Forwarding::new(call, context, member, begun);
    let may_be_sent_twice = call.opening.is_complete && is_idempotent(context.request.head.method());
    let reuse = if may_be_sent_twice { Reuse::Any } else { Reuse::Alive };
    let mut connection = connect(call, context, member, reuse, request_body).await?;
    let mut is_second = false;
    loop {
        let mut exchange = Exchange {
            pools: call.pools,
            request: &context.request,
            edits: context,
            connection: &connection,
            opening: &call.opening.bytes,
            is_complete: call.opening.is_complete,
            timeouts: timeouts(&settings.transport),
        };
        let client =
            ClientSide { request_body: &mut *request_body, writer: &mut *writer, response: &mut *response };
        let outcome = exchange::run(&mut exchange, &mut forwarding, client).await;
        let broke = match outcome.result {
            Ok(Received::Ended(ended)) => {
                if outcome.is_reusable {
                    call.pools.give_back(&member.peer, connection);
                }
                return Ok(ended);
            }
            // Nobody here asks for that.
            Ok(Received::Instead) => return Err(Failed::Final(HttpError::UpstreamDied)),
            Err(broke) => broke,
        };
        let is_stale = matches!(broke, Broke::Silently) && connection.is_kept() && may_be_sent_twice;
        // RFC 9113 section 8.7: whatever the method, it was not begun.
        let is_refused = matches!(broke, Broke::Refused) && outcome.has_whole_body;
        let failure = connection.failure();
        // The upstream learns at once that nobody waits for the rest.
        drop(connection);
        if !(is_stale || is_refused) || is_second {
            let fault = broke.fault::<Forwarding<'_>>();
            if fault.source() != ErrorSource::Upstream {
                return Err(Failed::Final(fault));
            }
            member.failed(&settings.passive_health);
            call.reason.replace(failure);
            let is_unsent = is_refused && call.opening.is_complete;
            return Err(if is_unsent { Failed::Unsent(fault) } else { Failed::Begun(fault) });
        }
        is_second = true;
        member.count_retry();
        if let Some(timing) = &context.timing {
            timing.attempt_failed();
        }
        response.clear();
        let reconnected = connect(call, context, member, Reuse::Never, request_body).await;
        connection = reconnected.map_err(|failed| match failed {
            // It may have been begun all the same.
            Failed::Unsent(fault) if is_stale => Failed::Begun(fault),
            failed => failed,
        })?;
    }
}

async fn connect(
    call: &Call<'_>,
    context: &RequestContext<'_>,
    member: &Member,
    reuse: Reuse,
    request_body: &mut RequestBody<'_, '_>,
) -> Result<Link, Failed> {
    let client = WaitingClient::default();
    let got = tokio::select! {
        biased;
        got = get(call, context, member, reuse, &client) => got,
        () = request_body.gone_or(|| client.half_closed(&member.peer)) => return Err(Failed::Final(HttpError::ClientGone)),
    };
    if let Some(timing) = &context.timing {
        let now = client.taken_at().unwrap_or_else(Instant::now);
        timing.handed_over_at(Some(client.waited()), now);
    }
    got.map_err(|none| {
        let (fault, reason) = match none {
            // That says nothing about the upstream.
            ConnectError::Refused(error) if Errno::from_io_error(&error).is_some_and(is_exhaustion) => {
                call.reason.replace(Some(error.to_string()));
                return Failed::Unsent(HttpError::NoDescriptors);
            }
            ConnectError::Refused(error) => (HttpError::UpstreamUnreachable, Some(error.to_string())),
            ConnectError::Name(reason) => (HttpError::UpstreamUnreachable, Some(reason)),
            ConnectError::Timeout => (HttpError::UpstreamDialTimeout, None),
            ConnectError::Tls(reason) => (HttpError::UpstreamTls, Some(reason)),
            ConnectError::Http2(reason) => {
                let reason = format!("it does not speak HTTP/2, which `versions` asks for: {reason}");
                (HttpError::UpstreamUnreachable, Some(reason))
            }
            // A full upstream may be healthy.
            ConnectError::QueueFull => return Failed::Unsent(HttpError::UpstreamQueueFull),
            ConnectError::QueueTimeout => return Failed::Unsent(HttpError::UpstreamQueueTimeout),
        };
        call.reason.replace(reason);
        member.failed(&call.proxy.settings.passive_health);
        Failed::Unsent(fault)
    })
}

async fn get(
    call: &Call<'_>,
    context: &RequestContext<'_>,
    member: &Member,
    reuse: Reuse,
    client: &WaitingClient,
) -> Result<Link, ConnectError> {
    let link = call.pools.get_for(&member.peer, reuse, client).await?;
    if asks_for_upgrade(&context.request.head) {
        link.await_upgrades().await;
    }
    Ok(link)
}

fn timeouts(transport: &onehop_config::checked::proxy::ProxyTransport) -> Timeouts {
    let (head, read) = (transport.response_header_timeout, transport.read_timeout);
    Timeouts {
        // Waiting for a head is reading, too.
        head: head.into_iter().chain(read).min(),
        head_from: HeadFrom::WholeRequest,
        read,
        write: transport.write_timeout,
        // Many servers never ask (RFC 9110 section 10.1.1 has the client wait in vain then), and not every client
        // goes on by itself.
        asking: Some(transport.expect_continue_timeout.unwrap_or(PROXY_CONTINUE_WAIT)),
    }
}
