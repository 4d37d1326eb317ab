//! The request's body on its way to the worker, as fast as the worker takes it.

use std::future::poll_fn;

use onehop_wire as wire;
use tokio::sync::Notify;

use super::head;
use super::stream::Stream;
use crate::limits::UPLOAD_PIECE_BYTES_MAX;
use crate::request::conn::exchange::Upload;
use crate::request::rescue::Fault;

/// Sends the rest of the body, then watches the client. Ends only when the call has to end: the client is
/// gone, or its body is no body.
pub(super) async fn send(
    upload: &mut Upload<'_, '_>,
    stream: &Stream,
    is_complete: bool,
    continued: &Notify,
) -> Fault {
    if !is_complete {
        if upload.expects_continue() {
            tokio::select! {
                biased;
                () = continued.notified() => {}
                begun = upload.begun() => match begun {
                    // It did not wait (RFC 9110 section 10.1.1); the worker still has to ask.
                    Ok(()) => continued.notified().await,
                    Err(fault) => return fault,
                },
            }
        }
        if let Err(fault) = send_body(upload, stream).await {
            return fault;
        }
    }
    upload.gone().await;
    Fault::ClientGone
}

async fn send_body(upload: &mut Upload<'_, '_>, stream: &Stream) -> Result<(), Fault> {
    let mut piece = Vec::new();
    loop {
        let room = poll_fn(|context| stream.poll_room(UPLOAD_PIECE_BYTES_MAX, context)).await;
        let room = room.map_err(|_| Fault::WorkerDied)?;
        piece.clear();
        let is_complete = match upload.next(&mut piece, room).await {
            Ok(is_complete) => is_complete,
            Err(fault) => {
                stream.give_back_room(room);
                return Err(fault);
            }
        };
        stream.give_back_room(room.saturating_sub(piece.len()));
        if !is_complete {
            stream.send(&piece, false);
            continue;
        }
        let has_trailers = upload.with_trailers(|lines| !lines.is_empty());
        if has_trailers {
            stream.send(&piece, false);
            let written = upload.with_trailers(|lines| {
                stream.write(true, |out, slot, generation| {
                    wire::encode::trailers(out, slot, generation, |writer| head::write_lines(lines, writer))
                })
            });
            if written.is_ok() {
                return Ok(());
            }
            piece.clear();
        }
        stream.send(&piece, true);
        return Ok(());
    }
}
