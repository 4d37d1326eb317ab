//! The connections of one core that wait for their next request, and buffers for the next exchange.
//!
//! Bounded for each worker. A connection that the worker closes, or on which it speaks without being
//! asked, is dropped at the next tick, and looked at once more when it is taken; what a withdrawn worker
//! had goes at once. Never dials.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::{Buffers, Connection};
use crate::limits::{
    POOLED_BUFFER_BYTES_MAX, POOLED_BUFFERS_MAX, UPSTREAM_IDLE_DEADLINE, UPSTREAM_IDLE_MARGIN,
    UPSTREAM_IDLE_MAX, UPSTREAM_IDLE_ONCE_ONLY,
};
use crate::request::handle::app::pool::Worker;

/// What one core keeps for its next exchanges.
#[derive(Default)]
pub(crate) struct Upstreams {
    list: RefCell<Vec<Upstream>>,
    #[expect(clippy::vec_box, reason = "they travel; a box keeps the exchange's future small")]
    buffers: RefCell<Vec<Box<Buffers>>>,
}

/// The idle connections to one worker; the one used last is at the end.
struct Upstream {
    worker: Arc<Worker>,
    idle: VecDeque<Idle>,
}

struct Idle {
    connection: Connection,
    since: Instant,
    until: Instant,
}

/// Which of the kept connections a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Any: the request may be sent again should the connection turn out to be dead.
    Any,
    /// One that was used just now: the request may be sent once only.
    JustUsed,
}

impl Upstreams {
    /// A connection that is good as far as can be known.
    pub(crate) fn take(&self, worker: &Arc<Worker>, wish: Wish) -> Option<Connection> {
        let mut list = self.list.borrow_mut();
        let upstream = list.iter_mut().find(|upstream| Arc::ptr_eq(&upstream.worker, worker))?;
        let now = Instant::now();
        while let Some(idle) = upstream.idle.back() {
            if wish == Wish::JustUsed && now.duration_since(idle.since) > UPSTREAM_IDLE_ONCE_ONLY {
                return None;
            }
            let idle = upstream.idle.pop_back()?;
            if now < idle.until && idle.connection.is_silent() {
                return Some(idle.connection);
            }
        }
        None
    }

    /// Keeps a connection that was made ready for another request.
    pub(crate) fn give_back(&self, worker: &Arc<Worker>, connection: Connection) {
        let kept_for = kept_for(&connection);
        if kept_for.is_zero() || worker.is_withdrawn() {
            return;
        }
        let since = Instant::now();
        let idle = Idle { connection, since, until: since + kept_for };
        let mut list = self.list.borrow_mut();
        if let Some(upstream) = list.iter_mut().find(|upstream| Arc::ptr_eq(&upstream.worker, worker)) {
            if upstream.idle.len() >= UPSTREAM_IDLE_MAX {
                upstream.idle.pop_front();
            }
            upstream.idle.push_back(idle);
        } else {
            list.push(Upstream { worker: Arc::clone(worker), idle: VecDeque::from([idle]) });
        }
    }

    /// Drops what is too old, what is dead, and what belonged to workers that are gone.
    pub(crate) fn tick(&self) {
        let mut list = self.list.borrow_mut();
        if list.is_empty() {
            return;
        }
        let now = Instant::now();
        list.retain_mut(|upstream| {
            upstream.idle.retain(|idle| now < idle.until && idle.connection.seems_silent());
            !upstream.idle.is_empty() && !upstream.worker.is_withdrawn()
        });
    }

    /// Empty buffers.
    pub(crate) fn lease(&self) -> Box<Buffers> {
        self.buffers.borrow_mut().pop().unwrap_or_else(|| Box::new(Buffers::new()))
    }

    /// Takes buffers back.
    pub(crate) fn give_back_buffers(&self, mut buffers: Box<Buffers>) {
        let mut kept = self.buffers.borrow_mut();
        if kept.len() < POOLED_BUFFERS_MAX && buffers.bytes_held() <= POOLED_BUFFER_BYTES_MAX {
            buffers.clear();
            kept.push(buffers);
        }
    }
}

/// How long a connection is kept: shorter than the upstream itself does, so that a request does not meet
/// its closing on the way.
fn kept_for(connection: &Connection) -> Duration {
    let theirs = connection.kept_for().map(|time| time.saturating_sub(UPSTREAM_IDLE_MARGIN));
    theirs.map_or(UPSTREAM_IDLE_DEADLINE, |time| time.min(UPSTREAM_IDLE_DEADLINE))
}
