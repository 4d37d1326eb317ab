//! The admin endpoint and the control socket.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use super::status::{ReloadSummary, Status};

/// What can be asked of a running server.
pub trait Api: Send + Sync {
    /// What it is doing.
    fn status(&self) -> Status;
    /// Reads the configuration anew.
    fn reload(&self) -> Result<ReloadSummary, String>;
    /// Begins to stop.
    fn stop(&self);
    /// The counters as Prometheus text.
    fn metrics(&self) -> String;
}

/// A running admin endpoint.
pub struct Admin {}

impl Admin {
    /// Answers on both until it is dropped.
    pub fn start(
        tcp: Option<TcpListener>,
        control: Option<UnixListener>,
        api: Arc<dyn Api>,
    ) -> io::Result<Admin> {
        let _ = (tcp, control, api);
        Ok(Self {})
    }
}
