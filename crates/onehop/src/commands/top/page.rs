//! The page of `onehop top` as text: what changed between two looks at a server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::control_client::{list, number, text};
use crate::table::Column::{Left, Right};
use crate::table::table;
use crate::units::{bytes, counted, duration, latency};

/// A server at one moment.
pub(super) struct Look {
    pub(super) at: Instant,
    /// What `GET /status` said.
    pub(super) status: Value,
    /// CPU seconds that each process has used, by its number.
    pub(super) cpu: BTreeMap<u64, f64>,
}

/// What sites are sorted by; the largest first, names in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Sort {
    #[default]
    Rate,
    P99,
    Errors,
    Name,
}

impl Sort {
    const ALL: [Self; 4] = [Self::Rate, Self::P99, Self::Errors, Self::Name];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::P99 => "p99",
            Self::Errors => "errors",
            Self::Name => "name",
        }
    }

    pub(super) fn next(self) -> Self {
        self.moved(1)
    }

    pub(super) fn previous(self) -> Self {
        self.moved(Self::ALL.len() - 1)
    }

    fn moved(self, by: usize) -> Self {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

/// The page. Before the second look there are no rates.
pub(super) fn page(before: Option<&Look>, now: &Look, sort: Sort) -> String {
    let changes = Changes { before, now };
    let status = &now.status;
    let mut page = format!(
        "onehop {}, process {}, up {}, {}, CPU {}, {} open, {}\n",
        text(status, "version"),
        number(status, "pid"),
        duration(Duration::from_secs(number(status, "uptime_seconds"))),
        counted(number(status, "threads"), "thread"),
        changes.cpu(number(status, "pid")),
        counted(number(status, "open_connections"), "connection"),
        changes
            .rate(|status| number(status, "requests"))
            .map_or_else(String::new, |rate| format!("{rate:.0} requests/s")),
    );
    page.push_str(&sites(&changes, sort));
    page.push_str(&workers(&changes));
    page.push_str(&limits(&changes));
    page
}

struct Changes<'a> {
    before: Option<&'a Look>,
    now: &'a Look,
}

impl Changes<'_> {
    fn seconds(&self) -> Option<f64> {
        let seconds = self.now.at.saturating_duration_since(self.before?.at).as_secs_f64();
        (seconds > 0.0).then_some(seconds)
    }

    /// What a counter grew by each second. Nothing where the server was started again.
    fn rate(&self, counter: impl Fn(&Value) -> u64) -> Option<f64> {
        let (before, now) = (counter(&self.before?.status), counter(&self.now.status));
        Some(now.checked_sub(before)? as f64 / self.seconds()?)
    }

    /// The CPU that a process used, in percent of a core.
    fn cpu(&self, pid: u64) -> String {
        let used = || Some(self.now.cpu.get(&pid)? - self.before?.cpu.get(&pid)?);
        let share = used().zip(self.seconds()).map(|(used, seconds)| used / seconds * 100.0);
        share.map_or_else(|| "-".to_owned(), |share| format!("{share:.0} %"))
    }
}

fn sites(changes: &Changes<'_>, sort: Sort) -> String {
    struct Row<'a> {
        site: &'a Value,
        rate: f64,
        errors: f64,
    }
    let milliseconds = |site: &Value, field: &str| site.get(field).and_then(Value::as_f64);
    let mut rows: Vec<Row<'_>> = list(&changes.now.status, "sites")
        .iter()
        .map(|site| {
            let counter = |field: &'static str| {
                let label = text(site, "site");
                move |status: &Value| {
                    let site = list(status, "sites").iter().find(|site| text(site, "site") == label);
                    site.map_or(0, |site| number(site, field))
                }
            };
            let rate = |field| changes.rate(counter(field)).unwrap_or_default();
            Row { site, rate: rate("requests"), errors: rate("errors") }
        })
        .collect();
    let p99 = |row: &Row<'_>| milliseconds(row.site, "p99_ms").unwrap_or_default();
    rows.sort_by(|one, other| match sort {
        Sort::Rate => other.rate.total_cmp(&one.rate),
        Sort::P99 => p99(other).total_cmp(&p99(one)),
        Sort::Errors => other.errors.total_cmp(&one.errors),
        Sort::Name => text(one.site, "site").cmp(text(other.site, "site")),
    });
    let rows = rows.iter().map(|row| {
        let percentile = |field| milliseconds(row.site, field).map(latency).unwrap_or_default();
        vec![
            text(row.site, "site").to_owned(),
            format!("{:.0}", row.rate),
            format!("{:.0}", row.errors),
            percentile("p50_ms"),
            percentile("p99_ms"),
            number(row.site, "requests").to_string(),
            number(row.site, "errors").to_string(),
        ]
    });
    let columns = [
        Left("SITE"),
        Right("REQUESTS/S"),
        Right("ERRORS/S"),
        Right("P50"),
        Right("P99"),
        Right("REQUESTS"),
        Right("ERRORS"),
    ];
    table(&columns, &rows.collect::<Vec<_>>())
}

