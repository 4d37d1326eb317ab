//! `onehop status`: what a running onehop is doing, as a page or as JSON.

use std::time::Duration;

use serde_json::Value;

use super::certs;
use super::control::{ask, ask_within};
use crate::arguments::Status;
use crate::control_client::{list, number, text};
use crate::failure::Failure;
use crate::table::Column::{Left, Right};
use crate::table::table;
use crate::units::{bytes, counted, duration, latency};

/// How long a server may take to say that it is well: it answers its control socket within milliseconds, and whoever
/// asks for its health gives up within seconds.
const HEALTH_DEADLINE: Duration = Duration::from_secs(3);

pub(crate) fn status(arguments: &Status) -> Result<(), Failure> {
    if arguments.healthy {
        return healthy(arguments);
    }
    let response = ask(&arguments.target, "GET", "/status")?;
    if arguments.json {
        super::standard_output::print(&format!("{}\n", response.body));
    } else {
        super::standard_output::print(&page(&response.body));
    }
    Ok(())
}

/// Whether it answers, and each of its applications has a worker that serves.
fn healthy(arguments: &Status) -> Result<(), Failure> {
    let response = ask_within(HEALTH_DEADLINE, &arguments.target, "GET", "/status")?;
    match unwell(&response.body) {
        Some(why) => Err(Failure::failed(why)),
        None => {
            super::standard_output::print("healthy\n");
            Ok(())
        }
    }
}

/// The first application that cannot answer, and why.
fn unwell(status: &Value) -> Option<String> {
    let app = list(status, "apps").iter().find(|app| text(app, "state") != "serving")?;
    let reason = app.get("reason").and_then(Value::as_str).and_then(|reason| reason.lines().next());
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    Some(format!("application {} is {}{reason}", text(app, "app"), text(app, "state")))
}

/// The page. Fields that an older or newer server does not send are shown as nothing.
fn page(status: &Value) -> String {
    let mut page = format!(
        "onehop {}, process {}, up {}, {}\n",
        text(status, "version"),
        number(status, "pid"),
        duration(Duration::from_secs(number(status, "uptime_seconds"))),
        counted(number(status, "threads"), "thread"),
    );
    let listening: Vec<&str> = list(status, "listening").iter().filter_map(Value::as_str).collect();
    page.push_str(&format!("listens    {}\n", listening.join(", ")));
    if let Some(admin) = status.get("admin").and_then(Value::as_str) {
        page.push_str(&format!("metrics    http://{admin}/metrics\n"));
    }
    page.push_str(&format!(
        "answered   {}, {} open, {}\n",
        counted(number(status, "requests"), "request"),
        counted(number(status, "open_connections"), "connection"),
        counted(number(status, "reloads"), "reload"),
    ));
    page.push_str(&certificates(status));
    page.push_str(&sites(list(status, "sites")));
    page.push_str(&apps(list(status, "apps")));
    page.push_str(&proxies(list(status, "proxies")));
    page.push_str(&limits(list(status, "limits")));
    page.push_str(&rate_limits(list(status, "rate_limits")));
    let stores = list(status, "stores").iter().map(|store| {
        vec![
            text(store, "root").to_owned(),
            number(store, "files").to_string(),
            bytes(number(store, "bytes")),
            bytes(number(store, "stored_bytes")),
            bytes(number(store, "compressed_bytes")),
            number(store, "on_disk").to_string(),
        ]
    });
    let columns = [
        Left("ROOT"),
        Right("FILES"),
        Right("SIZE"),
        Right("IN MEMORY"),
        Right("COMPRESSED"),
        Right("ON DISK"),
    ];
    page.push_str(&table(&columns, &stores.collect::<Vec<_>>()));
    let certificates = status.get("certificates").unwrap_or(&Value::Null);
    page.push_str(&certs::problems(list(certificates, "certificates")));
    page
}

/// How many certificates there are; `onehop certs` shows them.
fn certificates(status: &Value) -> String {
    let certificates = status.get("certificates").unwrap_or(&Value::Null);
    if number(certificates, "total") == 0 {
        return String::new();
    }
    let more = if number(certificates, "failing") == 0 { "" } else { ": see below, and `onehop certs`" };
    format!("certified  {}{more}\n", certs::headline(certificates))
}

/// Sites, and what their percentiles leave out.
fn sites(sites: &[Value]) -> String {
    let milliseconds = |site: &Value, field: &str| site.get(field).and_then(Value::as_f64).map(latency);
    let rows = sites.iter().map(|site| {
        let percentile = |field| milliseconds(site, field).unwrap_or_default();
        let cold_starts = milliseconds(site, "slowest_cold_start_ms")
            .map(|slowest| format!("{}, up to {slowest}", number(site, "cold_starts")));
        let streams = number(site, "streams");
        let open = number(site, "streams_open");
        vec![
            text(site, "site").to_owned(),
            number(site, "requests").to_string(),
            number(site, "errors").to_string(),
            percentile("p50_ms"),
            percentile("p99_ms"),
            cold_starts.unwrap_or_default(),
            if streams == 0 { String::new() } else { format!("{streams}, {open} open") },
        ]
    });
    let columns = [
        Left("SITE"),
        Right("REQUESTS"),
        Right("ERRORS"),
        Right("P50"),
        Right("P99"),
        Left("COLD STARTS"),
        Left("STREAMS"),
    ];
    table(&columns, &rows.collect::<Vec<_>>())
}

