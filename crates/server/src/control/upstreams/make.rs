//! Peers, members and checks of settings: what there was before is taken again where its settings are the same.
//!
//! Reads files of certificates, and changes nothing.

use std::path::Path;
use std::sync::Arc;

use onehop_config::checked::proxy::{
    self as checked, ActiveHealth, EncryptedVersions, ProxyAddress, ProxyTls,
};
use onehop_config::checked::{Checked, Part, Route, Step, Template};
use regex_lite::Regex;
use rustls::ClientConfig;

use super::terms::{idle_max, literal, place, terms, tls_named, tls_to};
use super::{Key, KeyOfActive, KeyOfRequest, Known};
use crate::request::handle::proxy::Proxy;
use crate::request::handle::proxy::of_request::{Filled, Make, OfRequest};
use onehop_archive::installed::Packed;
use onehop_upstream::health::{Active, Health, Standing};
use onehop_upstream::health_check::HealthCheck;
use onehop_upstream::member::Member;
use onehop_upstream::names::Names;
use onehop_upstream::peer::{Endpoint, Peer, PeerSettings, Tls};
use onehop_upstream::tls;

/// Everything that the settings name.
pub(super) fn make(
    settings: &Checked,
    before: &Known,
    names: &Names,
    packed: Option<&Packed>,
) -> Result<Known, String> {
    let proxies = settings.proxies();
    let max_fails = proxies.iter().map(|proxy| proxy.passive_health.max_fails).max().unwrap_or_default();
    let mut making = Making { before, names, packed, now: Known::default(), max_fails };
    for proxy in proxies {
        let made = making.proxy(proxy, &sites(settings, proxy))?;
        making.now.proxies.push(made);
    }
    Ok(making.now)
}

struct Making<'a> {
    before: &'a Known,
    /// Resolves those of new peers for as long as they live.
    names: &'a Names,
    /// Files of certificates may lie in it.
    packed: Option<&'a Packed>,
    now: Known,
    /// The most that any directive counts: what is known of an address serves all of them.
    max_fails: u32,
}

