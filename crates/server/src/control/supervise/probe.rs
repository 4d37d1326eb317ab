//! Whether a program takes connections at an address.

use std::io;

use onehop_config::checked::{App, AppAddress};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits::PROBE_DEADLINE;
use crate::request::upstream::dial::connect_unix;
use onehop_workers::limits::HANDLER_CONCURRENCY;

/// Connects once. On a Unix socket a process of the user `uid` must listen, where one is given.
pub(super) async fn connects(address: &AppAddress, uid: Option<u32>) -> io::Result<()> {
    let connected = async {
        match address {
            AppAddress::Tcp(address) => TcpStream::connect(address).await.map(drop),
            AppAddress::Unix(path) => connect_unix(path, uid).await.map(drop),
        }
    };
    timeout(PROBE_DEADLINE, connected).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Requests that a program is handed at a time. A program that takes its connections one by one has a listen backlog, and
/// more than that would not reach it; nothing else is known of it.
pub(super) fn program_concurrency(app: &App) -> usize {
    app.concurrency.map_or(HANDLER_CONCURRENCY, |written| written as usize)
}
