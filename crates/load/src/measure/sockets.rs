//! Who listens where.
//!
//! Owns the reading of the kernel's tables of sockets (proc(5), `/proc/net/tcp`, `/proc/net/unix`) and of the
//! descriptors that lead to them. Descriptors of other users' processes cannot be read: they are then not found.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::process::{numbers_in, read};
use crate::url::Address;

/// The state LISTEN in the kernel's table.
const LISTEN: &str = "0A";

/// A TCP socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    pub(crate) inode: u64,
}

/// The flag of a Unix socket that takes connections (`__SO_ACCEPTCON`).
const ACCEPTS: u32 = 0x1_0000;

/// All TCP sockets that listen.
pub(crate) fn listening() -> Vec<Listening> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(read);
    tables.flat_map(|table| table.lines().filter_map(listening_in).collect::<Vec<_>>()).collect()
}

/// The inodes of sockets at which a connection to this address is taken.
pub(crate) fn inodes_at(address: &Address) -> BTreeSet<u64> {
    match address {
        Address::Tcp(address) => tcp_inodes(address, &listening()),
        Address::Unix(path) => unix_inodes(path, &read("/proc/net/unix").unwrap_or_default()),
    }
}

/// The inodes of the sockets that a process holds.
pub(crate) fn inodes_of(process: u32) -> BTreeSet<u64> {
    let folder = format!("/proc/{process}/fd");
    let inode_of = |descriptor: u32| {
        let link = std::fs::read_link(format!("{folder}/{descriptor}")).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    numbers_in(Path::new(&folder)).into_iter().filter_map(inode_of).collect()
}

/// A socket at this very address takes its connections; one at any address takes the rest.
fn tcp_inodes(address: &SocketAddr, listening: &[Listening]) -> BTreeSet<u64> {
    let wanted = address.ip().to_canonical();
    let at_port = || listening.iter().filter(|listening| listening.address.port() == address.port());
    let exact = at_port().filter(|listening| listening.address.ip().to_canonical() == wanted);
    let exact: BTreeSet<u64> = exact.map(|listening| listening.inode).collect();
    if !exact.is_empty() {
        return exact;
    }
    let takes = |listening: &&Listening| {
        let own = listening.address.ip();
        // An IPv6 socket at `::` takes IPv4 too, unless it says otherwise, which the table does not tell.
        own.is_unspecified() && (own.is_ipv4() == wanted.is_ipv4() || own.is_ipv6())
    };
    at_port().filter(takes).map(|listening| listening.inode).collect()
}

/// `0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 4711 …`
fn listening_in(line: &str) -> Option<Listening> {
    let mut words = line.split_whitespace();
    let local = words.nth(1)?;
    (words.nth(1)? == LISTEN).then_some(())?;
    let inode = words.nth(5)?.parse().ok()?;
    let (ip, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(Listening { address: SocketAddr::new(ip_of(ip)?, port), inode })
}

/// Words of 32 bits in the machine's order of bytes, each written as a number.
fn ip_of(text: &str) -> Option<IpAddr> {
    let word = |place: usize| {
        let part = text.get(place * 8..place * 8 + 8)?;
        Some(u32::from_str_radix(part, 16).ok()?.to_ne_bytes())
    };
    match text.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut bytes = [0; 16];
            for (place, four) in bytes.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(place)?);
            }
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// `0000: 00000002 00000000 00010000 0001 01  4711 /run/x.sock`, with the flags in the fourth place.
fn unix_inodes(path: &Path, table: &str) -> BTreeSet<u64> {
    let inode_of = |line: &str| {
        let mut rest = line;
        let mut word = || {
            let (word, after) = rest.trim_start().split_once(' ')?;
            rest = after;
            Some(word)
        };
        let flags = u32::from_str_radix([word()?, word()?, word()?, word()?][3], 16).ok()?;
        let inode = [word()?, word()?, word()?][2].parse().ok()?;
        let name = Path::new(rest);
        (flags & ACCEPTS != 0 && (name == path || same_file(name, path))).then_some(inode)
    };
    table.lines().filter_map(inode_of).collect()
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_sockets_are_read() {
        let line = "   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0";
        let expected = Listening { address: "127.0.0.1:8080".parse().unwrap(), inode: 4711 };
        if cfg!(target_endian = "little") {
            assert_eq!(listening_in(line), Some(expected));
        }
        assert_eq!(listening_in(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listening_in("  sl  local_address rem_address   st tx_queue"), None);
        assert_eq!(ip_of("00000000000000000000000001000000"), Some("::1".parse().unwrap()));
        assert_eq!(ip_of("0000\u{e9}00"), None);
    }

    #[test]
    fn who_listens_at_the_very_address_comes_before_who_listens_at_any() {
        let at = |address: &str, inode| Listening { address: address.parse().unwrap(), inode };
        let all =
            [at("127.0.0.1:80", 1), at("0.0.0.0:80", 2), at("[::]:81", 3), at("[::ffff:127.0.0.1]:82", 4)];
        let check = |address: &str, expected: &[u64]| {
            let found = tcp_inodes(&address.parse().unwrap(), &all);
            assert_eq!(found, expected.iter().copied().collect(), "{address}");
        };
        check("127.0.0.1:80", &[1]);
        check("127.0.0.2:80", &[2]);
        check("[::1]:80", &[]);
        check("127.0.0.1:81", &[3]);
        check("127.0.0.1:82", &[4]);
    }

    #[test]
    fn unix_sockets_that_accept_are_found_by_their_path() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01   471 /run/a b.sock\n\
                     0000000000000000: 00000003 00000000 00000000 0001 03 99999 /run/a b.sock\n\
                     0000000000000000: 00000003 00000000 00000000 0001 03 99999\n";
        assert_eq!(unix_inodes(Path::new("/run/a b.sock"), table), BTreeSet::from([471]));
        assert!(unix_inodes(Path::new("/run/a"), table).is_empty());
    }
}
