//! Begins HTTP/2 on a connection, and moves its frames until it is over: one task for each connection.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

use onehop_http2::client::{self, Driver, Requests};
use tokio::sync::Notify;

use super::Multiplexed;
use crate::connect_error::ConnectError;
use crate::connection::ConnectionPermit;
use crate::transport::Transport;

/// Begins HTTP/2 on a connection that was just made. Its driver is a task of this core. Whether the peer speaks HTTP/2 is
/// known from TLS (ALPN); without TLS, its settings tell, and are waited for.
pub(crate) async fn begin(
    transport: Transport,
    permit: Option<ConnectionPermit>,
    (address, generation): (Option<SocketAddr>, u64),
    settings_timeout: Duration,
    is_kept: bool,
) -> Result<Rc<Multiplexed>, ConnectError> {
    let is_encrypted = matches!(transport, Transport::Tls(_));
    let broken = |reason: String| ConnectError::Http2(reason);
    let begun = client::connect(transport, is_encrypted).await;
    let (requests, mut driver) = begun.map_err(|error| broken(error.to_string()))?;
    if !is_encrypted {
        settle(&mut driver, &requests, settings_timeout).await.map_err(broken)?;
    }
    let lost = Rc::new(Notify::new());
    let connection = Rc::new(Multiplexed {
        requests: RefCell::new(Some(requests.clone())),
        transport: driver.transport(),
        permit: RefCell::new(permit),
        address,
        generation: Cell::new(generation),
        streams: Cell::new(0),
        streams_max: Cell::new(0),
        settled: Notify::new(),
        idle_since: Cell::new(Instant::now()),
        is_used: Cell::new(false),
        is_kept,
        changed: RefCell::default(),
        pinger: RefCell::new(driver.pinger()),
        ping_check: RefCell::default(),
        is_lost: Cell::new(false),
        lost: Rc::clone(&lost),
    });
    let weak = Rc::downgrade(&connection);
    tokio::task::spawn_local(async move {
        tokio::select! {
            biased;
            () = drive(&mut driver, requests, settings_timeout, &weak) => {}
            () = lost.notified() => {}
        }
        // Its streams end with it.
        drop(driver);
        if let Some(connection) = weak.upgrade() {
            connection.retire();
            connection.permit.take();
            connection.notify();
            connection.settled.notify_waiters();
        }
    });
    Ok(connection)
}

/// Moves frames until the peer's settings have come.
async fn settle(
    driver: &mut Driver<Transport>,
    requests: &Requests,
    settings_timeout: Duration,
) -> Result<(), String> {
    let settings = poll_fn(|context| match driver.poll(context) {
        Poll::Ready(ended) => Poll::Ready(Err(ended.err())),
        Poll::Pending if requests.has_settings() => Poll::Ready(Ok(())),
        Poll::Pending => Poll::Pending,
    });
    match tokio::time::timeout(settings_timeout, settings).await {
        Err(_) => Err("it sent no settings of HTTP/2 in time".to_owned()),
        Ok(Err(reason)) => {
            let reason = reason.unwrap_or_else(|| "it closed the connection".to_owned());
            Err(format!("what it sent is no HTTP/2 ({reason})"))
        }
        Ok(Ok(())) => Ok(()),
    }
}

/// Moves frames until the connection is over.
async fn drive(
    driver: &mut Driver<Transport>,
    requests: Requests,
    settings_timeout: Duration,
    connection: &Weak<Multiplexed>,
) {
    if settle(driver, &requests, settings_timeout).await.is_err() {
        return;
    }
    // A handle of its own would keep the connection open.
    drop(requests);
    if let Some(connection) = connection.upgrade() {
        connection.note_streams_max();
        connection.settled.notify_waiters();
    }
    let _ = poll_fn(|context| {
        let polled = driver.poll(context);
        if let Some(connection) = connection.upgrade() {
            connection.note_streams_max();
        }
        polled
    })
    .await;
}
