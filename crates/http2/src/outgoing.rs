//! How much of a connection's responses waits to be written, and whose turn it is next (RFC 9218).
//!
//! h2 writes what it was given in the order in which it came. So a connection is given little at a time, and where it has
//! enough, its streams wait here: the most urgent one is next; among equals short responses go before long ones, and those
//! that want to share (`i`) take turns.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};

use crate::limits::{OUTGOING_BYTES_MAX, SHORT_RESPONSE_BYTES};

/// What waits of one connection.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// Bytes that h2 was given and has not written.
    given: Cell<usize>,
    waiting: RefCell<BTreeMap<Rank, Waker>>,
    turn: Cell<u64>,
}

/// Where a stream stands among those that wait: the lowest is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    urgency: u8,
    is_long: bool,
    /// The number of the stream, or of its turn.
    number: u64,
}

/// The `Priority` field of a request (RFC 9218 section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// From 0, the most urgent, to 7.
    pub urgency: u8,
    /// The client uses what it gets before the end.
    pub is_incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, is_incremental: false }
    }
}

impl Priority {
    /// Reads the field; what it does not say, or does not say well, has its default (RFC 9218 section 4).
    pub fn read(value: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            match member {
                b"i" | b"i=?1" => priority.is_incremental = true,
                b"i=?0" => priority.is_incremental = false,
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                _ => {}
            }
        }
        priority
    }
}

impl Outgoing {
    /// Whether a stream may hand over a piece now.
    fn has_room(&self) -> bool {
        self.given.get() < OUTGOING_BYTES_MAX
    }

    /// Whether h2 has something that it has not written.
    pub fn is_given(&self) -> bool {
        self.given.get() > 0
    }

    fn rank(&self, stream: u32, priority: Priority, sent: u64) -> Rank {
        let turn = self.turn.replace(self.turn.get() + 1);
        Rank {
            urgency: priority.urgency,
            is_long: sent > SHORT_RESPONSE_BYTES,
            // Turns are above all streams, so that they do not starve those that go one after the other.
            number: if priority.is_incremental { (1 << 32) + turn } else { u64::from(stream) },
        }
    }

    /// Wakes the task once it is its turn.
    fn wait(&self, rank: Rank, waker: &Waker) {
        self.waiting.borrow_mut().insert(rank, waker.clone());
    }

    fn written(&self, bytes: usize) {
        self.given.set(self.given.get().saturating_sub(bytes));
        let mut waiting = self.waiting.borrow_mut();
        // Whoever is woken may have nothing to write any more: where nothing else is on its way, all are.
        let is_all = self.given.get() == 0;
        while self.has_room()
            && let Some((_, waker)) = waiting.pop_first()
        {
            waker.wake();
            if !is_all {
                break;
            }
        }
    }
}

/// The turn of a stream among those that wait: at most one, and given up with the stream.
pub struct Turn {
    outgoing: Rc<Outgoing>,
    rank: Cell<Option<Rank>>,
}

impl Turn {
    /// A stream that does not wait yet.
    pub fn new(outgoing: Rc<Outgoing>) -> Self {
        Self { outgoing, rank: Cell::new(None) }
    }

    /// What waits of the stream's connection.
    pub fn outgoing(&self) -> &Rc<Outgoing> {
        &self.outgoing
    }

    /// Ready where the stream may hand over a piece; `sent` are the bytes of its response that it has handed over.
    pub fn poll(&self, context: &Context<'_>, stream: u32, priority: Priority, sent: u64) -> Poll<()> {
        if self.outgoing.has_room() {
            self.leave();
            return Poll::Ready(());
        }
        // It keeps its turn while it waits, however often it is polled.
        let rank = self.rank.get().unwrap_or_else(|| self.outgoing.rank(stream, priority, sent));
        self.rank.set(Some(rank));
        self.outgoing.wait(rank, context.waker());
        Poll::Pending
    }

    fn leave(&self) {
        if let Some(rank) = self.rank.take() {
            self.outgoing.waiting.borrow_mut().remove(&rank);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A piece of a response that h2 was given; counted until it is written, or dropped with its stream.
#[derive(Debug)]
pub struct Piece {
    bytes: Bytes,
    outgoing: Rc<Outgoing>,
}

impl Piece {
    /// Counts the bytes as given to h2.
    pub fn new(bytes: Bytes, outgoing: &Rc<Outgoing>) -> Self {
        outgoing.given.set(outgoing.given.get() + bytes.len());
        Self { bytes, outgoing: Rc::clone(outgoing) }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.outgoing.written(count);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            self.outgoing.written(self.bytes.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[test]
    fn the_priority_field_is_read_and_what_is_wrong_in_it_is_left_out() {
        let of = |urgency, is_incremental| Priority { urgency, is_incremental };
        for (value, priority) in [
            ("", of(3, false)),
            ("u=0", of(0, false)),
            ("u=5, i", of(5, true)),
            ("i=?0,u=7", of(7, false)),
            ("i=?1", of(3, true)),
            ("u=8, i", of(3, true)),
            ("u=-1, x=1;y, i=2", of(3, false)),
        ] {
            assert_eq!(Priority::read(value.as_bytes()), priority, "{value}");
        }
    }

    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_most_urgent_of_those_that_wait_is_next_and_short_ones_go_before_long_ones() {
        let outgoing = Rc::new(Outgoing::default());
        let full = Piece::new(Bytes::from(vec![0; OUTGOING_BYTES_MAX]), &outgoing);
        assert!(!outgoing.has_room());
        let urgency = |urgency| Priority { urgency, is_incremental: false };
        let waits = [
            outgoing.rank(1, urgency(3), SHORT_RESPONSE_BYTES + 1),
            outgoing.rank(7, urgency(3), 0),
            outgoing.rank(5, Priority { urgency: 3, is_incremental: true }, 0),
            outgoing.rank(9, urgency(1), SHORT_RESPONSE_BYTES + 1),
        ];
        let woken: Vec<Arc<Woken>> = waits.iter().map(|_| Arc::new(Woken(AtomicUsize::new(0)))).collect();
        for (rank, woken) in waits.iter().zip(&woken) {
            outgoing.wait(*rank, &Waker::from(Arc::clone(woken)));
        }
        let order = |outgoing: &Outgoing| {
            outgoing.written(1);
            woken.iter().position(|woken| woken.0.swap(0, Ordering::Relaxed) == 1)
        };
        assert_eq!([0; 5].map(|_| order(&outgoing)), [Some(3), Some(1), Some(2), Some(0), None]);
        drop(full);
        assert_eq!(outgoing.given.get(), 0);
    }

    #[test]
    fn a_stream_that_is_polled_often_waits_once_and_leaves_with_its_end() {
        let outgoing = Rc::new(Outgoing::default());
        let full = Piece::new(Bytes::from(vec![0; OUTGOING_BYTES_MAX]), &outgoing);
        let shares = Priority { urgency: 3, is_incremental: true };
        let context = Context::from_waker(Waker::noop());
        let turns = [1, 3].map(|stream| (stream, Turn::new(Rc::clone(&outgoing))));
        for _ in 0..10 {
            for (stream, turn) in &turns {
                assert!(turn.poll(&context, *stream, shares, 0).is_pending());
            }
        }
        assert_eq!(outgoing.waiting.borrow().len(), 2);
        drop(full);
        let [(stream, first), (_, second)] = turns;
        assert!(first.poll(&context, stream, shares, 0).is_ready());
        drop((first, second));
        assert_eq!(outgoing.waiting.borrow().len(), 0);
    }
}
