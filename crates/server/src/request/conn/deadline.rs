//! All deadlines of a core in one table.
//!
//! Setting one is a store, so that each request may set several; a tick of the core finds those that
//! are due. A connection waits for one thing at a time, so it has one entry.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use slab::Slab;

use crate::limits::DEADLINE_TICK;
use crate::request::core::Core;

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// For nothing that has a deadline.
    Nothing,
    /// For the next request.
    Idle,
    /// For the rest of a head.
    Head,
    /// For more of a body.
    Body,
    /// For a handler.
    Handler,
    /// For the client to take more of an answer.
    Write,
    /// For the client to close.
    Linger,
}

/// The deadlines of one core.
#[derive(Default)]
pub(crate) struct Deadlines {
    entries: RefCell<Slab<Entry>>,
    now: Cell<u32>,
}

struct Entry {
    waiting: Waiting,
    /// In ticks; meaningless while nothing is waited for.
    due: u32,
    waker: Option<Waker>,
}

impl Deadlines {
    /// Time goes on by one tick; connections whose deadline is over are woken.
    pub(crate) fn tick(&self) {
        self.now.set(self.now.get().wrapping_add(1));
        self.wake(|entry, now| entry.is_due(now));
    }

    /// Wakes what waits for a next request, so that it can close.
    pub(crate) fn wake_idle(&self) {
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
pub(crate) struct Deadline {
    core: Rc<Core>,
    key: usize,
}

impl Deadline {
    /// An entry in the core's table.
    pub(crate) fn new(core: &Rc<Core>) -> Self {
        let entry = Entry { waiting: Waiting::Nothing, due: 0, waker: None };
        Self { core: Rc::clone(core), key: core.deadlines.entries.borrow_mut().insert(entry) }
    }

    /// From now on this is waited for, and no longer than that.
    pub(crate) fn set(&self, waiting: Waiting, after: Duration) {
        let table = &self.core.deadlines;
        let ticks = after.as_nanos().div_ceil(DEADLINE_TICK.as_nanos());
        // One more: the current tick is already partly over, and a deadline is never early.
        let ticks = u32::try_from(ticks).unwrap_or(u32::MAX / 4).saturating_add(1);
        if let Some(entry) = table.entries.borrow_mut().get_mut(self.key) {
            entry.waiting = waiting;
            entry.due = table.now.get().wrapping_add(ticks);
        }
    }

    /// If this is waited for, the time for it begins anew.
    pub(crate) fn renew(&self, waiting: Waiting, after: Duration) {
        let entries = self.core.deadlines.entries.borrow();
        let is_waiting = entries.get(self.key).is_some_and(|entry| entry.waiting == waiting);
        drop(entries);
        if is_waiting {
            self.set(waiting, after);
        }
    }

    /// What is waited for, and how much time is left for it.
    pub(crate) fn left(&self) -> Option<(Waiting, Duration)> {
        let table = &self.core.deadlines;
        let entries = table.entries.borrow();
        let entry = entries.get(self.key).filter(|entry| entry.waiting != Waiting::Nothing)?;
        let is_due = entry.is_due(table.now.get());
        let ticks = if is_due { 0 } else { entry.due.wrapping_sub(table.now.get()) };
        Some((entry.waiting, DEADLINE_TICK.saturating_mul(ticks)))
    }

    /// From now on the client has to take more of an answer.
    pub(crate) fn set_write(&self) {
        self.set(Waiting::Write, self.core.shared.timeouts.write_progress);
    }

    /// Nothing is waited for.
    pub(crate) fn clear(&self) {
        if let Some(entry) = self.core.deadlines.entries.borrow_mut().get_mut(self.key) {
            entry.waiting = Waiting::Nothing;
        }
    }

    /// Whether time is over; if not, the task is woken when it is.
    pub(crate) fn poll_over(&self, context: &Context<'_>) -> bool {
        let table = &self.core.deadlines;
        let mut entries = table.entries.borrow_mut();
        let Some(entry) = entries.get_mut(self.key) else { return true };
        if entry.is_due(table.now.get()) {
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
        self.core.deadlines.entries.borrow_mut().try_remove(self.key);
    }
}
