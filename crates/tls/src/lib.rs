//! TLS to clients: what is negotiated, which certificate is sent, and session tickets.
//!
//! | module | what it owns |
//! | --- | --- |
//! | [`policy`] | what is negotiated with the clients of a site, as rustls has it; session tickets |
//! | [`certificate`] | certificates as handshakes use them, and which one a client gets |
//! | [`client_auth`] | how certificates of clients are verified |
//! | [`client_certificate`] | the fields of such a certificate, as text |
//! | [`session`] | what a handshake has negotiated, as requests see it |
//!
//! Never opens a socket: `onehop_connection` has the stream, the server the handshake. Never obtains a certificate:
//! `onehop_certificates` does.

#![forbid(unsafe_code)]

pub mod certificate;
pub mod client_auth;
pub mod client_certificate;
mod compression;
pub mod limits;
pub mod policy;
pub mod session;

pub use certificate::{Chain, ChainTable};
pub use client_auth::read_pem;
pub use policy::{Policy, Tickets};
