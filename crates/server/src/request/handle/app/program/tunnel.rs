//! An upgraded connection to a program: bytes both ways, each as fast as the other side takes them.

use std::cell::Cell;
use std::future::poll_fn;
use std::time::Duration;

use super::super::tunnel::silent_for;
use crate::limits::UPLOAD_PIECE_BYTES_MAX;
use crate::request::conn::desk::Input;
use crate::request::conn::exchange::{Download, Upload};
use crate::request::upstream::connection::Connection;

/// Moves bytes until both sides have ended, or one of them is gone. `input` may hold the program's first bytes
/// already. Once one side has ended its direction the other may be silent for `patience` and no longer: a side
/// that has gone looks the same, and not everybody ends because the other does.
pub(super) async fn run(
    connection: &Connection,
    input: &mut Input,
    upload: &mut Upload<'_, '_>,
    download: &mut Download<'_, '_>,
    patience: Duration,
    is_told: bool,
) {
    upload.become_tunnel();
    let (program_spoke, client_spoke) = (Cell::new(false), Cell::new(false));
    let (stopping, farewell_over) = (download.stopping(), download.farewell_over());
    // `Some`: that side has ended its direction, and the other's goes on.
    let to_program = async {
        let mut piece = Vec::new();
        loop {
            piece.clear();
            let is_end = upload.next(&mut piece, UPLOAD_PIECE_BYTES_MAX).await.ok()?;
            connection.write(&piece, &[]).await.ok()?;
            client_spoke.set(true);
            if is_end {
                return connection.finish_sending().await.ok();
            }
        }
    };
    let to_client = async {
        loop {
            if !input.is_empty() {
                download.data(input.unread()).await.ok()?;
                input.clear();
            }
            match poll_fn(|context| connection.poll_fill(input, context)).await {
                Ok(0) => return download.finish_sending().await.ok(),
                Ok(_) => program_spoke.set(true),
                Err(_) => return None,
            }
        }
    };
    let both = async {
        tokio::pin!(to_program, to_client);
        tokio::select! {
            ended = &mut to_program => if ended.is_some() {
                tokio::select! {
                    _ = to_client => {}
                    () = silent_for(patience, &program_spoke) => {}
                }
            },
            ended = &mut to_client => if ended.is_some() {
                tokio::select! {
                    _ = to_program => {}
                    () = silent_for(patience, &client_spoke) => {}
                }
            },
        }
    };
    tokio::select! {
        () = both => {}
        // Who has a control lane was told, and closes its tunnels as their own protocol has it.
        () = stopping, if !is_told => {}
        () = farewell_over, if is_told => {}
    }
}
