//! `listen` with `server_name` as the addresses of a site.

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
    /// An address of its own; none where it is reached on all.
    host: Option<&'a str>,
    port: u16,
    is_tls: bool,
}

impl<'a> Listens<'a> {
    /// All `listen` of a server.
    pub fn of(server: &'a Directive) -> Listens<'a> {
        let directives = server.inner().iter().filter(|directive| directive.name == "listen");
        let mut listens: Vec<Listen<'a>> = directives.filter_map(Listen::of).collect();
        if listens.is_empty() {
            listens.push(Listen { host: None, port: PORT, is_tls: false });
        }
        Listens { server, listens }
    }

    /// Whether one of them speaks TLS.
    pub fn is_tls(&self) -> bool {
        self.listens.iter().any(|listen| listen.is_tls)
    }

    /// The interfaces, where it is reached on some alone.
    pub fn own_hosts(&self) -> Vec<&'a str> {
        if self.listens.iter().any(|listen| listen.host.is_none()) {
            return Vec::new();
        }
        let mut hosts: Vec<&str> = self.listens.iter().filter_map(|listen| listen.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
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
        for listen in &self.listens {
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
    fn of(directive: &'a Directive) -> Option<Listen<'a>> {
        let is_tls = is(directive, "ssl") || is(directive, "quic");
        let address = directive.arg(0);
        if address.starts_with("unix:") {
            return None;
        }
        let usual = if is_tls { HTTPS_PORT } else { PORT };
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (Some(host), port.parse().unwrap_or(usual)),
            _ => match address.parse() {
                Ok(port) => (None, port),
                Err(_) => (Some(address), usual),
            },
        };
        let host = host.map(|host| host.trim_start_matches('[').trim_end_matches(']'));
        Some(Listen { host: host.filter(|host| !["*", "0.0.0.0", "::"].contains(host)), port, is_tls })
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
    leads(server.inner()) && locations().all(is_challenge)
        || locations().next().is_some()
            && locations().all(|location| leads(location.inner()) || is_challenge(location))
}

fn is(directive: &Directive, word: &str) -> bool {
    directive.args.iter().skip(1).any(|argument| argument.text == word)
}
