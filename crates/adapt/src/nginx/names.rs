//! `server_name` with `listen` as the addresses of a site.

use super::directive::Directive;

/// The port of a server that names none.
const PORT: &str = "80";

/// The addresses that a site needs for a server's names; none where it has no name of its own. A port for TLS becomes
/// that of HTTP.
pub fn addresses(server: &Directive, notes: &mut Vec<String>) -> Vec<String> {
    let of_name = |name: &'static str| server.inner().iter().filter(move |directive| directive.name == name);
    let mut ports: Vec<&str> = of_name("listen").filter_map(port).collect();
    ports.dedup();
    if ports.is_empty() {
        ports.push(PORT);
    }
    let names = names(server, notes);
    let address = |name: &String, port: &&str| match *port {
        PORT => format!("http://{name}"),
        other => format!("http://{name}:{other}"),
    };
    names.iter().flat_map(|name| ports.iter().map(move |port| address(name, port))).collect()
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

/// The port of a `listen` without TLS.
fn port(listen: &Directive) -> Option<&str> {
    if listen.args.iter().any(|word| matches!(word.text.as_str(), "ssl" | "quic")) {
        return None;
    }
    let address = listen.arg(0);
    let port = address.rsplit(':').next().unwrap_or_default();
    match port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() {
        true => Some(port),
        false => (!address.starts_with("unix:")).then_some(PORT),
    }
}
