//! Where requests go: what a person types, and the address behind it.
//!
//! Owns the reading of URLs and the search for an address that accepts. Never decides whether a host may be
//! loaded: [`Address::is_loopback`] is the fact, whoever was typed at decides.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::tls::error::SettingsError;

/// One thing that can be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether it is asked for over TLS.
    pub scheme: Scheme,
    /// Who is connected to.
    pub endpoint: Endpoint,
    /// The value of `Host` (RFC 9112 section 3.2).
    pub authority: String,
    /// The request-target in origin form (RFC 9112 section 3.2.1), as typed.
    pub path: String,
}

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS (RFC 9110 section 4.2.2).
    Https,
}

/// A server by its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// A host, by name or number, and a port.
    Tcp {
        /// As typed, an IPv6 address without its brackets.
        host: String,
        /// Its port.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

/// A server where it can be connected to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// Over TCP.
    Tcp(SocketAddr),
    /// Over a Unix socket.
    Unix(PathBuf),
}

/// Why what was typed is no target, or why the target cannot be reached. Its text is for a person.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// Not a URL.
    #[error(
        "`{text}` is no URL that can be asked: {why}. Write http://HOST:PORT/PATH, HOST:PORT/PATH, :PORT/PATH or PORT/PATH"
    )]
    Malformed {
        /// What was typed.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// It cannot be asked over TLS with these settings.
    #[error(transparent)]
    Tls(#[from] SettingsError),
    /// A name that leads nowhere.
    #[error("the name `{host}` has no address ({why}): is it spelled right?")]
    Unresolved {
        /// The name.
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// Nobody accepts.
    #[error("nobody can be reached at {endpoint} ({why}): start the server first, or name its port")]
    Unreachable {
        /// Who was wanted.
        endpoint: Endpoint,
        /// Each address that was tried, and what happened.
        why: String,
    },
    /// It is connected to, and speaks no HTTP/2.
    #[error("no HTTP/2 with {endpoint}: {why}")]
    NoHttp2 {
        /// Who was wanted.
        endpoint: Endpoint,
        /// What happened, and what to do.
        why: String,
    },
    /// It is connected to, and cannot be asked.
    #[error("no TLS with {endpoint}: {why}")]
    Handshake {
        /// Who was wanted.
        endpoint: Endpoint,
        /// What happened, and what to do.
        why: String,
    },
}

impl Url {
    /// Reads `http://host:port/path?query`, the same with `https`, `host:port/path`, `:port/path` or `port/path`, the last two on localhost. The
    /// path stays as it was typed; a fragment is dropped, since it is never sent (RFC 9110 section 7.1).
    ///
    /// # Errors
    /// For everything else.
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        let malformed = |why: &str| UrlError::Malformed { text: text.to_owned(), why: why.to_owned() };
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
            Some((scheme, _)) if !scheme.contains(['/', '?']) => {
                return Err(malformed(&format!("`{scheme}` is not http")));
            }
            _ => (Scheme::Http, text),
        };
        let has_scheme = rest.len() < text.len();
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let authority = match authority.strip_prefix(':') {
            Some(port) => format!("localhost:{port}"),
            // No host is a bare number. With a scheme before it, one is meant.
            None if !has_scheme && is_number(authority) => format!("localhost:{authority}"),
            None => authority.to_owned(),
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if let Some(odd) = path.chars().find(|letter| !letter.is_ascii_graphic()) {
            return Err(malformed(&format!("{odd:?} has to be written percent-encoded")));
        }
        let parsed: http::uri::Authority =
            authority.parse().map_err(|error: http::uri::InvalidUri| malformed(&error.to_string()))?;
        if authority.contains('@') {
            return Err(malformed("a name and a password belong into a header (--user NAME:PASSWORD)"));
        }
        let host = parsed.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(malformed("it names no host"));
        }
        let port = match parsed.port() {
            Some(port) => port.as_u16(),
            None if authority.ends_with(':') => return Err(malformed("the port is missing")),
            None if parsed.as_str().len() > parsed.host().len() => {
                return Err(malformed("the port is no number from 0 to 65535"));
            }
            None => scheme.usual_port(),
        };
        Ok(Url { scheme, endpoint: Endpoint::Tcp { host, port }, authority, path })
    }

    /// The root of a server at this address.
    pub fn of(address: SocketAddr) -> Url {
        let endpoint = Endpoint::Tcp { host: address.ip().to_string(), port: address.port() };
        Url { scheme: Scheme::Http, endpoint, authority: address.to_string(), path: "/".to_owned() }
    }

    /// Whether a text is meant as one that [`Url::parse`] reads, and not as a command or a name: it has a scheme or a
    /// port, and no blank.
    pub fn is_meant(text: &str) -> bool {
        if text.contains(char::is_whitespace) {
            return false;
        }
        let lower = text.to_ascii_lowercase();
        if lower.starts_with("http://") || lower.starts_with("https://") {
            return true;
        }
        let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
        is_number(authority.rsplit_once(':').map_or(authority, |(_, port)| port))
    }

    /// The host that is asked for, by name or number, also over a Unix socket; an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        let bracketed = self.authority.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        match bracketed {
            Some((host, _)) => host,
            None => self.authority.split(':').next().unwrap_or_default(),
        }
    }

    /// The same request, over a Unix socket.
    #[must_use]
    pub fn over(self, socket: PathBuf) -> Url {
        Url { endpoint: Endpoint::Unix(socket), ..self }
    }
}