impl Making<'_> {
    fn proxy(&mut self, settings: &Arc<checked::Proxy>, sites: &[String]) -> Result<Arc<Proxy>, String> {
        let of_directive = |reason: String| format!("reverse_proxy {}: {reason}", settings.name);
        let client = match &settings.transport.tls {
            Some(tls) => Some(self.client(tls, settings.transport.versions.encrypted).map_err(of_directive)?),
            None => None,
        };
        let (mut members, mut tables) = (Vec::new(), Vec::new());
        for (number, upstream) in settings.upstreams.iter().enumerate() {
            let one = One { settings, upstream, number, client: client.as_ref() };
            let (member, table) = self.member(&one, sites).map_err(of_directive)?;
            members.push(member);
            tables.push(table);
        }
        let same = self
            .before
            .proxies
            .iter()
            .find(|proxy| proxy.settings == *settings && proxy.is_made_of(&members, &tables));
        // The same one goes on: whose turn it is, for example.
        Ok(same.map_or_else(
            || Proxy::with_placeholders(Arc::clone(settings), members.into(), tables.into()),
            Arc::clone,
        ))
    }

    fn client(
        &mut self,
        settings: &ProxyTls,
        versions: EncryptedVersions,
    ) -> Result<(tls::Made, Arc<ClientConfig>), String> {
        let known: Vec<_> = self.now.clients.iter().chain(&self.before.clients).cloned().collect();
        let (made, config) =
            tls::client_reading(settings, versions, &known, |path, what| read(path, what, self.packed))?;
        if !self.now.clients.iter().any(|(other, _)| *other == made) {
            self.now.clients.push((made.clone(), Arc::clone(&config)));
        }
        Ok((made, config))
    }

    fn member(
        &mut self,
        one: &One<'_>,
        sites: &[String],
    ) -> Result<(Arc<Member>, Option<Arc<OfRequest>>), String> {
        let key = one.key();
        let Some(place) = one.place() else {
            let table = self.of_request(one, key.clone());
            // Stands for those that come with requests, and is asked nothing itself.
            let peer =
                Peer::new(one.upstream.label.clone(), Endpoint::Name(String::new(), 0), one.terms(None));
            let active = one.settings.active_health.as_ref().filter(|settings| settings.target.is_some());
            let active = active.map(|settings| self.active(one, settings, key, &peer, sites)).transpose()?;
            let health = Health { active, ..Health::default() };
            let name = one.upstream.label.as_str().into();
            return Ok((Member::with_health(one.number, peer, name, health), Some(table)));
        };
        let peer = match find(&self.now.peers, &key).or_else(|| find(&self.before.peers, &key)) {
            Some(peer) => peer,
            None => {
                let peer = Peer::new(one.upstream.label.clone(), place, one.terms(one.tls()?));
                self.names.follow(&peer, &one.settings.transport.resolvers);
                peer
            }
        };
        if find(&self.now.peers, &key).is_none() {
            self.now.peers.push((key.clone(), Arc::clone(&peer)));
        }
        let standing = self.standing(&one.upstream.address);
        let active =
            one.settings.active_health.as_ref().map(|settings| self.active(one, settings, key, &peer, sites));
        let health = Health { standing, active: active.transpose()? };
        Ok((Member::with_health(one.number, peer, one.upstream.label.as_str().into(), health), None))
    }

    fn of_request(&mut self, one: &One<'_>, key: Key) -> Arc<OfRequest> {
        let max_fails = one.settings.passive_health.max_fails;
        let key = KeyOfRequest { key, number: one.number, max_fails };
        if let Some(table) = find(&self.now.of_request, &key) {
            return table;
        }
        let table = find(&self.before.of_request, &key).unwrap_or_else(|| Arc::new(one.table(self.names)));
        self.now.of_request.push((key, Arc::clone(&table)));
        table
    }

    /// What is known of an address, whoever sends requests there.
    fn standing(&mut self, address: &ProxyAddress) -> Arc<Standing> {
        if let Some(standing) = find(&self.now.standings, address) {
            return standing;
        }
        let standing = match find(&self.before.standings, address) {
            None => Arc::new(Standing::new(self.max_fails)),
            Some(standing) => standing.widened(self.max_fails).map_or(standing, Arc::new),
        };
        self.now.standings.push((address.clone(), Arc::clone(&standing)));
        standing
    }

    fn active(
        &mut self,
        one: &One<'_>,
        settings: &ActiveHealth,
        key: Key,
        peer: &Arc<Peer>,
        sites: &[String],
    ) -> Result<Arc<Active>, String> {
        let key = KeyOfActive { key, settings: settings.clone() };
        if let Some(active) = find(&self.now.actives, &key) {
            for check in &mut self.now.checks {
                if Arc::ptr_eq(&check.active, &active) {
                    *check = Arc::new(check.also_for(sites));
                }
            }
            return Ok(active);
        }
        let active = find(&self.before.actives, &key).unwrap_or_default();
        let known = self.before.checks.iter().find(|check| Arc::ptr_eq(&check.active, &active));
        let asked = match known {
            Some(check) => Arc::clone(&check.peer),
            None => one.asked(peer, settings, self.names)?,
        };
        let body = settings.body.as_deref().map(Regex::new).transpose();
        let body = body.map_err(|error| format!("health_body: {error}"))?;
        self.now.checks.push(Arc::new(HealthCheck {
            active: Arc::clone(&active),
            settings: settings.clone(),
            body,
            peer: asked,
            upstream: one.upstream.label.clone(),
            sites: sites.to_vec(),
        }));
        self.now.actives.push((key, Arc::clone(&active)));
        Ok(active)
    }
}

/// One upstream of one directive.
struct One<'a> {
    settings: &'a Arc<checked::Proxy>,
    upstream: &'a checked::ProxyUpstream,
    number: usize,
    client: Option<&'a (tls::Made, Arc<ClientConfig>)>,
}

