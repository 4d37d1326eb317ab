//! Marks: a server of onehop that is measured on this machine hears when a load begins and ends, so that its events show
//! which load caused what.
//!
//! Best effort: who cannot be told is measured all the same. Never tells a server of another user, or one that listens
//! elsewhere than the load asks.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use onehop_load::url::Address;
use serde_json::Value;

use crate::{control_client, control_path};

/// A control socket answers in milliseconds; a hung server must not hold up the load.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Servers that heard of the begin; they hear of the end when this is dropped.
pub(super) struct Marks {
    sockets: Vec<PathBuf>,
}

impl Marks {
    /// Tells every onehop of this user that listens where the load asks.
    pub(super) fn begin<'a>(addresses: impl IntoIterator<Item = &'a Address>) -> Marks {
        let addresses: Vec<&Address> = addresses.into_iter().collect();
        let is_asked = |socket: &PathBuf| {
            let status = control_client::ask_within(ANSWER_WITHIN, socket, "GET", "/status");
            status.is_ok_and(|status| {
                let listening =
                    control_client::list(&status.body, "listening").iter().filter_map(Value::as_str);
                listening.into_iter().any(|place| addresses.iter().any(|address| is_at(address, place)))
            })
        };
        let sockets: Vec<PathBuf> = control_path::all().into_iter().filter(is_asked).collect();
        let marks = Marks { sockets };
        marks.tell("/marks/load/begin");
        marks
    }

    fn tell(&self, path: &str) {
        for socket in &self.sockets {
            // A server that ended meanwhile, or is older and knows no marks, loses nothing.
            let _ = control_client::ask_within(ANSWER_WITHIN, socket, "POST", path);
        }
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        self.tell("/marks/load/end");
    }
}

/// Whether what a server says of a listener, `127.0.0.1:8080` or the path of a socket, is where the load asks.
fn is_at(address: &Address, listening: &str) -> bool {
    match (address, listening.parse::<SocketAddr>()) {
        (Address::Unix(path), Err(_)) => path.as_os_str() == listening,
        (Address::Tcp(asked), Ok(bound)) => {
            let (asked_ip, bound_ip) = (asked.ip().to_canonical(), bound.ip().to_canonical());
            let is_any = match bound_ip {
                // `[::]` takes connections to IPv4 addresses as well.
                IpAddr::V6(bound) => bound.is_unspecified(),
                IpAddr::V4(bound) => bound.is_unspecified() && asked_ip.is_ipv4(),
            };
            asked.port() == bound.port() && (asked_ip == bound_ip || is_any && asked_ip.is_loopback())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_hears_of_a_load_where_it_listens_at_the_address_that_is_asked() {
        let tcp = |text: &str| Address::Tcp(text.parse().unwrap());
        let unix = Address::Unix("/run/app.sock".into());
        for (address, listening, expected) in [
            (tcp("127.0.0.1:80"), "127.0.0.1:80", true),
            (tcp("127.0.0.1:80"), "127.0.0.1:81", false),
            (tcp("127.0.0.1:80"), "127.0.0.2:80", false),
            (tcp("127.0.0.1:80"), "0.0.0.0:80", true),
            (tcp("127.0.0.1:80"), "[::]:80", true),
            (tcp("[::1]:80"), "0.0.0.0:80", false),
            // Another machine may have the same port.
            (tcp("192.0.2.1:80"), "[::]:80", false),
            (unix.clone(), "/run/app.sock", true),
            (unix, "/run/other.sock", false),
        ] {
            assert_eq!(is_at(&address, listening), expected, "{address:?} at {listening}");
        }
    }
}
