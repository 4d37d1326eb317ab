//! `limit_req` as `rate_limit` (ngx_http_limit_req_module).
//!
//! nginx keeps for each client how many requests it is ahead of the rate, in thousandths, and refuses a request that is
//! ahead by more than `burst`: `burst=N` admits N + 1 at once, then one with each interval of the rate. That is `burst N+1`
//! here, request for request. nginx waits with the requests of a burst without `nodelay`, onehop does not.

use std::collections::BTreeSet;

use super::context::Context;
use super::directive::{Directive, nearest, nearest_all};
use super::location::Location;
use crate::onehopfile::{directive as written, word};
use crate::refusal::LEFT_OUT;

/// Requests a second from which on a rate is as good as no bound, for onehop's checker.
const RATE_MAX: u64 = 1_000_000;
/// Seconds within which a burst has to return there.
const BURST_SECONDS_MAX: u64 = 366 * 86_400;
/// Characters of a zone's name there.
const NAME_CHARACTERS_MAX: usize = 64;
/// nginx's status of a refusal where none is written.
const STATUS: &str = "503";
/// onehop's status of a refusal.
const OWN_STATUS: &str = "429";

/// A `limit_req`.
struct Limit<'a> {
    zone: &'a str,
    burst: u64,
    delays: bool,
}

impl<'a> Limit<'a> {
    fn of(directive: &'a Directive) -> Option<Limit<'a>> {
        let mut limit = Limit { zone: "", burst: 0, delays: false };
        let mut undelayed = 0;
        for word in &directive.args {
            match (word.text.as_str(), word.text.split_once('=')) {
                (_, Some(("zone", name))) => limit.zone = name,
                (_, Some(("burst", burst))) => limit.burst = burst.parse::<u32>().ok()?.into(),
                ("nodelay", _) => undelayed = u64::MAX,
                (_, Some(("delay", delay))) => undelayed = delay.parse().ok()?,
                _ => return None,
            }
        }
        limit.delays = limit.burst > undelayed;
        Some(limit)
    }
}

/// The `rate_limit` of these levels, the outermost first.
pub(crate) fn rates(context: &Context<'_>, levels: &[&[Directive]], notes: &mut Vec<String>) -> String {
    if context.deployment.is_measured() {
        return String::new();
    }
    let all = nearest_all("limit_req", levels);
    let mut out = String::new();
    for directive in &all {
        let note = match rate(context, directive, levels) {
            Ok((line, note)) => {
                out.push_str(&line);
                note.map(|note| format!("`{}` ({}): {note}.", directive.shown(), directive.place.words()))
            }
            Err(cause) => Some(format!("{LEFT_OUT}: {}: `{}`: {cause}.", directive.place, directive.shown())),
        };
        notes.extend(note);
    }
    if all.len() > 1 && !out.is_empty() {
        notes.push(
            "Of several `limit_req`, nginx counts a request that one refuses for none of them; onehop counts it for \
             those before."
                .to_owned(),
        );
    }
    out
}

/// The line of one, and what differs; or why there is none.
fn rate(
    context: &Context<'_>,
    directive: &Directive,
    levels: &[&[Directive]],
) -> Result<(String, Option<String>), String> {
    let Some(limit) = Limit::of(directive) else {
        return Err("it has a word that nginx does not know".to_owned());
    };
    if nearest("limit_req_dry_run", levels).is_some_and(|found| found.arg(0) == "on") {
        return Err("with `limit_req_dry_run` it refuses nothing".to_owned());
    }
    if nearest("set_real_ip_from", levels).is_some() {
        return Err("with `set_real_ip_from` nginx counts the addresses that a proxy reports; write \
             `servers { trusted_proxies static … }` into the global block, and `rate_limit` into this one"
            .to_owned());
    }
    let zones = context.server.http.iter().filter(|zone| zone.name == "limit_req_zone");
    let is_it = |zone: &&Directive| {
        let name = option(zone, "zone").and_then(|zone| zone.split(':').next());
        name == Some(limit.zone)
    };
    let Some(zone) = zones.clone().find(is_it) else {
        return Err("no `limit_req_zone` has its zone".to_owned());
    };
    if !["$binary_remote_addr", "$remote_addr"].contains(&zone.arg(0)) {
        return Err(format!(
            "its zone counts by `{}`; `rate_limit … by` takes `header FIELD`, `cookie NAME` or placeholders, and counts \
             requests without a value by address, where nginx does not count them",
            zone.arg(0)
        ));
    }
    let written = option(zone, "rate").unwrap_or_default();
    let (number, seconds) = written
        .strip_suffix("r/s")
        .map(|number| (number, 1))
        .or_else(|| written.strip_suffix("r/m").map(|number| (number, 60)))
        .ok_or("its zone has no rate")?;
    let number = number.parse::<u64>().ok().filter(|number| (1..=RATE_MAX * seconds).contains(number));
    let number =
        number.filter(|number| u32::try_from(*number).is_ok()).ok_or("its rate is as good as none")?;
    let at_once = limit.burst + 1;
    if at_once > u32::MAX.into() {
        return Err("its burst is as good as no bound".to_owned());
    }
    if at_once.saturating_mul(seconds) / number > BURST_SECONDS_MAX {
        return Err("its burst takes more than a year to return".to_owned());
    }
    let (name, is_apart) = name_of(context, &limit)?;
    let line = format!("rate_limit {written} burst {at_once} by ip zone {name}\n");
    Ok((line, difference(&limit, is_apart)))
}

/// What onehop does otherwise.
fn difference(limit: &Limit<'_>, is_apart: bool) -> Option<String> {
    let mut all = Vec::new();
    if limit.delays {
        all.push("nginx delays the requests of its burst to the rate; onehop answers them at once");
    }
    if is_apart {
        all.push("nginx counts for all bursts of the zone together; onehop counts for each apart");
    }
    (!all.is_empty()).then(|| all.join(", and "))
}

/// The zone's name, with its burst where others of the zone have another one: onehop's zones have one burst each.
fn name_of(context: &Context<'_>, limit: &Limit<'_>) -> Result<(String, bool), String> {
    let mut bursts = BTreeSet::new();
    let mut pending = vec![context.server.http];
    while let Some(level) = pending.pop() {
        for directive in level {
            let other = (directive.name == "limit_req").then(|| Limit::of(directive)).flatten();
            bursts.extend(other.filter(|other| other.zone == limit.zone).map(|other| other.burst));
            if !directive.inner().is_empty() {
                pending.push(directive.inner());
            }
        }
    }
    let is_apart = bursts.len() > 1;
    let name = if is_apart { format!("{}.burst{}", limit.zone, limit.burst) } else { limit.zone.to_owned() };
    let fits = |character: char| character.is_ascii_alphanumeric() || "-_.:".contains(character);
    if name.is_empty() || name.len() > NAME_CHARACTERS_MAX || !name.chars().all(fits) {
        return Err(format!("`{}` is no name of a zone of onehop", limit.zone));
    }
    Ok((name, is_apart))
}

/// The value of `name=value`.
pub(crate) fn option<'a>(directive: &'a Directive, name: &str) -> Option<&'a str> {
    let mut words = directive.args.iter().filter_map(|word| word.text.split_once('='));
    words.find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// `handle_errors` for the status that refused requests get, where nginx sends another than onehop.
