//! Certificates from ACME servers (RFC 8555): accounts, orders, challenges, renewal information (RFC 9773).
//!
//! [`AcmeIssuer`] is an [`Issuer`](onehop_certificates::issuer::Issuer). It decides nothing about when to renew, and it
//! listens nowhere: it hands each [`Challenge`] to [`Challenges`], which the web server answers from
//! ([`MemoryChallenges`]) or which changes a zone ([`ExecHook`], [`Rfc2136`]). Accounts are kept by an [`AccountStore`].
//! Everything runs on the runtime that awaits it, which needs tokio's I/O and time drivers.
//!
//! Start reading at `issuer.rs`, where an order is followed from its account to its certificate.

#![forbid(unsafe_code)]

mod account;
mod caddy_account;
mod certificate;
mod challenge;
mod client;
mod explain;
mod issuer;
pub mod limits;
mod nonce;
mod permission;
mod settings;
mod zerossl;

pub use caddy_account::credentials_from_caddy;
pub use challenge::dns::Propagation;
pub use challenge::exec::ExecHook;
pub use challenge::memory::MemoryChallenges;
pub use challenge::rfc2136::Rfc2136;
pub use challenge::{Answering, Challenge, ChallengeKind, Challenges, Solvers};
pub use issuer::{AcmeIssuer, folder};
pub use permission::AskUrl;
pub use settings::{AccountStore, ExternalAccount, Settings};
pub use zerossl::{DIRECTORY as ZEROSSL, KEYS as ZEROSSL_KEYS};
