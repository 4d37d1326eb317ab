//! HTTPS of the real program as clients see it: certificates, what is negotiated, records, and how connections end.
//!
//! Certificates from an ACME server are in `https_acme.rs`.

mod subject;

mod automatic;
mod client_auth;
mod context;
mod files;
mod identity;
mod on_demand;
mod proxy_protocol;
mod records;
mod refusals;
mod reload;
mod resumption;
mod streams;
