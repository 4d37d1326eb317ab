//! What one core has that its connections, its upstreams and its workers need: deadlines, buffers, the date, numbers.
//!
//! A [`Core`] is used by one thread only. What the cores of a process share is [`Shared`], and nothing else. Both are small
//! on purpose: counters, logs, the configuration and pools belong to other crates.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::buffer_pool::BufferPool;
use crate::buffers::ConnectionBuffers;
use crate::compressor::CompressorMemory;
use crate::deadline::{Deadline, Deadlines};
use crate::limits::{CLIENT_BUFFERS_BYTES_MAX, CLIENT_BUFFERS_PART, CONNECTION_BYTES, Timeouts};
use crate::slow_clients::SlowClients;

/// What all cores of the process share. Written rarely.
pub struct Shared {
    cores: usize,
    timeouts: Timeouts,
    stopping: AtomicBool,
    /// Milliseconds; meaningless before a stop.
    shutdown_grace: AtomicU64,
    client_buffers_max: AtomicU64,
    slow_clients: Arc<SlowClients>,
    compressor_memory: Arc<CompressorMemory>,
}

impl Shared {
    /// The state of a process with this many cores that may have this many connections.
    pub fn new(cores: usize, connections_max: usize, timeouts: Timeouts) -> Self {
        Self {
            cores: cores.max(1),
            timeouts,
            stopping: AtomicBool::new(false),
            shutdown_grace: AtomicU64::new(0),
            client_buffers_max: AtomicU64::new(client_buffers_max(connections_max)),
            slow_clients: Arc::default(),
            compressor_memory: Arc::default(),
        }
    }

    /// Changes how many connections may be open, and with it what slow clients may hold.
    pub fn set_connections_max(&self, connections_max: usize) {
        self.client_buffers_max.store(client_buffers_max(connections_max), Ordering::Relaxed);
    }

    /// Changes how much memory the compressors of bodies on their way may hold.
    pub fn set_compressors_bytes_max(&self, bytes: u64) {
        self.compressor_memory.set_bytes_max(bytes);
    }

    /// Begins a stop: kept connections are closed after their response, and tunnels that their workers have not closed by
    /// themselves after `shutdown_grace`.
    pub fn begin_stop(&self, shutdown_grace: Duration) {
        let grace = u64::try_from(shutdown_grace.as_millis()).unwrap_or(u64::MAX);
        self.shutdown_grace.store(grace, Ordering::Relaxed);
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether a stop has begun.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

fn client_buffers_max(connections_max: usize) -> u64 {
    let within_connections = connections_max as u64 * CONNECTION_BYTES / CLIENT_BUFFERS_PART;
    within_connections.min(CLIENT_BUFFERS_BYTES_MAX)
}

/// One core.
pub struct Core {
    /// From 0.
    pub number: usize,
    /// The deadlines of its connections.
    pub deadlines: Rc<Deadlines>,
    /// For the next connections that are busy.
    pub buffers: BufferPool<ConnectionBuffers>,
    shared: Arc<Shared>,
    turn: Cell<usize>,
    /// Unique in the process, and hard to guess.
    request_id: Cell<u64>,
    date: RefCell<Date>,
}

struct Date {
    unix_seconds: u64,
    line: Vec<u8>,
}

impl Core {
    /// A core at its start.
    pub fn new(number: usize, shared: Arc<Shared>) -> Self {
        let core = Self {
            number,
            deadlines: Rc::new(Deadlines::new(shared.timeouts.write_progress)),
            buffers: BufferPool::default(),
            shared,
            turn: Cell::new(number),
            request_id: Cell::new(first_request_id(number)),
            date: RefCell::new(Date { unix_seconds: 0, line: Vec::new() }),
        };
        core.refresh_date();
        core
    }

    /// The number of cores of the process.
    pub fn cores(&self) -> usize {
        self.shared.cores
    }

    /// The deadlines that connections get.
    pub fn timeouts(&self) -> &Timeouts {
        &self.shared.timeouts
    }

    /// Adds a deadline to the core's table.
    pub fn deadline(&self) -> Deadline {
        self.deadlines.add()
    }

    /// Whether a stop has begun.
    pub fn is_stopping(&self) -> bool {
        self.shared.is_stopping()
    }

    /// How long after the beginning of a stop tunnels may be open.
    pub fn shutdown_grace(&self) -> Duration {
        Duration::from_millis(self.shared.shutdown_grace.load(Ordering::Relaxed))
    }

    /// Bytes of request bodies and responses that may be held for slow clients.
    pub fn client_buffers_max(&self) -> u64 {
        self.shared.client_buffers_max.load(Ordering::Relaxed)
    }

    /// What slow clients hold.
    pub fn slow_clients(&self) -> &Arc<SlowClients> {
        &self.shared.slow_clients
    }

    /// The memory of compressors.
    pub fn compressor_memory(&self) -> &Arc<CompressorMemory> {
        &self.shared.compressor_memory
    }

    /// A number that is one larger at each call, so that equals take turns.
    pub fn next_turn(&self) -> usize {
        self.turn.replace(self.turn.get().wrapping_add(1))
    }

    /// A number for a request.
    pub fn next_request_id(&self) -> u64 {
        self.request_id.replace(self.request_id.get().wrapping_add(1))
    }

    /// Calls `write` with the current `Date` line.
    pub fn with_date<T>(&self, write: impl FnOnce(&[u8]) -> T) -> T {
        write(&self.date.borrow().line)
    }

    /// Is called every [`crate::limits::DEADLINE_TICK`], whether or not requests arrive.
    pub fn tick(&self) {
        self.refresh_date();
        self.deadlines.tick();
        self.buffers.tick();
    }

    fn refresh_date(&self) {
        let now = std::time::SystemTime::now();
        let seconds = now.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut date = self.date.borrow_mut();
        if date.unix_seconds != seconds {
            date.unix_seconds = seconds;
            date.line = format!("Date: {}\r\n", httpdate::fmt_http_date(now)).into_bytes();
        }
    }
}

/// Random above, so that two runs do not share numbers, then the core, then room for 2^40 requests.
fn first_request_id(core: usize) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let random = std::hash::RandomState::new().build_hasher().finish();
    let core = core as u64 & 0xff;
    (random & 0xffff_0000_0000_0000) | (core << 40)
}
