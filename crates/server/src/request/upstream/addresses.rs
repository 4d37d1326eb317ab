//! Where a peer's name leads, as its cores see it: written by whoever resolves names, read by whoever dials.
//!
//! What is known stays known until something else is. Resolves nothing.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::{Notify, watch};

use super::connection::Connection;

/// The addresses of one name.
pub(super) struct Addresses {
    state: watch::Sender<State>,
    /// Raised whenever the addresses have changed: a connection that comes back looks no further where it has not.
    generation: AtomicU64,
    /// A connection has failed since this was last asked.
    is_doubted: AtomicBool,
    /// Woken then.
    told: OnceLock<Arc<Notify>>,
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
            told: OnceLock::new(),
        }
    }
}

impl Addresses {
    /// The name leads there now. An answer without addresses changes nothing.
    pub(super) fn publish(&self, addresses: Vec<SocketAddr>) {
        if addresses.is_empty() {
            return;
        }
        self.state.send_if_modified(|state| {
            // In another order they are the same ones: servers turn theirs with every answer.
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

    /// It was not resolved.
    pub(super) fn fail(&self, reason: String) {
        self.state.send_if_modified(|state| {
            state.failure = state.known.is_empty().then(|| reason.into());
            state.failure.is_some()
        });
    }

    /// What is known.
    pub(super) fn known(&self) -> Arc<[SocketAddr]> {
        Arc::clone(&self.state.borrow().known)
    }

    #[cfg(test)]
    pub(super) fn failure(&self) -> Option<Arc<str>> {
        self.state.borrow().failure.clone()
    }

    /// What is known, once something is; the reason where nothing could be learned.
    pub(super) async fn resolved(&self) -> Result<(Arc<[SocketAddr]>, u64), Arc<str>> {
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
                return Err("nobody resolves names any more".into());
            }
        }
    }

    /// A connection has failed, or no address is known: it makes sense to ask anew.
    pub(super) fn doubt(&self) {
        self.is_doubted.store(true, Ordering::Release);
        if let Some(told) = self.told.get() {
            told.notify_one();
        }
    }

    pub(super) fn take_doubt(&self) -> bool {
        self.is_doubted.swap(false, Ordering::AcqRel)
    }

    pub(super) fn follow_doubts(&self, told: Arc<Notify>) {
        let _ = self.told.set(told);
    }

    /// Whether a connection's address is still among them. One load where nothing has changed.
    pub(super) fn is_current(&self, connection: &Connection) -> bool {
        let newest = self.generation.load(Ordering::Acquire);
        if newest == connection.generation().get() {
            return true;
        }
        let is_known =
            connection.address().is_none_or(|address| self.state.borrow().known.contains(&address));
        if is_known {
            connection.generation().set(newest);
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
    async fn what_is_known_stays_until_something_else_is() {
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
    async fn who_dials_a_name_that_is_not_resolved_yet_waits_for_it() {
        let addresses = Addresses::default();
        let (resolved, ()) = tokio::join!(addresses.resolved(), async {
            addresses.publish(vec![address("[::1]:80")]);
        });
        assert_eq!(*resolved.unwrap().0, [address("[::1]:80")]);
    }

    #[test]
    fn a_doubt_is_told_once() {
        let addresses = Addresses::default();
        addresses.doubt();
        assert!(addresses.take_doubt());
        assert!(!addresses.take_doubt());
    }
}
