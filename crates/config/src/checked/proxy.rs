//! The checked settings of `reverse_proxy`: where requests go, how one is chosen, over which connections.
//!
//! Every default is spelled out. Meanings and defaults are Caddy's (caddyserver.com/docs/caddyfile/directives/
//! reverse_proxy, 2.11) unless a field says otherwise; `pool` is onehop's own.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{HeaderOp, Matcher, Network, Template};

/// `reverse_proxy`
#[derive(Debug, Clone, PartialEq)]
pub struct Proxy {
    /// What it is called in logs and metrics: its upstreams as written.
    pub name: String,
    /// Where requests go, at least one.
    pub upstreams: Vec<ProxyUpstream>,
    /// How connections are made and kept.
    pub transport: ProxyTransport,
    /// How many are open without a request.
    pub pool: ProxyPool,
    /// Which upstream a request goes to, and what is done when that fails.
    pub balance: Balance,
    /// Upstreams that are asked whether they are well.
    pub active_health: Option<ActiveHealth>,
    /// Upstreams that are judged by what requests meet.
    pub passive_health: PassiveHealth,
    /// `header_up`, in the order in which they act (Caddy's: by kind), after the server's own fields are set. None touches
    /// framing or the connection.
    pub request_fields: Vec<HeaderOp>,
    /// `header_down`, likewise.
    pub answer_fields: Vec<HeaderOp>,
    /// When pieces of an answer's body are sent on.
    pub flush: ProxyFlush,
    /// Bytes of a request's body that are read before it goes out; 0 for none.
    pub request_buffer_bytes: u64,
    /// Bytes of an answer's body that are read before it goes on; 0 for none.
    pub answer_buffer_bytes: u64,
    /// How long a tunnel may be open; `None`: for ever.
    pub stream_timeout: Option<Duration>,
    /// How long tunnels stay open after a reload has taken their route away; `None`: as long as they like. (Caddy
    /// closes them at once where nothing is said.)
    pub stream_close_delay: Option<Duration>,
    /// What happens to request fields with ambiguous names, such as `X_Forwarded_For`.
    pub ambiguous_headers: AmbiguousHeaders,
    /// Trusted proxies, which name the client in `X-Forwarded-For`: those of the directive, then those of the global `servers`
    /// block, as Caddy adds them up.
    pub trusted_proxies: Vec<Network>,
}

/// One place that requests may go to.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyUpstream {
    /// `HOST:PORT` with the port spelled out, `:PORT` where no host is written, or `unix/PATH`: the `upstream` label, and
    /// what hashes are made of.
    pub label: String,
    /// Where.
    pub address: ProxyAddress,
}

/// Where an upstream listens.
#[derive(Debug, Clone, PartialEq)]
pub enum ProxyAddress {
    /// TCP.
    Tcp {
        /// A name or an address, without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix socket, absolute.
    Unix(PathBuf),
    /// `HOST:PORT` that is only known with the request.
    OfRequest(Template),
}

/// `transport http`
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyTransport {
    /// Encrypted, and how; `None`: in the clear.
    pub tls: Option<ProxyTls>,
    /// Which versions of HTTP are spoken.
    pub versions: ProxyVersions,
    /// How long a name's resolution and a connection may take, without TLS's handshake.
    pub dial_timeout: Duration,
    /// How long the second family of addresses waits for the first (RFC 8305); `None`: for its failure.
    pub dial_fallback_delay: Option<Duration>,
    /// How long a read from the upstream may take; `None`: for ever.
    pub read_timeout: Option<Duration>,
    /// How long a write to it may take.
    pub write_timeout: Option<Duration>,
    /// How long it may take from the whole request to the answer's head.
    pub response_header_timeout: Option<Duration>,
    /// How long a body waits for `100 Continue`; `None`: the server's own bound.
    pub expect_continue_timeout: Option<Duration>,
    /// Connections to one upstream at a time; `None`: no bound of the configuration's.
    pub max_conns_per_host: Option<u32>,
    /// How long a connection is kept without a request; `None`: not at all.
    pub keepalive: Option<Duration>,
    /// The distance of TCP's own probes; `None`: no probes.
    pub keepalive_interval: Option<Duration>,
    /// Idle connections to all upstreams together; `None`: no bound of the configuration's.
    pub keepalive_idle_conns: Option<u32>,
    /// Idle connections to one upstream.
    pub keepalive_idle_conns_per_host: u32,
    /// Servers that are asked for names; empty: the system's.
    pub resolvers: Vec<SocketAddr>,
    /// Bytes of an answer's head; `None`: the server's own bound.
    pub max_response_header: Option<u64>,
}

/// `versions`: which versions of HTTP are spoken to upstreams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProxyVersions {
    /// In the clear HTTP/2 is spoken, and known beforehand (`h2c`).
    pub h2c: bool,
    /// Over TLS.
    pub encrypted: EncryptedVersions,
}

