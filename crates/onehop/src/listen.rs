//! The address that `onehop serve` listens on: `--listen`, else `$PORT`, else loopback.
//!
//! Only reads text. Never opens a socket.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use onehop_config::checked::ListenAddress;

/// A place to listen, as `--listen` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) ListenAddress);

/// The port where nothing names one: free to use without rights, and what tools of this kind take.
const DEFAULT_PORT: u16 = 8080;

/// Reads `host:port`, `:port`, `unix//path` and `unix//path|mode`.
pub(crate) fn parse(text: &str) -> Result<Address, String> {
    if let Some(path) = text.strip_prefix("unix/") {
        return parse_unix(path).map(Address);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Address(ListenAddress::Tcp { host: Some(address.ip()), port: address.port() }));
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(match text.parse::<u16>() {
            Ok(port) => {
                format!("write 127.0.0.1:{port} for this machine only, or :{port} for the whole network")
            }
            Err(_) => format!("the port is missing: write {text}:{DEFAULT_PORT}"),
        });
    };
    let port = port.parse().map_err(|_| format!("{port:?} is not a port (0 to 65535)"))?;
    let host = match host {
        "" | "*" => None,
        "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        _ => {
            return Err(format!(
                "{host:?} is not an IP address of this machine; a name would have to be looked up"
            ));
        }
    };
    Ok(Address(ListenAddress::Tcp { host, port }))
}

/// The address where `--listen` was not given. A platform that sets `PORT` routes to the machine from
/// outside, so every interface is meant; without it only this machine is, since a folder is easily
/// shown to a whole network by mistake.
pub(crate) fn from_environment(port: Option<OsString>) -> Result<ListenAddress, String> {
    let Some(port) = port.filter(|port| !port.is_empty()) else {
        return Ok(ListenAddress::Tcp { host: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), port: DEFAULT_PORT });
    };
    match port.to_str().and_then(|text| text.parse().ok()) {
        Some(port) => Ok(ListenAddress::Tcp { host: None, port }),
        None => Err(format!("$PORT is {port:?}, which is not a port (0 to 65535)")),
    }
}

fn parse_unix(rest: &str) -> Result<ListenAddress, String> {
    let (path, mode) = match rest.rsplit_once('|') {
        None => (rest, None),
        Some((path, mode)) => match u32::from_str_radix(mode, 8) {
            Ok(mode) if mode <= 0o777 => (path, Some(mode)),
            _ => return Err(format!("{mode:?} are not permission bits, such as 0660")),
        },
    };
    if path.is_empty() {
        return Err("the path is missing: write unix//run/site.sock".into());
    }
    Ok(ListenAddress::Unix { path: PathBuf::from(path), mode })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: Option<&str>, port: u16) -> ListenAddress {
        ListenAddress::Tcp { host: host.map(|host| host.parse().expect("an address")), port }
    }

    #[test]
    fn every_form_of_an_address_is_read() {
        let unix = |path: &str, mode| ListenAddress::Unix { path: path.into(), mode };
        for (text, expected) in [
            ("127.0.0.1:3000", tcp(Some("127.0.0.1"), 3000)),
            ("[::1]:3000", tcp(Some("::1"), 3000)),
            ("localhost:0", tcp(Some("127.0.0.1"), 0)),
            (":8080", tcp(None, 8080)),
            ("*:8080", tcp(None, 8080)),
            ("unix//run/site.sock", unix("/run/site.sock", None)),
            ("unix//run/site.sock|0660", unix("/run/site.sock", Some(0o660))),
        ] {
            assert_eq!(parse(text), Ok(Address(expected)), "{text}");
        }
    }

    #[test]
    fn a_wrong_address_says_what_to_write() {
        for (text, hint) in [
            ("8080", "127.0.0.1:8080"),
            ("127.0.0.1", "127.0.0.1:8080"),
            (":70000", "not a port"),
            ("example.com:80", "not an IP address"),
            ("unix/", "path is missing"),
            ("unix//x|999", "permission bits"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    #[test]
    fn a_platforms_port_means_every_interface_and_no_port_means_loopback() {
        assert_eq!(from_environment(Some("5000".into())), Ok(tcp(None, 5000)));
        assert_eq!(from_environment(None), Ok(tcp(Some("127.0.0.1"), 8080)));
        assert_eq!(from_environment(Some("".into())), Ok(tcp(Some("127.0.0.1"), 8080)));
        assert!(from_environment(Some("http".into())).is_err());
    }
}
