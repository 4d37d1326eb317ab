//! What is asked of the history, as JSON (docs/control-api.md).

use std::sync::Arc;
use std::time::Instant;

use onehop_history::view::{self, Range};
use onehop_history::{Figures, History};
use onehop_metrics::histogram::Snapshot;
use onehop_metrics::site::{RouteTotals, SiteCounters};
use serde_json::{Value, json};

use super::Reading;
use super::meter::Meter;

/// What is to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    /// The curves of a site; of all without one.
    Curves {
        /// Its label.
        site: Option<String>,
        /// When.
        range: Range,
    },
    /// Every site.
    Sites(Range),
    /// The handlers of a site, since the start.
    Handlers(String),
    /// Every application.
    Apps(Range),
    /// What happened.
    Events(Range),
}

impl View {
    /// The answer of a history; the handlers are not its own.
    pub(in crate::control) fn of(&self, history: &mut History, now: u64) -> String {
        let text = match self {
            Self::Curves { site, range } => {
                serde_json::to_string(&view::curves(history, site.as_deref(), *range, now))
            }
            Self::Sites(range) => serde_json::to_string(&view::sites(history, *range, now)),
            Self::Apps(range) => serde_json::to_string(&view::apps(history, *range, now)),
            Self::Events(range) => Ok(json!({ "events": view::events(history, *range) }).to_string()),
            Self::Handlers(_) => Ok(String::new()),
        };
        // Only a map with keys that are no strings could fail; there is none.
        text.unwrap_or_default()
    }
}

/// What the handlers of a site's routes have counted since the start.
pub(in crate::control) fn handlers(cores: &[Arc<SiteCounters>]) -> String {
    let handlers = RouteTotals::of(cores).into_iter().map(|RouteTotals { route, handler, totals }| {
        json!({
            "route": &*route,
            "handler": handler.name(),
            "requests": totals.requests(),
            "errors": totals.errors(),
            "p50_ms": percentile(&totals.durations, 0.5),
            "p99_ms": percentile(&totals.durations, 0.99),
        })
    });
    json!({ "handlers": handlers.collect::<Vec<_>>() }).to_string()
}

/// What a listener to `/live` was shown last.
#[derive(Default)]
pub struct Live {
    meter: Option<Meter>,
}

impl Live {
    /// What happened since the last call; nothing at the first.
    pub(in crate::control) fn next(&mut self, reading: Reading, at: u64) -> Option<String> {
        let is_first = self.meter.is_none();
        let sample =
            self.meter.get_or_insert_with(|| Meter::new(Instant::now())).sample(reading, Instant::now());
        let per_second = |count: u64| count as f64 * 1_000.0 / sample.covered_ms as f64;
        let site = |(site, figures): (&Arc<str>, &Figures)| {
            json!({
                "site": &**site,
                "requests": per_second(figures.requests),
                "errors": per_second(figures.errors),
                "p50_ms": percentile(&figures.durations, 0.5),
                "p99_ms": percentile(&figures.durations, 0.99),
            })
        };
        let live = json!({
            "at": at,
            "sites": sample.sites.iter().map(site).collect::<Vec<_>>(),
            "connections": sample.process.connections,
            "cpu_percent": sample.process.cpu_micros as f64 / 10.0 / sample.covered_ms as f64,
        });
        (!is_first).then(|| live.to_string())
    }
}

fn percentile(durations: &Snapshot, share: f64) -> Value {
    durations.quantile(share).map_or(Value::Null, |time| (time.as_nanos() as f64 / 1e6).into())
}