impl One<'_> {
    fn key(&self) -> Key {
        Key {
            address: self.upstream.address.clone(),
            transport: self.settings.transport.clone(),
            pool: self.settings.pool,
            idle_max: idle_max(self.settings),
            tls: self.client.map(|(made, _)| made.clone()),
        }
    }

    /// Where it is; `None` where that comes with the request, or the name that TLS asks for does.
    fn place(&self) -> Option<Endpoint> {
        let name = self.settings.transport.tls.as_ref().and_then(|tls| tls.server_name.as_ref());
        if name.is_some_and(|name| literal(name).is_none()) {
            return None;
        }
        match &self.upstream.address {
            ProxyAddress::Tcp { host, port } => Some(place(host, *port)),
            ProxyAddress::Unix(path) => Some(Endpoint::Unix(path.clone(), None)),
            ProxyAddress::OfRequest(_) => None,
        }
    }

    fn tls(&self) -> Result<Option<Tls>, String> {
        let host = match &self.upstream.address {
            ProxyAddress::Tcp { host, .. } => host.as_str(),
            // Whoever listens there says in its certificate who it is on this machine.
            ProxyAddress::Unix(_) | ProxyAddress::OfRequest(_) => "localhost",
        };
        let port = match &self.upstream.address {
            ProxyAddress::Tcp { port, .. } => Some(*port),
            ProxyAddress::Unix(_) | ProxyAddress::OfRequest(_) => None,
        };
        tls_to(self.settings, self.client.map(|(_, config)| config), host, port)
    }

    /// Whom a check goes to: the peer itself, another port beside it, or somebody else.
    fn asked(&self, peer: &Arc<Peer>, settings: &ActiveHealth, names: &Names) -> Result<Arc<Peer>, String> {
        let address;
        let (host, port) = match (&settings.target, &peer.endpoint, settings.port) {
            (Some((host, port)), ..) => (host.as_str(), *port),
            (None, Endpoint::Address(of_peer), Some(port)) => {
                address = of_peer.ip().to_string();
                (address.as_str(), port)
            }
            (None, Endpoint::Name(name, _), Some(port)) => (name.as_str(), port),
            (None, ..) => return Ok(Arc::clone(peer)),
        };
        let tls = tls_to(self.settings, self.client.map(|(_, config)| config), host, Some(port))?;
        let asked = Peer::new(peer.label.clone(), place(host, port), terms(self.settings, tls, false));
        names.follow(&asked, &self.settings.transport.resolvers);
        Ok(asked)
    }

    fn terms(&self, tls: Option<Tls>) -> PeerSettings {
        terms(self.settings, tls, self.place().is_some())
    }

    fn table(&self, names: &Names) -> OfRequest {
        let address = match &self.upstream.address {
            ProxyAddress::OfRequest(template) => template.clone(),
            ProxyAddress::Tcp { host, port } if host.contains(':') => text(format!("[{host}]:{port}")),
            ProxyAddress::Tcp { host, port } => text(format!("{host}:{port}")),
            // No address of a request: it is refused when it is filled in.
            ProxyAddress::Unix(path) => text(format!("unix/{}", path.display())),
        };
        let tls = self.settings.transport.tls.as_ref();
        let server_name = tls.and_then(|tls| tls.server_name.clone());
        let server_name = server_name.filter(|name| literal(name).is_none());
        let port = if tls.is_some() { 443 } else { 80 };
        OfRequest::new(address, server_name, port, self.make(names.clone()))
    }

    /// How upstreams are made of requests.
    fn make(&self, names: Names) -> Box<Make> {
        let (settings, number) = (Arc::clone(self.settings), self.number);
        let config = self.client.map(|(_, config)| Arc::clone(config));
        Box::new(move |filled: Filled<'_>| {
            let Filled { host, port, server_name } = filled;
            let tls = match server_name {
                Some(name) => tls_named(&settings, config.as_ref(), name, Some(port)),
                None => tls_to(&settings, config.as_ref(), host, Some(port)),
            };
            let place = place(host, port);
            let label =
                if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
            let peer = Peer::new(label, place, terms(&settings, tls.ok()?, false));
            names.follow(&peer, &settings.transport.resolvers);
            let standing = Arc::new(Standing::new(settings.passive_health.max_fails));
            Some(Member::dynamic(number, peer, Health { standing, active: None }))
        })
    }
}

fn text(text: String) -> Template {
    Template { parts: vec![Part::Text(text)] }
}

fn find<K: PartialEq, V>(list: &[(K, Arc<V>)], key: &K) -> Option<Arc<V>> {
    list.iter().find(|(other, _)| other == key).map(|(_, value)| Arc::clone(value))
}

/// The labels of the sites that send requests there.
fn sites(settings: &Checked, proxy: &Arc<checked::Proxy>) -> Vec<String> {
    fn names(routes: &[Route], proxy: &Arc<checked::Proxy>) -> bool {
        routes.iter().any(|route| match &route.step {
            Step::Proxy(other) => other == proxy,
            Step::Handle(inner) | Step::HandlePath { routes: inner, .. } => names(inner, proxy),
            _ => false,
        })
    }
    let naming = settings.sites.iter().filter(|site| {
        names(&site.routes, proxy) || site.errors.iter().any(|errors| names(&errors.routes, proxy))
    });
    naming.map(|site| site.label.clone()).collect()
}

/// The content of a file that the settings name: of the pack, where it lies in one, else of the machine.
fn read(path: &Path, what: &str, packed: Option<&Packed>) -> Result<Vec<u8>, String> {
    match packed.and_then(|packed| packed.content(path)) {
        Some(content) => {
            content.map_err(|error| format!("cannot read {what} from {}: {error}", path.display()))
        }
        None => onehop_tls::read_pem(path, what),
    }
}
