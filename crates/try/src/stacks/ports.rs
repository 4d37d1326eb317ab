//! Ports for servers that come and go.
//!
//! The kernel gives clients' connections ports of its ephemeral range, and a load opens many: a port of that range
//! that was free a moment ago may be one of them when the next round's server wants it. So these are taken from below.

use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::ops::Range;

/// Below the usual begin of the ephemeral range (32768), above what is commonly installed.
const PORTS: Range<u16> = 20_000..32_000;
/// Ports that are tried before it is given up.
const TRIES_MAX: usize = 200;

/// A port on which nobody listens, and that is not among these.
pub(crate) fn free(taken: &[u16]) -> Option<u16> {
    let mut random = fastrand::Rng::new();
    (0..TRIES_MAX).map(|_| random.u16(PORTS)).find(|port| !taken.contains(port) && is_free(*port))
}

fn is_free(port: u16) -> bool {
    // Without IPv6 the second one fails for another reason, which is distinguished by its kind.
    let is_taken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::AddrInUse;
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
        && !TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).is_err_and(|error| is_taken(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_is_not_given() {
        let port = free(&[]).unwrap();
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(!is_free(port));
        assert!(PORTS.contains(&port));
    }
}