fn workers(changes: &Changes<'_>) -> String {
    let mut rows = Vec::new();
    for app in list(&changes.now.status, "apps") {
        let name = |at: usize| if at == 0 { text(app, "app").to_owned() } else { String::new() };
        let workers = list(app, "workers");
        if workers.is_empty() {
            let state = text(app, "state").to_owned();
            rows.push([vec![name(0), String::new(), state], vec![String::new(); 5]].concat());
        }
        for (at, worker) in workers.iter().enumerate() {
            let pid = number(worker, "pid");
            let lag = worker.get("lag_ms").and_then(Value::as_f64).unwrap_or_default();
            rows.push(vec![
                name(at),
                pid.to_string(),
                text(worker, "state").to_owned(),
                changes.cpu(pid),
                bytes(number(worker, "resident_bytes")),
                latency(lag),
                number(worker, "in_flight").to_string(),
                if at == 0 { number(app, "queued").to_string() } else { String::new() },
            ]);
        }
    }
    let columns = [
        Left("APP"),
        Right("PROCESS"),
        Left("STATE"),
        Right("CPU"),
        Right("MEMORY"),
        Right("LAG"),
        Right("IN FLIGHT"),
        Right("WAITING"),
    ];
    table(&columns, &rows)
}

fn limits(changes: &Changes<'_>) -> String {
    let shed = |limit: &Value| {
        let causes = limit.get("shed").and_then(Value::as_object).into_iter().flatten();
        causes.filter_map(|(_, count)| count.as_u64()).sum::<u64>()
    };
    let rows = list(&changes.now.status, "limits").iter().map(|limit| {
        let label = text(limit, "limit");
        let rate = |count: &dyn Fn(&Value) -> u64| {
            let of = |status: &Value| {
                list(status, "limits").iter().find(|limit| text(limit, "limit") == label).map_or(0, count)
            };
            changes.rate(of).unwrap_or_default()
        };
        let bound = limit.get("bound").and_then(Value::as_u64);
        vec![
            label.to_owned(),
            bound.map_or_else(|| "-".to_owned(), |bound| bound.to_string()),
            number(limit, "in_flight").to_string(),
            number(limit, "queued").to_string(),
            format!("{:.0}", rate(&|limit| number(limit, "let_in"))),
            format!("{:.0}", rate(&shed)),
        ]
    });
    let columns = [
        Left("LIMIT"),
        Right("BOUND"),
        Right("IN FLIGHT"),
        Right("WAITING"),
        Right("LET IN/S"),
        Right("REFUSED/S"),
    ];
    table(&columns, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn status(requests: u64, errors: u64, shed: u64) -> Value {
        serde_json::json!({
            "version": "0.1.0", "pid": 4711, "uptime_seconds": 11_520, "threads": 2, "open_connections": 12,
            "requests": requests + 40,
            "sites": [
                {"site": "http://localhost:9090", "requests": 40, "errors": 0, "p50_ms": null, "p99_ms": null},
                {"site": "http://localhost:8080", "requests": requests, "errors": errors, "p50_ms": 0.415, "p99_ms": 11.5},
            ],
            "apps": [
                {"app": "api", "state": "serving", "queued": 3, "workers": [
                    {"pid": 4712, "state": "serving", "in_flight": 3, "resident_bytes": 50_123_456, "lag_ms": 1.2},
                    {"pid": 4713, "state": "serving", "in_flight": 2, "resident_bytes": 49_123_456, "lag_ms": 0.3},
                ]},
                {"app": "jobs", "state": "failing", "queued": 0, "workers": []},
            ],
            "limits": [{"limit": "app api", "bound": 17, "in_flight": 5, "queued": 3, "let_in": requests, "shed": {"wait": shed}}],
        })
    }

    pub(in crate::commands::top) fn looks() -> (Look, Look) {
        let at = Instant::now();
        let before =
            Look { at, status: status(1_000, 1, 0), cpu: BTreeMap::from([(4711, 10.0), (4712, 5.0)]) };
        let now = Look {
            at: at + Duration::from_secs(2),
            status: status(3_000, 5, 8),
            cpu: BTreeMap::from([(4711, 10.5), (4712, 6.9), (4713, 1.0)]),
        };
        (before, now)
    }

    #[test]
    fn a_server_that_was_started_again_has_no_rates_until_the_next_look() {
        let (mut before, now) = looks();
        before.status = status(1_000_000, 0, 0);
        let page = page(Some(&before), &now, Sort::Name);
        assert!(!page.contains("requests/s"), "{page}");
    }
}
