//! The control socket and the admin endpoint: one small JSON API over HTTP/1.1 (docs/control-api.md).
//!
//! Two listeners. The control socket (a Unix socket, mode 0600) revokes certificates, reloads, stops, and replaces workers or changes
//! their number; whoever may open it may do that. Both show the status, the certificates, the history, slow requests, metrics, health and the
//! dashboard; the admin address (TCP) changes nothing.
//! Runs on a thread and a runtime of its own: it must never take a core's time, and a client of it can at
//! worst exhaust its own small bounds. What is asked is decided in `ask.rs`, bytes are moved in `connection.rs` and, of logs that go on, in
//! `follow.rs`.

mod connection;
mod follow;
mod operation;
mod page;
mod socket;

#[cfg(test)]
mod tests;

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use onehop_certificates::issuer::RevocationReason;
use onehop_metrics::families::Families;
use onehop_metrics::recent::Recent;
use tokio::sync::{Semaphore, watch};

use super::{CertificatesStatus, Live, ReloadSummary, Restart, RevokedCertificate, Status, View};
use crate::limits::{
    ADMIN_ACCEPT_PAUSE, ADMIN_CONNECTIONS_MAX, CONTROL_CONNECTIONS_MAX, CONTROL_TOKEN_BYTES,
};
use crate::request::retained::RetainedRequest;
use crate::request::visits::FrequentOfSite;
use operation::Endpoint;

pub use socket::{bind_control_socket, remove_dead_control_sockets};

/// What the listeners lead to. Each call may block, a reload for long.
pub trait Api: Send + Sync {
    /// What the server is doing.
    fn status(&self) -> Status;

    /// Requests of the last minutes that were slow or failed, the newest first.
    fn slow(&self) -> Vec<RetainedRequest>;

    /// One of them, by its id or another name of it.
    fn why(&self, id: &str) -> Option<RetainedRequest> {
        self.slow().into_iter().find(|request| request.is_named(id))
    }

    /// What is asked for most at a site.
    fn frequent(&self, site: &str) -> FrequentOfSite;

    /// Every certificate: its names, its end, when it is renewed, and what is wrong with it.
    fn certificates(&self) -> CertificatesStatus;

    /// Revokes a certificate that was obtained, and orders another one. Waits for the issuer.
    ///
    /// # Errors
    /// Why nothing was revoked and what to do, for a person.
    fn revoke(&self, name: &str, reason: RevocationReason) -> Result<RevokedCertificate, String>;

    /// Reads the configuration anew and publishes it, with new processes for these applications.
    ///
    /// # Errors
    /// Why nothing was changed, for a person.
    fn reload(&self, restart: Restart) -> Result<ReloadSummary, String>;

    /// Changes the number of workers of an application until the next reload, and gives what it has then;
    /// without a number, what it has.
    ///
    /// # Errors
    /// There is no such application, or the number is out of bounds; for a person.
    fn workers(&self, app: &str, wanted: Option<usize>) -> Result<super::AppStatus, String>;

    /// Replaces all workers of an application, and gives what it has once a new one serves.
    ///
    /// # Errors
    /// There is no such application, or its new worker does not start; for a person.
    fn roll(&self, app: &str) -> Result<super::AppStatus, String>;

    /// A view of the history as JSON; `None` where it is off, or there is no such site.
    fn history(&self, view: &View) -> Option<String>;

    /// What happened since a listener was shown something, as JSON; nothing at the first call.
    fn live(&self, live: &mut Live) -> Option<String>;

    /// Begins to stop; returns at once.
    fn stop(&self);

    /// The last lines of access logs, applications and events.
    fn recent(&self) -> Arc<Recent>;

    /// A load tool begins or ends to measure this server.
    fn mark_load(&self, begins: bool);

    /// All metrics.
    fn metrics(&self) -> Families;
}

/// Both listeners, open until this is dropped. The control socket's file goes with it.
pub struct Admin {
    /// Tells the thread to end by being dropped.
    closing: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _file: Option<socket::SocketFile>,
}

impl Admin {
    /// Answers on these sockets from now on.
    ///
    /// # Errors
    /// Where the system refuses a thread or a runtime.
    pub fn start(
        tcp: Option<TcpListener>,
        control: Option<UnixListener>,
        api: Arc<dyn Api>,
    ) -> io::Result<Admin> {
        let file = control.as_ref().and_then(socket::SocketFile::of);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            // One for each connection, so that none waits for another's call.
            .max_blocking_threads(ADMIN_CONNECTIONS_MAX + CONTROL_CONNECTIONS_MAX)
            .build()?;
        let listeners = {
            // Registering a socket needs the runtime's context.
            let _context = runtime.enter();
            Listeners { tcp: tcp.map(open_tcp).transpose()?, control: control.map(open_unix).transpose()? }
        };
        let token = new_token()?;
        let (closing, closed) = watch::channel(());
        let thread = thread::Builder::new().name("admin".into()).spawn(move || {
            runtime.block_on(listeners.answer(api, token, closed));
            // A reload that is under way ends by itself; nobody waits for it any more.
            runtime.shutdown_background();
        })?;
        Ok(Admin { closing: Some(closing), thread: Some(thread), _file: file })
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.closing = None;
        if let Some(thread) = self.thread.take()
            // The last owner may be the thread's own task; it cannot wait for itself.
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

struct Listeners {
    tcp: Option<tokio::net::TcpListener>,
    control: Option<tokio::net::UnixListener>,
}

impl Listeners {
    async fn answer(self, api: Arc<dyn Api>, token: Arc<str>, closed: watch::Receiver<()>) {
        let tcp = accept_tcp(self.tcp, Arc::clone(&api), Arc::clone(&token));
        let control = accept_control(self.control, api, token);
        let mut closed = closed;
        tokio::select! {
            () = tcp => {}
            () = control => {}
            // Only ever ends because the sender is gone.
            _ = closed.changed() => {}
        }
    }
}

async fn accept_tcp(listener: Option<tokio::net::TcpListener>, api: Arc<dyn Api>, token: Arc<str>) {
    let Some(listener) = listener else { return std::future::pending().await };
    let places = Arc::new(Semaphore::new(ADMIN_CONNECTIONS_MAX));
    loop {
        // A place first: who finds none waits in the kernel's queue, and costs nothing.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let endpoint =
                    Endpoint::Admin { local: stream.local_addr().ok().map(|address| address.ip()) };
                let (api, token) = (Arc::clone(&api), Arc::clone(&token));
                tokio::spawn(async move {
                    connection::answer(stream, endpoint, api, token).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(ADMIN_ACCEPT_PAUSE).await,
        }
    }
}

async fn accept_control(listener: Option<tokio::net::UnixListener>, api: Arc<dyn Api>, token: Arc<str>) {
    let Some(listener) = listener else { return std::future::pending().await };
    let places = Arc::new(Semaphore::new(CONTROL_CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (api, token) = (Arc::clone(&api), Arc::clone(&token));
                tokio::spawn(async move {
                    connection::answer(stream, Endpoint::Control, api, token).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(ADMIN_ACCEPT_PAUSE).await,
        }
    }
}

/// What a page has to send with a change: new with each start, so that an old page changes nothing.
fn new_token() -> io::Result<Arc<str>> {
    let mut bytes = [0; CONTROL_TOKEN_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
}

fn open_tcp(listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

fn open_unix(listener: UnixListener) -> io::Result<tokio::net::UnixListener> {
    listener.set_nonblocking(true)?;
    tokio::net::UnixListener::from_std(listener)
}
