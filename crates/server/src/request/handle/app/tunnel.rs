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
            piece.clear();
            // Credit is taken only for what is there: tunnels are silent most of the time.
            let Ok(is_end) = upload.next(&mut piece, UPLOAD_PIECE_BYTES_MAX).await else { return };
            if stream.send_all(&piece, is_end).await.is_err() {
                return;
            }
            if is_end {
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
