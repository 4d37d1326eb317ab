//! Caddy's "Automatic HTTPS": which names get which certificate, and which plain requests are redirected.

use std::net::IpAddr;

use super::Context;
use super::address::Address;
use crate::checked::tls::{AcmeIssuer, AutoHttps, CertificateIssuer, DnsRecords, Managed, OnDemand, SiteTls};
use crate::checked::{
    Global, HostPattern, ListenAddress, Listener, Part, Placeholder, RedirectKind, Route, Site, Step,
    Template,
};
use crate::directives::{TlsSettings, local_issuer};
use crate::problem::Problem;

/// ZeroSSL's directory.
const ZEROSSL: &str = "https://acme.zerossl.com/v2/DV90";
/// The label of the site that redirects, in metrics and logs.
const REDIRECTS: &str = "https-redirect";
/// Names that no public issuer gives certificates for (RFC 6761, RFC 6762, RFC 8375, and ICANN's `internal`).
const INTERNAL_DOMAINS: [&str; 5] = ["localhost", "local", "internal", "home.arpa", "test"];

/// TLS of a site that answers these hosts.
pub(super) fn site(
    cx: &mut Context<'_>,
    global: &Global,
    settings: &TlsSettings,
    addresses: &[&Address],
) -> SiteTls {
    let obtains = !matches!(global.auto_https, AutoHttps::DisableCertificates | AutoHttps::Off);
    let prefers_managed = global.auto_https == AutoHttps::IgnoreLoaded;
    let has_files = !settings.files.is_empty();
    let mut policy = settings.policy.clone();
    if policy.protocols.is_empty() && !global.protocols.h2 {
        policy.protocols.push("http/1.1".to_owned());
    }
    if let Some(place) = settings.on_demand.as_ref().filter(|_| obtains) {
        let on_demand = on_demand(cx, settings, addresses);
        let is_bounded = |address: &&Address| matches!(address.host, Some(HostPattern::Exact(_)));
        let is_local = matches!(on_demand.issuers.as_slice(), [CertificateIssuer::Local(_)]);
        if !is_local && global.tls.ask.is_none() && !addresses.iter().all(is_bounded) {
            let message = "`on_demand` lets clients order certificates for any name";
            cx.problems.push(
                Problem::error("on-demand", place, message)
                    .label("nothing says which names may have one")
                    .help("`on_demand_tls { ask URL }` in the global block asks your program"),
            );
        }
        let files = settings.files.clone();
        return SiteTls { files, managed: Vec::new(), on_demand: Some(on_demand), prefers_managed, policy };
    }
    let mut managed: Vec<Managed> = Vec::new();
    for address in addresses.iter().filter(|_| obtains) {
        let Some(host) = &address.host else { continue };
        let name = name_of(host);
        let issuers = issuers(cx, settings, Some(&name));
        match must_be_obtainable(&name, &issuers, address) {
            Ok(()) => {}
            // One of the files is for it; what is in them is seen at the start.
            Err(_) if has_files || settings.is_broken => continue,
            Err(problem) => {
                cx.problems.push(problem);
                continue;
            }
        }
        match managed.iter_mut().find(|managed| managed.issuers == issuers) {
            Some(managed) => managed.names.push(name),
            None => managed.push(Managed {
                names: vec![name],
                unless_loaded: has_files && !prefers_managed,
                issuers,
                key_type: settings.key_type.unwrap_or(cx.certificates.key_type),
                renewal_ratio: settings.renewal_ratio.unwrap_or(cx.certificates.renewal_ratio),
            }),
        }
    }
    SiteTls { files: settings.files.clone(), managed, on_demand: None, prefers_managed, policy }
}

/// How certificates are obtained that clients ask for: as for the first public name of the site, if it has one.
fn on_demand(cx: &Context<'_>, settings: &TlsSettings, addresses: &[&Address]) -> OnDemand {
    let names = addresses.iter().map(|address| address.host.as_ref().map(name_of));
    let is_public = |name: &Option<String>| name.as_deref().is_none_or(|name| !is_internal(name));
    let mut names: Vec<Option<String>> = names.collect();
    names.sort_by_key(|name| !is_public(name));
    let name = names.into_iter().next().flatten();
    OnDemand {
        issuers: issuers(cx, settings, name.as_deref()),
        key_type: settings.key_type.unwrap_or(cx.certificates.key_type),
        renewal_ratio: settings.renewal_ratio.unwrap_or(cx.certificates.renewal_ratio),
    }
}

/// A host as certificates have it.
fn name_of(host: &HostPattern) -> String {
    match host {
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Wildcard(labels) => {
            labels.iter().map(|label| label.as_deref().unwrap_or("*")).collect::<Vec<_>>().join(".")
        }
    }
}