/// Applications as a whole, and below them why some have no workers; `onehop workers` shows their processes.
fn apps(apps: &[Value]) -> String {
    let rows = apps.iter().map(|app| {
        let workers = list(app, "workers");
        let sum = |field: &str| workers.iter().map(|worker| number(worker, field)).sum::<u64>();
        vec![
            text(app, "app").to_owned(),
            text(app, "state").to_owned(),
            format!("{}/{}", serving(app), number(app, "wanted")),
            sum("in_flight").to_string(),
            number(app, "queued").to_string(),
            number(app, "failures").to_string(),
            bytes(sum("resident_bytes")),
        ]
    });
    let columns = [
        Left("APP"),
        Left("STATE"),
        Right("WORKERS"),
        Right("IN FLIGHT"),
        Right("WAITING"),
        Right("FAILURES"),
        Right("MEMORY"),
    ];
    let mut page = table(&columns, &rows.collect::<Vec<_>>());
    for app in apps {
        let reason = reason(app);
        if !reason.is_empty() {
            page.push_str(&format!("{} is {}:\n{reason}", text(app, "app"), text(app, "state")));
        }
    }
    page
}

/// Each `reverse_proxy` with its upstreams, and below them why some get no requests.
fn proxies(proxies: &[Value]) -> String {
    let upstreams = |proxy| list(proxy, "upstreams").iter().enumerate();
    let each = || proxies.iter().flat_map(|proxy| upstreams(proxy).map(move |(at, one)| (proxy, at, one)));
    let rows = each().map(|(proxy, at, upstream)| {
        // What holds for all of them stands in the first line.
        let first = |field| if at == 0 { text(proxy, field).to_owned() } else { String::new() };
        // One that requests fill in may have many addresses.
        let label = match number(upstream, "addresses") {
            1 => text(upstream, "upstream").to_owned(),
            addresses => format!("{} ({})", text(upstream, "upstream"), counted(addresses, "place")),
        };
        let connections = upstream.get("connections").unwrap_or(&Value::Null);
        let latency = upstream.get("latency_ms").and_then(Value::as_f64);
        vec![
            first("proxy"),
            first("policy"),
            label,
            text(upstream, "state").to_owned(),
            number(upstream, "in_flight").to_string(),
            number(connections, "open").to_string(),
            number(connections, "idle").to_string(),
            number(upstream, "failures").to_string(),
            number(upstream, "retries").to_string(),
            latency.map_or_else(String::new, |milliseconds| format!("{milliseconds:.1} ms")),
        ]
    });
    let columns = [
        Left("PROXY"),
        Left("POLICY"),
        Left("UPSTREAM"),
        Left("STATE"),
        Right("IN FLIGHT"),
        Right("OPEN"),
        Right("IDLE"),
        Right("FAILURES"),
        Right("RETRIES"),
        Right("LATENCY"),
    ];
    let mut page = table(&columns, &rows.collect::<Vec<_>>());
    for (_, _, upstream) in each() {
        if let Some(reason) = upstream.get("reason").and_then(Value::as_str) {
            let since = upstream.get("down_seconds").and_then(Value::as_u64).map(Duration::from_secs);
            let since = since.map_or_else(String::new, |since| format!(" for {}", duration(since)));
            let state = text(upstream, "state");
            page.push_str(&format!("{} is {state}{since}: {reason}\n", text(upstream, "upstream")));
        }
    }
    page
}

/// Each `limit`, and why those had to go that were not let in.
fn limits(limits: &[Value]) -> String {
    let refused = |limit: &Value| -> Vec<String> {
        let causes = limit.get("shed").and_then(Value::as_object).into_iter().flatten();
        let counts = causes.filter_map(|(cause, count)| Some((cause, count.as_u64()?)));
        counts.map(|(cause, count)| format!("{count} {cause}")).collect()
    };
    let rows = limits.iter().map(|limit| {
        let bound = limit.get("bound").and_then(Value::as_u64);
        let is_adaptive = limit.get("is_adaptive").and_then(Value::as_bool).unwrap_or_default();
        vec![
            text(limit, "limit").to_owned(),
            bound.map_or_else(|| "-".to_owned(), |bound| bound.to_string()),
            if is_adaptive { "adaptive" } else { "" }.to_owned(),
            number(limit, "in_flight").to_string(),
            number(limit, "queued").to_string(),
            number(limit, "let_in").to_string(),
            refused(limit).join(", "),
        ]
    });
    let columns = [
        Left("LIMIT"),
        Right("BOUND"),
        Left(""),
        Right("IN FLIGHT"),
        Right("WAITING"),
        Right("LET IN"),
        Left("REFUSED"),
    ];
    table(&columns, &rows.collect::<Vec<_>>())
}

