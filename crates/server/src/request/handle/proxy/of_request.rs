//! Upstreams whose address is only known with the request: `reverse_proxy {header.X-Shard}:8080`.
//!
//! Each address gets a peer of its own when it is first asked for. Bounded: the one that was used longest ago makes
//! room, because addresses may come from anybody, and one that nobody asks any more goes after a while. A lookup takes no lock; only an address that is new does. Who makes
//! peers is the control plane's business: it hands in how.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use onehop_config::checked::Template;

use crate::limits::{PROXY_OF_REQUEST_MAX, PROXY_OF_REQUEST_UNUSED};
use crate::request::context::RequestContext;
use crate::request::route::{self, Into};
use onehop_upstream::epoch::epoch;
use onehop_upstream::member::Member;
use onehop_upstream::peer::PeerCounts;

/// Bytes of a name (RFC 1035 section 2.3.4).
const HOST_BYTES_MAX: usize = 255;

/// The upstreams that requests have made of one with placeholders.
pub(crate) struct OfRequest {
    address: Template,
    /// The name for TLS, where one is configured.
    server_name: Option<Template>,
    /// Where the address has none.
    port: u16,
    make: Box<Make>,
    known: ArcSwap<HashMap<Arc<str>, Arc<Entry>>>,
    /// Locked by whoever adds one.
    gone: Mutex<Gone>,
}

/// What those have counted that made room: totals never go back.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gone {
    pub(crate) connections: PeerCounts,
    pub(crate) failures: u64,
    pub(crate) retries: u64,
}

/// Makes a member of an address; `None` where there can be none.
pub(crate) type Make = dyn Fn(Filled<'_>) -> Option<Arc<Member>> + Send + Sync;

/// An address, filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filled<'a> {
    /// A name or an address, without brackets.
    pub(crate) host: &'a str,
    /// Its port.
    pub(crate) port: u16,
    /// The name for TLS, where it is not the host.
    pub(crate) server_name: Option<&'a str>,
}

struct Entry {
    member: Arc<Member>,
    /// In seconds after [`epoch`].
    used: AtomicU64,
}

impl OfRequest {
    /// A table without an entry.
    pub(crate) fn new(address: Template, server_name: Option<Template>, port: u16, make: Box<Make>) -> Self {
        let (known, gone) = (ArcSwap::default(), Mutex::default());
        Self { address, server_name, port, make, known, gone }
    }

    /// The upstream of a request.
    pub(super) fn of(&self, context: &RequestContext<'_>) -> Option<Arc<Member>> {
        let address = String::from_utf8(route::expand(&self.address, context, Into::Text)).ok()?;
        let name = self.server_name.as_ref().map(|name| route::expand(name, context, Into::Text));
        let name = name.map(String::from_utf8).transpose().ok()?;
        self.at(&address, name.as_deref())
    }

    /// The upstream at an address.
    pub(super) fn at(&self, address: &str, server_name: Option<&str>) -> Option<Arc<Member>> {
        let key = match server_name {
            // No address has a space.
            Some(name) => Cow::Owned(format!("{address} {name}")),
            None => Cow::Borrowed(address),
        };
        let now = Instant::now().saturating_duration_since(epoch()).as_secs();
        if let Some(entry) = self.known.load().get(&*key) {
            entry.touch(now);
            return Some(Arc::clone(&entry.member));
        }
        let (host, port) = host_and_port(address, self.port)?;
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.known.load();
        // Another core may have been quicker.
        if let Some(entry) = known.get(&*key) {
            return Some(Arc::clone(&entry.member));
        }
        let member = (self.make)(Filled { host, port, server_name })?;
        let mut more: HashMap<_, _> = HashMap::clone(&known);
        if more.len() >= PROXY_OF_REQUEST_MAX {
            let used = |entry: &Arc<Entry>| entry.used.load(Ordering::Relaxed);
            let oldest = more.iter().min_by_key(|(_, entry)| used(entry)).map(|(key, _)| Arc::clone(key));
            if let Some(entry) = oldest.and_then(|oldest| more.remove(&oldest)) {
                entry.member.peer.withdraw();
                gone.count(&entry.member);
            }
        }
        let entry = Entry { member: Arc::clone(&member), used: AtomicU64::new(now) };
        more.insert(key.into(), Arc::new(entry));
        self.known.store(Arc::new(more));
        Some(member)
    }

    /// Withdraws those that nobody has asked for a while, where nothing of them is open any more: their names are
    /// resolved no further. Waits for nobody.
    pub(super) fn forget_unused(&self, now: Instant) {
        let now = now.saturating_duration_since(epoch());
        let is_unused = |entry: &Entry| {
            let used = Duration::from_secs(entry.used.load(Ordering::Relaxed));
            used + PROXY_OF_REQUEST_UNUSED <= now
                && entry.member.peer.open() == 0
                && entry.member.in_flight() == 0
        };
        if !self.known.load().values().any(|entry| is_unused(entry)) {
            return;
        }
        // Somebody adds one: the next look is as good.
        let Ok(mut gone) = self.gone.try_lock() else { return };
        let mut fewer = HashMap::clone(&self.known.load());
        fewer.retain(|_, entry| {
            let is_unused = is_unused(entry);
            if is_unused {
                entry.member.peer.withdraw();
                gone.count(&entry.member);
            }
            !is_unused
        });
        self.known.store(Arc::new(fewer));
    }

    /// Those that there are now.
    pub(crate) fn members(&self) -> Vec<Arc<Member>> {
        self.known.load().values().map(|entry| Arc::clone(&entry.member)).collect()
    }

