//! A `reverse_proxy` while its block is read: every default, and what was written instead.
//!
//! Defaults are Caddy's unless a line says otherwise. Whatever an option does not name keeps its own.

use std::time::Duration;

use crate::checked::proxy::{
    ActiveHealth, AmbiguousHeaders, Balance, BalancePolicy, PassiveHealth, Proxy, ProxyFlush, ProxyPool,
    ProxyTls, ProxyTransport, StatusTest,
};
use crate::option_table::Seen;
use crate::syntax::Token;

/// What a block says so far.
pub(super) struct Draft {
    /// With the defaults of all that was not written. Its TLS and its active health stand beside it until it is known
    /// whether there are any.
    pub(super) proxy: Proxy,
    pub(super) tls: ProxyTls,
    pub(super) active: ActiveHealth,
    pub(super) pool: WrittenPool,
    /// The addresses as written.
    pub(super) targets: Vec<Token>,
    /// What the addresses so far say of TLS.
    pub(super) scheme: Option<Scheme>,
    /// The names of all options.
    pub(super) seen: Seen,
    /// Those of the transport, none of which is called as one of the others.
    pub(super) transport: Seen,
}

/// What the addresses of a directive say of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// Nothing: the transport decides.
    None,
    /// `http://`
    Http,
    /// `https://`
    Https,
}

/// `pool` as written, in any order and part.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct WrittenPool {
    pub(super) min: Option<u32>,
    pub(super) max: Option<u32>,
    pub(super) idle: Option<Duration>,
}

impl Draft {
    /// The first option of this name.
    pub(super) fn token(&self, name: &str) -> Option<&Token> {
        self.token_where(|known| known == name)
    }

    /// The first option whose name is like this.
    pub(super) fn token_where(&self, fits: impl Fn(&str) -> bool) -> Option<&Token> {
        self.seen.token_where(&fits).or_else(|| self.transport.token_where(&fits))
    }

    /// Whether an option or an option of the transport is wrong.
    pub(super) fn is_broken(&self) -> bool {
        self.seen.is_broken || self.transport.is_broken
    }
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            proxy: proxy(),
            tls: tls(),
            active: active_health(),
            pool: WrittenPool::default(),
            targets: Vec::new(),
            scheme: None,
            seen: Seen::default(),
            transport: Seen::default(),
        }
    }
}

fn proxy() -> Proxy {
    Proxy {
        name: String::new(),
        upstreams: Vec::new(),
        transport: transport(),
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
        passive_health: PassiveHealth {
            fail_duration: None,
            max_fails: 1,
            unhealthy_status: Vec::new(),
            unhealthy_latency: None,
            unhealthy_request_count: None,
        },
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

fn transport() -> ProxyTransport {
    ProxyTransport {
        tls: None,
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
        compression: true,
        resolvers: Vec::new(),
        max_response_header: None,
    }
}

fn tls() -> ProxyTls {
    ProxyTls {
        server_name: None,
        insecure_skip_verify: false,
        trusted: Vec::new(),
        client_certificate: None,
        // Go's, which Caddy's manual names; nobody waits without end here.
        timeout: Duration::from_secs(10),
        except_ports: Vec::new(),
    }
}

fn active_health() -> ActiveHealth {
    ActiveHealth {
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
