//! A log that goes over the network or to a local socket: lines as they are, or as messages of syslog (RFC 5424).
//!
//! Only the log's own thread waits for the peer, and that for a bounded time. While the peer cannot be reached, lines are
//! lost and counted like those that a full disk does not take; a new connection is tried now and then.

use std::fs;
use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Instant;

use onehop_config::checked::{LogTime, NetAddress, NetOutput};

use super::{Failed, time};
use crate::limits::{LOG_NET_RETRY, LOG_NET_WRITE_DEADLINE};
use crate::recent::Mark;

/// Facility local7, as nginx uses it (RFC 5424 section 6.2.1).
const FACILITY: u8 = 23;
const SEVERITY_ERROR: u8 = 3;
const SEVERITY_INFORMATIONAL: u8 = 6;

/// A peer that takes lines.
pub(super) struct NetSink {
    settings: NetOutput,
    link: Option<Link>,
    /// The last time that no connection could be made.
    failed: Option<Instant>,
    hostname: String,
}

enum Link {
    Tcp(TcpStream),
    Unix(UnixStream),
    Udp(UdpSocket),
    UnixDatagram(UnixDatagram),
}

impl NetSink {
    /// Connects. With `soft_start`, a peer that is not there is tried again later.
    pub(super) fn open(settings: &NetOutput) -> io::Result<Self> {
        let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let hostname: String = hostname.trim().chars().filter(char::is_ascii_graphic).collect();
        let hostname = if hostname.is_empty() { "-".to_owned() } else { hostname };
        let mut sink = Self { settings: settings.clone(), link: None, failed: None, hostname };
        match sink.connect() {
            Err(error) if !settings.soft_start => Err(error),
            _ => Ok(sink),
        }
    }

    /// Sends whole lines, as many as the peer takes. Each mark is a line.
    pub(super) fn write(&mut self, text: &[u8], marks: &[Mark]) -> Result<(), Failed> {
        let lost = |sent: usize, error| Failed { lines: (marks.len() - sent) as u64, error };
        if self.link.is_none() {
            if self.failed.is_some_and(|at| at.elapsed() < LOG_NET_RETRY) {
                return Err(lost(
                    0,
                    io::Error::new(io::ErrorKind::NotConnected, "its receiver cannot be reached"),
                ));
            }
            self.connect().map_err(|error| lost(0, error))?;
        }
        let mut begin = 0;
        let mut message = Vec::new();
        for (number, mark) in marks.iter().enumerate() {
            let line = text.get(begin..mark.end).unwrap_or_default();
            begin = mark.end;
            message.clear();
            self.fill(line.strip_suffix(b"\n").unwrap_or(line), mark, &mut message);
            let Some(link) = &mut self.link else { break };
            if let Err(error) = link.send(&message) {
                // A datagram that is too long says nothing about the next one.
                if !link.is_datagram() || error.kind() == io::ErrorKind::ConnectionRefused {
                    self.link = None;
                }
                return Err(lost(number, error));
            }
        }
        Ok(())
    }

    fn connect(&mut self) -> io::Result<()> {
        match Link::to(&self.settings) {
            Ok(link) => {
                (self.link, self.failed) = (Some(link), None);
                Ok(())
            }
            Err(error) => {
                self.failed = Some(Instant::now());
                Err(error)
            }
        }
    }

    fn fill(&self, line: &[u8], mark: &Mark, out: &mut Vec<u8>) {
        let is_datagram = self.link.as_ref().is_some_and(Link::is_datagram);
        if !self.settings.is_syslog {
            out.extend_from_slice(line);
            if !is_datagram {
                out.push(b'\n');
            }
            return;
        }
        let message = self.syslog(line, mark);
        if !is_datagram {
            // Octet counting (RFC 6587 section 3.4.1).
            out.extend_from_slice(format!("{} ", message.len()).as_bytes());
        }
        out.extend_from_slice(&message);
    }

