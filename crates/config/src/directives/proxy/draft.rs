//! A `reverse_proxy` while its block is read: every default, and what was written instead.
//!
//! Defaults are Caddy's unless a line says otherwise. Whatever an option does not name keeps its own.

use std::time::Duration;

use super::pool::Written;
use super::upstreams::Scheme;
use crate::checked::proxy::{
    ActiveHealth, AmbiguousHeaders, Balance, BalancePolicy, PassiveHealth, Proxy, ProxyFlush, ProxyPool,
    ProxyTls, ProxyTransport, StatusTest,
};
use crate::syntax::Token;

/// What a block says so far.
pub(super) struct Draft<'l> {
    /// With the defaults of all that was not written. Its TLS and its active health stand beside it until it is known
    /// whether there are any.
    pub(super) proxy: Proxy,
    pub(super) tls: ProxyTls,
    pub(super) active: ActiveHealth,
    pub(super) pool: Written,
    /// The addresses as written.
    pub(super) targets: Vec<&'l Token>,
    /// What the addresses so far say of TLS.
    pub(super) scheme: Option<Scheme>,
    /// The names of all options, those of the transport too: none of these is called as one of those.
    pub(super) seen: Vec<&'l Token>,
    /// One of them is wrong.
    pub(super) is_broken: bool,
}

impl<'l> Draft<'l> {
    /// The first option of this name.
    pub(super) fn token(&self, name: &str) -> Option<&'l Token> {
        self.seen.iter().find(|token| token.text == name).copied()
    }

    /// The first option whose name is like this.
    pub(super) fn token_where(&self, fits: impl Fn(&str) -> bool) -> Option<&'l Token> {
        self.seen.iter().find(|token| fits(&token.text)).copied()
    }
}

impl Default for Draft<'_> {
    fn default() -> Self {
        Self {
            proxy: proxy(),
            tls: tls(),
            active: active_health(),
            pool: Written::default(),
            targets: Vec::new(),
            scheme: None,
            seen: Vec::new(),
            is_broken: false,
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
