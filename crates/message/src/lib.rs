//! Requests and responses as all handlers see them, whatever the protocol version.
//!
//! A handler reads the path in one form ([`path`]), fills a [`response::Response`] or fails with an
//! [`error::HttpError`], of which [`error_response`] makes the response. Handlers that forward a request use one set of
//! rules: which fields pass on ([`forwarding`]), which of them the server writes itself ([`forwarded`]), and whose word
//! counts about who the client is ([`trusted_proxies`]). [`proxy_protocol`] reads what is said of that before the first request.
//!
//! Pure: no socket, no clock and no file system. The one exception is a handle of an open file, which
//! [`response::Disk`] carries without reading it.
#![forbid(unsafe_code)]

pub mod calendar;
pub mod cookies;
pub mod error;
pub mod error_response;
pub mod forwarded;
pub mod forwarding;
pub mod glob;
pub mod html;
pub mod limits;
pub mod link;
pub mod methods;
pub mod origin;
pub mod path;
pub mod proxy_protocol;
pub mod query;
pub mod request;
pub mod response;
pub mod tls_session;
pub mod trace_context;
pub mod trusted_proxies;
pub mod uri;
