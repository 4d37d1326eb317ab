//! What is installed here, who listens, and which variables are set.
//!
//! Tests hand in their own. Never starts a program, and values of variables never reach a text for people.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use super::files::read_bounded;

/// Bytes of the kernel's table of sockets that are read; a line has 150, so that is a hundred thousand sockets.
const SOCKET_TABLE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How the kernel's table writes that a socket listens.
const LISTENS: &str = "0A";

/// What of the machine matters for finding out how something runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Where nginx is.
    pub nginx: Option<PathBuf>,
    /// Where Caddy is.
    pub caddy: Option<PathBuf>,
    /// Where Node.js is.
    pub node: Option<PathBuf>,
    /// Where Bun is.
    pub bun: Option<PathBuf>,
    /// Where npm is.
    pub npm: Option<PathBuf>,
    /// Who listens on this machine; an unspecified address is all of them.
    pub occupied: Vec<SocketAddr>,
    /// Whether no program may be started to find something out.
    pub is_dry_run: bool,
    /// The environment's variables.
    pub variables: Vec<(String, String)>,
}

impl Environment {
    /// Looks around.
    pub fn look() -> Environment {
        let mut occupied = Vec::new();
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            if let Ok(text) = read_bounded(table.as_ref(), SOCKET_TABLE_BYTES_MAX) {
                occupied.extend(text.lines().filter_map(listening));
            }
        }
        Environment {
            nginx: find("nginx"),
            caddy: find("caddy"),
            node: find("node"),
            bun: find("bun"),
            npm: find("npm"),
            occupied,
            is_dry_run: false,
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        }
    }

    /// The same as if every other server were installed: to find out what is there, none of them has to run.
    pub fn with_all_servers(self) -> Environment {
        let named = |found: Option<PathBuf>, name: &str| found.or_else(|| Some(PathBuf::from(name)));
        Environment { nginx: named(self.nginx, "nginx"), caddy: named(self.caddy, "caddy"), ..self }
    }

    /// The value of a variable.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Where a loopback port is listened to, as an address that can be connected to.
    pub(super) fn listener(&self, port: u16) -> Option<SocketAddr> {
        let reachable = |address: &SocketAddr| match address.ip() {
            ip if ip.is_loopback() => Some(ip),
            // A socket on `::` takes IPv4 too, unless its program forbids that.
            ip if ip.is_unspecified() => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            _ => None,
        };
        let mut found: Vec<IpAddr> =
            self.occupied.iter().filter(|address| address.port() == port).filter_map(reachable).collect();
        found.sort();
        found.first().map(|ip| SocketAddr::new(*ip, port))
    }
}

/// A program in `PATH`, or where servers are put that a user's `PATH` leaves out.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/local/nginx/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// The address of a line of `/proc/net/tcp` (proc_pid_net(5)) whose socket listens.
fn listening(line: &str) -> Option<SocketAddr> {
    let mut fields = line.split_whitespace().skip(1);
    let (address, port) = fields.next()?.split_once(':')?;
    if fields.nth(1)? != LISTENS {
        return None;
    }
    let port = u16::from_str_radix(port, 16).ok()?;
    // Words of 32 bits in the machine's own order.
    let word = |at: usize| {
        let digits = address.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_our_own_is_seen_and_one_that_was_closed_is_not() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        assert_eq!(Environment::look().listener(address.port()), Some(address));
        drop(socket);
        assert!(!Environment::look().occupied.contains(&address));
    }

    #[test]
    fn lines_of_the_kernels_table_are_read_as_they_are() {
        for (line, expected) in [
            ("  sl  local_address rem_address   st tx_queue", None),
            ("   0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000", Some("127.0.0.1:3000")),
            ("   0: 0100007F:0BB8 0100007F:A1B2 01 00000000:00000000", None),
            (
                "   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A",
                Some("[::1]:8080"),
            ),
            ("   0: 0100007F 00000000:0000 0A", None),
            ("   0: 01é0007F:0BB8 00000000:0000 0A", None),
            ("", None),
        ] {
            let expected = expected.map(|text| text.parse::<SocketAddr>().unwrap());
            assert_eq!(listening(line), expected, "{line}");
        }
    }

    #[test]
    fn who_listens_everywhere_listens_on_loopback() {
        let environment = Environment {
            occupied: ["[::]:3000", "10.0.0.7:4000", "[::1]:5000"].map(|text| text.parse().unwrap()).to_vec(),
            ..Environment::default()
        };
        assert_eq!(environment.listener(3000), Some("127.0.0.1:3000".parse().unwrap()));
        assert_eq!(environment.listener(4000), None);
        assert_eq!(environment.listener(5000), Some("[::1]:5000".parse().unwrap()));
    }
}
