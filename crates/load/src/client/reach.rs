//! From a name to an address that accepts connections.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use super::RequestError;
use super::http2::Http2Connection;
use super::stream::{Stream, Wait};
use crate::plan::{Protocol, Request};
use crate::url::{Address, Endpoint, UrlError};

impl Endpoint {
    /// The first address that accepts a connection; each is given `timeout`.
    ///
    /// # Errors
    /// Where the name leads nowhere or nobody accepts.
    pub fn reach(&self, timeout: Duration) -> Result<Address, UrlError> {
        let (host, port) = match self {
            Endpoint::Unix(path) => {
                let address = Address::Unix(path.clone());
                // With a timeout: the connect of a Unix socket whose backlog is full waits for ever.
                return match Stream::open(&address, None, &Wait::new(Instant::now(), timeout, &|| false)) {
                    Ok(_) => Ok(address),
                    Err(RequestError::Connect(error)) => Err(self.unreachable(&plain(&error))),
                    Err(error) => Err(self.unreachable(&error.to_string())),
                };
            }
            Endpoint::Tcp { host, port } => (host.as_str(), *port),
        };
        // RFC 6761 section 6.3: names below localhost are the loopback address, which many systems' resolvers do not know.
        let is_local = host.to_ascii_lowercase().trim_end_matches('.').ends_with(".localhost");
        let found = (if is_local { "localhost" } else { host }, port).to_socket_addrs();
        let addresses: Vec<SocketAddr> = found
            .map_err(|error| UrlError::Unresolved { host: host.to_owned(), why: error.to_string() })?
            .collect();
        let mut failures = Vec::new();
        for address in addresses {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(_) => return Ok(Address::Tcp(address)),
                Err(error) => failures.push(format!("{address}: {}", plain(&error))),
            }
        }
        Err(self.unreachable(&failures.join("; ")))
    }

    fn unreachable(&self, why: &str) -> UrlError {
        UrlError::Unreachable { endpoint: self.clone(), why: why.to_owned() }
    }
}

impl Request {
    /// Finds the address that its server accepts connections at, and, over TLS and HTTP/2, whether it can be spoken with
    /// there: a load whose first handshakes all fail has nothing to measure.
    ///
    /// # Errors
    /// Where the name leads nowhere, nobody accepts, the certificate is not trusted, or the server speaks no HTTP/2.
    pub fn reach(&mut self, timeout: Duration) -> Result<(), UrlError> {
        self.address = self.url.endpoint.reach(timeout)?;
        let wait = Wait::new(Instant::now(), timeout, &|| false);
        let reached = match (self.protocol, &self.tls) {
            (Protocol::Http1, None) => return Ok(()),
            (Protocol::Http1, Some(tls)) => Stream::open(&self.address, Some(tls), &wait).map(drop),
            (Protocol::Http2 { .. }, tls) => {
                Http2Connection::open(&self.address, tls.as_ref(), &wait).map(drop)
            }
        };
        let endpoint = self.url.endpoint.clone();
        reached.map_err(|error| match error {
            RequestError::Tls(why) => UrlError::Handshake { endpoint, why },
            RequestError::Http2(why) => UrlError::NoHttp2 { endpoint, why },
            error => endpoint.unreachable(&error.to_string()),
        })
    }
}

/// An error of the system without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_there_is_unreachable_with_its_address() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let endpoint = Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: free.port() };
        let error = endpoint.reach(Duration::from_secs(1)).unwrap_err().to_string();
        assert!(error.contains(&free.to_string()) && error.contains("connection refused"), "{error}");
        // Found, although no resolver has to know the name.
        let below = Endpoint::Tcp { host: "api.localhost".to_owned(), port: free.port() };
        assert!(below.reach(Duration::from_secs(1)).unwrap_err().to_string().contains("connection refused"));
        let socket = Endpoint::Unix("/nowhere/at.sock".into());
        assert!(socket.reach(Duration::from_secs(1)).unwrap_err().to_string().contains("/nowhere/at.sock"));
    }
}