/// What the handshake of TLS offers an upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EncryptedVersions {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2.
    Http2,
    /// Both; the upstream chooses.
    Negotiated,
}

/// TLS to upstreams. What they show is verified unless it says otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyTls {
    /// The name that is asked for and verified; `None`: the upstream's host.
    pub server_name: Option<Template>,
    /// Whoever answers is believed.
    pub insecure_skip_verify: bool,
    /// Files of certificates that are trusted, absolute; empty: what the system trusts.
    pub trusted: Vec<PathBuf>,
    /// The server's own certificate and its key, absolute.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// How long the handshake may take.
    pub timeout: Duration,
    /// Upstreams on these ports are spoken to in the clear.
    pub except_ports: Vec<u16>,
}

/// `pool`: connections that are open before a request comes. Counted for each upstream over the whole process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyPool {
    /// So many are open at all times, whether or not there are requests.
    pub min: u32,
    /// So many at most, the busy ones too; `None`: no bound of the configuration's.
    pub max: Option<u32>,
}

/// `lb_*`
#[derive(Debug, Clone, PartialEq)]
pub struct Balance {
    /// Which of those that are well.
    pub policy: BalancePolicy,
    /// Attempts after the first; `None`: as many as `try_duration` allows.
    pub retries: Option<u32>,
    /// For how long others are tried; zero: not for the sake of time.
    pub try_duration: Duration,
    /// The pause between attempts; zero: none. Never zero where `try_duration` is not.
    pub try_interval: Duration,
    /// Requests that may be sent again although one upstream may have begun them; any of these. Empty: GET alone.
    pub retry_match: Vec<Matcher>,
}

/// `lb_policy`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BalancePolicy {
    /// `random`
    Random,
    /// `random_choose N`: the one with the fewest requests of so many.
    RandomChoose(u32),
    /// `first`: in the order of the file.
    First,
    /// `round_robin`
    RoundRobin,
    /// `weighted_round_robin`: a weight for each upstream.
    WeightedRoundRobin(Vec<u32>),
    /// `least_conn`: with the fewest requests.
    LeastConn,
    /// `peak_ewma`: of two at random the one with the smaller product of requests and recent latency. onehop's own.
    PeakEwma,
    /// `ip_hash`: by the peer's address.
    IpHash,
    /// `client_ip_hash`: by the client's address, as trusted proxies tell it.
    ClientIpHash,
    /// `uri_hash`
    UriHash,
    /// `query NAME`, with what is done where there is none.
    Query(String, Box<BalancePolicy>),
    /// `header NAME`, lower case, with what is done where there is none.
    Header(String, Box<BalancePolicy>),
    /// `cookie [NAME [SECRET]]`
    Cookie {
        /// The cookie's name.
        name: String,
        /// Keys the hash by which the cookie names an upstream.
        secret: CookieSecret,
        /// How long browsers keep it; `None`: for their session.
        max_age: Option<Duration>,
        /// What is done where there is none.
        fallback: Box<BalancePolicy>,
    },
}

/// Keys a cookie's hash: whoever knows it can name any upstream. Shows itself to nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct CookieSecret(pub String);

impl fmt::Debug for CookieSecret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_empty() { "none" } else { "a secret" })
    }
}

/// `health_*` without those that follow.
#[derive(Debug, Clone, PartialEq)]
pub struct ActiveHealth {
    /// Path and query, with its slash.
    pub uri: String,
    /// Another port than the upstream's.
    pub port: Option<u16>,
    /// `health_upstream`: who is asked in the upstream's stead, host (without brackets) and port.
    pub target: Option<(String, u16)>,
    /// The distance between two questions.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The status that is expected.
    pub status: StatusTest,
    /// A redirect is followed, and what stands at its end counts.
    pub follow_redirects: bool,
    /// A regular expression, known to compile, that the body's beginning must match.
    pub body: Option<String>,
    /// So many good answers in a row make a bad one well.
    pub passes: u32,
    /// So many bad ones make a good one bad.
    pub fails: u32,
    /// Fields that are sent, `Host` too.
    pub fields: Vec<(String, String)>,
    /// The method.
    pub method: String,
    /// What is sent behind the head; may be empty.
    pub request_body: String,
}

