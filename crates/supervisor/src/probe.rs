//! Whether a program takes connections at an address.

use std::io;
use std::path::Path;

use onehop_config::checked::{App, AppAddress};
use onehop_workers::limits::HANDLER_CONCURRENCY;
use rustix::fs::{FileType, lstat};
use tokio::net::{TcpStream, UnixStream};
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

/// Connects to a Unix socket; where a user is given, only to one that lies at the path itself and that a process
/// of this user listens on.
async fn connect_unix(path: &Path, uid: Option<u32>) -> io::Result<UnixStream> {
    let Some(uid) = uid else { return UnixStream::connect(path).await };
    let refused = |what: String| {
        let what = format!("{} {what}, which is not connected to", path.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
    };
    // So that no other user's listener sees as much as a connection; what counts is asked afterwards.
    if FileType::from_raw_mode(lstat(path)?.st_mode) != FileType::Socket {
        return refused("is no socket but a link or a file".to_owned());
    }
    let stream = UnixStream::connect(path).await?;
    // The user that called listen(2), however the path came to lead there (SO_PEERCRED, unix(7)).
    let listener = stream.peer_cred()?.uid();
    if listener != uid {
        return refused(format!("belongs to a process of user {listener} instead of {uid}"));
    }
    Ok(stream)
}
