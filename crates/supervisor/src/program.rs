//! How a program that speaks HTTP is ready, and how it is: seen from outside, since it knows nothing of this server.
//!
//! It is ready once it can be connected to. Starts and ends nothing: `lifecycle.rs` does.

use std::io;
use std::path::Path;
use std::time::Duration;

use onehop_config::checked::{App, AppAddress, AppRun};
use onehop_workers::{Transport, Worker};
use tokio::time::{Interval, interval, sleep};

use crate::launch::ProgramAddresses;
use crate::limits::{PROGRAM_PROBE_PERIOD, WORKER_PING_PERIOD};
use crate::probe::{connects, program_concurrency};
use crate::process::resident_bytes;
use crate::progress::{Ready, Signal};

/// A program that was started.
pub(crate) struct Program {
    addresses: ProgramAddresses,
    /// Why the address on which a process listens is not connected to.
    refused: Option<String>,
    look: Interval,
}

impl Program {
    pub(crate) fn new(addresses: ProgramAddresses) -> Self {
        Self { addresses, refused: None, look: interval(WORKER_PING_PERIOD) }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.addresses.socket
    }

    /// Waits until one of its addresses takes connections.
    pub(crate) async fn ready(&mut self, app: &App, pid: u32) -> Ready {
        let (address, uid) = (self.reachable(pid).await, self.addresses.uid);
        let runtime = match &app.run {
            AppRun::Command { line } => line.first().cloned().unwrap_or_default(),
            AppRun::Handler { .. } | AppRun::Elsewhere { .. } => String::new(),
        };
        let transport = Transport::Http { address, uid };
        Ready { runtime, transport, concurrency: program_concurrency(app), sockets: Vec::new() }
    }

    /// The address that answers first, the Unix socket where both do; the port only if the program itself listens there.
    async fn reachable(&mut self, pid: u32) -> AppAddress {
        let Self { addresses, refused, .. } = self;
        let (unix, tcp) =
            (AppAddress::Unix(addresses.socket.clone()), AppAddress::Tcp(addresses.port.address()));
        loop {
            for address in [&unix, &tcp] {
                match connects(address, addresses.uid).await {
                    Ok(()) => match (*address == tcp).then(|| addresses.port.refusal(pid)).flatten() {
                        Some(reason) => *refused = Some(reason),
                        None => return address.clone(),
                    },
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        *refused = Some(error.to_string());
                    }
                    Err(_) => {}
                }
            }
            sleep(PROGRAM_PROBE_PERIOD).await;
        }
    }

    /// Waits until its health is due. May be cancelled and called again.
    pub(crate) async fn signal(&mut self, worker: &Worker, pid: u32) -> Signal {
        self.look.tick().await;
        Signal::Health {
            resident_bytes: resident_bytes(pid),
            lag: Duration::ZERO,
            requests: worker.started(),
        }
    }

    /// The reason of one that was not ready in time.
    pub(crate) fn too_slow(&self, timeout: Duration) -> String {
        let refused = self.refused.as_ref().map(|refused| format!(" ({refused})")).unwrap_or_default();
        format!(
            "could not be connected to within {timeout:?}: let it listen on the Unix socket $ONEHOP_SOCKET or on port $PORT \
             of 127.0.0.1{refused}"
        )
    }
}
