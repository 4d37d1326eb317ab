//! What a run saw: counts, latencies, the series over time, and what the load itself cost.
//!
//! Facts only. What may be concluded from them is said by `statistics`, how it is told by `report/`.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::http2::Http2Seen;
use crate::latency::Latencies;
use crate::tls::Handshakes;

/// One run of a [`Plan`](crate::Plan), warm-up excluded.
#[derive(Debug, Clone)]
pub struct Run {
    /// When the measured time began.
    pub begun: SystemTime,
    /// The measured time: to its end, or, where a number of requests was the end, to the last answer. What was owed at
    /// its end and waited for came later.
    pub elapsed: Duration,
    /// Whole, expected answers that ended in the measured time, whenever they were due: the throughput. A server that
    /// is far behind answers requests that were due long before, and these are in no tally.
    pub completed: u64,
    /// All requests that were due in the measured time together.
    pub total: Tally,
    /// Each of the plan's requests, in its order.
    pub by_request: Vec<Tally>,
    /// The series over time, equally long pieces.
    pub slices: Vec<Slice>,
    /// The length of one piece.
    pub slice_length: Duration,
    /// Times in which no answer came although many were waited for.
    pub stalls: Vec<Stall>,
    /// What a closed loop did not ask, because it waited: the latencies as they would have been with requests at
    /// the connections' usual pace. `None` where nothing was left out, and in an open loop.
    pub omitted: Option<Omitted>,
    /// Handshakes of TLS, those of the warm-up among them; none over http.
    pub handshakes: Handshakes,
    /// Streams and what servers said of them; `None` over HTTP/1.1.
    pub http2: Option<Http2Seen>,
    /// The load's own side.
    pub generator: Generator,
    /// Why it was over.
    pub end: End,
}

/// Answers and failures.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Latencies of whole answers with an expected status; from the intended start in an open loop, from the
    /// moment of sending (of connecting, with new connections) in a closed one.
    pub latency: Latencies,
    /// The same from the moment of sending. Empty in a closed loop, where it is the same.
    pub service: Latencies,
    /// Latencies of whole answers with another status.
    pub unexpected_latency: Latencies,
    /// Whole answers with an expected status.
    pub good: u64,
    /// Whole answers with another status.
    pub unexpected: u64,
    /// All whole answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a whole answer.
    pub failures: Failures,
    /// Bytes that were read, heads and framing included.
    pub bytes_read: u64,
    /// Bytes that were written.
    pub bytes_written: u64,
}

/// Requests without a whole answer, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Failures {
    /// No connection could be made.
    pub connect: u64,
    /// There was a connection and no TLS: a certificate that is not trusted, or a handshake that failed.
    pub tls: u64,
    /// The connection ended before a byte of the answer.
    pub closed: u64,
    /// The connection ended within the answer.
    pub truncated: u64,
    /// The server reset the stream of the request.
    pub reset: u64,
    /// The server took no more requests on the connection, and said that something was wrong (GOAWAY).
    pub goaway: u64,
    /// What came is no HTTP.
    pub malformed: u64,
    /// The answer was not whole in time.
    pub timed_out: u64,
    /// Meant to begin within the run and never sent: no connection was free.
    pub unsent: u64,
}

/// A piece of the series over time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Slice {
    /// Its begin, from the begin of the measurement.
    pub at: Duration,
    /// Whole, expected answers that ended in it.
    pub good: u64,
    /// Everything else that ended in it.
    pub bad: u64,
    /// Median latency of the good.
    pub p50: Duration,
    /// Their 99th percentile.
    pub p99: Duration,
    /// Their maximum.
    pub max: Duration,
}

/// A time in which no answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// Its begin, from the begin of the measurement.
    pub at: Duration,
    /// How long.
    pub length: Duration,
}

/// What a closed loop left out (coordinated omission).
#[derive(Debug, Clone)]
pub struct Omitted {
    /// Requests that would have begun while their connections waited.
    pub requests: u64,
    /// Latencies with those added.
    pub corrected: Latencies,
}