    /// What those counted that there were.
    pub(crate) fn gone(&self) -> Gone {
        *self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody names it any more: what is idle is closed.
    pub(crate) fn withdraw(&self) {
        let _turn = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in self.known.swap(Arc::default()).values() {
            entry.member.peer.withdraw();
        }
    }
}

impl Gone {
    fn count(&mut self, member: &Member) {
        let (sum, one) = (&mut self.connections, member.peer.counts());
        sum.dials += one.dials;
        sum.dial_failures += one.dial_failures;
        sum.handshakes += one.handshakes;
        sum.resumptions += one.resumptions;
        sum.taken_idle += one.taken_idle;
        sum.stolen += one.stolen;
        sum.waited += one.waited;
        sum.closed_idle += one.closed_idle;
        sum.retired += one.retired;
        self.failures += member.health.standing.failures();
        self.retries += member.health.standing.retries();
    }
}

impl Entry {
    /// Most requests find the second that is there already: cores share no write then.
    fn touch(&self, now: u64) {
        if self.used.load(Ordering::Relaxed) != now {
            self.used.store(now, Ordering::Relaxed);
        }
    }
}

/// `HOST`, `HOST:PORT`, `[IPv6]:PORT`. Requests fill it in: what no name or address has is refused.
fn host_and_port(address: &str, port: u16) -> Option<(&str, u16)> {
    let (host, port) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, port),
        Some((host, rest)) => (host, number(rest.strip_prefix(':')?)?),
        None => match address.rsplit_once(':') {
            Some((host, port)) => (host, number(port)?),
            None => (address, port),
        },
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_host = !host.is_empty()
        && host.len() <= HOST_BYTES_MAX
        && (host.bytes().all(is_plain) || host.parse::<std::net::Ipv6Addr>().is_ok());
    (is_host && port != 0).then_some((host, port))
}

fn number(port: &str) -> Option<u16> {
    port.parse().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use onehop_config::checked::proxy::PassiveHealth;

    use super::*;
    use crate::request::handle::proxy::tests::member;

    fn table() -> OfRequest {
        let make = |filled: Filled<'_>| (filled.host != "nowhere").then(|| member(0));
        OfRequest::new(Template::default(), None, 80, Box::new(make))
    }

    #[test]
    fn an_address_that_a_request_fills_in_is_a_name_or_an_address_and_a_port() {
        for (address, expected) in [
            ("shard-1.internal:8080", Some(("shard-1.internal", 8080))),
            ("shard", Some(("shard", 80))),
            ("10.0.0.7:1", Some(("10.0.0.7", 1))),
            ("[::1]:8080", Some(("::1", 8080))),
            ("[::1]", Some(("::1", 80))),
            ("", None),
            (":8080", None),
            ("a:", None),
            ("a:0", None),
            ("a:65536", None),
            ("a:+1", None),
            ("[a:8080", None),
            ("[::1]8080", None),
            ("::1:8080", Some(("::1", 8080))),
            ("a b:80", None),
            ("a/b:80", None),
            ("a@b:80", None),
            ("a\r\nb:80", None),
            ("unix//run/app.sock", None),
        ] {
            assert_eq!(host_and_port(address, 80), expected, "{address}");
        }
        assert_eq!(host_and_port(&"a".repeat(HOST_BYTES_MAX + 1), 80), None);
    }

    #[test]
    fn an_address_has_one_peer_however_often_it_is_asked_for() {
        let table = table();
        let first = table.at("a:80", None).unwrap();
        assert!(Arc::ptr_eq(&first, &table.at("a:80", None).unwrap()));
        assert!(!Arc::ptr_eq(&first, &table.at("b:80", None).unwrap()));
        assert!(!Arc::ptr_eq(&first, &table.at("a:80", Some("name")).unwrap()));
        assert!(table.at("nowhere:80", None).is_none());
        assert_eq!(table.members().len(), 3);
        table.withdraw();
        assert!(first.peer.is_withdrawn() && table.members().is_empty());
    }

    #[test]
    fn an_address_that_nobody_asks_any_more_is_forgotten_and_one_that_has_something_open_is_not() {
        let table = table();
        let [unused, lately, asking] =
            ["a:80", "b:80", "c:80"].map(|address| table.at(address, None).unwrap());
        unused.failed(&PassiveHealth::default());
        let request = asking.begin();
        let now = Instant::now();
        table.forget_unused(now);
        assert_eq!(table.members().len(), 3);
        let later = now + PROXY_OF_REQUEST_UNUSED + Duration::from_secs(1);
        let seconds = later.saturating_duration_since(epoch()).as_secs();
        table.known.load()["b:80"].touch(seconds);
        table.forget_unused(later);
        assert!(unused.peer.is_withdrawn() && !lately.peer.is_withdrawn() && !asking.peer.is_withdrawn());
        assert_eq!((table.members().len(), table.gone().failures), (2, 1));
        drop(request);
        table.forget_unused(later);
        assert!(asking.peer.is_withdrawn());
        assert!(!Arc::ptr_eq(&unused, &table.at("a:80", None).unwrap()), "it may come back");
    }

    #[test]
    fn the_address_that_was_used_longest_ago_makes_room() {
        let table = table();
        let first = table.at("a0:80", None).unwrap();
        let second = table.at("a1:80", None).unwrap();
        second.failed(&PassiveHealth::default());
        for number in 2..PROXY_OF_REQUEST_MAX {
            table.at(&format!("a{number}:80"), None).unwrap();
        }
        for (key, entry) in table.known.load().iter() {
            entry.used.store(if &**key == "a1:80" { 1 } else { 2 }, Ordering::Relaxed);
        }
        table.at("one-more:80", None).unwrap();
        assert_eq!(table.members().len(), PROXY_OF_REQUEST_MAX);
        assert!(second.peer.is_withdrawn() && !first.peer.is_withdrawn());
        assert_eq!(table.gone().failures, 1, "what it counted is still told");
    }
}