/// Whether no public issuer gives certificates for a name.
pub(crate) fn is_internal(name: &str) -> bool {
    let within =
        |domain: &&str| name.strip_suffix(*domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    name.parse::<IpAddr>().is_ok() || !name.contains('.') || INTERNAL_DOMAINS.iter().any(within)
}

/// The issuers of a name, or of any name: those of the site, else those of the global block. Without either, the local authority
/// issues for internal names, and Let's Encrypt for others.
fn issuers(cx: &Context<'_>, settings: &TlsSettings, name: Option<&str>) -> Vec<CertificateIssuer> {
    let ours = AcmeIssuer::default();
    let complete = |issuer: &CertificateIssuer| match issuer {
        CertificateIssuer::Local(_) => issuer.clone(),
        CertificateIssuer::Acme(acme) => {
            CertificateIssuer::Acme(Box::new(with_defaults(acme, &cx.certificates.acme)))
        }
    };
    let written = if settings.issuers.is_empty() { &cx.certificates.issuers } else { &settings.issuers };
    if settings.acme != ours && settings.issuers.is_empty() {
        return usual(with_defaults(&settings.acme, &cx.certificates.acme));
    }
    if !written.is_empty() {
        return written.iter().map(complete).collect();
    }
    if name.is_some_and(is_internal) {
        return vec![local_issuer(cx)];
    }
    usual(cx.certificates.acme.clone())
}

/// Let's Encrypt and, where there is an email address for the account, ZeroSSL; another server alone.
fn usual(acme: AcmeIssuer) -> Vec<CertificateIssuer> {
    let has_second = acme.directory.is_none() && acme.external_account.is_none() && acme.email.is_some();
    let zerossl = AcmeIssuer { directory: Some(ZEROSSL.to_owned()), profile: None, ..acme.clone() };
    let second = has_second.then_some(zerossl);
    [acme].into_iter().chain(second).map(|acme| CertificateIssuer::Acme(Box::new(acme))).collect()
}

/// What a site leaves open of its issuer, the global block may say; an account belongs to the server it was made for.
fn with_defaults(acme: &AcmeIssuer, global: &AcmeIssuer) -> AcmeIssuer {
    let is_same_server = acme.directory.is_none() || acme.directory == global.directory;
    let mut acme = acme.clone();
    if is_same_server {
        acme.directory = acme.directory.or_else(|| global.directory.clone());
        acme.external_account = acme.external_account.or_else(|| global.external_account.clone());
    }
    acme.trusted_root = acme.trusted_root.or_else(|| global.trusted_root.clone());
    acme.email = acme.email.or_else(|| global.email.clone());
    acme.dns = acme.dns.or_else(|| global.dns.clone());
    if acme.records == DnsRecords::default() {
        acme.records = global.records.clone();
    }
    acme
}

/// Refuses names that none of these issuers can give a certificate for.
fn must_be_obtainable(
    name: &str,
    issuers: &[CertificateIssuer],
    address: &Address,
) -> Result<(), Box<Problem>> {
    let wrong = |message: String| Problem::error("certificate", &address.place, message);
    let stars = name.split('.').filter(|label| *label == "*").count();
    let is_wildcard = name.starts_with("*.");
    if stars > 1 || stars == 1 && !is_wildcard {
        return Err(wrong(format!("no issuer gives a certificate for `{name}`"))
            .label("a star stands for the first label alone (RFC 9525 section 6.3)")
            .help("name certificates of your own: `tls CERTIFICATE KEY`"));
    }
    let can = |issuer: &CertificateIssuer| match issuer {
        CertificateIssuer::Local(_) => true,
        CertificateIssuer::Acme(acme) => !is_wildcard || acme.dns.is_some(),
    };
    if issuers.iter().any(can) {
        return Ok(());
    }
    Err(wrong(format!("a certificate for `{name}` needs the DNS challenge"))
        .label("issuers prove a wildcard by a DNS record (RFC 8555 section 8.4)")
        .help("`tls { dns rfc2136 { … } }` or `dns exec PROGRAM` sets the record; or `tls CERTIFICATE KEY`, or `tls internal`"))
}

/// Adds what redirects plain requests to HTTPS (308), as Caddy does: those for a host that is served with TLS, unless a site
/// without TLS names that host, and those for any other host, unless a site without TLS takes them.
pub(super) fn redirect(global: &Global, listeners: &mut Vec<Listener>, sites: &mut Vec<Site>) {
    if matches!(global.auto_https, AutoHttps::Off | AutoHttps::DisableRedirects) {
        return;
    }
    for (address, hosts) in redirected(global, listeners, sites) {
        let known = listeners.iter().position(|listener| listener.address == address);
        let numbers = known.and_then(|number| listeners.get(number)).map(|listener| listener.sites.clone());
        let taken: Vec<&[HostPattern]> = numbers
            .iter()
            .flatten()
            .filter_map(|number| sites.get(*number))
            .map(|site| &*site.hosts)
            .collect();
        let takes_all = taken.iter().any(|hosts| hosts.is_empty());
        let mut ports: Vec<(u16, Vec<HostPattern>)> = Vec::new();
        for (host, port) in hosts {
            // The redirect of all other hosts serves this host, too, unless a site answers every host.
            let is_usual = port == global.https_port && !takes_all;
            if is_usual || taken.iter().any(|hosts| names(hosts, &host)) {
                continue;
            }
            match ports.iter_mut().find(|(known, _)| *known == port) {
                Some((_, hosts)) => hosts.push(host),
                None => ports.push((port, vec![host])),
            }
        }
        if !takes_all {
            ports.push((global.https_port, Vec::new()));
        }
        let first = sites.len();
        sites.extend(ports.into_iter().map(|(port, hosts)| redirecting(global, hosts, port)));
        let added = first..sites.len();
        match known.and_then(|number| listeners.get_mut(number)) {
            Some(listener) => listener.sites.extend(added),
            None => listeners.push(Listener { address, tls: false, sites: added.collect() }),
        }
    }
}

/// Hosts that are served with TLS and the ports that they are served on, by the address where plain requests for them
/// come. Of several ports that of HTTPS counts.
fn redirected(
    global: &Global,
    listeners: &[Listener],
    sites: &[Site],
) -> Vec<(ListenAddress, Vec<(HostPattern, u16)>)> {
    let mut all: Vec<(ListenAddress, Vec<(HostPattern, u16)>)> = Vec::new();
    for listener in listeners.iter().filter(|listener| listener.tls) {
        let ListenAddress::Tcp { host, port } = listener.address else { continue };
        let plain = ListenAddress::Tcp { host, port: global.http_port };
        let at = all.iter().position(|(address, _)| *address == plain).unwrap_or_else(|| {
            all.push((plain, Vec::new()));
            all.len() - 1
        });
        let Some((_, known)) = all.get_mut(at) else { continue };
        for host in listener.sites.iter().filter_map(|number| sites.get(*number)).flat_map(|site| &site.hosts)
        {
            match known.iter_mut().find(|(other, _)| other == host) {
                Some((_, known)) if port == global.https_port => *known = port,
                Some(_) => {}
                None => known.push((host.clone(), port)),
            }
        }
    }
    all
}

/// Whether a site names this host among its hosts, as it is or by a wildcard.
fn names(hosts: &[HostPattern], host: &HostPattern) -> bool {
    let fits = |pattern: &HostPattern| match (pattern, host) {
        (HostPattern::Wildcard(labels), HostPattern::Exact(name)) => {
            let names: Vec<&str> = name.split('.').collect();
            labels.len() == names.len()
                && labels
                    .iter()
                    .zip(names)
                    .all(|(label, name)| label.as_ref().is_none_or(|label| label == name))
        }
        _ => pattern == host,
    };
    hosts.iter().any(fits)
}

fn redirecting(global: &Global, hosts: Vec<HostPattern>, port: u16) -> Site {
    // The port of HTTPS may be another one here than outside, where it is the usual one.
    let is_usual = [80, 443, global.http_port, global.https_port].contains(&port);
    let port = if is_usual { String::new() } else { format!(":{port}") };
    let to = Template {
        parts: vec![
            Part::Text("https://".to_owned()),
            Part::Value(Placeholder::Host),
            Part::Text(port),
            Part::Value(Placeholder::Uri),
        ],
    };
    let step = Step::Redirect { to, kind: RedirectKind::Status(308) };
    Site {
        label: REDIRECTS.to_owned(),
        hosts,
        routes: vec![Route { matcher: None, group: None, step, line: 0 }],
        errors: Vec::new(),
        logs: Vec::new(),
        tls: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_public_issuer_knows_are_internal() {
        for name in [
            "localhost",
            "a.localhost",
            "printer.local",
            "app.internal",
            "nas.home.arpa",
            "intranet",
            "127.0.0.1",
            "::1",
            "203.0.113.9",
        ] {
            assert!(is_internal(name), "{name}");
        }
        for name in ["example.com", "localhost.example.com", "notlocal.org", "xlocalhost.net"] {
            assert!(!is_internal(name), "{name}");
        }
    }
}
