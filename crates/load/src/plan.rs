//! What is asked, how often and for how long: everything that a run needs to know.
//!
//! Owns the settings of a load as checked values. Whatever was typed (our options, those of wrk, ab or
//! autocannon, a file) becomes a [`Plan`]; `engine/` sees nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::caveat::{Caveat, CaveatCode};
use crate::tls::Tls;
use crate::url::{Address, Endpoint, Url};

/// A load.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is asked for; at least one.
    pub requests: Vec<Request>,
    /// When requests begin.
    pub pace: Pace,
    /// When it is over.
    pub until: Until,
    /// Load before the measurement begins; not counted.
    pub warm_up: Duration,
    /// Threads of the load. Connections are spread over them.
    pub threads: usize,
    /// The cores that the threads are bound to, in turn; empty leaves it to the system.
    pub cores: Vec<usize>,
    /// How long a connection is used.
    pub reuse: Reuse,
    /// How long is waited for what.
    pub timeouts: Timeouts,
    /// The seed of everything that is random, so that a run can be repeated.
    pub seed: u64,
}

/// One request, and what counts as its answer.
#[derive(Debug, Clone)]
pub struct Request {
    /// What it is called in reports.
    pub name: String,
    /// Where to.
    pub url: Url,
    /// The address behind the target, once it was reached.
    pub address: Address,
    /// How it is encrypted; `None` over http.
    pub tls: Option<Tls>,
    /// The version of HTTP; the same for all requests of a plan.
    pub protocol: Protocol,
    /// The method, a token.
    pub method: String,
    /// Header fields beside Host, Content-Length and Connection, which follow from the rest. A field `Host`
    /// here takes the place of the target's.
    pub fields: Vec<(String, String)>,
    /// The body; `None` for a request without one.
    pub body: Option<Vec<u8>>,
    /// How often it is asked in comparison with the others, from 1.
    pub weight: u32,
    /// The statuses that count as success.
    pub expect: Expect,
}

/// The version of HTTP that requests are sent over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, one request at a time on a connection.
    Http1,
    /// HTTP/2: over TLS by ALPN, in the clear with prior knowledge (RFC 9113 section 3).
    Http2 {
        /// Most concurrent streams of a connection, from 1.
        streams: u32,
    },
}

/// Most streams of a connection that can be asked for. RFC 9113 section 6.5.2 recommends that servers allow at least 100;
/// those that are known allow up to 1024.
pub const STREAMS_MAX: u32 = 10_000;

/// Which statuses count as success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// 200 to 299.
    Success,
    /// One of these.
    Exactly(Vec<u16>),
    /// Any whole answer.
    Any,
}

/// When requests begin.
#[derive(Debug, Clone, PartialEq)]
pub enum Pace {
    /// A closed loop: each connection asks again as soon as it has its answer (and has thought).
    Closed {
        /// Connections.
        connections: usize,
        /// Time between an answer and the next request of a connection.
        think: Duration,
    },
    /// An open loop: requests arrive whether or not earlier ones are answered, and latency counts from the moment
    /// at which a request was meant to begin.
    Open {
        /// Most connections at a time. Arrivals beyond wait, and their waiting counts.
        connections: usize,
        /// When they arrive.
        arrivals: Arrivals,
    },
}

/// The arrivals of an open loop.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrivals {
    /// The distances between them.
    pub spacing: Spacing,
    /// Rates, one after the other; the last one goes on until the run is over.
    pub phases: Vec<Phase>,
}

/// The distances between arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// All the same.
    Constant,
    /// Exponentially distributed, as those of many people who know nothing of each other.
    Poisson,
}

/// A time with one rate, or a rate that changes evenly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Requests per second at its begin.
    pub from: f64,
    /// Requests per second at its end.
    pub to: f64,
    /// How long it is.
    pub length: Duration,
}

/// When a run is over: whatever comes first. At least one of them is set.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Until {
    /// After this time, warm-up not counted.
    pub time: Option<Duration>,
    /// After so many requests.
    pub requests: Option<u64>,
    /// When the 95 % interval of the mean rate over the slices is narrower than this share of it (0.02 for 2 %).
    pub narrow: Option<f64>,
}

/// How long a connection is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// As long as the server keeps it.
    Kept,
    /// For one request; `Connection: close` is sent. Connecting counts into the latency.
    New,
    /// For so many requests.
    Requests(u32),
}

/// How long is waited for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For a whole answer.
    pub response: Duration,
}

impl Request {
    /// Asks at this port of the host, where none was named: port 0 stands for the one of a server that is started.
    pub fn at_port(&mut self, own: u16) {
        if let Endpoint::Tcp { port: named @ 0, .. } = &mut self.url.endpoint {
            *named = own;
            let host = self.url.authority.strip_suffix(":0").unwrap_or(&self.url.authority);
            self.url.authority = format!("{host}:{own}");
        }
        if let Address::Tcp(address) = &mut self.address
            && address.port() == 0
        {
            address.set_port(own);
        }
    }
}

impl Protocol {
    /// The name of the version, as reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http1 => "HTTP/1.1",
            Protocol::Http2 { .. } => "HTTP/2",
        }
    }

    /// Requests that a connection may have at a time.
    pub fn streams(self) -> u32 {
        match self {
            Protocol::Http1 => 1,
            Protocol::Http2 { streams } => streams.max(1),
        }
    }
}

impl Plan {
    /// The version of HTTP that its requests are sent over.
    pub fn protocol(&self) -> Protocol {
        self.requests.first().map_or(Protocol::Http1, |request| request.protocol)
    }
}

impl Expect {
    /// Whether this status counts as success.
    pub fn accepts(&self, status: u16) -> bool {
        match self {
            Expect::Success => (200..300).contains(&status),
            Expect::Exactly(statuses) => statuses.contains(&status),
            Expect::Any => true,
        }
    }
}

impl Pace {
    /// Most connections at a time.
    pub fn connections(&self) -> usize {
        match self {
            Pace::Closed { connections, .. } | Pace::Open { connections, .. } => *connections,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts { connect: Duration::from_secs(5), response: Duration::from_secs(30) }
    }
}

/// What a report says where certificates are not verified.
pub fn unverified<'a>(requests: impl IntoIterator<Item = &'a Request>) -> Option<Caveat> {
    let trusting =
        requests.into_iter().filter(|request| request.tls.as_ref().is_some_and(|tls| tls.is_insecure));
    let hosts: BTreeSet<String> = trusting.map(|request| format!("`{}`", request.url.authority)).collect();
    let hosts: Vec<String> = hosts.into_iter().collect();
    (!hosts.is_empty()).then(|| {
        CaveatCode::Unverified.says(format!(
            "certificates were not verified: who answered as {} is not known",
            hosts.join(", ")
        ))
    })
}
