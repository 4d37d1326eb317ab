//! `bind`: the interfaces on which a site is reached.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use crate::arguments::some_arguments;
use crate::check::Context;
use crate::check::template::fixed;
use crate::option_table::{OptionTable, not_yet};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// Permission bits that let the owner write, without which nobody can connect.
const OWNER_WRITE: u32 = 0o200;
/// The permission bits that a file has.
const MODE_MAX: u32 = 0o777;

/// One place to bind to; the port comes from the site's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bind {
    /// An interface; `None` is every one.
    Host(Option<IpAddr>),
    /// A Unix stream socket.
    Unix { path: PathBuf, mode: Option<u32> },
}

pub(super) const OPTIONS: OptionTable<()> = OptionTable::new("bind", &[not_yet("protocols")]);

pub(super) fn bind(cx: &mut Context<'_>, line: &Directive) -> Result<Vec<Bind>, Box<Problem>> {
    if let Some(option) = line.block.as_ref().and_then(|block| block.first()) {
        return Err(OPTIONS.unknown(option));
    }
    let mut binds = Vec::new();
    for token in some_arguments(line, "bind <address>…")? {
        let read = address(cx, token);
        binds.extend(cx.keep(read));
    }
    Ok(binds)
}

/// One place, with its network or without.
pub(crate) fn bind_to(cx: &Context<'_>, token: &Token) -> Result<Bind, Box<Problem>> {
    address(cx, token)
}

/// An interface by its address, `localhost`, or every one where nothing is written.
pub(crate) fn bind_to_interface(text: &str) -> Option<Bind> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    match bare {
        "localhost" => Some(Bind::Host(Some(IpAddr::V4(Ipv4Addr::LOCALHOST)))),
        "" => Some(Bind::Host(None)),
        _ => bare.parse::<IpAddr>().ok().map(|host| Bind::Host(Some(host))),
    }
}

fn address(cx: &Context<'_>, token: &Token) -> Result<Bind, Box<Problem>> {
    let text = fixed(cx.source, token, "an address to bind to")?;
    let (network, address) = match text.split_once('/') {
        Some((network, address)) => (network.to_ascii_lowercase(), address),
        None => (String::new(), text.as_str()),
    };
    match network.as_str() {
        "unix" => return unix(cx, token, address),
        "" | "tcp" | "tcp4" | "tcp6" => {}
        "unixgram" | "unixpacket" | "udp" | "udp4" | "udp6" | "fd" | "fdgram" | "ip" => {
            let message = format!("`{network}/` is a network of Caddy that onehop does not have yet");
            return Err(Problem::error("not-yet", &token.place, message));
        }
        other => {
            let message = format!("there is no network `{other}`");
            return Err(Problem::error("bind", &token.place, message)
                .help("write an IP address, or `unix//run/onehop.sock`"));
        }
    }
    let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    bind_to_interface(bare).ok_or_else(|| {
        let problem = Problem::error("bind", &token.place, format!("`{text}` is no IP address"));
        if address.contains(':') {
            problem.help("`bind` takes no port: the port stands in the site's address")
        } else {
            problem.help("write the interface's address, for example `127.0.0.1` or `::1`")
        }
    })
}

/// `unix//path` or `unix//path|0660`
fn unix(cx: &Context<'_>, token: &Token, address: &str) -> Result<Bind, Box<Problem>> {
    let (path, bits) = match address.split_once('|') {
        Some((path, bits)) => (path, Some(bits)),
        None => (address, None),
    };
    if path.is_empty() {
        return Err(Problem::error("bind", &token.place, "the socket has no path")
            .help("write two slashes before an absolute path: `unix//run/onehop.sock`"));
    }
    let mode = match bits {
        None => None,
        Some(bits) => match u32::from_str_radix(bits, 8) {
            Ok(mode) if mode & OWNER_WRITE != 0 && mode <= MODE_MAX => Some(mode),
            _ => {
                let message = format!("`{bits}` are no permission bits of a socket");
                return Err(Problem::error("bind", &token.place.narrowed_to(bits), message)
                    .help("write them as octal digits, with write permission for the owner: `|0660`"));
            }
        },
    };
    Ok(Bind::Unix { path: cx.absolute_to_write(path), mode })
}
