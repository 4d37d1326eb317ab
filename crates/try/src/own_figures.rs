//! What a server says of itself, beside what the load saw of it.
//!
//! Owns reading onehop's metrics and nginx's stub_status around one short load, and the words for both. A server's own
//! figures are no proof of ours, but where the two contradict each other one of them is wrong, and that is said.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use onehop_load::client::Client;
use onehop_load::outcome::Run;
use onehop_load::plan::{Expect, Protocol, Request, Timeouts};
use onehop_load::url::{Address, Endpoint, Url};

use super::stacks::{Stack, Tells, stub_status_path};

/// Both sides count every request: further apart than this is a contradiction, beside what was under way at the end.
const COUNT_TOLERANCE: f64 = 0.01;
/// A server's own time is a part of what a client waits; within this much more it may be due to rounding.
const LATENCY_TOLERANCE: f64 = 1.05;
/// The admin endpoint answers from memory.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(2), response: Duration::from_secs(5) };

/// A look at the server's own counters.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Look {
    /// Requests answered since its start.
    requests: u64,
    /// The same by class of status, where it tells.
    classes: BTreeMap<u8, u64>,
    /// Answers that took at most so many seconds, rising; the last one is infinite.
    buckets: Vec<(f64, u64)>,
}

/// Reads them.
pub(super) fn look(stack: &Stack) -> Result<Option<Look>, String> {
    match &stack.tells {
        Tells::Nothing(_) => Ok(None),
        Tells::Metrics(admin) => {
            let text = read(*admin, "/metrics")?;
            Ok(Some(from_metrics(&text)))
        }
        Tells::StubStatus(address) => {
            let text = read(*address, stub_status_path())?;
            let requests = from_stub_status(&text).ok_or_else(|| format!("stub_status said {text:?}"))?;
            Ok(Some(Look { requests, classes: BTreeMap::new(), buckets: Vec::new() }))
        }
    }
}

/// What the server's figures say, in words, one line for each.
pub(super) fn judge(
    stack: &Stack,
    before: &Look,
    after: &Look,
    run: &Run,
    connections: usize,
) -> Vec<String> {
    let name = &stack.name;
    // Looking is a request too, and stub_status counts it.
    let looks = u64::from(matches!(stack.tells, Tells::StubStatus(_)));
    let theirs = after.requests.saturating_sub(before.requests).saturating_sub(looks);
    let ours = run.total.good + run.total.unexpected;
    let mut lines = vec![count_words(name, theirs, ours, connections)];
    if !after.classes.is_empty() {
        lines.extend(class_words(name, before, after, run, connections));
    }
    if let Some(bounds) = share_between(before, after, 0.99) {
        lines.push(latency_words(name, bounds, run.total.latency.at(0.99)));
    }
    lines
}

/// The words for a server that tells nothing.
pub(super) fn silent(stack: &Stack) -> Option<String> {
    match stack.tells {
        Tells::Nothing(why) => Some(format!("{} tells nothing of itself: {why}", stack.name)),
        _ => None,
    }
}

fn count_words(name: &str, theirs: u64, ours: u64, connections: usize) -> String {
    let (low, high) = allowed(ours, connections);
    if (low..=high).contains(&theirs) {
        let rest = match theirs.checked_sub(ours) {
            Some(0) | None => String::new(),
            Some(more) => format!(" ({more} were under way when the load ended)"),
        };
        format!("{name} counted {theirs} requests, the load {ours} answers{rest}: they agree")
    } else {
        format!("CONTRADICTION: {name} counted {theirs} requests, the load saw {ours} answers")
    }
}

/// What the server may have counted, when the load saw so many.
fn allowed(ours: u64, connections: usize) -> (u64, u64) {
    let tolerance = (ours as f64 * COUNT_TOLERANCE) as u64;
    (ours.saturating_sub(tolerance), ours.saturating_add(tolerance).saturating_add(connections as u64))
}

