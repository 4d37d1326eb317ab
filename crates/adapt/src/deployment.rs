//! What a configuration does not say itself: which applications answer behind it, and what its folders hold.
//!
//! The translator asks through [`Deployment`]; who knows a machine answers from it, [`TextOnly`] knows nothing.

use std::path::Path;
use std::time::Duration;

use crate::nginx::{Directive, UNIX_SOCKET};
use crate::paths::below;

/// An address that a configuration passes requests to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// A name, an IP address, or `unix/` and the path of a socket.
    pub host: String,
    /// The port, which a socket does not have.
    pub port: u16,
    /// `line 4 of nginx.conf`.
    pub place: String,
    /// How long an answer may take there, where that is said.
    pub timeout: Option<Duration>,
    /// Whether the translation cannot name an application in `app`, so that a process must already listen at the port.
    pub is_apart: bool,
}

/// What is known of the machine for which a configuration is translated.
pub trait Deployment {
    /// Where an application is reached.
    fn address(&self, upstream: &Upstream) -> String {
        if upstream.host.starts_with(UNIX_SOCKET) {
            return upstream.host.clone();
        }
        let host = if upstream.host == "localhost" { "127.0.0.1" } else { &upstream.host };
        format!("{host}:{}", upstream.port)
    }

    /// The `app` directive of an application that onehop runs itself instead of passing requests to a port.
    fn app(&self, _port: u16, _matcher: Option<&str>) -> Option<String> {
        None
    }

    /// Paths that the applications answer.
    fn routes(&self) -> &[String] {
        &[]
    }

    /// Whether the only page of a folder is drawn by a script.
    fn is_single_page_application(&self, _folder: &Path) -> bool {
        false
    }

    /// The file to which the access log goes, where nginx writes one; `None` leaves it to onehop. `written` is nginx's own
    /// directive.
    fn access_log(&self, _written: Option<&Directive>, _notes: &mut Vec<String>) -> Option<String> {
        Some("./access.log".to_owned())
    }

    /// A folder as the Onehopfile names it, which lies in `near`.
    fn folder(&self, near: &Path, folder: &Path) -> String {
        below(near, folder)
    }

    /// Whether the translation is measured beside nginx: limits and passwords would be measured instead.
    fn is_measured(&self) -> bool {
        true
    }

    /// Whether folders have to be there.
    fn is_folder_needed(&self) -> bool {
        true
    }
}

/// A deployment of which only the configuration's text is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextOnly;

impl Deployment for TextOnly {}
