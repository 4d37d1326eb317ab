//! A `reverse_proxy` while its block is read: the defaults, and what was written instead.

use std::time::Duration;

use crate::checked::proxy::{ActiveHealth, Proxy, ProxyTls};
use crate::option_table::Seen;
use crate::syntax::Token;

/// What a block says so far.
#[derive(Default)]
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
    /// `h2c://`, `unix+h2c/`
    H2c,
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
