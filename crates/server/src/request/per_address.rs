//! `connections_per_address`: how many connections one client address may have at a time.
//!
//! One table of the whole process, asked when a connection is accepted and when it ends, and not at all where nothing is
//! configured. It holds an address for as long as a connection of it that was counted is open, so it is never larger than
//! the number of connections. Knows nothing of requests: that is `admission/rate`.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onehop_config::checked::Network;
use onehop_limits::client::network;

use crate::limits::ADDRESS_PARTS;

/// What a snapshot says about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PerAddress {
    /// So many at a time; none where nothing is configured.
    pub most: Option<NonZeroU32>,
    /// Who stands in front: the connections of many clients are theirs, and are not counted.
    pub trusted: Vec<Network>,
}

/// Connections that are open, by address.
pub(crate) struct Addresses {
    parts: [Mutex<HashMap<u64, u32>>; ADDRESS_PARTS],
    /// Of IPv6 clients choose what is looked up: nobody should be able to choose what shares a lock.
    spread: RandomState,
}

/// One counted connection, for as long as it is open.
pub(crate) struct Counted {
    addresses: Arc<Addresses>,
    key: u64,
}

/// What becomes of a new connection.
pub(crate) enum Verdict {
    /// It stays; what it carries is dropped when it ends. Nothing where it is not counted.
    Stays(Option<Counted>),
    /// Its address has as many as it may.
    TooMany,
}

impl Default for Addresses {
    fn default() -> Self {
        Self { parts: std::array::from_fn(|_| Mutex::default()), spread: RandomState::new() }
    }
}

impl Addresses {
    /// Counts a connection from there. Clients of a Unix socket have no address, and are never too many.
    pub(crate) fn ask(self: &Arc<Self>, settings: &PerAddress, peer: Option<SocketAddr>) -> Verdict {
        let (Some(most), Some(peer)) = (settings.most, peer) else { return Verdict::Stays(None) };
        let address = peer.ip().to_canonical();
        if settings.trusted.iter().any(|network| network.contains(address)) {
            return Verdict::Stays(None);
        }
        let key = network(Some(address));
        let mut part = self.part(key);
        let open = part.entry(key).or_insert(0);
        if *open >= most.get() {
            return Verdict::TooMany;
        }
        *open += 1;
        drop(part);
        Verdict::Stays(Some(Counted { addresses: Arc::clone(self), key }))
    }

    fn part(&self, key: u64) -> MutexGuard<'_, HashMap<u64, u32>> {
        let number = self.spread.hash_one(key) as usize % ADDRESS_PARTS;
        self.parts[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn known(&self) -> usize {
        self.parts.iter().map(|part| part.lock().unwrap().len()).sum()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut part = self.addresses.part(self.key);
        match part.get_mut(&self.key) {
            Some(open) if *open > 1 => *open -= 1,
            // The last one: what is not open takes no memory.
            _ => {
                part.remove(&self.key);
                // After a flood of addresses.
                let room = part.capacity();
                if room > 1024 && part.len() < room / 8 {
                    part.shrink_to(room / 4);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most(most: u32) -> PerAddress {
        PerAddress { most: NonZeroU32::new(most), trusted: Vec::new() }
    }

    fn ask(addresses: &Arc<Addresses>, settings: &PerAddress, from: &str) -> Option<Option<Counted>> {
        match addresses.ask(settings, Some(SocketAddr::new(from.parse().unwrap(), 4711))) {
            Verdict::Stays(counted) => Some(counted),
            Verdict::TooMany => None,
        }
    }

    #[test]
    fn an_address_has_its_connections_and_gets_another_when_one_has_ended() {
        let (addresses, two) = (Arc::default(), most(2));
        let first = ask(&addresses, &two, "192.0.2.1").unwrap();
        let _second = ask(&addresses, &two, "192.0.2.1").unwrap();
        assert!(ask(&addresses, &two, "192.0.2.1").is_none());
        assert!(ask(&addresses, &two, "192.0.2.2").is_some(), "somebody else");
        drop(first);
        assert!(ask(&addresses, &two, "192.0.2.1").is_some());
    }

    #[test]
    fn a_64_of_ipv6_and_an_ipv4_address_within_ipv6_are_one_address() {
        for (one, other, is_same) in [
            ("2001:db8:0:1::1", "2001:db8:0:1:ffff::1", true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
        ] {
            let (addresses, once) = (Arc::default(), most(1));
            let _first = ask(&addresses, &once, one).unwrap();
            assert_eq!(ask(&addresses, &once, other).is_none(), is_same, "{one} {other}");
        }
    }

    #[test]
    fn a_trusted_proxy_and_a_unix_socket_have_as_many_as_they_like() {
        let addresses = Arc::new(Addresses::default());
        let trusted = vec![Network::new("192.0.2.0".parse().unwrap(), 24).unwrap()];
        let settings = PerAddress { trusted, ..most(1) };
        let proxy: Vec<_> = (0..5).map(|_| ask(&addresses, &settings, "::ffff:192.0.2.9").unwrap()).collect();
        assert!(proxy.iter().all(Option::is_none));
        for _ in 0..5 {
            assert!(matches!(addresses.ask(&settings, None), Verdict::Stays(None)));
        }
        assert_eq!(addresses.known(), 0);
    }

    #[test]
    fn the_table_knows_nobody_who_has_no_connection() {
        let (addresses, settings) = (Arc::new(Addresses::default()), most(3));
        let from = |number: u32| std::net::Ipv4Addr::from_bits(number).to_string();
        let open: Vec<_> = (0..50_000).map(|number| ask(&addresses, &settings, &from(number))).collect();
        assert_eq!(addresses.known(), 50_000);
        drop(open);
        assert_eq!(addresses.known(), 0);
        let room: usize = addresses.parts.iter().map(|part| part.lock().unwrap().capacity()).sum();
        assert!(room < 50_000 / 2, "{room} places are kept");
    }

    #[test]
    fn a_smaller_number_counts_those_that_are_open_already() {
        let addresses = Arc::new(Addresses::default());
        let _open: Vec<_> = (0..4).map(|_| ask(&addresses, &most(10), "192.0.2.1").unwrap()).collect();
        assert!(ask(&addresses, &most(3), "192.0.2.1").is_none());
        assert!(ask(&addresses, &most(5), "192.0.2.1").is_some());
    }
}
