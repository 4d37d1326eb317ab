//! Samples: what was counted between two readings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onehop_history::{AppFigures, Figures, ProcessFigures, Sample};
use onehop_metrics::histogram::Snapshot;
use onehop_metrics::site::{HandlerTotals, SiteCounters};
use onehop_supervisor::AppStatus;

use super::Reading;
use super::process;

/// What was counted at the last reading.
pub(super) struct Meter {
    at: Instant,
    sites: BTreeMap<Arc<str>, Counted>,
    cpu_micros: u64,
    /// Of each worker by its process id; a worker's successor has another one.
    workers_cpu_micros: BTreeMap<u32, u64>,
}

/// What a site has counted since the start.
#[derive(Default)]
struct Counted {
    figures: Figures,
    cold_starts: Snapshot,
}

impl Meter {
    /// Counts from the start of the process on, which was now.
    pub(super) fn new(now: Instant) -> Self {
        Self { at: now, sites: BTreeMap::new(), cpu_micros: 0, workers_cpu_micros: BTreeMap::new() }
    }

    /// What was counted since the last reading. `at` is left to the caller.
    pub(super) fn sample(&mut self, reading: Reading, now: Instant) -> Sample {
        let covered = now.saturating_duration_since(std::mem::replace(&mut self.at, now));
        let cpu_micros = process::cpu_micros("self");
        let process = ProcessFigures {
            cpu_micros: cpu_micros.saturating_sub(std::mem::replace(&mut self.cpu_micros, cpu_micros)),
            resident_bytes: process::resident_bytes("self"),
            connections: reading.connections,
        };
        let mut sites = BTreeMap::new();
        for (label, counters) in reading.sites {
            let counted = Counted::of(&counters);
            let before = self.sites.entry(Arc::clone(&label)).or_default();
            let figures = counted.since(before);
            *before = counted;
            if !figures.is_empty() {
                sites.insert(label, figures);
            }
        }
        let apps = self.apps(&reading.apps);
        // A millisecond at least, so that nothing is counted in no time.
        let covered_ms = u64::try_from(covered.as_millis()).unwrap_or(u64::MAX).max(1);
        Sample { at: 0, covered_ms, process, sites, apps }
    }

    fn apps(&mut self, apps: &[AppStatus]) -> BTreeMap<Arc<str>, AppFigures> {
        let before = std::mem::take(&mut self.workers_cpu_micros);
        let figures = apps.iter().map(|app| {
            let mut figures = AppFigures { queued: app.queued as u64, ..AppFigures::default() };
            for worker in &app.workers {
                let name = worker.pid.to_string();
                let cpu_micros = process::cpu_micros(&name);
                let known = before.get(&worker.pid).copied().unwrap_or_default();
                self.workers_cpu_micros.insert(worker.pid, cpu_micros);
                figures.cpu_micros += cpu_micros.saturating_sub(known);
                figures.resident_bytes += process::resident_bytes(&name);
                figures.lag_micros = figures.lag_micros.max((worker.lag_ms * 1_000.0) as u64);
                figures.in_flight += worker.in_flight as u64;
            }
            (Arc::from(app.app.as_str()), figures)
        });
        figures.collect()
    }
}

impl Counted {
    fn of(cores: &[Arc<SiteCounters>]) -> Self {
        let totals = HandlerTotals::of(cores);
        Self {
            figures: Figures {
                requests: totals.requests(),
                errors: totals.errors(),
                rejected: totals.rejected,
                bytes: totals.sent_bytes,
                streams: totals.streams(),
                cold_starts: totals.cold_starts.count(),
                slowest_cold_start_nanos: 0,
                durations: totals.durations,
            },
            cold_starts: totals.cold_starts,
        }
    }

    fn since(&self, before: &Self) -> Figures {
        let (now, then) = (&self.figures, &before.figures);
        let slowest = self.cold_starts.since(&before.cold_starts).quantile(1.0).unwrap_or(Duration::ZERO);
        Figures {
            // Cores write while others are read: a sum is never less than it was, but for what they have in hand.
            requests: now.requests.saturating_sub(then.requests),
            errors: now.errors.saturating_sub(then.errors),
            rejected: now.rejected.saturating_sub(then.rejected),
            bytes: now.bytes.saturating_sub(then.bytes),
            streams: now.streams.saturating_sub(then.streams),
            cold_starts: now.cold_starts.saturating_sub(then.cold_starts),
            slowest_cold_start_nanos: u64::try_from(slowest.as_nanos()).unwrap_or(u64::MAX),
            durations: now.durations.since(&then.durations),
        }
    }
}

#[cfg(test)]
mod tests {
    use onehop_http1::Method;
    use onehop_metrics::site::Delivery;
    use onehop_metrics::{Handler, Registry};

    use super::*;

    fn reading(registry: &Registry) -> Reading {
        Reading { sites: registry.sites(), connections: 2, apps: Vec::new() }
    }

    #[test]
    fn a_sample_has_what_was_counted_since_the_one_before() {
        let (registry, begun) = (Registry::new(2), Instant::now());
        let mut meter = Meter::new(begun);
        let record = |core: usize, status, delivery| {
            registry.site("a")[core].record(
                Handler::App.into(),
                Method::Get,
                status,
                10,
                Duration::from_millis(20),
                delivery,
            );
        };
        record(0, 200, Delivery::Whole);
        record(1, 500, Delivery::Whole);
        let first = meter.sample(reading(&registry), begun + Duration::from_secs(10));
        assert_eq!((first.covered_ms, first.process.connections, first.sites.len()), (10_000, 2, 1));
        assert_eq!((first.sites["a"].requests, first.sites["a"].errors, first.sites["a"].bytes), (2, 1, 20));
        assert!(first.process.resident_bytes > 0);
        record(1, 200, Delivery::Cold);
        let second = meter.sample(reading(&registry), begun + Duration::from_secs(20));
        let figures = &second.sites["a"];
        assert_eq!((figures.requests, figures.cold_starts, figures.durations.count()), (1, 1, 0));
        assert!((19_000_000..21_000_000).contains(&figures.slowest_cold_start_nanos));
        assert!(meter.sample(reading(&registry), begun + Duration::from_secs(30)).sites.is_empty());
    }
}
