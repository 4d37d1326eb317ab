//! Sends a request's body to the worker, as fast as the worker takes it.

use onehop_connection::RequestBody;
use onehop_connection::limits::UPLOAD_PIECE_BYTES_MAX;
use onehop_message::error::HttpError;
use onehop_wire as wire;
use tokio::sync::Notify;

use crate::head;
use crate::stream::Stream;

/// The part of a request's body that is not sent yet when its head is.
pub(crate) struct Remaining<'a> {
    /// Bytes that have arrived and did not travel with the head.
    pub(crate) piece: &'a [u8],
    /// Nothing follows that.
    pub(crate) is_last: bool,
    /// The head frame had END.
    pub(crate) is_sent: bool,
}

/// Sends the rest of the body, then watches the client. Ends only when the call has to end: the client is gone, or its
/// body is malformed.
pub(crate) async fn send(
    body: &mut RequestBody<'_, '_>,
    stream: &Stream,
    remaining: Remaining<'_>,
    continued: &Notify,
) -> HttpError {
    if !remaining.is_sent
        && let Err(error) = send_remaining(body, stream, remaining, continued).await
    {
        return error;
    }
    body.gone().await;
    HttpError::ClientGone
}

async fn send_remaining(
    body: &mut RequestBody<'_, '_>,
    stream: &Stream,
    remaining: Remaining<'_>,
    continued: &Notify,
) -> Result<(), HttpError> {
    if body.expects_continue() {
        tokio::select! {
            biased;
            () = continued.notified() => {}
            started = body.started() => {
                started?;
                // It did not wait (RFC 9110 section 10.1.1); the worker still has to ask.
                tokio::select! {
                    () = continued.notified() => {}
                    () = body.gone() => return Err(HttpError::ClientGone),
                }
            }
        }
    }
    if remaining.is_last {
        return pass_on_last(body, stream, remaining.piece).await;
    }
    pass_on(body, stream, remaining.piece, false).await?;
    let mut piece = Vec::new();
    loop {
        piece.clear();
        let is_complete = body.next(&mut piece, UPLOAD_PIECE_BYTES_MAX).await?;
        if is_complete {
            return pass_on_last(body, stream, &piece).await;
        }
        pass_on(body, stream, &piece, false).await?;
    }
}

/// Sends the last bytes of a body, and its trailers.
async fn pass_on_last(
    body: &mut RequestBody<'_, '_>,
    stream: &Stream,
    bytes: &[u8],
) -> Result<(), HttpError> {
    if !body.has_trailers() {
        return pass_on(body, stream, bytes, true).await;
    }
    pass_on(body, stream, bytes, false).await?;
    let written = body.with_trailers(|lines| {
        stream.write(true, |out, slot, generation| {
            wire::encode::trailers(out, slot, generation, |writer| head::write_trailers(lines, writer))
        })
    });
    // More than a head block may have: the body is whole all the same.
    if written.is_err() { pass_on(body, stream, &[], true).await } else { Ok(()) }
}

/// Sends bytes as the worker takes them, and notices meanwhile that the client leaves.
async fn pass_on(
    body: &mut RequestBody<'_, '_>,
    stream: &Stream,
    bytes: &[u8],
    end: bool,
) -> Result<(), HttpError> {
    tokio::select! {
        biased;
        sent = stream.send_all(bytes, end) => sent.map_err(|_| HttpError::WorkerDied),
        () = body.gone() => Err(HttpError::ClientGone),
    }
}
