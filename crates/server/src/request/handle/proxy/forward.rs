//! One attempt: a connection to the chosen upstream, the request on it, its answer.
//!
//! Where a kept connection dies before a byte of an answer, a request that means the same twice as once and is still
//! held as a whole is sent once more, on a fresh connection to the same upstream. Tells the upstream's health what was
//! met.

use std::sync::Arc;
use std::time::Instant;

use onehop_message::error::{ErrorSource, HttpError, is_exhaustion};
use rustix::io::Errno;

use super::Call;
use super::answer::Forwarding;
use super::retry::Failed;
use crate::limits::PROXY_CONTINUE_WAIT;
use crate::request::context::RequestContext;
use crate::request::exchange::{self, Broke, Exchange, HeadFrom, Patience, Received, Way, is_idempotent};
use onehop_connection::Ended;
use onehop_connection::RequestBody;
use onehop_upstream::WaitingClient;
use onehop_upstream::connection::Connection;
use onehop_upstream::member::Member;
use onehop_upstream::{ConnectError, Reuse};

/// Sends a request to an upstream and its answer to the client.
pub(super) async fn send(
    call: &Call<'_>,
    context: &RequestContext<'_>,
    member: &Arc<Member>,
    way: Way<'_, '_, '_, '_, '_>,
) -> Result<Ended, Failed> {
    let Way { upload, download, answer } = way;
    let _in_flight = member.begin();
    let settings = &call.proxy.settings;
    let mut forwarding = Forwarding::new(call, context, member, Instant::now());
    let may_be_sent_twice = call.opening.is_complete && is_idempotent(context.request.head.method());
    let reuse = if may_be_sent_twice { Reuse::Any } else { Reuse::Alive };
    let mut connection = connect(call, member, reuse, upload).await?;
    let mut is_second = false;
    loop {
        let mut exchange = Exchange {
            core: call.core,
            context,
            connection: &connection,
            opening: &call.opening.bytes,
            is_complete: call.opening.is_complete,
            patience: patience(&settings.transport),
        };
        let way = Way { upload: &mut *upload, download: &mut *download, answer: &mut *answer };
        let outcome = exchange::run(&mut exchange, &mut forwarding, way).await;
        let broke = match outcome.result {
            Ok(Received::Ended(ended)) => {
                if outcome.is_reusable {
                    call.core.upstreams.give_back(&member.peer, connection);
                }
                return Ok(ended);
            }
            // Nobody here asks for that.
            Ok(Received::Instead) => return Err(Failed::Final(HttpError::UpstreamDied)),
            Err(broke) => broke,
        };
        let is_stale = matches!(broke, Broke::Silently) && connection.is_kept();
        // The upstream learns at once that nobody waits for the rest.
        drop(connection);
        if !(is_stale && may_be_sent_twice) || is_second {
            let fault = broke.fault::<Forwarding<'_>>();
            if fault.source() != ErrorSource::Upstream {
                return Err(Failed::Final(fault));
            }
            member.failed(&settings.passive_health);
            call.reason.take();
            return Err(Failed::Begun(fault));
        }
        is_second = true;
        member.count_retry();
        answer.clear();
        // It may have been begun all the same.
        connection = connect(call, member, Reuse::Never, upload).await.map_err(|failed| match failed {
            Failed::Unsent(fault) => Failed::Begun(fault),
            failed => failed,
        })?;
    }
}

async fn connect(
    call: &Call<'_>,
    member: &Member,
    reuse: Reuse,
    upload: &mut RequestBody<'_, '_>,
) -> Result<Connection, Failed> {
    let client = WaitingClient::default();
    let got = tokio::select! {
        biased;
        got = call.core.upstreams.get_for(&member.peer, reuse, &client) => got,
        () = upload.gone_or(|| client.half_closed(&member.peer)) => return Err(Failed::Final(HttpError::ClientGone)),
    };
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
            // A full upstream may be healthy.
            ConnectError::QueueFull => return Failed::Unsent(HttpError::UpstreamQueueFull),
            ConnectError::QueueTimeout => return Failed::Unsent(HttpError::UpstreamQueueTimeout),
        };
        call.reason.replace(reason);
        member.failed(&call.proxy.settings.passive_health);
        Failed::Unsent(fault)
    })
}

fn patience(transport: &onehop_config::checked::proxy::ProxyTransport) -> Patience {
    let (head, read) = (transport.response_header_timeout, transport.read_timeout);
    Patience {
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
