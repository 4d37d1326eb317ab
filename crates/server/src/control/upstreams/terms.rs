//! Where upstreams are and how they are spoken to, of the settings of one directive.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use onehop_config::checked::proxy::{self as checked, EncryptedVersions};
use onehop_config::checked::{Part, Template};
use rustls::ClientConfig;

use crate::limits::{PROXY_QUEUE_MAX, PROXY_QUEUE_WAIT};
use onehop_upstream::peer::{Endpoint, PeerSettings, Tls, Versions};
use onehop_upstream::tls;

/// A name, or an address.
pub(super) fn place(host: &str, port: u16) -> Endpoint {
    match host.parse::<IpAddr>() {
        Ok(address) => Endpoint::Address((address, port).into()),
        Err(_) => Endpoint::Name(host.to_owned(), port),
    }
}

/// Encryption to a host, under the name that the settings give or its own.
pub(super) fn tls_to(
    settings: &checked::Proxy,
    config: Option<&Arc<ClientConfig>>,
    host: &str,
    port: Option<u16>,
) -> Result<Option<Tls>, String> {
    let name = settings.transport.tls.as_ref().and_then(|tls| literal(tls.server_name.as_ref()?));
    tls_named(settings, config, name.as_deref().unwrap_or(host), port)
}

/// The same under this name.
pub(super) fn tls_named(
    settings: &checked::Proxy,
    config: Option<&Arc<ClientConfig>>,
    name: &str,
    port: Option<u16>,
) -> Result<Option<Tls>, String> {
    let (Some(tls), Some(config)) = (&settings.transport.tls, config) else { return Ok(None) };
    if port.is_some_and(|port| tls.except_ports.contains(&port)) {
        return Ok(None);
    }
    let (name, timeout) = (tls::server_name(name)?, tls.timeout);
    Ok(Some(Tls { config: Arc::clone(config), name, timeout }))
}

/// How connections are made and kept. Only for upstreams that are `named` in the file some are open before a request.
pub(super) fn terms(settings: &checked::Proxy, tls: Option<Tls>, named: bool) -> PeerSettings {
    let transport = &settings.transport;
    let versions = match (&tls, transport.versions.encrypted) {
        (None, _) if transport.versions.h2c => Versions::Http2,
        (None, _) | (Some(_), EncryptedVersions::Http1) => Versions::Http1,
        (Some(_), EncryptedVersions::Http2) => Versions::Http2,
        (Some(_), EncryptedVersions::Negotiated) => Versions::Negotiated,
    };
    PeerSettings {
        tls,
        versions,
        dial_timeout: transport.dial_timeout,
        fallback_delay: transport.dial_fallback_delay,
        probe_interval: transport.keepalive_interval,
        idle_timeout: transport.keepalive.unwrap_or(Duration::ZERO),
        idle_max: idle_max(settings),
        connections_min: if named { count(settings.pool.min) } else { 0 },
        connections_max: settings.pool.max.or(transport.max_conns_per_host).map(count),
        queue: (PROXY_QUEUE_MAX, PROXY_QUEUE_WAIT),
    }
}

/// Idle connections to one upstream: of those that all may have together each has its share.
pub(super) fn idle_max(settings: &checked::Proxy) -> usize {
    let transport = &settings.transport;
    let upstreams = settings.upstreams.len().max(1);
    let share = transport.keepalive_idle_conns.map(|all| count(all).div_ceil(upstreams));
    count(transport.keepalive_idle_conns_per_host).min(share.unwrap_or(usize::MAX))
}

fn count(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// A template's text where it has no placeholder.
pub(super) fn literal(template: &Template) -> Option<String> {
    let texts = template.parts.iter().map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Value(_) => None,
    });
    texts.collect()
}