    /// RFC 5424 section 6.
    fn syslog(&self, line: &[u8], mark: &Mark) -> Vec<u8> {
        let severity = if mark.is_error { SEVERITY_ERROR } else { SEVERITY_INFORMATIONAL };
        let mut message = format!("<{}>1 ", FACILITY * 8 + severity).into_bytes();
        time::push(&mut message, mark.at, LogTime::Rfc3339Fraction, "");
        let (hostname, process) = (&self.hostname, std::process::id());
        let kind = if mark.is_of_server() { "server" } else { "access" };
        message.extend_from_slice(format!(" {hostname} onehop {process} {kind} - ").as_bytes());
        message.extend_from_slice(line);
        message
    }
}

impl Link {
    fn to(settings: &NetOutput) -> io::Result<Self> {
        Ok(match &settings.address {
            NetAddress::Tcp(address) => {
                let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
                for address in address.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, settings.dial_timeout) {
                        Ok(stream) => {
                            stream.set_write_timeout(Some(LOG_NET_WRITE_DEADLINE))?;
                            return Ok(Self::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                return Err(last);
            }
            NetAddress::Udp(address) => {
                let mut addresses = address.to_socket_addrs()?;
                let address = addresses.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
                let socket = UdpSocket::bind(if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
                socket.connect(address)?;
                Self::Udp(socket)
            }
            NetAddress::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_write_timeout(Some(LOG_NET_WRITE_DEADLINE))?;
                Self::Unix(stream)
            }
            NetAddress::UnixDatagram(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_write_timeout(Some(LOG_NET_WRITE_DEADLINE))?;
                Self::UnixDatagram(socket)
            }
        })
    }

    fn is_datagram(&self) -> bool {
        matches!(self, Self::Udp(_) | Self::UnixDatagram(_))
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(message),
            Self::Unix(stream) => stream.write_all(message),
            Self::Udp(socket) => socket.send(message).map(drop),
            Self::UnixDatagram(socket) => socket.send(message).map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn settings(address: NetAddress, is_syslog: bool) -> NetOutput {
        NetOutput { address, is_syslog, dial_timeout: Duration::from_secs(10), soft_start: false }
    }

    fn marks() -> [Mark; 2] {
        let at = UNIX_EPOCH + Duration::from_micros(1_767_225_600_012_345);
        let mark = |end, is_error| Mark { end, at, site: 0, status: 200, is_json: false, is_error };
        [mark(4, false), mark(8, true)]
    }

    #[test]
    fn a_stream_gets_lines_as_they_are_or_counted_messages() {
        for is_syslog in [false, true] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
            let address = listener.local_addr().expect("an address").to_string();
            let mut sink = NetSink::open(&settings(NetAddress::Tcp(address), is_syslog)).expect("connected");
            sink.hostname = "host".to_owned();
            sink.write(b"one\ntwo\n", &marks()).expect("sent");
            drop(sink);
            let mut text = String::new();
            listener.accept().expect("a connection").0.read_to_string(&mut text).expect("text");
            let process = std::process::id();
            let message = |priority: u8, line: &str| {
                let message = format!(
                    "<{priority}>1 2026-01-01T00:00:00.012345Z host onehop {process} access - {line}"
                );
                format!("{} {message}", message.len())
            };
            let expected = match is_syslog {
                true => message(190, "one") + &message(187, "two"),
                false => "one\ntwo\n".to_owned(),
            };
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn a_datagram_is_one_line() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("bound");
        receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
        let address = receiver.local_addr().expect("an address").to_string();
        let mut sink = NetSink::open(&settings(NetAddress::Udp(address), false)).expect("open");
        sink.write(b"one\ntwo\n", &marks()).expect("sent");
        let mut datagram = [0; 16];
        for line in [&b"one"[..], b"two"] {
            let length = receiver.recv(&mut datagram).expect("a datagram");
            assert_eq!(&datagram[..length], line);
        }
    }

    #[test]
    fn without_a_receiver_a_log_starts_only_with_soft_start_and_its_lines_count_as_lost() {
        let address = NetAddress::Unix("/nonexistent/log.sock".into());
        assert!(NetSink::open(&settings(address.clone(), false)).is_err());
        let mut sink =
            NetSink::open(&NetOutput { soft_start: true, ..settings(address, true) }).expect("open");
        let failed = sink.write(b"one\ntwo\n", &marks()).expect_err("nobody is there");
        assert_eq!(failed.lines, 2);
    }
}
