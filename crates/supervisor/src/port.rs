//! The port on which a program may listen. No two programs of this server have the same, and a listener there counts only
//! if it is a process of the program.
//!
//! Any user of the machine can listen on a free port. So the listening socket is looked up in /proc/net/tcp and /proc/net/tcp6
//! (proc_pid_net(5)), and its inode among the descriptors of the processes that the program consists of: its process
//! group, and the descendants of its first process.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::limits::PORTS_TRIED_MAX;

/// The ports that programs of this server have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ports {
    taken: Arc<Mutex<HashSet<u16>>>,
}

/// A port of loopback that no other program of this server gets while this is there.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    ports: Ports,
}

impl Ports {
    /// A port on which nothing listens at this moment.
    pub(crate) fn take(&self) -> Result<Port, String> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        // Kept until one is found, so that the system gives each out only once.
        let mut tried = Vec::new();
        for _ in 0..PORTS_TRIED_MAX {
            let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
            let number = bound.as_ref().ok().and_then(|bound| bound.local_addr().ok()).map(|at| at.port());
            match (bound, number) {
                (Ok(_), Some(number)) if taken.insert(number) => {
                    return Ok(Port { number, ports: self.clone() });
                }
                (Ok(bound), _) => tried.push(bound),
                (Err(error), _) => return Err(format!("no free port on loopback: {error}")),
            }
        }
        Err("no free port on loopback: other programs of this server have all that were tried".to_owned())
    }
}

