//! The handlers, as labels of metrics.

/// The handler that made a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the directive of that name")]
pub enum Handler {
    /// None: the request was refused before a handler, or no route matched.
    None,
    Respond,
    Redirect,
    FileServer,
    Spa,
    App,
    Proxy,
}

impl Handler {
    /// Every handler, in the order of its number.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Respond, Self::Redirect, Self::FileServer, Self::Spa, Self::App, Self::Proxy];

    /// The name of its directive.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Respond => "respond",
            Self::Redirect => "redir",
            Self::FileServer => "file_server",
            Self::Spa => "spa",
            Self::App => "app",
            Self::Proxy => "reverse_proxy",
        }
    }
}
