//! `limit_conn` as `limit` (ngx_http_limit_conn_module), in the one form that means the same.
//!
//! nginx counts requests at work, by a key. onehop has a count for all clients, which leaves files in memory and WebSockets
//! out, and one of connections by address, which counts idle ones too.

use super::context::Context;
use super::directive::{Directive, nearest, nearest_all};
use super::location::Location;
use super::rates::option;
use crate::onehopfile::word;
use crate::refusal::LEFT_OUT;

/// Requests of a `limit`, for onehop's checker.
const IN_FLIGHT_MAX: u32 = 1_000_000;
/// nginx's status of a refusal where none is written, which is onehop's too.
const STATUS: &str = "503";

/// The `limit` of a location with these levels, the outermost first.
pub(crate) fn concurrency(
    context: &Context<'_>,
    location: &Location<'_>,
    levels: &[&[Directive]],
    notes: &mut Vec<String>,
) -> String {
    if context.deployment.is_measured() {
        return String::new();
    }
    let mut out = String::new();
    for directive in nearest_all("limit_conn", levels) {
        match limit(context, location, directive, levels) {
            Ok(line) => {
                out = line;
                notes.push(format!(
                    "`{}` ({}): an event stream counts until it begins.",
                    directive.shown(),
                    directive.place.words()
                ));
            }
            Err(cause) => {
                notes.push(format!("{LEFT_OUT}: {}: `{}`: {cause}.", directive.place, directive.shown()));
            }
        }
    }
    out
}

fn limit(
    context: &Context<'_>,
    location: &Location<'_>,
    directive: &Directive,
    levels: &[&[Directive]],
) -> Result<String, &'static str> {
    let zones = context.server.http.iter().filter(|zone| zone.name == "limit_conn_zone");
    let is_it = |zone: &&Directive| {
        option(zone, "zone").and_then(|zone| zone.split(':').next()) == Some(directive.arg(0))
    };
    match zones.clone().find(is_it).map(|zone| zone.arg(0)) {
        None => return Err("no `limit_conn_zone` has its zone"),
        Some("$binary_remote_addr" | "$remote_addr") => {
            return Err(
                "onehop does not count the requests of each address at a time; `rate_limit` counts them over time, \
                 `connections_per_address` of the global block connections, idle ones too",
            );
        }
        Some("$server_name") => {}
        Some(_) => return Err("onehop counts the requests of all clients at a time, by no key"),
    }
    let mut names = context.server.directive.inner().iter().filter(|inner| inner.name == "server_name");
    if names.next().is_none_or(|name| name.arg(0).is_empty()) {
        return Err("without a `server_name` nginx counts no request");
    }
    let own = location.directive.inner();
    let is_own = own.iter().any(|inner| std::ptr::eq(inner, directive));
    let in_server = context.server.directive.inner().iter().chain(context.server.http);
    let locations = context.locations.iter().map(|other| other.directive.inner());
    let named = context.named.iter().map(|named| named.inner());
    let uses = locations
        .chain(named)
        .flatten()
        .chain(in_server)
        .filter(|other| other.name == "limit_conn" && other.arg(0) == directive.arg(0));
    if !is_own || uses.count() != 1 || !own.iter().any(|inner| inner.name == "proxy_pass") {
        return Err(
            "nginx counts files and all locations of the zone together; `limit in_flight N` counts what is passed \
             on, for a site or a block",
        );
    }
    let is_upgrade = |field: &&Directive| field.arg(0).eq_ignore_ascii_case("upgrade");
    if nearest_all("proxy_set_header", levels).iter().any(is_upgrade) {
        return Err("nginx counts WebSockets until they end; `limit in_flight N` until they begin");
    }
    let number = directive.arg(1).parse::<u32>().ok().filter(|number| (1..=IN_FLIGHT_MAX).contains(number));
    let number = number.ok_or("its number is none of a `limit`")?;
    Ok(match nearest("limit_conn_status", levels).map(|status| status.arg(0)) {
        None | Some(STATUS) => format!("limit in_flight {number}\n"),
        Some(status) => format!("limit in_flight {number} shed {}\n", word(status)),
    })
}
