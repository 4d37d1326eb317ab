//! What a peer's name resolves to, as its cores see it: the resolver writes it, a dial reads it.
//!
//! Known addresses stay until others are published. Resolves nothing.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::{Notify, watch};

/// The addresses of one name.
pub(crate) struct Addresses {
    state: watch::Sender<State>,
    /// Raised whenever the addresses change: while it stays, a connection that comes back is not compared with them.
    generation: AtomicU64,
    /// A connection has failed since this was last read.
    is_doubted: AtomicBool,
    /// Woken then.
    notify: OnceLock<Arc<Notify>>,
}

#[derive(Clone)]
struct State {
    known: Arc<[SocketAddr]>,
    /// Why nothing is known.
    failure: Option<Arc<str>>,
}

impl Default for Addresses {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(State { known: Arc::default(), failure: None }),
            generation: AtomicU64::new(0),
            is_doubted: AtomicBool::new(false),
            notify: OnceLock::new(),
        }
    }
}

impl Addresses {
    /// Publishes what the name resolves to; an empty list changes nothing.
    pub(crate) fn publish(&self, addresses: Vec<SocketAddr>) {
        if addresses.is_empty() {
            return;
        }
        self.state.send_if_modified(|state| {
            // Another order changes nothing: name servers rotate theirs with every response.
            let is_same = state.known.len() == addresses.len()
                && addresses.iter().all(|address| state.known.contains(address));
            let has_failed = state.failure.take().is_some();
            if !is_same {
                self.generation.fetch_add(1, Ordering::Release);
            }
            state.known = addresses.into();
            !is_same || has_failed
        });
    }

    /// The name was not resolved, for this reason.
    pub(crate) fn fail(&self, reason: String) {
        self.state.send_if_modified(|state| {
            state.failure = state.known.is_empty().then(|| reason.into());
            state.failure.is_some()
        });
    }

    /// The known addresses.
    pub(crate) fn known(&self) -> Arc<[SocketAddr]> {
        Arc::clone(&self.state.borrow().known)
    }

    /// Why no address is known.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        self.state.borrow().failure.clone()
    }

    /// Waits until addresses are known, or until there is a reason why not.
    pub(crate) async fn resolved(&self) -> Result<(Arc<[SocketAddr]>, u64), Arc<str>> {
        let mut state = self.state.subscribe();
        loop {
            // Before the addresses are read: one that is too old only makes a connection look again.
            let generation = self.generation.load(Ordering::Acquire);
            {
                let state = state.borrow_and_update();
                if !state.known.is_empty() {
                    return Ok((Arc::clone(&state.known), generation));
                }
                if let Some(reason) = &state.failure {
                    return Err(Arc::clone(reason));
                }
            }
            if state.changed().await.is_err() {
                return Err("names are no longer resolved".into());
            }
        }
    }

    /// Asks for another resolution: a connection has failed, or no address is known.
    pub(crate) fn doubt(&self) {
        self.is_doubted.store(true, Ordering::Release);
        if let Some(notify) = self.notify.get() {
            notify.notify_one();
        }
    }

    pub(crate) fn take_doubt(&self) -> bool {
        self.is_doubted.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn follow_doubts(&self, notify: Arc<Notify>) {
        let _ = self.notify.set(notify);
    }

    /// Whether a connection's address is still among them. `known_at` is the generation at which it last was. One load
    /// where nothing has changed.
    pub(crate) fn is_current(&self, address: Option<SocketAddr>, known_at: &Cell<u64>) -> bool {
        let newest = self.generation.load(Ordering::Acquire);
        if newest == known_at.get() {
            return true;
        }
        let is_known = address.is_none_or(|address| self.state.borrow().known.contains(&address));
        if is_known {
            known_at.set(newest);
        }
        is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn known_addresses_stay_until_others_are_published() {
        let addresses = Addresses::default();
        addresses.fail("no such name".to_owned());
        assert_eq!(addresses.resolved().await.unwrap_err().as_ref(), "no such name");
        addresses.publish(vec![address("127.0.0.1:80"), address("127.0.0.2:80")]);
        let (known, first) = addresses.resolved().await.unwrap();
        assert_eq!(known.len(), 2);
        addresses.fail("no server answers".to_owned());
        addresses.publish(Vec::new());
        addresses.publish(vec![address("127.0.0.2:80"), address("127.0.0.1:80")]);
        assert_eq!(addresses.resolved().await.unwrap().1, first, "only the order is another");
        addresses.publish(vec![address("127.0.0.2:80")]);
        let (known, second) = addresses.resolved().await.unwrap();
        assert_eq!(*known, [address("127.0.0.2:80")]);
        assert_ne!(first, second);
    }

    #[tokio::test]
    async fn a_dial_waits_for_a_name_that_is_not_resolved_yet() {
        let addresses = Addresses::default();
        let (resolved, ()) = tokio::join!(addresses.resolved(), async {
            addresses.publish(vec![address("[::1]:80")]);
        });
        assert_eq!(*resolved.unwrap().0, [address("[::1]:80")]);
    }

    #[test]
    fn a_doubt_is_reported_once() {
        let addresses = Addresses::default();
        addresses.doubt();
        assert!(addresses.take_doubt());
        assert!(!addresses.take_doubt());
    }
}