impl Scheme {
    /// The port of URLs without one (RFC 9110 sections 4.2.1 and 4.2.2).
    fn usual_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Address {
    /// Whether it is on this machine only.
    pub fn is_loopback(&self) -> bool {
        match self {
            Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Address::Unix(_) => true,
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}{}", self.scheme, self.authority, self.path)?;
        match &self.endpoint {
            Endpoint::Tcp { .. } => Ok(()),
            Endpoint::Unix(socket) => write!(formatter, " over {}", socket.display()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { host, port } if host.contains(':') => write!(formatter, "[{host}]:{port}"),
            Endpoint::Tcp { host, port } => write!(formatter, "{host}:{port}"),
            Endpoint::Unix(path) => write!(formatter, "{}", path.display()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(formatter, "{address}"),
            Address::Unix(path) => write!(formatter, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_understood() {
        let cases = [
            ("http://localhost:3000/a?b=c#d", "localhost", 3000, "localhost:3000", "/a?b=c"),
            ("HTTP://example.com", "example.com", 80, "example.com", "/"),
            ("127.0.0.1:8080", "127.0.0.1", 8080, "127.0.0.1:8080", "/"),
            (":8080/x", "localhost", 8080, "localhost:8080", "/x"),
            ("23000", "localhost", 23000, "localhost:23000", "/"),
            ("23000/x?y", "localhost", 23000, "localhost:23000", "/x?y"),
            ("http://23000/x", "23000", 80, "23000", "/x"),
            ("localhost:1?q", "localhost", 1, "localhost:1", "/?q"),
            ("http://[::1]:81/%20", "::1", 81, "[::1]:81", "/%20"),
            ("localhost/go?to=http://a", "localhost", 80, "localhost", "/go?to=http://a"),
            ("https://example.com/a", "example.com", 443, "example.com", "/a"),
            ("HTTPS://[::1]:8443", "::1", 8443, "[::1]:8443", "/"),
        ];
        for (text, host, port, authority, path) in cases {
            let url = Url::parse(text).unwrap();
            let endpoint = Endpoint::Tcp { host: host.to_owned(), port };
            let is_https = text.to_ascii_lowercase().starts_with("https");
            let scheme = if is_https { Scheme::Https } else { Scheme::Http };
            assert_eq!(url.host(), host, "{text}");
            assert_eq!(url, Url { scheme, endpoint, authority: authority.to_owned(), path: path.to_owned() });
        }
    }

    #[test]
    fn what_cannot_be_asked_says_why() {
        for (text, part) in [
            ("ftp://localhost", "not http"),
            ("http://", "empty"),
            ("http://a:b@localhost/", "--user"),
            ("http://localhost:99999/", "port"),
            ("99999", "port"),
            ("http://localhost:/", "port"),
            ("http://localhost/a b", "percent-encoded"),
            ("http://localhost/\u{e9}", "percent-encoded"),
        ] {
            let error = Url::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
