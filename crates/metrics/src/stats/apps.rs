//! Applications and their workers.

use crate::families::Kind::{Counter, Gauge};
use crate::families::{Families, Series, Value, count};

const STATES: [&str; 4] = ["starting", "serving", "draining", "stuck"];

/// An application.
#[derive(Debug, Default)]
pub struct AppStats {
    /// Its name.
    pub app: String,
    /// Workers that ended without being told to, since the start.
    pub failures: u64,
    /// Requests that wait for a worker.
    pub queued: u64,
    /// Each process.
    pub workers: Vec<WorkerStats>,
}

/// A process of an application.
#[derive(Debug)]
pub struct WorkerStats {
    /// `starting`, `serving`, `draining` or `stuck`.
    pub state: &'static str,
    /// Requests in flight.
    pub in_flight: u64,
    /// Longest delay of its event loop, in milliseconds, as it last reported.
    pub lag_ms: f64,
    /// Resident bytes, as it last reported.
    pub resident_bytes: u64,
}

const SERIES: [Series<AppStats>; 5] = [
    Series {
        name: "restarts_total",
        kind: Counter,
        help: "Workers that ended without being told to.",
        value: |app| count(app.failures),
    },
    Series {
        name: "queue_length",
        kind: Gauge,
        help: "Requests that wait for a worker.",
        value: |app| count(app.queued),
    },
    Series {
        name: "in_flight",
        kind: Gauge,
        help: "Requests that workers have.",
        value: |app| count(app.workers.iter().map(|worker| worker.in_flight).sum()),
    },
    Series {
        name: "worker_lag_seconds",
        kind: Gauge,
        help: "Longest delay of a worker's event loop, as last said.",
        value: |app| {
            Some(Value::Milliseconds(app.workers.iter().map(|worker| worker.lag_ms).fold(0.0, f64::max)))
        },
    },
    Series {
        name: "resident_bytes",
        kind: Gauge,
        help: "Resident bytes of the workers, as last said.",
        value: |app| count(app.workers.iter().map(|worker| worker.resident_bytes).sum()),
    },
];

pub(crate) fn write(apps: &[AppStats], out: &mut Families) {
    if apps.is_empty() {
        return;
    }
    let family = out.family("onehop_app_workers", Gauge, "Workers of an application, by state.");
    for app in apps {
        for state in STATES {
            let workers = app.workers.iter().filter(|worker| worker.state == state).count();
            family.sample(&[("app", &app.app), ("state", state)], workers);
        }
    }
    out.table("onehop_app_", "app", apps.iter().map(|app| (&*app.app, app)), &SERIES);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::{self, TextFormat};

    #[test]
    fn an_application_is_the_sum_of_its_workers_and_the_worst_of_their_lags() {
        let worker = |state, lag_ms| WorkerStats { state, in_flight: 2, lag_ms, resident_bytes: 100 };
        let workers = vec![worker("serving", 1.5), worker("serving", 20.0), worker("draining", 0.0)];
        let mut out = Families::default();
        write(&[AppStats { app: "api".to_owned(), failures: 3, queued: 1, workers }], &mut out);
        let text = exposition::text(&out, TextFormat::Prometheus);
        for line in [
            "onehop_app_workers{app=\"api\",state=\"serving\"} 2",
            "onehop_app_workers{app=\"api\",state=\"stuck\"} 0",
            "onehop_app_restarts_total{app=\"api\"} 3",
            "onehop_app_in_flight{app=\"api\"} 6",
            "onehop_app_worker_lag_seconds{app=\"api\"} 0.020000",
            "onehop_app_resident_bytes{app=\"api\"} 300",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
