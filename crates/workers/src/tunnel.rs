//! An upgraded connection: bytes both ways, each as fast as the other side takes them.
//!
//! Each direction ends by itself. What keeps a tunnel open whose one direction has ended is the worker's to
//! decide where the client has ended its own; where the worker has, only the client's bytes do.

use std::cell::Cell;
use std::future::poll_fn;
use std::time::Duration;

use onehop_connection::limits::UPLOAD_PIECE_BYTES_MAX;
use onehop_connection::{RequestBody, ResponseWriter};
use onehop_wire::Payload;
use tokio::sync::Notify;

use crate::stream::{Stream, next_frame};

/// Moves bytes until both sides have ended, or one of them is gone. Once the worker has ended its direction the
/// client may be silent for `silence_max` and no longer: one that does not close would keep the tunnel for ever.
pub(crate) async fn run(
    stream: &Stream,
    body: &mut RequestBody<'_, '_>,
    writer: &mut ResponseWriter<'_, '_>,
    silence_max: Duration,
) {
    body.become_tunnel();
    stream.become_tunnel();
    let has_spoken = Cell::new(false);
    let (client_ended, worker_ended) = (Notify::new(), Notify::new());
    let shutdown_grace_over = writer.shutdown_grace_over();
    let to_worker = async {
        let mut piece = Vec::new();
        loop {
            piece.clear();
            // Credit is taken only for what is there: tunnels are silent most of the time.
            let Ok(is_end) = body.next(&mut piece, UPLOAD_PIECE_BYTES_MAX).await else { return };
            if stream.send_all(&piece, is_end).await.is_err() {
                return;
            }
            has_spoken.set(true);
            if is_end {
                // The client has closed its side; the worker may send more.
                client_ended.notify_one();
                std::future::pending::<()>().await;
            }
        }
    };
    let to_client = async {
        if !pass_on(stream, writer).await || writer.finish_sending().await.is_err() {
            return;
        }
        worker_ended.notify_one();
        tokio::select! {
            () = client_ended.notified() => {}
            // Nothing but a RESET may come, or the connection be lost.
            _ = poll_fn(|context| stream.poll_frames(&mut Vec::new(), context)) => {}
        }
    };
    let client_silent = async {
        worker_ended.notified().await;
        has_spoken.set(true);
        while has_spoken.take() {
            tokio::time::sleep(silence_max).await;
        }
    };
    tokio::select! {
        () = to_worker => {}
        () = to_client => {}
        () = client_silent => {}
        () = shutdown_grace_over => {}
    }
}

/// Moves the worker's bytes; `true` where it has ended its direction, else the tunnel is over.
async fn pass_on(stream: &Stream, writer: &mut ResponseWriter<'_, '_>) -> bool {
    let mut frames = Vec::new();
    while poll_fn(|context| stream.poll_frames(&mut frames, context)).await.is_ok() {
        let mut rest = &frames[..];
        while let Some((frame, used)) = next_frame(rest) {
            let Payload::Data(bytes) = frame.payload else { return false };
            if writer.data(bytes).await.is_err() {
                return false;
            }
            stream.consumed(bytes.len());
            rest = rest.get(used..).unwrap_or_default();
            if frame.end {
                // A RESET may follow.
                return rest.is_empty();
            }
        }
    }
    false
}
