//! An upgraded connection to an upstream: bytes both ways, each as fast as the other side takes them.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use crate::link::Link;
use onehop_connection::buffers::Input;
use onehop_connection::limits::UPLOAD_PIECE_BYTES_MAX;
use onehop_connection::{RequestBody, ResponseWriter};

/// What bounds a tunnel.
pub struct Bounds<'a> {
    /// Once one side has ended its direction the other may be silent for so long and no longer: a side that has gone
    /// looks the same, and not everybody ends because the other does.
    pub half_closed: Duration,
    /// Its other end was told of a stop, and closes its tunnels as their own protocol has it.
    pub knows_of_stops: bool,
    /// The tunnel is over with this in any case.
    pub end: Option<Pin<Box<dyn Future<Output = ()> + 'a>>>,
}

/// Moves bytes until both sides have ended, or one of them is gone. `input` may hold the upstream's first bytes
/// already.
pub(super) async fn run(
    connection: &Link,
    input: &mut Input,
    request_body: &mut RequestBody<'_, '_>,
    writer: &mut ResponseWriter<'_, '_>,
    bounds: Bounds<'_>,
) {
    let Bounds { half_closed, knows_of_stops, end } = bounds;
    request_body.become_tunnel();
    let _tunnel = connection.become_tunnel();
    let (upstream_spoke, client_spoke) = (Cell::new(false), Cell::new(false));
    let (stopping, shutdown_grace_over) = (writer.stopping(), writer.shutdown_grace_over());
    // `Some`: that side has ended its direction, and the other's goes on.
    let to_upstream = async {
        let mut piece = Vec::new();
        loop {
            piece.clear();
            let is_end = request_body.next(&mut piece, UPLOAD_PIECE_BYTES_MAX).await.ok()?;
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
                writer.data(input.unread()).await.ok()?;
                input.clear();
            }
            match poll_fn(|context| connection.poll_fill(input, context)).await {
                Ok(0) => return writer.finish_sending().await.ok(),
                Ok(_) => upstream_spoke.set(true),
                Err(_) => return None,
            }
        }
    };
    let both = async {
        tokio::pin!(to_upstream, to_client);
        tokio::select! {
            ended = &mut to_upstream => if ended.is_some() {
                tokio::select! {
                    _ = to_client => {}
                    () = silent_for(half_closed, &upstream_spoke) => {}
                }
            },
            ended = &mut to_client => if ended.is_some() {
                tokio::select! {
                    _ = to_upstream => {}
                    () = silent_for(half_closed, &client_spoke) => {}
                }
            },
        }
    };
    let end = async {
        match end {
            Some(end) => end.await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = both => {}
        () = end => {}
        () = stopping, if !knows_of_stops => {}
        () = shutdown_grace_over, if knows_of_stops => {}
    }
}

/// Ends when nothing was noted for so long, at most twice of it.
pub async fn silent_for(half_closed: Duration, has_spoken: &Cell<bool>) {
    has_spoken.set(true);
    while has_spoken.take() {
        tokio::time::sleep(half_closed).await;
    }
}