impl Port {
    /// Where the program is reached.
    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }

    /// Why the listener there is not taken for the program whose first process this is.
    pub(crate) fn refusal(&self, program: u32) -> Option<String> {
        let number = self.number;
        match listening(number) {
            Ok(sockets) if sockets.is_empty() => Some(format!("what listens on port {number} is gone")),
            Ok(sockets) => {
                let own = own_sockets(program);
                let stranger = sockets.iter().find(|socket| !own.has(socket))?;
                Some(format!(
                    "on port {number} a process of user {} listens that is none of this program: its requests are not sent there",
                    stranger.uid
                ))
            }
            Err(error) => Some(format!(
                "whose the listener on port {number} is cannot be found out without /proc ({error}): let the program listen on $ONEHOP_SOCKET"
            )),
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.ports.taken.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

/// A listening socket.
#[derive(Debug, PartialEq, Eq)]
struct Socket {
    inode: u64,
    uid: u32,
}

/// The listening sockets that a connection to 127.0.0.1 may reach.
fn listening(port: u16) -> io::Result<Vec<Socket>> {
    let mut sockets = of_table(&fs::read_to_string("/proc/self/net/tcp")?, port);
    // Missing where the kernel has no IPv6.
    sockets.extend(of_table(&fs::read_to_string("/proc/self/net/tcp6").unwrap_or_default(), port));
    Ok(sockets)
}

fn of_table(table: &str, port: u16) -> Vec<Socket> {
    // Addresses as the kernel writes them: in 32-bit words of the machine's byte order.
    let loopback = format!("{:08X}", u32::from_ne_bytes([127, 0, 0, 1]));
    let mapped = format!("0000000000000000{:08X}{loopback}", u32::from_ne_bytes([0, 0, 0xff, 0xff]));
    let socket = |line: &str| {
        let mut fields = line.split_whitespace();
        let (address, local_port) = fields.nth(1)?.split_once(':')?;
        let state = fields.nth(1)?;
        let uid = fields.nth(3)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        let reaches = address.bytes().all(|digit| digit == b'0') || address == loopback || address == mapped;
        let is_it = state == "0A" && reaches && u16::from_str_radix(local_port, 16) == Ok(port);
        is_it.then_some(Socket { inode, uid })
    };
    table.lines().skip(1).filter_map(socket).collect()
}

/// Sockets of the processes of a program.
#[derive(Debug, Default)]
struct OwnSockets {
    inodes: HashSet<u64>,
    /// Users of processes whose descriptors this server may not see (they have capabilities of their own).
    hidden: HashSet<u32>,
}

impl OwnSockets {
    fn has(&self, socket: &Socket) -> bool {
        self.inodes.contains(&socket.inode) || self.hidden.contains(&socket.uid)
    }
}

fn own_sockets(program: u32) -> OwnSockets {
    let mut all: Vec<Relation> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| Relation::of(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect();
    let mut own = OwnSockets::default();
    let mut family = HashSet::from([program]);
    loop {
        let (new, others): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|it| it.group == program || family.contains(&it.parent) || it.pid == program);
        if new.is_empty() {
            return own;
        }
        for process in new {
            family.insert(process.pid);
            add_sockets(process.pid, &mut own);
        }
        all = others;
    }
}

/// A process among others (proc_pid_stat(5)).
struct Relation {
    pid: u32,
    parent: u32,
    group: u32,
}

impl Relation {
    fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Its name may hold anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some(Self { pid, parent, group })
    }
}

fn add_sockets(pid: u32, own: &mut OwnSockets) {
    let folder = format!("/proc/{pid}");
    let inode = |entry: io::Result<fs::DirEntry>| {
        let target = fs::read_link(entry.ok()?.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok()
    };
    match fs::read_dir(format!("{folder}/fd")) {
        Ok(entries) => own.inodes.extend(entries.filter_map(inode)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // The folder belongs to root then; its user is in one of its files.
            let status = fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
            let uid = status
                .lines()
                .find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1)?.parse().ok());
            own.hidden.extend(uid.or_else(|| fs::metadata(&folder).ok().map(|found| found.uid())));
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_ports_that_are_held_are_the_same() {
        let ports = Ports::default();
        let held: Vec<Port> = (0..200).map(|_| ports.take().expect("a port")).collect();
        let numbers: HashSet<u16> = held.iter().map(|port| port.number).collect();
        assert_eq!(numbers.len(), held.len());
        drop(held);
        assert!(ports.taken.lock().expect("unpoisoned").is_empty());
    }

    #[test]
    fn a_listener_counts_where_a_process_of_the_program_has_it() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let number = listener.local_addr().expect("an address").port();
        let port = Port { number, ports: Ports::default() };
        assert_eq!(port.refusal(std::process::id()), None);
        let mut stranger = std::process::Command::new("sleep");
        std::os::unix::process::CommandExt::process_group(&mut stranger, 0);
        let mut stranger = stranger.arg("1000").spawn().expect("started");
        let refused = port.refusal(stranger.id());
        stranger.kill().expect("killed");
        stranger.wait().expect("ended");
        assert!(refused.is_some_and(|reason| reason.contains("none of this program")));
        drop(listener);
        assert!(port.refusal(std::process::id()).is_some_and(|reason| reason.contains("is gone")));
    }

    #[test]
    fn only_listeners_that_a_connection_to_loopback_reaches_are_found() {
        let line = |address: &str, port: u16, state: &str, inode: u64| {
            format!(
                "   0: {address}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 0000000000000000 100 0 0 10 0\n"
            )
        };
        let loopback = format!("{:08X}", u32::from_ne_bytes([127, 0, 0, 1]));
        let other = format!("{:08X}", u32::from_ne_bytes([10, 0, 0, 1]));
        let table = String::from("  sl  local_address rem_address   st\n")
            + &line(&loopback, 80, "0A", 1)
            + &line("00000000", 80, "0A", 2)
            + &line(&other, 80, "0A", 3)
            + &line(&loopback, 80, "01", 4)
            + &line(&loopback, 81, "0A", 5)
            + &line(&"0".repeat(32), 80, "0A", 6)
            + "nonsense\n";
        let found: Vec<_> =
            of_table(&table, 80).into_iter().map(|socket| (socket.inode, socket.uid)).collect();
        assert_eq!(found, [(1, 1000), (2, 1000), (6, 1000)]);
    }
}
