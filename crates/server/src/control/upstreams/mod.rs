//! Upstreams of `reverse_proxy` as the control plane sees them: it makes peers of settings, and keeps those that a
//! reload names again, with their connections and all that is known of them.
//!
//! What a reload asks for is prepared first, which changes nothing, and carried out once it is published. HealthChecks
//! about health are asked on one thread with a runtime of its own ([`health`]), names resolved on another ([`names`]).
//! Never speaks to a client.

mod make;
mod report;
mod terms;

use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use onehop_config::checked::Checked;
use onehop_config::checked::proxy::{self as checked, ActiveHealth, ProxyAddress};
use rustls::ClientConfig;
use tokio::sync::watch;

use super::events::{Event, EventSink};
use super::status::ProxyStatus;
use crate::request::handle::proxy::Proxy;
use crate::request::handle::proxy::of_request::OfRequest;
use onehop_archive::installed::Packed;
use onehop_upstream::health::{Active, Standing};
use onehop_upstream::health_check::{self, HealthCheck, HealthChecks, HealthEvent};
use onehop_upstream::names::Names;
use onehop_upstream::peer::Peer;
use onehop_upstream::tls;

/// Every peer that requests may go to.
pub(super) struct Upstreams {
    known: Mutex<Known>,
    names: Names,
    /// Files of certificates may lie in it.
    packed: Option<Arc<Packed>>,
    events: EventSink,
    /// Started with the first check.
    asking: Mutex<Option<Asking>>,
}

/// What a reload asks for. Dropped, nothing has happened.
pub(super) struct Prepared {
    known: Known,
}

/// What there is, with the settings that it was made of.
#[derive(Default, Clone)]
struct Known {
    peers: Vec<(Key, Arc<Peer>)>,
    of_request: Vec<(KeyOfRequest, Arc<OfRequest>)>,
    standings: Vec<(ProxyAddress, Arc<Standing>)>,
    actives: Vec<(KeyOfActive, Arc<Active>)>,
    clients: Vec<(tls::Made, Arc<ClientConfig>)>,
    proxies: Vec<Arc<Proxy>>,
    checks: Vec<Arc<HealthCheck>>,
}

/// What two upstreams have in common that share their connections.
#[derive(Clone, PartialEq)]
struct Key {
    address: ProxyAddress,
    transport: checked::ProxyTransport,
    pool: checked::ProxyPool,
    /// Their share of the idle connections that a directive may have, which its other upstreams make smaller.
    idle_max: usize,
    /// With the files as they were read: another certificate means other connections.
    tls: Option<tls::Made>,
}

/// The same for those of which requests make upstreams; these share what their requests met, too.
#[derive(Clone, PartialEq)]
struct KeyOfRequest {
    key: Key,
    number: usize,
    max_fails: u32,
}

/// What two upstreams have in common that are asked once.
#[derive(Clone, PartialEq)]
struct KeyOfActive {
    key: Key,
    settings: ActiveHealth,
}

/// The thread that asks.
struct Asking {
    checks: watch::Sender<HealthChecks>,
    thread: JoinHandle<()>,
}

impl Prepared {
    /// Every `reverse_proxy` of the settings, each once; its number is its place.
    pub(super) fn proxies(&self) -> Vec<Arc<Proxy>> {
        self.known.proxies.clone()
    }
}

impl Upstreams {
    /// Without an upstream.
    pub(super) fn new(packed: Option<Arc<Packed>>, events: EventSink) -> Self {
        Self { known: Mutex::default(), names: Names::default(), packed, events, asking: Mutex::new(None) }
    }

    /// Makes what the settings ask for and what is not there yet. A failure changes nothing: files of certificates may
    /// be missing.
    pub(super) fn prepare(&self, settings: &Checked) -> Result<Prepared, String> {
        let before = self.lock().clone();
        Ok(Prepared { known: make::make(settings, &before, &self.names, self.packed.as_deref())? })
    }

    /// Once what was prepared is published: those that nobody names any more are withdrawn, and others are asked how
    /// they are.
    pub(super) fn carry_out(&self, prepared: Prepared) {
        let before = std::mem::replace(&mut *self.lock(), prepared.known);
        let now = self.lock().clone();
        for (_, peer) in &before.peers {
            if !now.peers.iter().any(|(_, other)| Arc::ptr_eq(other, peer)) {
                peer.withdraw();
            }
        }
        for (_, table) in &before.of_request {
            if !now.of_request.iter().any(|(_, other)| Arc::ptr_eq(other, table)) {
                table.withdraw();
            }
        }
        self.ask(now.checks.into());
    }

    /// Asks nobody any more, and waits for the thread.
    pub(super) fn stop(&self) {
        let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Asking { checks, thread }) = asking {
            drop(checks);
            // One that panicked has nothing more to say.
            let _ = thread.join();
        }
    }

    /// Every `reverse_proxy` with its upstreams.
    pub(super) fn status(&self) -> Vec<ProxyStatus> {
        report::status(&self.lock().proxies.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, checks: HealthChecks) {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        match &*asking {
            Some(asking) => drop(asking.checks.send_replace(checks)),
            None if checks.is_empty() => {}
            None => {
                let (sender, receiver) = watch::channel(checks);
                let events = Arc::clone(&self.events);
                match start(receiver, events) {
                    Ok(thread) => *asking = Some(Asking { checks: sender, thread }),
                    Err(error) => (self.events)(super::Event::Warning {
                        message: format!(
                            "upstreams are not asked how they are ({error}): each counts as well until the next reload"
                        ),
                    }),
                }
            }
        }
    }
}

fn start(checks: watch::Receiver<HealthChecks>, events: EventSink) -> std::io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let thread = std::thread::Builder::new().name("upstreams".to_owned());
    thread.spawn(move || {
        let report = Rc::new(move |event| {
            events(match event {
                HealthEvent::Down { upstream, sites, reason } => {
                    Event::UpstreamDown { upstream, sites, reason }
                }
                HealthEvent::Up { upstream, sites, after } => Event::UpstreamUp { upstream, sites, after },
            });
        });
        runtime.block_on(health_check::run(checks, report));
        // A name's resolution by the system cannot be interrupted, and nobody waits for it any more.
        runtime.shutdown_background();
    })
}

#[cfg(test)]
mod tests;
