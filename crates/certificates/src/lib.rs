//! Certificates of sites: where they are kept, who issues them, and when they are renewed.
//!
//! [`issuer`] is the interface of issuers, [`local`] the local authority. [`store`] is the interface of the store, and
//! [`file_store`] a store in a folder. [`loaded`] is a certificate in memory. [`keeper`] obtains and renews certificates;
//! [`schedule`] decides when. This crate never sees a client's connection: `crates/tls` serves the certificates.

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

/// Returns the time. Tests pass a clock that they set.
pub type Clock = std::sync::Arc<dyn Fn() -> std::time::SystemTime + Send + Sync>;