/// `fail_duration`, `max_fails`, `unhealthy_*`
#[derive(Debug, Clone, PartialEq)]
pub struct PassiveHealth {
    /// How long a failure is remembered; `None`: failures do not count.
    pub fail_duration: Option<Duration>,
    /// So many that are remembered make an upstream bad.
    pub max_fails: u32,
    /// Statuses that are failures.
    pub unhealthy_status: Vec<StatusTest>,
    /// An answer's head that takes longer is a failure.
    pub unhealthy_latency: Option<Duration>,
    /// With so many requests it gets no more.
    pub unhealthy_request_count: Option<u32>,
}

/// A status, or all of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusTest {
    /// This one.
    Exactly(u16),
    /// `5xx`: the first digit.
    Class(u8),
}

/// `ambiguous_headers`: fields whose names have a `_` or a `.`, which CGI, WSGI, Rack and PHP turn into the same variable
/// as those with a `-`. (nginx drops them, too, unless `underscores_in_headers` is on.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmbiguousHeaders {
    /// They do not reach the upstream.
    Drop,
    /// They do, but for the spellings of fields that say who the client is.
    Pass,
}

/// `flush_interval`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyFlush {
    /// As the upstream sends, where nothing more is there to be sent with it. (Caddy gathers answers of known length
    /// until 4 KiB are there or the answer ends.)
    AsItComes,
    /// After so long at most.
    Every(Duration),
    /// Every piece at once.
    Immediately,
}

impl StatusTest {
    /// Whether a status is meant.
    pub fn fits(self, status: u16) -> bool {
        match self {
            StatusTest::Exactly(wanted) => wanted == status,
            StatusTest::Class(class) => status / 100 == u16::from(class),
        }
    }
}

impl Default for Proxy {
    fn default() -> Self {
        Self {
            name: String::new(),
            upstreams: Vec::new(),
            transport: ProxyTransport::default(),
            // onehop's own: the first request finds a connection.
            pool: ProxyPool { min: 1, max: None },
            balance: Balance {
                policy: BalancePolicy::Random,
                retries: None,
                try_duration: Duration::ZERO,
                // See `agree::settle_balance`.
                try_interval: Duration::ZERO,
                retry_match: Vec::new(),
            },
            active_health: None,
            passive_health: PassiveHealth::default(),
            request_fields: Vec::new(),
            answer_fields: Vec::new(),
            flush: ProxyFlush::AsItComes,
            request_buffer_bytes: 0,
            answer_buffer_bytes: 0,
            stream_timeout: None,
            // onehop's own: Caddy closes tunnels at a reload.
            stream_close_delay: None,
            ambiguous_headers: AmbiguousHeaders::Drop,
            trusted_proxies: Vec::new(),
        }
    }
}

impl Default for ProxyTransport {
    fn default() -> Self {
        Self {
            tls: None,
            versions: ProxyVersions::default(),
            dial_timeout: Duration::from_secs(3),
            dial_fallback_delay: Some(Duration::from_millis(300)),
            read_timeout: None,
            write_timeout: None,
            response_header_timeout: None,
            expect_continue_timeout: None,
            max_conns_per_host: None,
            keepalive: Some(Duration::from_secs(120)),
            keepalive_interval: Some(Duration::from_secs(30)),
            keepalive_idle_conns: None,
            keepalive_idle_conns_per_host: 32,
            resolvers: Vec::new(),
            max_response_header: None,
        }
    }
}

impl Default for ProxyTls {
    fn default() -> Self {
        Self {
            server_name: None,
            insecure_skip_verify: false,
            trusted: Vec::new(),
            client_certificate: None,
            // The default of Go's net/http, which Caddy's manual names: no handshake is waited for without end.
            timeout: Duration::from_secs(10),
            except_ports: Vec::new(),
        }
    }
}

impl Default for ActiveHealth {
    fn default() -> Self {
        Self {
            uri: "/".to_owned(),
            port: None,
            target: None,
            interval: Duration::from_secs(30),
            timeout: Duration::from_secs(5),
            status: StatusTest::Class(2),
            follow_redirects: false,
            body: None,
            passes: 1,
            fails: 1,
            fields: Vec::new(),
            method: "GET".to_owned(),
            request_body: String::new(),
        }
    }
}

impl Default for PassiveHealth {
    fn default() -> Self {
        Self {
            fail_duration: None,
            max_fails: 1,
            unhealthy_status: Vec::new(),
            unhealthy_latency: None,
            unhealthy_request_count: None,
        }
    }
}