fn class_words(name: &str, before: &Look, after: &Look, run: &Run, connections: usize) -> Vec<String> {
    let mut ours: BTreeMap<u8, u64> = BTreeMap::new();
    for (status, count) in &run.total.statuses {
        *ours.entry(u8::try_from(status / 100).unwrap_or(u8::MAX)).or_default() += count;
    }
    let mut classes: Vec<u8> = ours.keys().chain(after.classes.keys()).copied().collect();
    classes.sort_unstable();
    classes.dedup();
    let mut lines = Vec::new();
    for class in classes {
        let of = |look: &Look| look.classes.get(&class).copied().unwrap_or(0);
        let theirs = of(after).saturating_sub(of(before));
        let ours = ours.get(&class).copied().unwrap_or(0);
        let (low, high) = allowed(ours, connections);
        if !(low..=high).contains(&theirs) {
            lines.push(format!(
                "CONTRADICTION: {name} counted {theirs} answers with a status of {class}xx, the load saw {ours}"
            ));
        }
    }
    lines
}

/// Between which two bounds, in seconds, the latency lies that this share of its answers did not exceed.
fn share_between(before: &Look, after: &Look, share: f64) -> Option<(f64, f64)> {
    let counts: Vec<(f64, u64)> = after
        .buckets
        .iter()
        .map(|(bound, count)| {
            let earlier = before.buckets.iter().find(|(earlier, _)| earlier == bound);
            (*bound, count.saturating_sub(earlier.map_or(0, |(_, count)| *count)))
        })
        .collect();
    let total = counts.last().map(|(_, count)| *count).filter(|total| *total > 0)?;
    let wanted = (total as f64 * share).ceil() as u64;
    let at = counts.iter().position(|(_, count)| *count >= wanted)?;
    let low = at.checked_sub(1).and_then(|below| counts.get(below)).map_or(0.0, |(bound, _)| *bound);
    Some((low, counts.get(at)?.0))
}

fn latency_words(name: &str, (low, high): (f64, f64), ours: Duration) -> String {
    let milliseconds = |seconds: f64| format!("{} ms", (seconds * 1_000_000.0).round() / 1_000.0);
    let ours = ours.as_secs_f64();
    let theirs = match (low, high) {
        (0.0, high) => format!("at most {}", milliseconds(high)),
        (low, high) if high.is_finite() => format!("from {} to {}", milliseconds(low), milliseconds(high)),
        (low, _) => format!("more than {}", milliseconds(low)),
    };
    if low > ours * LATENCY_TOLERANCE {
        format!(
            "CONTRADICTION: {name} says that its p99 is {theirs}, the load saw {}: a client cannot be quicker than \
             the server",
            milliseconds(ours)
        )
    } else {
        format!("{name} says that its p99 is {theirs}, the load saw {}: no contradiction", milliseconds(ours))
    }
}

fn read(address: SocketAddr, path: &str) -> Result<String, String> {
    let request = Request {
        name: path.to_owned(),
        url: Url {
            scheme: onehop_load::url::Scheme::Http,
            endpoint: Endpoint::Tcp { host: address.ip().to_string(), port: address.port() },
            authority: address.to_string(),
            path: path.to_owned(),
        },
        address: Address::Tcp(address),
        tls: None,
        protocol: Protocol::Http1,
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: None,
        weight: 1,
        expect: Expect::Success,
    };
    let response = Client::new(request.address.clone())
        .request(&request, TIMEOUTS)
        .map_err(|error| error.to_string())?;
    if response.status != 200 {
        return Err(format!("http://{address}{path} answered {}", response.status));
    }
    Ok(String::from_utf8_lossy(&response.body).into_owned())
}

/// From Prometheus' text. All sites and handlers are added up: there is one site.
fn from_metrics(text: &str) -> Look {
    let mut look = Look { requests: 0, classes: BTreeMap::new(), buckets: Vec::new() };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, value)) = line.rsplit_once(' ') else { continue };
        let Ok(value) = value.parse::<f64>() else { continue };
        let count = value as u64;
        if name.starts_with("onehop_requests_total{") {
            look.requests += count;
            if let Some(class) = label(name, "class").and_then(|class| class.get(..1)?.parse().ok()) {
                *look.classes.entry(class).or_default() += count;
            }
        } else if name.starts_with("onehop_request_duration_seconds_bucket{")
            && let Some(bound) = label(name, "le")
            && let Ok(bound) = bound.replace("+Inf", "inf").parse::<f64>()
        {
            match look.buckets.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, known)) => *known += count,
                None => look.buckets.push((bound, count)),
            }
        }
    }
    look.buckets.sort_by(|(left, _), (right, _)| left.total_cmp(right));
    look
}

