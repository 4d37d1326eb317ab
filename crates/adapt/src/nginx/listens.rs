//! `listen` with `server_name` as the addresses of a site.

use std::collections::BTreeSet;

use super::directive::Directive;

/// The port of a `listen` that names none.
const PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// Where a server listens.
pub struct Listens<'a> {
    server: &'a Directive,
    listens: Vec<Listen<'a>>,
}

struct Listen<'a> {
    /// None where nothing is written.
    directive: Option<&'a Directive>,
    /// An address or Unix socket of its own, as `bind` has it; none where it is reached on all.
    host: Option<String>,
    port: u16,
    is_tls: bool,
}

impl<'a> Listens<'a> {
    /// All `listen` of a server.
    pub fn of(server: &'a Directive) -> Listens<'a> {
        let directives = server.inner().iter().filter(|directive| directive.name == "listen");
        let mut listens: Vec<Listen<'a>> = directives.map(Listen::of).collect();
        if listens.is_empty() {
            listens.push(Listen { directive: None, host: None, port: PORT, is_tls: false });
        }
        Listens { server, listens }
    }

    /// Whether one of them speaks TLS.
    pub fn is_tls(&self) -> bool {
        self.listens.iter().any(|listen| listen.is_tls)
    }

    /// The interfaces and Unix sockets, where it is reached on some alone.
    pub fn own_hosts(&self) -> Vec<&str> {
        let mut hosts: Vec<&str> =
            self.of_one_site().0.iter().filter_map(|listen| listen.host.as_deref()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    /// Those that one site can have, and the others. A site is reached on each of its ports on each of its hosts, so hosts
    /// with other ports would open ports that nginx does not.
    fn of_one_site(&self) -> (Vec<&Listen<'a>>, Vec<&Listen<'a>>) {
        let ports = |host: &Option<String>| {
            let own = self.listens.iter().filter(|listen| listen.host == *host);
            own.map(|listen| (listen.port, listen.is_tls)).collect::<BTreeSet<_>>()
        };
        let everywhere = self.listens.iter().find(|listen| listen.host.is_none());
        let Some(first) = everywhere.or(self.listens.first()) else { return Default::default() };
        let known = ports(&first.host);
        self.listens.iter().partition(|listen| match (&first.host, &listen.host) {
            (None, Some(_)) => false,
            (_, host) => ports(host) == known,
        })
    }

    /// The addresses without TLS that a site needs for the server's names; none where it has no name of its own.
    pub fn plain_addresses(&self, notes: &mut Vec<String>) -> Vec<String> {
        let plain_listens = self.listens.iter().filter(|listen| !listen.is_tls);
        let mut ports: Vec<u16> = plain_listens.map(|listen| listen.port).collect();
        ports.dedup();
        if ports.is_empty() {
            ports.push(PORT);
        }
        let names = names(self.server, notes);
        names.iter().flat_map(|name| ports.iter().map(move |port| plain(name, *port))).collect()
    }

    /// The addresses of a site that is reached there, with HTTPS where nginx has it.
    pub fn addresses(&self, notes: &mut Vec<String>) -> Vec<String> {
        let names = names(self.server, notes);
        let mut addresses: Vec<String> = Vec::new();
        let mut add = |address: String| {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        };
        let (listens, others) = self.of_one_site();
        let others = others.iter().filter_map(|listen| listen.directive);
        notes.extend(others.map(|listen| {
            format!(
                "`{}` ({}): not listened to. A site is reached on all its addresses and ports; write one of its own for it.",
                listen.shown(),
                listen.place.words()
            )
        }));
        for listen in listens {
            if names.is_empty() {
                add(format!(":{}", listen.port));
            }
            for name in &names {
                add(match (listen.is_tls, listen.port) {
                    (true, HTTPS_PORT) => name.clone(),
                    (true, port) => format!("https://{name}:{port}"),
                    (false, port) => plain(name, port),
                });
            }
        }
        if !names.is_empty() {
            let listens = self.server.inner().iter().filter(|directive| directive.name == "listen");
            notes.extend(listens.filter(|listen| is(listen, "default_server")).map(|listen| {
                format!(
                    "`{}` ({}): hosts without a site of their own are not answered; `:{PORT}` as a further address does.",
                    listen.shown(),
                    listen.place.words()
                )
            }));
        }
        addresses
    }
}

impl<'a> Listen<'a> {
    fn of(directive: &'a Directive) -> Listen<'a> {
        let is_tls = is(directive, "ssl") || is(directive, "quic");
        let usual = if is_tls { HTTPS_PORT } else { PORT };
        let address = directive.arg(0);
        let (host, port) = match (address.strip_prefix("unix:"), address.rsplit_once(':')) {
            (Some(path), _) => (Some(format!("unix/{path}")), usual),
            (None, Some((host, port))) if !port.ends_with(']') => {
                (Some(host.to_owned()), port.parse().unwrap_or(usual))
            }
            _ => match address.parse() {
                Ok(port) => (None, port),
                Err(_) => (Some(address.to_owned()), usual),
            },
        };
        let host = host.map(|host| match host.trim_start_matches('[').trim_end_matches(']') {
            "localhost" => "127.0.0.1".to_owned(),
            bare => bare.to_owned(),
        });
        let host = host.filter(|host| !["*", "0.0.0.0", "::"].contains(&host.as_str()));
        Listen { directive: Some(directive), host, port, is_tls }
    }
}

/// The names that a server answers to.
pub fn names(server: &Directive, notes: &mut Vec<String>) -> Vec<String> {
    let mut names = Vec::new();
    let directives = server.inner().iter().filter(|directive| directive.name == "server_name");
    for directive in directives {
        for name in directive.args.iter().map(|word| word.text.as_str()) {
            if name.starts_with('~') || name.ends_with('*') || name.contains('$') {
                notes.push(format!(
                    "`server_name {name}` ({}): an Onehopfile has names and `*.name`; write the hosts that are meant.",
                    directive.place.words()
                ));
            } else if let Some(bare) = name.strip_prefix('.') {
                names.extend([bare.to_owned(), format!("*.{bare}")]);
            } else if !matches!(name, "" | "_") {
                names.push(name.to_owned());
            }
        }
    }
    names
}

fn plain(name: &str, port: u16) -> String {
    match port {
        PORT => format!("http://{name}"),
        other => format!("http://{name}:{other}"),
    }
}

/// Whether a server does nothing but lead to the same address over HTTPS.
pub fn leads_to_https(server: &Directive) -> bool {
    let target = |directive: &Directive| {
        let target = if directive.arg(1).is_empty() { directive.arg(0) } else { directive.arg(1) };
        ["$host", "$server_name", "$http_host"]
            .iter()
            .any(|host| target == format!("https://{host}$request_uri"))
    };
    let leads = |directives: &[Directive]| {
        directives.iter().any(|directive| directive.name == "return" && target(directive))
    };
    let locations = || server.inner().iter().filter(|directive| directive.name == "location");
    let is_challenge = |location: &Directive| location.shown().contains("/.well-known/acme-challenge");
    // As certbot writes it: one `if` for each host, and 404 behind them.
    let is_of_certbot = |inner: &Directive| match inner.name.as_str() {
        "listen" | "server_name" => true,
        "return" => inner.arg(0) == "404",
        "if" => inner.arg(0).contains("$host") && inner.arg(1) == "=" && leads(inner.inner()),
        _ => inner.name == "location" && is_challenge(inner),
    };
    let has_condition = server.inner().iter().any(|inner| inner.name == "if");
    has_condition && server.inner().iter().all(is_of_certbot)
        || leads(server.inner()) && locations().all(is_challenge)
        || locations().next().is_some()
            && locations().all(|location| leads(location.inner()) || is_challenge(location))
}

fn is(directive: &Directive, word: &str) -> bool {
    directive.args.iter().skip(1).any(|argument| argument.text == word)
}
