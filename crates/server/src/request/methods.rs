//! Which methods the server answers, and what `Allow` says of them (RFC 9110 section 10.2.1).
//!
//! Decides nothing about a request: handlers do.

use super::answer::Answer;
use super::route::{Action, Route, Snapshot};

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

    /// Answers OPTIONS.
    pub(crate) fn fill(self, answer: &mut Answer) {
        answer.clear();
        answer.status = 204;
        answer.fields.add("Allow", self.allow());
    }

    /// The methods that requests for any path of any site may have.
    pub(super) fn of_server(snapshot: &Snapshot) -> Self {
        if snapshot.sites.iter().any(|site| any_method(&site.routes)) { Self::Any } else { Self::Files }
    }
}

/// Whether one of these routes answers more than GET and HEAD.
fn any_method(routes: &[Route]) -> bool {
    routes.iter().any(|route| match &route.action {
        Action::Handle(routes) | Action::HandlePath { routes, .. } => any_method(routes),
        Action::Respond { .. } | Action::Redirect { .. } | Action::App(_) | Action::Proxy(_) => true,
        Action::Root(_)
        | Action::Header(..)
        | Action::Rewrite(_)
        | Action::Encode(_)
        | Action::Limit(_)
        | Action::Priority(_)
        | Action::RateLimit(_)
        | Action::FileServer { .. }
        | Action::Spa { .. } => false,
    })
}