/// The load's own side.
#[derive(Debug, Clone, Default)]
pub struct Generator {
    /// CPU time of its threads in the measured time.
    pub cpu: Duration,
    /// The largest share of a core that one of its threads used, 0 to 1.
    pub busiest: f64,
    /// The largest share of the time in which one of its threads was ready and had no core, 0 to 1.
    pub waiting: f64,
    /// How late requests of an open loop were sent although a connection was free. Empty in a closed loop.
    pub lateness: Latencies,
    /// Connections that were opened.
    pub connections_opened: u64,
    /// What the load itself limited, if anything: then the figures are its own and not the server's.
    pub bottleneck: Option<Bottleneck>,
}

/// What kept the load from loading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bottleneck {
    /// A thread had no time left.
    Thread {
        /// Share of a core that it used.
        share: f64,
    },
    /// A thread waited for a core: something else ran on it.
    Core {
        /// Share of the time that it waited.
        share: f64,
    },
    /// Requests of an open loop were sent late by the load itself.
    Late {
        /// 99th percentile of the lateness.
        p99: Duration,
        /// The median latency holds it too, and not the tail alone.
        is_in_median: bool,
    },
    /// The load's own system refused connections: no local port, descriptor or memory was left.
    System {
        /// How often.
        refused: u64,
    },
    /// All connections were busy and arrivals had to wait for one.
    Connections {
        /// Arrivals that waited.
        arrivals: u64,
    },
}

/// Why a run was over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Its time was over.
    Time,
    /// All requests were made.
    Requests,
    /// The interval was narrow enough.
    Narrow,
    /// Somebody asked for it.
    Interrupted,
    /// Not one answer in a row of failures: what failed.
    Hopeless(String),
    /// The first answers had all one and the same status, and it was not expected.
    OneStatus {
        /// The status.
        status: u16,
        /// How many answers had it.
        answers: u64,
    },
}

impl End {
    /// Why it was given up, since nothing good came; `None` where it was not.
    pub fn given_up(&self) -> Option<String> {
        match self {
            End::Time | End::Requests | End::Narrow | End::Interrupted => None,
            End::Hopeless(why) => Some(why.clone()),
            End::OneStatus { status, answers } => {
                Some(format!("each of the first {answers} answers had the status {status}"))
            }
        }
    }

    /// Whether it was over before its time.
    pub fn is_early(&self) -> bool {
        *self == End::Interrupted || self.given_up().is_some()
    }
}

impl Run {
    /// Throughput: whole, expected answers that ended in the measured time, per second of it.
    pub fn rate(&self) -> f64 {
        self.completed as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Whether there was a single whole, expected answer.
    pub fn has_good(&self) -> bool {
        self.completed > 0 || self.total.good > 0
    }
}

impl Tally {
    /// Requests that were begun or meant to.
    pub fn requests(&self) -> u64 {
        self.good + self.unexpected + self.failures.sum()
    }

    /// Adds another's.
    pub fn merge(&mut self, other: &Tally) {
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.unexpected_latency.merge(&other.unexpected_latency);
        self.good += other.good;
        self.unexpected += other.unexpected;
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        self.failures.merge(&other.failures);
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
    }
}

impl Failures {
    /// All of them.
    pub fn sum(&self) -> u64 {
        let ended = self.closed + self.truncated + self.reset + self.goaway;
        self.connect + self.tls + ended + self.malformed + self.timed_out + self.unsent
    }

    fn merge(&mut self, other: &Failures) {
        self.connect += other.connect;
        self.tls += other.tls;
        self.closed += other.closed;
        self.truncated += other.truncated;
        self.reset += other.reset;
        self.goaway += other.goaway;
        self.malformed += other.malformed;
        self.timed_out += other.timed_out;
        self.unsent += other.unsent;
    }
}
