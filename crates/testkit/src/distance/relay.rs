//! The relay between two TUN devices: one thread that holds every packet for the same time and delivers it then.
//!
//! Owns both queues and the record of what passed. In each direction packets leave in the order in which they came,
//! because all are held equally long. Queues and record are bounded; what they could not take is counted. Packets that
//! are dropped on purpose are chosen by `loss.rs` and counted apart.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use rustix::process::setpriority_process;

use super::loss::Loss;
use super::segment::{Segment, Towards};

/// Packets that one direction holds: 48 MiB of full ones, more than any window of the tests.
const QUEUE_PACKETS_MAX: usize = 32 * 1024;
/// Segments in the record, 64 bytes each.
const RECORD_SEGMENTS_MAX: usize = 1024 * 1024;
/// Packets that are read from one device before the other gets its turn.
const READ_PACKETS_MAX: usize = 64;
/// The lowest nice value that there is.
const HIGHEST_PRIORITY: i32 = -20;
/// No IP packet is longer.
const PACKET_BYTES_MAX: usize = 64 * 1024;

/// A TCP segment that was delivered.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    /// Where to.
    pub towards: Towards,
    /// When it entered the relay, which is when it was sent.
    pub sent: Instant,
    /// When it left.
    pub delivered: Instant,
    /// What it was.
    pub segment: Segment,
}

/// How well the relay kept its promise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Packets delivered.
    pub packets: u64,
    /// Those that were delivered more than a millisecond too late.
    pub late: u64,
    /// The latest of all.
    pub most: Duration,
    /// Packets that were not delivered, or not recorded.
    pub lost: u64,
    /// Packets that were dropped because loss was asked for.
    pub dropped: u64,
}

/// Later than this is late.
const LATE: Duration = Duration::from_millis(1);

/// What passed, as both the relay and those who measure see it.
#[derive(Debug, Default)]
pub(super) struct Wire {
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    passed: Vec<Passed>,
    lateness: Lateness,
    last_activity: Option<Instant>,
}

/// The relay's thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Relay {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

/// One direction.
struct Pipe {
    towards: Towards,
    held: VecDeque<Held>,
    loss: Loss,
}

/// What the relay does to packets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conditions {
    /// How long each is held.
    pub(super) delay: Duration,
    /// Of a thousand in each direction so many are dropped.
    pub(super) lost_per_mille: u32,
}

struct Held {
    sent: Instant,
    due: Instant,
    packet: Box<[u8]>,
}

impl Relay {
    /// Starts carrying packets between the ends, which do not block.
    pub(super) fn start(
        near: OwnedFd,
        far: OwnedFd,
        conditions: Conditions,
        wire: Arc<Wire>,
    ) -> io::Result<Relay> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let listener = stop.try_clone()?;
        let carry = move || {
            hurry();
            if let Err(error) = carry(&near, &far, &listener, conditions, &wire) {
                eprintln!("the relay broke: {error}");
                wire.lock().lateness.lost += 1;
            }
        };
        let thread = thread::Builder::new().name("distance".to_owned()).spawn(carry)?;
        Ok(Relay { stop, thread: Some(thread) })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // An eventfd takes a number; only one that is nearly full would refuse it.
        let _ = write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Before everybody else where that is allowed: a relay that waits for a core makes the distance longer.
fn hurry() {
    let _ = setpriority_process(None, HIGHEST_PRIORITY);
}

fn carry(
    near: &OwnedFd,
    far: &OwnedFd,
    stop: &OwnedFd,
    conditions: Conditions,
    wire: &Wire,
) -> io::Result<()> {
    let Conditions { delay, lost_per_mille } = conditions;
    let mut out = Pipe::new(Towards::Far, lost_per_mille);
    let mut back = Pipe::new(Towards::Near, lost_per_mille);
    let mut buffer = vec![0; PACKET_BYTES_MAX];
    loop {
        let due = [&out, &back].iter().filter_map(|pipe| pipe.held.front()).map(|held| held.due).min();
        let wait = due.map(|due| due.saturating_duration_since(Instant::now()));
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let mut polled = [near, far, stop].map(|end| PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN));
        match poll(&mut polled, wait.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [near_is_ready, far_is_ready, is_over] = polled.map(|end| !end.revents().is_empty());
        if is_over {
            return Ok(());
        }
        if near_is_ready {
            out.take(near, delay, &mut buffer, wire)?;
        }
        if far_is_ready {
            back.take(far, delay, &mut buffer, wire)?;
        }
        out.deliver(far, wire);
        back.deliver(near, wire);
    }
}

impl Pipe {
    fn new(towards: Towards, lost_per_mille: u32) -> Pipe {
        Pipe { towards, held: VecDeque::new(), loss: Loss::new(lost_per_mille, towards) }
    }

    /// Takes in what has come, within bounds.
    fn take(&mut self, from: &OwnedFd, delay: Duration, buffer: &mut [u8], wire: &Wire) -> io::Result<()> {
        for _ in 0..READ_PACKETS_MAX {
            let length = match read(from, &mut *buffer) {
                Ok(length) => length,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let sent = Instant::now();
            let packet = &buffer[..length];
            // IPv6 looks for neighbours on its own account; nobody here asked it to.
            if packet.first().is_none_or(|first| first >> 4 != 4) {
                continue;
            }
            if self.held.len() >= QUEUE_PACKETS_MAX {
                wire.lock().lateness.lost += 1;
                continue;
            }
            wire.lock().last_activity = Some(sent);
            if self.loss.takes_next() {
                wire.lock().lateness.dropped += 1;
                continue;
            }
            self.held.push_back(Held { sent, due: sent + delay, packet: packet.into() });
        }
        Ok(())
    }

    /// Delivers what is due.
    fn deliver(&mut self, to: &OwnedFd, wire: &Wire) {
        while let Some(held) = self.held.front() {
            let now = Instant::now();
            if held.due > now {
                return;
            }
            let written = write(to, &held.packet);
            let mut record = wire.lock();
            record.last_activity = Some(now);
            match written {
                Ok(_) => record.add(self.towards, held, now),
                Err(_) => record.lateness.lost += 1,
            }
            self.held.pop_front();
        }
    }
}

impl Record {
    fn add(&mut self, towards: Towards, held: &Held, delivered: Instant) {
        let lateness = delivered.saturating_duration_since(held.due);
        self.lateness.packets += 1;
        self.lateness.late += u64::from(lateness > LATE);
        self.lateness.most = self.lateness.most.max(lateness);
        let Some(segment) = Segment::read(&held.packet, towards) else { return };
        if self.passed.len() < RECORD_SEGMENTS_MAX {
            self.passed.push(Passed { towards, sent: held.sent, delivered, segment });
        } else {
            self.lateness.lost += 1;
        }
    }
}

impl Wire {
    pub(super) fn passed_since(&self, moment: Instant) -> Vec<Passed> {
        self.lock().passed.iter().filter(|passed| passed.sent >= moment).copied().collect()
    }

    pub(super) fn last_activity(&self) -> Option<Instant> {
        self.lock().last_activity
    }

    pub(super) fn lateness(&self) -> Lateness {
        self.lock().lateness
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
