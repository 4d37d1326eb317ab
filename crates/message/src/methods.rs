//! Which methods the server answers, and what `Allow` says of them (RFC 9110 section 10.2.1).
//!
//! Decides nothing about a request: handlers do.

use crate::response::Response;

/// The methods of a resource, or of the server as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Methods {
    /// Files.
    Files,
    /// Files, and OPTIONS of the server as a whole.
    FilesAndOptions,
    /// Whatever a handler, an application or an upstream makes of them.
    Any,
}

impl Methods {
    /// The value of `Allow`. TRACE and CONNECT are never offered: what they are for is not served here.
    pub fn allow(self) -> &'static [u8] {
        match self {
            Self::Files => b"GET, HEAD",
            Self::FilesAndOptions => b"GET, HEAD, OPTIONS",
            Self::Any => b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
        }
    }

    /// Responds to OPTIONS.
    pub fn fill(self, response: &mut Response) {
        response.clear();
        response.status = 204;
        response.fields.add("Allow", self.allow());
    }
}
