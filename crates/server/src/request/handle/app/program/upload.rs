//! The request on its way to a program: its head, then its body as fast as the program takes it.

use super::super::{Call, head};
use super::Signals;
use crate::limits::{COPIED_BODY_BYTES_MAX, UPLOAD_PIECE_BYTES_MAX};
use crate::request::conn::exchange::Upload;
use crate::request::rescue::Fault;
use crate::request::upstream::connection::Connection;

/// Why a body was not sent to its end.
enum Stopped {
    /// The program takes no more. It may have answered already, so that is for the other half to see.
    ByProgram,
    ByClient(Fault),
}

/// Sends what `output` holds, then the body, then watches the client. Ends only when the exchange has to
/// end: the client is gone, or its body is no body.
pub(super) async fn send(
    upload: &mut Upload<'_, '_>,
    connection: &Connection,
    output: &mut Vec<u8>,
    call: &Call<'_>,
    signals: &Signals,
) -> Fault {
    match send_all(upload, connection, output, call, signals).await {
        Ok(()) | Err(Stopped::ByProgram) => {}
        Err(Stopped::ByClient(fault)) => return fault,
    }
    upload.gone().await;
    Fault::ClientGone
}

async fn send_all(
    upload: &mut Upload<'_, '_>,
    connection: &Connection,
    output: &mut Vec<u8>,
    call: &Call<'_>,
    signals: &Signals,
) -> Result<(), Stopped> {
    let mut is_complete = call.is_complete;
    send_piece(upload, connection, output, &call.opening, is_complete).await?;
    if is_complete {
        return Ok(());
    }
    if upload.expects_continue() {
        // Until the program has asked for it, a body that is sent or left away leaves the two sides with
        // different ideas of what comes next (the way of CVE-2024-24791).
        signals.is_spoilt.set(true);
        tokio::select! {
            biased;
            () = signals.continued.notified() => signals.is_spoilt.set(false),
            // A client need not wait for ever (RFC 9110 section 10.1.1); then neither do we.
            begun = upload.begun() => begun.map_err(Stopped::ByClient)?,
        }
    }
    let mut piece = Vec::new();
    while !is_complete {
        piece.clear();
        let next = upload.next(&mut piece, UPLOAD_PIECE_BYTES_MAX).await;
        is_complete = next.map_err(Stopped::ByClient)?;
        send_piece(upload, connection, output, &piece, is_complete).await?;
    }
    Ok(())
}

/// Sends what is in `output` and a piece of the body: little is copied, much is written from where it lies.
async fn send_piece(
    upload: &mut Upload<'_, '_>,
    connection: &Connection,
    output: &mut Vec<u8>,
    piece: &[u8],
    is_last: bool,
) -> Result<(), Stopped> {
    if piece.len() <= COPIED_BODY_BYTES_MAX {
        connection.codec().write_data(output, piece);
    } else {
        connection.codec().write_data_frame(output, piece.len() as u64);
        write(upload, connection, output, piece).await?;
        output.clear();
        connection.codec().write_data_frame_end(output);
    }
    if is_last {
        upload.with_trailers(|lines| {
            let mut passed_on = Vec::new();
            head::passed_on_trailers(lines, |line| passed_on.extend_from_slice(line));
            connection.codec().finish(output, &passed_on);
        });
    }
    write(upload, connection, output, &[]).await?;
    output.clear();
    Ok(())
}

/// Writes, and watches the client while the program takes nothing: nobody else would see it go.
async fn write(
    upload: &mut Upload<'_, '_>,
    connection: &Connection,
    first: &[u8],
    second: &[u8],
) -> Result<(), Stopped> {
    tokio::select! {
        biased;
        written = connection.write(first, second) => written.map_err(|_| Stopped::ByProgram),
        () = upload.gone() => Err(Stopped::ByClient(Fault::ClientGone)),
    }
}
