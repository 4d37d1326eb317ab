//! Where the time of one request goes that waits for others: a worker, an upstream, the disk.
//!
//! Clocks are read where a wait ends, and nowhere for a request that is served from memory: it has no [`Timing`]. What is
//! kept of it, and for which requests, decides [`super::retained`].

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use onehop_config::checked::limit::Limit;
use onehop_workers::WorkerId;

/// The times of one request. Each part is the sum of its waits.
pub struct Timing {
    /// The request's id, as its worker gets it.
    pub(crate) id: u64,
    /// The number of the application that it is for, if it is for one.
    pub(crate) app: Cell<Option<u32>>,
    /// The worker that it was handed to last.
    pub(crate) worker: Cell<Option<WorkerId>>,
    /// Times that it was handed over again.
    pub(crate) retries: Cell<u32>,
    /// The limit that it waited for, or that rejected it.
    pub(crate) limit: RefCell<Option<Arc<Limit>>>,
    /// For the request's body, before it took a slot.
    pub(crate) upload: Cell<Duration>,
    /// For permits, a worker or a connection that others had.
    pub(crate) queue: Cell<Duration>,
    /// For the check of a password.
    pub(crate) password: Cell<Duration>,
    /// For a new connection to an upstream, with its TLS handshake.
    pub(crate) connect: Cell<Duration>,
    /// For attempts that failed, and the pauses between them.
    pub(crate) failed_attempts: Cell<Duration>,
    /// From when it was handed over to the first byte of its response.
    pub(crate) first_byte: Cell<Duration>,
    /// For the client to take the response, as far as that is known by now.
    pub(crate) write: Cell<Duration>,
    /// Its response was sent piece by piece.
    pub(crate) is_streamed: Cell<bool>,
    /// When it was handed over, and when the first byte of its response came.
    pub(crate) handed_over: Cell<Option<Instant>>,
    pub(crate) answered: Cell<Option<Instant>>,
    /// Until when its time is accounted for.
    mark: Cell<Instant>,
}

impl Timing {
    /// The times of a request whose head was complete at `received`.
    pub(crate) fn new(id: u64, received: Instant) -> Box<Self> {
        Box::new(Self {
            id,
            app: Cell::default(),
            worker: Cell::default(),
            retries: Cell::default(),
            limit: RefCell::default(),
            upload: Cell::default(),
            queue: Cell::default(),
            password: Cell::default(),
            connect: Cell::default(),
            failed_attempts: Cell::default(),
            first_byte: Cell::default(),
            write: Cell::default(),
            is_streamed: Cell::default(),
            handed_over: Cell::default(),
            answered: Cell::default(),
            mark: Cell::new(received),
        })
    }

    /// The request's body has arrived.
    pub(crate) fn body_arrived(&self) {
        self.end(&self.upload, Instant::now());
    }

    /// The request is handed over to a worker, or to an upstream on a connection for which it waited in a queue for `queued`.
    pub(crate) fn handed_over(&self, queued: Option<Duration>) {
        self.handed_over_at(queued, Instant::now());
    }

    /// The same, at this time.
    pub(crate) fn handed_over_at(&self, queued: Option<Duration>, now: Instant) {
        match queued {
            None => self.end(&self.queue, now),
            Some(queued) => {
                add(&self.queue, queued);
                self.end(&self.connect, now);
                self.connect.set(self.connect.get().saturating_sub(queued));
            }
        }
        self.handed_over.set(Some(now));
    }

    /// The request has its permits; what follows up to [`Self::handed_over`] is a connection.
    pub(crate) fn admitted(&self, now: Instant) {
        self.end(&self.queue, now);
    }

    /// A part of the response was read from disk.
    pub(crate) fn disk_read(&self) {
        self.end(&self.first_byte, Instant::now());
    }

    /// A password was checked.
    pub(crate) fn password_checked(&self) {
        self.end(&self.password, Instant::now());
    }

    /// An attempt has failed, and there is going to be another one.
    pub(crate) fn attempt_failed(&self) {
        self.retries.set(self.retries.get() + 1);
        self.end(&self.failed_attempts, Instant::now());
    }

    /// The head of the response came at `now`. The first call counts.
    pub(crate) fn answered(&self, now: Instant) {
        if self.answered.get().is_none() {
            let part = if self.handed_over.get().is_some() { &self.first_byte } else { &self.queue };
            self.end(part, now);
            self.answered.set(Some(now));
        }
    }

    /// The request has arrived, for whose body it waited or not, and has met this limit.
    pub(crate) fn arrived(&self, waited_for_body: bool, limit: Option<&Arc<Limit>>) {
        if waited_for_body {
            self.body_arrived();
        }
        self.met_limit(limit);
    }

    /// The response came: piece by piece since `started`, or as a whole now. It waited for its client for so long.
    pub(crate) fn came(&self, started: Option<Instant>, write_wait: Duration) {
        self.is_streamed.set(started.is_some());
        self.answered(started.unwrap_or_else(Instant::now));
        self.write.set(write_wait);
    }

    /// The request waited for this limit, or was rejected by it.
    pub(crate) fn met_limit(&self, limit: Option<&Arc<Limit>>) {
        if let Some(limit) = limit {
            self.limit.replace(Some(Arc::clone(limit)));
        }
    }

    fn end(&self, part: &Cell<Duration>, now: Instant) {
        add(part, now.saturating_duration_since(self.mark.replace(now)));
    }
}

fn add(part: &Cell<Duration>, more: Duration) {
    part.set(part.get().saturating_add(more));
}
