//! Who is let in, and with how large a body: `allow`, `deny`, `client_max_body_size`.

use super::directive::{Directive, nearest};
use crate::refusal::Refusal;

/// The lines that refuse requests by the address of their connection (ngx_http_access_module): the first rule that fits counts.
/// Only the two usual orders are carried over: some are allowed and the others denied, or some are denied.
pub(crate) fn addresses(levels: &[&[Directive]]) -> Result<String, Refusal> {
    let own =
        levels.iter().rev().map(|level| level.iter().filter(|inner| is_rule(inner)).collect::<Vec<_>>());
    let Some(rules) = own.into_iter().find(|rules| !rules.is_empty()) else { return Ok(String::new()) };
    let Some((last, before)) = rules.split_last() else { return Ok(String::new()) };
    let (kind, named) = match (last.name.as_str(), last.arg(0)) {
        (_, "all") => (if last.name == "deny" { "allow" } else { "deny" }, before),
        // Who is not named is let in.
        ("deny", _) => ("deny", rules.as_slice()),
        _ => ("", before),
    };
    let is_address =
        |rule: &&&Directive| rule.arg(0).parse::<std::net::IpAddr>().is_ok() || rule.arg(0).contains('/');
    if let Some(odd) =
        named.iter().find(|rule| rule.name != kind || !is_address(rule)).or((kind.is_empty()).then_some(last))
    {
        return Err(Refusal::at(
            &odd.place,
            format!("`{}`: rules that take turns, or name no address, are not carried over", odd.shown()),
            "write `allow …; deny all;` or `deny …;` in a copy of the file, and try that",
        ));
    }
    // What a proxy reports counts for nginx then, and for onehop with `trusted_proxies`.
    let whose = if nearest("set_real_ip_from", levels).is_some() { "client_ip" } else { "remote_ip" };
    let networks = named.iter().map(|rule| rule.arg(0)).collect::<Vec<_>>().join(" ");
    Ok(match (kind, networks.as_str()) {
        ("deny", "") => String::new(),
        ("deny", _) => format!("@denied {whose} {networks}\nrespond @denied 403\n"),
        (_, "") => "respond 403\n".to_owned(),
        _ => format!("@denied not {whose} {networks}\nrespond @denied 403\n"),
    })
}

/// The bound on the body of a request that is passed on.
pub(crate) fn body_size(levels: &[&[Directive]]) -> String {
    let Some(directive) = nearest("client_max_body_size", levels) else { return String::new() };
    let written = directive.arg(0).to_ascii_lowercase();
    let (number, unit) = match written.strip_suffix(['k', 'm', 'g']) {
        Some(number) if written.ends_with('k') => (number, "KiB"),
        Some(number) if written.ends_with('m') => (number, "MiB"),
        Some(number) => (number, "GiB"),
        None => (written.as_str(), "B"),
    };
    match number.parse::<u64>() {
        // No bound.
        Ok(0) | Err(_) => String::new(),
        Ok(number) => format!("request_body {{\n\tmax_size {number}{unit}\n}}\n"),
    }
}

/// Whether a directive lets in or refuses by address.
pub(crate) fn is_rule(directive: &Directive) -> bool {
    matches!(directive.name.as_str(), "allow" | "deny")
}
