//! All deadlines of a core in one table.
//!
//! Setting a deadline is a store, so that each request may set several; a tick of the core finds those that
//! are due. A connection waits for one thing at a time, so it has one entry. Reading a body while the response is written
//! takes a second one.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use slab::Slab;

use crate::limits::DEADLINE_TICK;

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Nothing that has a deadline.
    Nothing,
    /// The next request.
    Idle,
    /// The rest of a head.
    Head,
    /// More of a body.
    Body,
    /// A handler.
    Handler,
    /// Progress of a response: the client takes more of it.
    Write,
    /// The client's close.
    Linger,
}

/// The deadlines of one core.
pub struct Deadlines {
    entries: RefCell<Slab<Entry>>,
    now: Cell<u32>,
    write_progress: Duration,
}

struct Entry {
    waiting: Waiting,
    /// In ticks; meaningless while the entry waits for nothing.
    due: u32,
    waker: Option<Waker>,
}

impl Deadlines {
    /// A table without entries. `write_progress` is what [`Deadline::set_write`] sets.
    pub fn new(write_progress: Duration) -> Self {
        Self { entries: RefCell::default(), now: Cell::new(0), write_progress }
    }

    /// Adds an entry that waits for nothing.
    pub fn add(self: &Rc<Self>) -> Deadline {
        let entry = Entry { waiting: Waiting::Nothing, due: 0, waker: None };
        Deadline { key: self.entries.borrow_mut().insert(entry), table: Rc::clone(self) }
    }

    /// Advances time by one tick and wakes connections whose deadline is over.
    pub fn tick(&self) {
        self.now.set(self.now.get().wrapping_add(1));
        self.wake(|entry, now| entry.is_due(now));
    }

    /// Wakes connections that wait for a next request, so that they can close.
    pub fn wake_idle(&self) {
        self.wake(|entry, _| entry.waiting == Waiting::Idle);
    }

    fn wake(&self, which: impl Fn(&Entry, u32) -> bool) {
        let now = self.now.get();
        for (_, entry) in self.entries.borrow_mut().iter_mut() {
            if which(entry, now)
                && let Some(waker) = entry.waker.take()
            {
                waker.wake();
            }
        }
    }
}

impl Entry {
    fn is_due(&self, now: u32) -> bool {
        // Wrapping: half the range is ahead, half behind; a tick of 250 ms wraps after 34 years.
        self.waiting != Waiting::Nothing && now.wrapping_sub(self.due) < u32::MAX / 2
    }
}

/// The deadline of one connection.
pub struct Deadline {
    table: Rc<Deadlines>,
    key: usize,
}

impl Deadline {
    /// Sets what the connection waits for, and for how long.
    pub fn set(&self, waiting: Waiting, after: Duration) {
        // In microseconds, because a division of 128 bits is a loop: each request sets several deadlines.
        let micros = |time: Duration| {
            time.as_secs().saturating_mul(1_000_000).saturating_add(time.subsec_micros().into())
        };
        let ticks = micros(after).div_ceil(micros(DEADLINE_TICK));
        // One more: the current tick is already partly over, and a deadline is never early.
        let ticks = u32::try_from(ticks).unwrap_or(u32::MAX / 4).saturating_add(1);
        if let Some(entry) = self.table.entries.borrow_mut().get_mut(self.key) {
            entry.waiting = waiting;
            entry.due = self.table.now.get().wrapping_add(ticks);
        }
    }

    /// Restarts the time if the connection waits for this.
    pub fn renew(&self, waiting: Waiting, after: Duration) {
        let entries = self.table.entries.borrow();
        let is_waiting = entries.get(self.key).is_some_and(|entry| entry.waiting == waiting);
        drop(entries);
        if is_waiting {
            self.set(waiting, after);
        }
    }

    /// What the connection waits for, and how much time is left.
    pub fn left(&self) -> Option<(Waiting, Duration)> {
        let entries = self.table.entries.borrow();
        let entry = entries.get(self.key).filter(|entry| entry.waiting != Waiting::Nothing)?;
        let is_due = entry.is_due(self.table.now.get());
        let ticks = if is_due { 0 } else { entry.due.wrapping_sub(self.table.now.get()) };
        Some((entry.waiting, DEADLINE_TICK.saturating_mul(ticks)))
    }

    /// Gives the client its time to take more of a response.
    pub fn set_write(&self) {
        self.set(Waiting::Write, self.table.write_progress);
    }

    /// Waits for nothing.
    pub fn clear(&self) {
        if let Some(entry) = self.table.entries.borrow_mut().get_mut(self.key) {
            entry.waiting = Waiting::Nothing;
        }
    }

    /// Whether time is over; if not, the task is woken when it is.
    pub fn poll_over(&self, context: &Context<'_>) -> bool {
        let mut entries = self.table.entries.borrow_mut();
        let Some(entry) = entries.get_mut(self.key) else { return true };
        if entry.is_due(self.table.now.get()) {
            return true;
        }
        if !entry.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            entry.waker = Some(context.waker().clone());
        }
        false
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.table.entries.borrow_mut().try_remove(self.key);
    }
}