/// Each `rate_limit`.
fn rate_limits(zones: &[Value]) -> String {
    let count = |zone, field| number(zone, field).to_string();
    let rows = zones.iter().map(|zone| {
        vec![
            text(zone, "zone").to_owned(),
            count(zone, "keys"),
            count(zone, "admitted"),
            count(zone, "rejected"),
        ]
    });
    let columns = [Left("RATE LIMIT"), Right("KEYS"), Right("LET IN"), Right("REFUSED")];
    table(&columns, &rows.collect::<Vec<_>>())
}

/// Workers of an application that requests are handed to: not those that start, end or stand still.
pub(super) fn serving(app: &Value) -> usize {
    list(app, "workers").iter().filter(|worker| text(worker, "state") == "serving").count()
}

/// Why it has no workers, in lines of their own; empty where nothing is wrong.
pub(super) fn reason(app: &Value) -> String {
    let reason = app.get("reason").and_then(Value::as_str).unwrap_or_default();
    reason.trim_end().lines().map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_what_matters_in_columns() {
        let status = serde_json::json!({
            "version": "0.1.0", "pid": 4711, "uptime_seconds": 11_520, "threads": 2,
            "listening": ["http://127.0.0.1:8080", "unix//run/site.sock"],
            "admin": "127.0.0.1:2020", "reloads": 1, "open_connections": 12, "requests": 12_345,
            "sites": [
                {"site": "http://localhost:8080", "requests": 12_000, "errors": 3, "rejected": 1, "p50_ms": 0.415,
                 "p99_ms": 11.5, "cold_starts": 2, "slowest_cold_start_ms": 1_150.0, "streams": 14,
                 "streams_open": 2},
                {"site": "http://localhost:9090", "requests": 345, "errors": 0, "rejected": 0, "p50_ms": null,
                 "p99_ms": null, "cold_starts": 0, "slowest_cold_start_ms": null, "streams": 0, "streams_open": 0},
            ],
            "apps": [{
                "app": "api", "state": "serving", "reason": null, "wanted": 2, "queued": 0, "failures": 1,
                "workers": [
                    {"pid": 2, "state": "starting", "in_flight": 0, "requests": 0, "age_seconds": 0,
                     "resident_bytes": 0, "lag_ms": 0.0},
                    {"pid": 1, "state": "serving", "in_flight": 3, "requests": 7, "age_seconds": 9,
                     "resident_bytes": 50_123_456, "lag_ms": 0.3},
                ],
            }, {
                "app": "next", "state": "failing", "reason": "exited with code 1\nError: no build\n", "wanted": 1,
                "queued": 12, "failures": 7, "workers": [],
            }],
            "proxies": [{
                "proxy": "10.0.0.1:80 10.0.0.2:80 {header.X-Shard}:80", "policy": "least_conn",
                "upstreams": [
                    {"upstream": "10.0.0.1:80", "state": "up", "reason": null, "down_seconds": null, "addresses": 1,
                     "in_flight": 12, "failures": 1, "retries": 1, "latency_ms": 8.25,
                     "connections": {"open": 14, "idle": 2}},
                    {"upstream": "10.0.0.2:80", "state": "down", "reason": "it answered 503 instead of 2xx",
                     "down_seconds": 95, "addresses": 1, "in_flight": 0, "failures": 7, "retries": 3,
                     "latency_ms": null, "connections": {"open": 0, "idle": 0}},
                    {"upstream": "{header.X-Shard}:80", "state": "up", "reason": null, "down_seconds": null,
                     "addresses": 3, "in_flight": 0, "failures": 0, "retries": 0, "latency_ms": 0.9,
                     "connections": {"open": 3, "idle": 3}},
                ],
            }],
            "limits": [
                {"limit": "http://localhost:8080 /checkout/*", "bound": 64, "is_adaptive": false, "in_flight": 64,
                 "queued": 12, "let_in": 90_210, "shed": {"queue_full": 31, "wait": 2}},
                {"limit": "app api", "bound": 17, "is_adaptive": true, "in_flight": 3, "queued": 0, "let_in": 7,
                 "shed": {}},
                {"limit": "server", "bound": null, "is_adaptive": false, "in_flight": 67, "queued": 0,
                 "let_in": 90_217, "shed": {"lag": 4}},
            ],
            "rate_limits": [{"zone": "login", "admitted": 812, "rejected": 14, "keys": 96, "evicted": 0}],
            "stores": [{
                "root": "/srv/app/dist", "files": 204, "bytes": 1_258_291, "stored_bytes": 1_200_000,
                "compressed_bytes": 402_000, "on_disk": 1,
            }],
            "certificates": {
                "total": 3, "failing": 1,
                "certificates": [{
                    "names": ["api.example.com"], "state": "failing", "reason": "nobody answers: start it",
                    "renews_in_seconds": 55, "failed_seconds_ago": 5,
                }],
            },
        });
        insta::assert_snapshot!(page(&status));
    }
}
