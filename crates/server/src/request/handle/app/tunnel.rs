//! An upgraded connection: bytes both ways, each as fast as the other side takes them.

use std::future::poll_fn;

use onehop_wire::Payload;

use super::stream::{Stream, next_frame};
use crate::limits::UPLOAD_PIECE_BYTES_MAX;
use crate::request::conn::exchange::{Download, Upload};

/// Moves bytes until both sides have ended, or one of them is gone.
pub(super) async fn run(stream: &Stream, upload: &mut Upload<'_, '_>, download: &mut Download<'_, '_>) {
    upload.become_tunnel();
    stream.become_tunnel();
    let farewell_over = download.farewell_over();
    let to_worker = async {
        let mut piece = Vec::new();
        loop {
            let room = poll_fn(|context| stream.poll_room(UPLOAD_PIECE_BYTES_MAX, context)).await;
            let Ok(room) = room else { return };
            piece.clear();
            let ended = upload.next(&mut piece, room).await;
            stream.give_back_room(room.saturating_sub(piece.len()));
            match ended {
                Ok(is_end) => stream.send(&piece, is_end),
                Err(_) => return,
            }
            if matches!(ended, Ok(true)) {
                // The client has closed its side; the worker may have more to say.
                std::future::pending::<()>().await;
            }
        }
    };
    let to_client = async {
        let mut frames = Vec::new();
        while poll_fn(|context| stream.poll_frames(&mut frames, context)).await.is_ok() {
            let mut rest = &frames[..];
            while let Some((frame, used)) = next_frame(rest) {
                let Payload::Data(bytes) = frame.payload else { return };
                if download.data(bytes).await.is_err() {
                    return;
                }
                stream.consumed(bytes.len());
                if frame.end {
                    return;
                }
                rest = rest.get(used..).unwrap_or_default();
            }
        }
    };
    tokio::select! {
        () = to_worker => {}
        () = to_client => {}
        () = farewell_over => {}
    }
}
