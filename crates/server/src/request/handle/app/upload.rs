//! The request's body on its way to the worker, as fast as the worker takes it.

use onehop_message::error::HttpError;
use onehop_wire as wire;
use tokio::sync::Notify;

use super::head;
use crate::limits::UPLOAD_PIECE_BYTES_MAX;
use onehop_connection::RequestBody;
use onehop_workers::stream::Stream;

/// What is still to be sent of a request when its head is out.
pub(super) struct Rest<'a> {
    /// What is there and did not travel with the head.
    pub(super) piece: &'a [u8],
    /// Nothing follows that.
    pub(super) is_last: bool,
    /// The head said END.
    pub(super) is_sent: bool,
}

/// Sends the rest of the body, then watches the client. Ends only when the call has to end: the client is
/// gone, or its body is no body.
pub(super) async fn send(
    upload: &mut RequestBody<'_, '_>,
    stream: &Stream,
    rest: Rest<'_>,
    continued: &Notify,
) -> HttpError {
    if !rest.is_sent
        && let Err(fault) = send_rest(upload, stream, rest, continued).await
    {
        return fault;
    }
    upload.gone().await;
    HttpError::ClientGone
}

async fn send_rest(
    upload: &mut RequestBody<'_, '_>,
    stream: &Stream,
    rest: Rest<'_>,
    continued: &Notify,
) -> Result<(), HttpError> {
    if upload.expects_continue() {
        tokio::select! {
            biased;
            () = continued.notified() => {}
            begun = upload.started() => {
                begun?;
                // It did not wait (RFC 9110 section 10.1.1); the worker still has to ask.
                tokio::select! {
                    () = continued.notified() => {}
                    () = upload.gone() => return Err(HttpError::ClientGone),
                }
            }
        }
    }
    if rest.is_last {
        return pass_on_last(upload, stream, rest.piece).await;
    }
    pass_on(upload, stream, rest.piece, false).await?;
    let mut piece = Vec::new();
    loop {
        piece.clear();
        let is_complete = upload.next(&mut piece, UPLOAD_PIECE_BYTES_MAX).await?;
        if is_complete {
            return pass_on_last(upload, stream, &piece).await;
        }
        pass_on(upload, stream, &piece, false).await?;
    }
}

/// Sends the last bytes of a body, and its trailers.
async fn pass_on_last(
    upload: &mut RequestBody<'_, '_>,
    stream: &Stream,
    bytes: &[u8],
) -> Result<(), HttpError> {
    if !upload.has_trailers() {
        return pass_on(upload, stream, bytes, true).await;
    }
    pass_on(upload, stream, bytes, false).await?;
    let written = upload.with_trailers(|lines| {
        stream.write(true, |out, slot, generation| {
            wire::encode::trailers(out, slot, generation, |writer| head::write_trailers(lines, writer))
        })
    });
    // More than a head block may have: the body is whole all the same.
    if written.is_err() { pass_on(upload, stream, &[], true).await } else { Ok(()) }
}

/// Sends bytes as the worker takes them, and notices meanwhile that the client leaves.
async fn pass_on(
    upload: &mut RequestBody<'_, '_>,
    stream: &Stream,
    bytes: &[u8],
    end: bool,
) -> Result<(), HttpError> {
    tokio::select! {
        biased;
        sent = stream.send_all(bytes, end) => sent.map_err(|_| HttpError::WorkerDied),
        () = upload.gone() => Err(HttpError::ClientGone),
    }
}
