//! Whether an nginx keeps its connections to the application, which decides whether a tuned one is measured too.

use onehop_adapt::nginx::{Directive, Server, nearest, nearest_all, passed};

/// Whether a connection is opened for each request to the application, and of which locations if not of all.
pub(super) fn opens_connections(server: &Server<'_>) -> Option<String> {
    let locations = server.directive.inner().iter().filter(|directive| directive.name == "location");
    let passes = |block: &&Directive| block.inner().iter().any(|inner| inner.name == "proxy_pass");
    let passing: Vec<&Directive> = locations.filter(passes).collect();
    let opening: Vec<&Directive> =
        passing.iter().copied().filter(|block| !keeps_connections(server, block.inner())).collect();
    if opening.len() == passing.len() {
        return Some(String::new());
    }
    let shown: Vec<String> =
        opening.iter().map(|block| format!("`{}` ({})", block.shown(), block.place.words())).collect();
    (!shown.is_empty()).then(|| format!(" of {}", shown.join(", ")))
}

/// Whether the connections of a block are used again already.
fn keeps_connections(server: &Server<'_>, block: &[Directive]) -> bool {
    let levels = [server.http, server.directive.inner(), block];
    let kept = block
        .iter()
        .find(|directive| directive.name == "proxy_pass")
        .and_then(|pass| passed(pass.arg(0)))
        .and_then(|to| server.upstream(&to.host))
        .is_some_and(|upstream| upstream.inner().iter().any(|inner| inner.name == "keepalive"));
    let version = nearest("proxy_http_version", &levels).is_some_and(|found| found.arg(0) == "1.1");
    let connection = nearest_all("proxy_set_header", &levels)
        .into_iter()
        .find(|field| field.arg(0).eq_ignore_ascii_case("connection"))
        .is_some_and(|field| keeps(server, field.arg(1)));
    kept && version && connection
}

/// Whether a value of Connection keeps a connection where the request asks for no upgrade.
fn keeps(server: &Server<'_>, value: &str) -> bool {
    let Some(variable) = value.strip_prefix('$') else { return value.is_empty() };
    let variable = variable.trim_matches(['{', '}']);
    if variable.starts_with("http_") {
        // A field of the request: without it, it is empty.
        return true;
    }
    let is_map = |directive: &&Directive| {
        directive.name == "map" && directive.arg(1).strip_prefix('$') == Some(variable)
    };
    let Some(map) = server.http.iter().find(is_map) else { return false };
    // `default upgrade; '' close;`, as the manual of WebSockets has it, closes all others.
    let entry = |name: &str| map.inner().iter().find(|entry| entry.name == name);
    entry("").or_else(|| entry("default")).is_none_or(|entry| entry.arg(0).is_empty())
}
