//! Whether a program takes connections at an address.

use std::io;

use onehop_config::checked::{App, AppAddress};
use onehop_upstream::dial::connect_unix;
use onehop_workers::limits::HANDLER_CONCURRENCY;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits::PROBE_DEADLINE;

/// Connects once. On a Unix socket a process of the user `uid` must listen, where one is given.
pub(crate) async fn connects(address: &AppAddress, uid: Option<u32>) -> io::Result<()> {
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
pub(crate) fn program_concurrency(app: &App) -> usize {
    app.concurrency.map_or(HANDLER_CONCURRENCY, |written| written as usize)
}
