//! Certificates of sites: where they are kept, who issues them, and when they are renewed.
//!
//! [`issuer`] is what an issuer does, [`local`] the one that needs no network. [`store`] is where certificates are
//! kept ([`file_store`]: a folder), [`loaded`] what a certificate is in memory. [`keeper`] obtains and renews them;
//! [`schedule`] decides when. No socket of a client is seen here: `crates/tls` serves what this crate keeps.

#![forbid(unsafe_code)]

mod bounded_file;
pub mod error;
pub mod file_store;
pub mod import;
pub mod issuer;
pub mod keeper;
pub mod limits;
pub mod loaded;
pub mod local;
pub mod schedule;
pub mod store;

/// Tells the time. Tests hand in their own, to travel in it.
pub type Clock = std::sync::Arc<dyn Fn() -> std::time::SystemTime + Send + Sync>;
