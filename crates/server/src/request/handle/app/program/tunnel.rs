//! An upgraded connection to a program: bytes both ways, each as fast as the other side takes them.

use std::cell::Cell;
use std::future::poll_fn;
use std::time::Duration;

use crate::limits::UPLOAD_PIECE_BYTES_MAX;
use crate::request::conn::desk::Input;
use crate::request::conn::exchange::{Download, Upload};
use crate::request::upstream::connection::Connection;

/// Moves bytes until the program has ended, or one of the two is gone. `input` may hold the program's first
/// bytes already. Once the client has closed its side the program may be silent for `patience` and no longer:
/// a client that has gone looks the same, and not every program ends when it does.
pub(super) async fn run(
    connection: &Connection,
    input: &mut Input,
    upload: &mut Upload<'_, '_>,
    download: &mut Download<'_, '_>,
    patience: Duration,
    is_told: bool,
) {
    upload.become_tunnel();
    let has_spoken = Cell::new(false);
    let (stopping, farewell_over) = (download.stopping(), download.farewell_over());
    let to_program = async {
        let mut piece = Vec::new();
        loop {
            piece.clear();
            let ended = upload.next(&mut piece, UPLOAD_PIECE_BYTES_MAX).await;
            let Ok(is_end) = ended else { return };
            if connection.write(&piece, &[]).await.is_err() {
                return;
            }
            if is_end {
                if connection.finish_sending().await.is_err() {
                    return;
                }
                has_spoken.set(true);
                while has_spoken.take() {
                    tokio::time::sleep(patience).await;
                }
                return;
            }
        }
    };
    let to_client = async {
        loop {
            if !input.is_empty() {
                if download.data(input.unread()).await.is_err() {
                    return;
                }
                input.clear();
            }
            match poll_fn(|context| connection.poll_fill(input, context)).await {
                Ok(0) | Err(_) => return,
                Ok(_) => has_spoken.set(true),
            }
        }
    };
    tokio::select! {
        () = to_program => {}
        () = to_client => {}
        // Who has a control lane was told, and closes its tunnels as their own protocol has it.
        () = stopping, if !is_told => {}
        () = farewell_over, if is_told => {}
    }
}
