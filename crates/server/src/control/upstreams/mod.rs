//! Upstreams of `reverse_proxy` as the control plane sees them: it makes peers of settings, and keeps those that a
//! reload names again, with their connections.
//!
//! [`names`] resolves those that have one. Planned here: health (`health.rs`). Never speaks to a client.

mod names;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onehop_config::checked::Checked;
use onehop_config::checked::proxy::{self as checked, ProxyAddress};

use self::names::Names;
use crate::limits::{PROXY_QUEUE_MAX, PROXY_QUEUE_WAIT};
use crate::request::handle::proxy::{Member, Proxy};
use crate::request::upstream::peer::{Peer, Place, Terms};

/// Every peer that requests may go to.
#[derive(Default)]
pub(super) struct Upstreams {
    /// With the settings that they were made of.
    known: Mutex<Vec<(Key, Arc<Peer>)>>,
    names: Names,
}

/// What two upstreams have in common that share their connections.
#[derive(Clone, PartialEq)]
struct Key {
    address: ProxyAddress,
    transport: checked::ProxyTransport,
    pool: checked::ProxyPool,
}

impl Upstreams {
    /// Every `reverse_proxy` of the settings, each once; its number is its place. A failure changes nothing: files of
    /// certificates may be missing.
    pub(super) fn prepare(&self, settings: &Checked) -> Result<Vec<Arc<Proxy>>, String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let proxies = settings.proxies().into_iter().map(|settings| {
            let members = settings.upstreams.iter().enumerate().map(|(number, upstream)| {
                let key = Key {
                    address: upstream.address.clone(),
                    transport: settings.transport.clone(),
                    pool: settings.pool,
                };
                let found = known.iter().find(|(other, _)| *other == key).map(|(_, peer)| Arc::clone(peer));
                let peer = match found {
                    Some(peer) => peer,
                    None => {
                        let peer = peer(upstream, settings)?;
                        self.names.follow(&peer, &settings.transport.resolvers);
                        known.push((key, Arc::clone(&peer)));
                        peer
                    }
                };
                Ok(Member::new(number, peer))
            });
            let members = members.collect::<Result<Box<[_]>, String>>()?;
            Ok(Arc::new(Proxy { settings: Arc::clone(settings), members }))
        });
        proxies.collect()
    }
}

fn peer(upstream: &checked::ProxyUpstream, settings: &checked::Proxy) -> Result<Arc<Peer>, String> {
    let place = match &upstream.address {
        ProxyAddress::Tcp { host, port } => match host.parse::<std::net::IpAddr>() {
            Ok(address) => Place::Address((address, *port).into()),
            Err(_) => Place::Name(host.clone(), *port),
        },
        ProxyAddress::Unix(path) => Place::Unix(path.clone(), None),
        ProxyAddress::OfRequest(_) => return Err("upstreams with placeholders are not there yet".to_owned()),
    };
    let transport = &settings.transport;
    let bound = |count: Option<u32>| count.and_then(|count| usize::try_from(count).ok());
    let terms = Terms {
        tls: None,
        dial_timeout: transport.dial_timeout,
        fallback_delay: transport.dial_fallback_delay,
        probe: transport.keepalive_interval,
        keep: transport.keepalive.unwrap_or(Duration::ZERO),
        idle_max: bound(Some(transport.keepalive_idle_conns_per_host)).unwrap_or(usize::MAX),
        floor: bound(Some(settings.pool.min)).unwrap_or(0),
        ceiling: bound(settings.pool.max.or(transport.max_conns_per_host)),
        queue: (PROXY_QUEUE_MAX, PROXY_QUEUE_WAIT),
    };
    Ok(Peer::new(upstream.label.clone(), place, terms))
}