fn label<'a>(name: &'a str, label: &str) -> Option<&'a str> {
    let (_, rest) = name.split_once(&format!("{label}=\""))?;
    Some(rest.split_once('"')?.0)
}

/// `server accepts handled requests`, and the three below it.
fn from_stub_status(text: &str) -> Option<u64> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("server accepts"));
    lines.nth(1)?.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "# HELP onehop_requests_total Requests answered\n\
        onehop_requests_total{site=\":1\",handler=\"app\",class=\"2xx\"} 40\n\
        onehop_requests_total{site=\":1\",handler=\"files\",class=\"4xx\"} 2\n\
        onehop_request_duration_seconds_bucket{site=\":1\",handler=\"app\",le=\"0.0005\"} 29\n\
        onehop_request_duration_seconds_bucket{site=\":1\",handler=\"app\",le=\"0.001\"} 40\n\
        onehop_request_duration_seconds_bucket{site=\":1\",handler=\"app\",le=\"+Inf\"} 40\n\
        onehop_request_duration_seconds_sum{site=\":1\",handler=\"app\"} 0.01\n\
        onehop_request_duration_seconds_bucket{site=\":1\",handler=\"files\",le=\"0.0005\"} 1\n\
        onehop_request_duration_seconds_bucket{site=\":1\",handler=\"files\",le=\"0.001\"} 2\n\
        onehop_request_duration_seconds_bucket{site=\":1\",handler=\"files\",le=\"+Inf\"} 2\n\
        onehop_cold_start_duration_seconds_bucket{site=\":1\",handler=\"app\",le=\"+Inf\"} 1\n\
        onehop_connections_total 7\n";

    #[test]
    fn the_counters_are_read() {
        let look = from_metrics(METRICS);
        assert_eq!(look.requests, 42);
        assert_eq!(look.classes, BTreeMap::from([(2, 40), (4, 2)]));
        assert_eq!(look.buckets, [(0.0005, 30), (0.001, 42), (f64::INFINITY, 42)]);
        let nothing = from_metrics("");
        assert_eq!(share_between(&nothing, &look, 0.5), Some((0.0, 0.0005)));
        assert_eq!(share_between(&nothing, &look, 0.99), Some((0.0005, 0.001)));
        assert_eq!(share_between(&look, &look, 0.99), None);
        let status = "Active connections: 2 \nserver accepts handled requests\n 16 16 31 \nReading: 0 Writing: 1 Waiting: 1 \n";
        assert_eq!(from_stub_status(status), Some(31));
        assert_eq!(from_stub_status("<html>"), None);
    }

    #[test]
    fn a_contradiction_is_said_and_what_agrees_is_not_one() {
        assert_eq!(
            count_words("onehop", 100, 100, 16),
            "onehop counted 100 requests, the load 100 answers: they agree"
        );
        assert!(
            count_words("onehop", 116, 100, 16)
                .ends_with("(16 were under way when the load ended): they agree")
        );
        for (theirs, ours) in [(118, 100), (98, 100), (0, 5)] {
            let words = count_words("onehop", theirs, ours, 16);
            assert!(words.starts_with("CONTRADICTION"), "{words}");
        }
        let quick = latency_words("onehop", (0.0005, 0.001), Duration::from_micros(700));
        assert!(quick.ends_with("no contradiction"), "{quick}");
        assert!(
            latency_words("onehop", (0.0, 0.005), Duration::from_micros(700))
                .contains("p99 is at most 5 ms,")
        );
        let slow = latency_words("onehop", (0.001, f64::INFINITY), Duration::from_micros(700));
        assert_eq!(
            slow,
            "CONTRADICTION: onehop says that its p99 is more than 1 ms, the load saw 0.7 ms: a client cannot be \
             quicker than the server"
        );
    }
}
