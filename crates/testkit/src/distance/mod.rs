//! Two places with a distance between them: network namespaces whose packets pass through a relay that holds each
//! one for a given time, handshakes included.
//!
//! `namespace.rs` is one end, `tunnel.rs` its way out, `relay.rs` the way between both, `loss.rs` what is lost there,
//! `segment.rs` what a packet is, and `trips.rs` counts the round trips of a request in what passed. Nothing outside the two namespaces is changed, and
//! nothing of them is left when a `Distance` is dropped and the processes in them have ended. It must never
//! reorder or hurry a packet, or lose one unasked; where its queue is full it counts what it lost, and whoever measures
//! has to ask.

mod loss;
mod namespace;
mod relay;
mod segment;
mod trips;
mod tunnel;

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use namespace::Namespace;
pub use relay::{Lateness, Passed};
pub use segment::{Segment, Towards};
pub use trips::{Exchange, exchange, openings};

use relay::{Conditions, Relay, Wire};

/// Where the two ends are and how far apart.
#[derive(Debug, Clone, Copy)]
pub struct Between {
    /// Time that a packet is held, in each direction.
    pub one_way: Duration,
    /// Of a thousand packets in each direction so many are lost.
    pub lost_per_mille: u32,
    /// Address of the near end.
    pub near: Ipv4Addr,
    /// Address of the far end.
    pub far: Ipv4Addr,
}

/// Two namespaces and the relay between them.
#[derive(Debug)]
pub struct Distance {
    // Ends first: a device that is gone would be an error to it.
    _relay: Relay,
    near: Namespace,
    far: Namespace,
    wire: Arc<Wire>,
    between: Between,
}

impl Default for Between {
    /// Singapore and Helsinki: 182 ms there and back.
    fn default() -> Between {
        Between {
            one_way: Duration::from_millis(91),
            lost_per_mille: 0,
            near: Ipv4Addr::new(100, 2, 3, 1),
            far: Ipv4Addr::new(100, 2, 3, 4),
        }
    }
}

impl Between {
    /// There and back.
    pub fn round_trip(&self) -> Duration {
        self.one_way * 2
    }
}

impl Distance {
    /// Why there can be none here, with what to do about it; `None` where there can.
    pub fn why_not() -> Option<String> {
        if !Path::new("/dev/net/tun").exists() {
            return Some("there is no /dev/net/tun: load the kernel's module `tun`".to_owned());
        }
        for program in ["unshare", "ip"] {
            if Command::new(program).arg("--help").output().is_err() {
                return Some(format!("`{program}` is not there: install util-linux and iproute2"));
            }
        }
        let why = Namespace::new().and_then(|place| place.run(|| ())).err()?;
        Some(format!(
            "network namespaces cannot be made here ({why}): run this as root, or below `unshare -r -n`"
        ))
    }

    /// Makes both ends and starts the relay. Loopback is up in both.
    ///
    /// # Errors
    /// Where the system allows no namespaces or TUN devices; [`why_not`](Distance::why_not) says what to do.
    pub fn open(between: &Between) -> io::Result<Distance> {
        let (near, far) = (Namespace::new()?, Namespace::new()?);
        let near_end = near.run(|| tunnel::open(between.near, between.far))??;
        let far_end = far.run(|| tunnel::open(between.far, between.near))??;
        let wire = Arc::new(Wire::default());
        let conditions = Conditions { delay: between.one_way, lost_per_mille: between.lost_per_mille };
        let relay = Relay::start(near_end, far_end, conditions, Arc::clone(&wire))?;
        Ok(Distance { _relay: relay, near, far, wire, between: *between })
    }

    /// Has both kernels use this congestion control (`cubic`, `reno`, `bbr`) for connections over the distance that are
    /// opened from now on.
    ///
    /// # Errors
    /// Where the kernel has none of this name.
    pub fn use_congestion_control(&self, name: &str) -> io::Result<()> {
        let Between { near, far, .. } = self.between;
        self.near.run(|| tunnel::use_congestion_control(near, far, name))??;
        self.far.run(|| tunnel::use_congestion_control(far, near, name))?
    }

    /// Where clients and proxies are.
    pub fn near(&self) -> &Namespace {
        &self.near
    }

    /// Where the server is.
    pub fn far(&self) -> &Namespace {
        &self.far
    }

    /// The TCP segments that were delivered in one direction or the other, in this order, and that entered the relay
    /// at this moment or later.
    pub fn passed_since(&self, moment: Instant) -> Vec<Passed> {
        self.wire.passed_since(moment)
    }

    /// When something last entered or left the relay.
    pub fn last_activity(&self) -> Option<Instant> {
        self.wire.last_activity()
    }

    /// How late packets were delivered, and how many were lost: dropped on purpose, or because a queue was full.
    pub fn lateness(&self) -> Lateness {
        self.wire.lateness()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::thread;

    use super::*;

    /// One connection, one request of one byte and an answer of this many; gives the time until it was connected,
    /// and then until the answer was whole.
    fn asked(distance: &Distance, address: SocketAddr, bytes: usize) -> (Duration, Duration) {
        let ask = || -> io::Result<(Duration, Duration)> {
            let begun = Instant::now();
            let mut stream = TcpStream::connect(address)?;
            let connected = begun.elapsed();
            stream.write_all(b"?")?;
            stream.read_exact(&mut vec![0; bytes])?;
            Ok((connected, begun.elapsed() - connected))
        };
        distance.near().run(ask).unwrap().unwrap()
    }

    #[test]
    fn a_handshake_and_a_request_take_a_round_trip_each() {
        if let Some(why) = Distance::why_not() {
            eprintln!("skipped: {why}");
            return;
        }
        let between = Between { one_way: Duration::from_millis(20), ..Between::default() };
        let distance = Distance::open(&between).unwrap();
        let address = SocketAddr::from((between.far, 7718));
        let listener = distance.far().run(|| TcpListener::bind(address)).unwrap().unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || {
                    stream.read_exact(&mut [0]).and_then(|()| stream.write_all(&[7; 1024]))
                });
            }
        });
        let begun = Instant::now();
        let times: Vec<(Duration, Duration)> = (0..5).map(|_| asked(&distance, address, 1024)).collect();
        for (connected, answered) in &times {
            assert!(*connected >= between.round_trip() && *answered >= between.round_trip(), "{times:?}");
        }
        // A busy machine is late, but hardly each time by a whole trip more.
        let best = times.iter().map(|(connected, answered)| *connected + *answered).min().unwrap();
        assert!(best < between.round_trip() * 3, "{times:?}");
        let passed = distance.passed_since(begun);
        assert_eq!(openings(&passed, begun, Instant::now()), 5);
        assert_eq!(distance.lateness().lost, 0);
        let port = passed[0].segment.near_port;
        let seen = exchange(&passed, port, begun, Instant::now());
        assert_eq!((seen.round_trips, seen.opens), (2, true), "{seen:?}");
    }

    #[test]
    fn a_place_has_settings_of_its_own() {
        if let Some(why) = Distance::why_not() {
            eprintln!("skipped: {why}");
            return;
        }
        let (here, there) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        here.set("net/ipv4/tcp_slow_start_after_idle", "0").unwrap();
        there.set("net/ipv4/tcp_slow_start_after_idle", "1").unwrap();
        assert_eq!(here.setting("net/ipv4/tcp_slow_start_after_idle").unwrap(), "0");
        assert_eq!(there.setting("net/ipv4/tcp_slow_start_after_idle").unwrap(), "1");
    }
}
