//! A request as handlers see it.

use std::borrow::Cow;
use std::time::Instant;

use onehop_http1::RequestHead;

use crate::origin::Origin;
use crate::path::RequestPath;

/// A request: its head as it came, its path and query as the routes have made them.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// As it came.
    pub head: &'a RequestHead,
    /// Where it came in.
    pub origin: Origin,
    /// When its head was complete.
    pub received: Instant,
    /// The path; a rewrite makes another one.
    pub path: RequestPath<'a>,
    /// The query; a rewrite makes another one.
    pub query: Option<Cow<'a, [u8]>>,
}