pub(crate) fn statuses(context: &Context<'_>, locations: &[Location<'_>], notes: &mut Vec<String>) -> String {
    let mut statuses = BTreeSet::new();
    let server = context.server.directive.inner();
    let own = locations.iter().map(|location| location.directive.inner());
    let named = context.named.iter().map(|named| named.inner());
    for inner in own.chain(named).chain([&[][..]]) {
        let levels = [context.server.http, server, inner];
        if !rates(context, &levels, &mut Vec::new()).is_empty() {
            statuses.insert(nearest("limit_req_status", &levels).map_or(STATUS, |status| status.arg(0)));
        }
    }
    let statuses: Vec<&str> = statuses.into_iter().collect();
    match statuses.as_slice() {
        [] | [OWN_STATUS] => String::new(),
        [status] if status.parse::<u16>().is_ok_and(|status| (400..600).contains(&status)) => {
            notes.push(format!(
                "nginx refuses the requests above a rate with {status}, onehop with {OWN_STATUS}, which \
                 `handle_errors {OWN_STATUS}` turns into {status}. Without that block clients get {OWN_STATUS}."
            ));
            written(&format!("handle_errors {OWN_STATUS}"), &[format!("respond {}", word(status))])
        }
        several => {
            notes.push(format!(
                "nginx refuses the requests above the rates with {}, onehop all with {OWN_STATUS}.",
                several.join(" or ")
            ));
            String::new()
        }
    }
}
