//! Why a server does not start, as its caller reports it.

/// Why a server did not start, or a reload was not taken.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address is taken, or may not be bound.
    #[error("cannot listen on {address}: {reason}")]
    Bind {
        /// As configured.
        address: String,
        /// The cause and the next step.
        reason: String,
    },
    /// The limit on open descriptors is less than what the configuration needs.
    #[error("{0}")]
    Descriptors(String),
    /// `memory` is less than what the configuration asks for.
    #[error("{0}")]
    Memory(String),
    /// A root is missing or cannot be read, or a log cannot be opened.
    #[error("{0}")]
    Store(String),
    /// Certificates or settings of TLS cannot be used.
    #[error("{0}")]
    Tls(String),
    /// A thread or a runtime could not be made.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}
