//! Sites onto listeners: one listener an address, several sites on each.

use std::collections::HashMap;
use std::sync::Arc;

use super::Context;
use super::address::{Address, Endpoint};
use super::automatic;
use crate::checked::{Global, HostPattern, ListenAddress, Listener, Site};
use crate::directives::{Bind, TlsSettings};
use crate::problem::{Location, Problem};

/// Listeners and sites as they grow.
#[derive(Default)]
pub(crate) struct Listeners {
    pub(crate) sites: Vec<Site>,
    pub(crate) listeners: Vec<Listener>,
    /// Which listener has an address.
    known: HashMap<ListenAddress, usize>,
    /// Where the first site of each listener was written.
    first: Vec<Location>,
    /// The hosts that a listener has already, and where.
    taken: HashMap<(usize, Option<HostPattern>), Location>,
}

/// The addresses of one block that are reached in one place.
struct Reached<'a> {
    listener: usize,
    addresses: Vec<&'a Address>,
}

impl Listeners {
    /// Adds a block's site. Where its addresses are reached in several places under different
    /// hosts, it becomes several sites, so that no host is answered where it was not meant.
    pub(crate) fn add(
        &mut self,
        cx: &mut Context<'_>,
        global: &Global,
        addresses: &[Address],
        binds: &[Bind],
        (site, tls): (&Site, &TlsSettings),
    ) {
        let mut reached: Vec<Reached<'_>> = Vec::new();
        for address in addresses {
            let endpoint = address.endpoint(cx, global);
            let Some(endpoint) = cx.keep(endpoint) else { continue };
            let binds = address.bind.as_ref().map_or(binds, std::slice::from_ref);
            for listen in listen_addresses(binds, endpoint.port) {
                let listener = self.listener(cx, listen, endpoint, address);
                let Some(listener) = listener else { continue };
                if !self.take_host(cx, listener, address) {
                    continue;
                }
                match reached.iter_mut().find(|reached| reached.listener == listener) {
                    Some(reached) => reached.addresses.push(address),
                    None => reached.push(Reached { listener, addresses: vec![address] }),
                }
            }
        }
        let first_own = self.sites.len();
        for reached in reached {
            let hosts = hosts_of(&reached.addresses);
            let known = self.sites.iter().skip(first_own).position(|own| own.hosts == hosts);
            let index = known.map_or(self.sites.len(), |at| first_own + at);
            if known.is_none() {
                let label = reached.addresses.first().map_or_else(String::new, |first| first.label.clone());
                self.sites.push(Site { label, hosts, ..site.clone() });
            }
            let is_encrypted = self.listeners.get(reached.listener).is_some_and(|listener| listener.tls);
            if let Some(site) = self.sites.get_mut(index).filter(|site| is_encrypted && site.tls.is_none()) {
                site.tls = Some(Arc::new(automatic::site(cx, global, tls, &reached.addresses)));
            }
            if let Some(listener) = self.listeners.get_mut(reached.listener) {
                listener.sites.push(index);
            }
        }
    }

    fn listener(
        &mut self,
        cx: &mut Context<'_>,
        listen: ListenAddress,
        endpoint: Endpoint,
        address: &Address,
    ) -> Option<usize> {
        if endpoint.tls
            && let ListenAddress::Unix { path, .. } = &listen
        {
            let message =
                format!("`{}` is served with TLS, and {} is a Unix socket", address.label, path.display());
            let host = address.label.strip_prefix("https://").unwrap_or(&address.label);
            cx.problems.push(
                Problem::error("mixed-tls", &address.place, message)
                    .label("TLS over Unix sockets is a feature of Caddy that onehop does not have yet")
                    .help(format!("what stands in front does TLS: write `http://{host}`")),
            );
            return None;
        }
        let index = match self.known.get(&listen) {
            Some(index) => *index,
            None => {
                if let ListenAddress::Unix { path, .. } = &listen
                    && self.known.keys().any(
                        |known| matches!(known, ListenAddress::Unix { path: other, .. } if other == path),
                    )
                {
                    let message = format!(
                        "`{}` binds to {} with other permissions than before",
                        address.label,
                        path.display()
                    );
                    cx.problems.push(
                        Problem::error("bind", &address.place, message)
                            .help("write the same bits wherever the socket stands"),
                    );
                    return None;
                }
                let index = self.listeners.len();
                self.listeners.push(Listener {
                    address: listen.clone(),
                    tls: endpoint.tls,
                    sites: Vec::new(),
                });
                self.known.insert(listen, index);
                self.first.push(address.place.clone());
                index
            }
        };
        let listener = self.listeners.get(index)?;
        if listener.tls == endpoint.tls {
            return Some(index);
        }
        let (here, there) = if endpoint.tls { ("with", "without") } else { ("without", "with") };
        let message = format!("`{}` is served {here} TLS on a port that is served {there}", address.label);
        let earlier = self.first.get(index).map_or_else(String::new, described);
        cx.problems.push(
            Problem::error("mixed-tls", &address.place, message)
                .label(format!("{earlier} is served {there}"))
                .help("one port speaks either HTTP or HTTPS: use another port, or one scheme for both"),
        );
        None
    }

    /// False where another address has this host on this listener already.
    fn take_host(&mut self, cx: &mut Context<'_>, listener: usize, address: &Address) -> bool {
        let key = (listener, address.host.clone());
        let Some(earlier) = self.taken.get(&key) else {
            self.taken.insert(key, address.place.clone());
            return true;
        };
        let message = format!("the address `{}` is used twice", address.label);
        cx.problems.push(
            Problem::error("duplicate-address", &address.place, message)
                .label(format!("{} answers it already", described(earlier)))
                .help("put both into one site, or give one of them another host or port"),
        );
        false
    }
}

fn described(place: &Location) -> String {
    format!("line {} of {}", place.line(), place.file.name)
}

fn listen_addresses(binds: &[Bind], port: u16) -> Vec<ListenAddress> {
    if binds.is_empty() {
        return vec![ListenAddress::Tcp { host: None, port }];
    }
    let address = |bind: &Bind| match bind {
        Bind::Host(host) => ListenAddress::Tcp { host: *host, port },
        Bind::Unix { path, mode } => ListenAddress::Unix { path: path.clone(), mode: *mode },
    };
    let mut addresses: Vec<ListenAddress> = Vec::new();
    for bind in binds {
        let address = address(bind);
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// The hosts of some addresses; none where one of them answers any host.
fn hosts_of(addresses: &[&Address]) -> Vec<HostPattern> {
    let hosts: Option<Vec<HostPattern>> = addresses.iter().map(|address| address.host.clone()).collect();
    hosts.unwrap_or_default()
}
