//! The request on its way to an upstream: its head, then its body as fast as the upstream takes it.

use onehop_message::error::HttpError;
use onehop_message::forwarding::passed_on_trailers;

use super::{Cause, Delegate, Exchange, HeadFrom, Signals};
use onehop_connection::RequestBody;
use onehop_connection::limits::{COPIED_BODY_BYTES_MAX, UPLOAD_PIECE_BYTES_MAX};

/// Why a body was not sent to its end.
enum Stopped {
    /// The upstream takes no more. It may have answered already, so that is for the other half to see.
    ByUpstream,
    /// It has taken nothing for too long.
    Late,
    ByClient(HttpError),
}

/// Sends what `output` holds, then the body, then watches the client. Ends only when the exchange has to
/// end: the client is gone, or its body is no body.
pub(super) async fn send<L: Delegate>(
    request_body: &mut RequestBody<'_, '_>,
    exchange: &Exchange<'_>,
    output: &mut Vec<u8>,
    signals: &Signals,
) -> HttpError {
    if !send_at_once(request_body, exchange, output).await {
        // Large, and not the common client: in a box of its own it costs the others nothing.
        match Box::pin(send_all(request_body, exchange, output, signals)).await {
            Ok(()) | Err(Stopped::ByUpstream) => {}
            Err(Stopped::Late) => return L::fault(Cause::Late),
            Err(Stopped::ByClient(fault)) => return fault,
        }
    }
    signals.is_sent.set(true);
    if exchange.timeouts.head_from == HeadFrom::WholeRequest
        && let Some(time) = exchange.timeouts.head
    {
        request_body.expect_handler_within(time);
    }
    request_body.gone().await;
    HttpError::ClientGone
}

/// Sends a request that is there as a whole, if the socket takes it as a whole. What it does not take stays in `output`.
async fn send_at_once(
    request_body: &RequestBody<'_, '_>,
    exchange: &Exchange<'_>,
    output: &mut Vec<u8>,
) -> bool {
    if !exchange.is_complete || exchange.opening.len() > COPIED_BODY_BYTES_MAX {
        return false;
    }
    exchange.connection.codec().write_data(output, exchange.opening);
    finish(request_body, exchange, output);
    match exchange.connection.write_now(output).await {
        Ok(None) => true,
        Ok(Some(written)) => {
            output.drain(..written);
            false
        }
        // It may have answered already, so that is for the other half to see.
        Err(_) => true,
    }
}

async fn send_all(
    request_body: &mut RequestBody<'_, '_>,
    exchange: &Exchange<'_>,
    output: &mut Vec<u8>,
    signals: &Signals,
) -> Result<(), Stopped> {
    let mut is_complete = exchange.is_complete;
    if is_complete && exchange.opening.len() <= COPIED_BODY_BYTES_MAX {
        // The rest of what was to go at once.
        return write(request_body, exchange, output, &[]).await;
    }
    send_piece(request_body, exchange, output, exchange.opening, is_complete).await?;
    if is_complete {
        return Ok(());
    }
    if request_body.expects_continue() {
        // Until the upstream has asked for it, a body that is sent or left away leaves the two sides with
        // different ideas of what comes next (the way of CVE-2024-24791).
        signals.is_spoilt.set(true);
        tokio::select! {
            biased;
            () = signals.continued.notified() => signals.is_spoilt.set(signals.is_unasked.get()),
            // A client need not wait for ever (RFC 9110 section 10.1.1); then neither do we.
            begun = request_body.started() => begun.map_err(Stopped::ByClient)?,
        }
    }
    let mut piece = Vec::new();
    while !is_complete {
        piece.clear();
        let next = request_body.next(&mut piece, UPLOAD_PIECE_BYTES_MAX).await;
        signals.is_body_taken.set(true);
        is_complete = next.map_err(Stopped::ByClient)?;
        send_piece(request_body, exchange, output, &piece, is_complete).await?;
    }
    Ok(())
}

/// Sends what is in `output` and a piece of the body: little is copied, much is written from where it lies.
async fn send_piece(
    request_body: &mut RequestBody<'_, '_>,
    exchange: &Exchange<'_>,
    output: &mut Vec<u8>,
    piece: &[u8],
    is_last: bool,
) -> Result<(), Stopped> {
    let codec = || exchange.connection.codec();
    if piece.len() <= COPIED_BODY_BYTES_MAX {
        codec().write_data(output, piece);
    } else {
        codec().write_data_frame(output, piece.len() as u64);
        write(request_body, exchange, output, piece).await?;
        output.clear();
        codec().write_data_frame_end(output);
    }
    if is_last {
        finish(request_body, exchange, output);
    }
    write(request_body, exchange, output, &[]).await?;
    output.clear();
    Ok(())
}

/// Ends the body, with its trailers.
fn finish(request_body: &RequestBody<'_, '_>, exchange: &Exchange<'_>, output: &mut Vec<u8>) {
    request_body.with_trailers(|lines| {
        let mut passed_on = Vec::new();
        passed_on_trailers(lines, |line| passed_on.extend_from_slice(line));
        exchange.connection.codec().finish(output, &passed_on);
    });
}

/// Ends when the upstream has taken nothing for as long as it may. One that takes a long body slowly is not late.
async fn stuck(exchange: &Exchange<'_>) {
    match exchange.timeouts.write {
        Some(time) => exchange.connection.stuck_for(time).await,
        None => std::future::pending().await,
    }
}

/// Writes, and watches the client while the upstream takes nothing: nobody else would see it go.
async fn write(
    request_body: &mut RequestBody<'_, '_>,
    exchange: &Exchange<'_>,
    first: &[u8],
    second: &[u8],
) -> Result<(), Stopped> {
    tokio::select! {
        biased;
        written = exchange.connection.write(first, second) => written.map_err(|_| Stopped::ByUpstream),
        () = request_body.gone() => Err(Stopped::ByClient(HttpError::ClientGone)),
        () = stuck(exchange) => Err(Stopped::Late),
    }
}
