//! What was seen, in figures: of each load, of each recovery, and the medians over the rounds.
//!
//! Owns what counts as what. An answer is good where it is a 200 within the client's patience; a refusal is a 503 or a 429;
//! everything else (another status, a connection that ended, an answer that was not waited for) is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use onehop_load::latency::Latencies;
use serde_json::{Value, json};

use super::super::load::in_words;
use super::offer::Offered;
use super::steps::{Application, Step};

/// What a limiter answers whom it does not let in.
const REFUSALS: [u16; 2] = [503, 429];

/// Goodput by the capacity: more is an error of one of them.
const GOODPUT_MAX: f64 = 1.1;

/// One target under one load in one round.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) of: Of,
    pub(super) step: Step,
    pub(super) figures: Figures,
}

/// Who was measured when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Of {
    pub(super) application: Application,
    pub(super) target: &'static str,
    pub(super) round: u64,
}

/// What one load came to. Latencies count from the moment at which a request was meant to begin.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Figures {
    /// Requests per second that were offered.
    pub(super) offered: f64,
    /// Good answers per second.
    pub(super) goodput: f64,
    /// Of the good.
    pub(super) p50_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
    /// Shares of all requests.
    pub(super) refused: f64,
    pub(super) lost: f64,
    pub(super) refusal_p50_ms: Option<f64>,
    pub(super) refusal_p99_ms: Option<f64>,
    /// Share of the requests for what matters most that were answered well, and their p99.
    pub(super) high_served: Option<f64>,
    pub(super) high_p99_ms: Option<f64>,
    /// Of the static file beside it.
    pub(super) file_p50_ms: Option<f64>,
    pub(super) file_p99_ms: Option<f64>,
    pub(super) file_missed: u64,
    /// All whole answers by status.
    pub(super) statuses: BTreeMap<u16, u64>,
    /// What was lost and has no status.
    pub(super) faults: String,
    /// Why the figures are the load's and not the server's, where that is so.
    pub(super) load_limit: Option<String>,
}

/// The file's p99 where nothing else is asked.
#[derive(Debug, Clone)]
pub(super) struct Idle {
    pub(super) of: Of,
    pub(super) file_p99_ms: f64,
}

/// From the impossible load back to the quiet one.
#[derive(Debug, Clone)]
pub(super) struct Recovery {
    pub(super) of: Of,
    /// Until all was normal; `None` where that was not seen.
    pub(super) took: Option<Duration>,
    /// What a slice's p99 must not exceed to be normal.
    pub(super) slow_ms: f64,
    /// Seconds from the change of the load, p99 of the good in that tenth of a second, refused and lost in it.
    pub(super) series: Vec<(f64, Option<f64>, u64)>,
}

/// All that was measured.
#[derive(Debug, Clone, Default)]
pub(super) struct Results {
    /// Answers per second that each application can give.
    pub(super) capacities: Vec<(Application, f64)>,
    pub(super) rows: Vec<Row>,
    pub(super) idles: Vec<Idle>,
    pub(super) recoveries: Vec<Recovery>,
}

impl Figures {
    /// Of a load at this rate.
    pub(super) fn of(rate: f64, seen: &Offered) -> Figures {
        let total = &seen.run.total;
        let requests = total.requests().max(1) as f64;
        let refused: u64 = REFUSALS.iter().filter_map(|status| total.statuses.get(status)).sum();
        let lost = total.requests().saturating_sub(total.good + refused);
        let high = seen.run.by_request.get(1).filter(|tally| tally.requests() > 0);
        Figures {
            offered: rate,
            goodput: seen.run.rate(),
            p50_ms: at(&total.latency, 0.5),
            p99_ms: at(&total.latency, 0.99),
            refused: refused as f64 / requests,
            lost: lost as f64 / requests,
            refusal_p50_ms: at(&total.unexpected_latency, 0.5),
            refusal_p99_ms: at(&total.unexpected_latency, 0.99),
            high_served: high.map(|tally| tally.good as f64 / tally.requests() as f64),
            high_p99_ms: high.and_then(|tally| at(&tally.latency, 0.99)),
            file_p50_ms: at(&seen.file.total.latency, 0.5),
            file_p99_ms: at(&seen.file.total.latency, 0.99),
            file_missed: seen.file.total.requests().saturating_sub(seen.file.total.good),
            statuses: total.statuses.clone(),
            faults: if total.failures.sum() == 0 { String::new() } else { format!("{:?}", total.failures) },
            load_limit: seen.run.generator.bottleneck.map(in_words),
        }
    }
}

impl Results {
    /// The median over the rounds of a figure of one target under one load.
    pub(super) fn middle(
        &self,
        application: Application,
        target: &str,
        step: &str,
        figure: fn(&Figures) -> Option<f64>,
    ) -> Option<f64> {
        let fits = |row: &&Row| {
            row.of.application == application && row.of.target == target && row.step.name == step
        };
        middle_of(self.rows.iter().filter(fits).filter_map(|row| figure(&row.figures)))
    }

    /// The same of the file where nothing else was asked.
    pub(super) fn middle_idle(&self, application: Application, target: &str) -> Option<f64> {
        let fits = |idle: &&Idle| idle.of.application == application && idle.of.target == target;
        middle_of(self.idles.iter().filter(fits).map(|idle| idle.file_p99_ms))
    }

    /// What one application can answer per second.
    pub(super) fn capacity(&self, application: Application) -> Option<f64> {
        self.capacities.iter().find(|(known, _)| *known == application).map(|(_, rate)| *rate)
    }

    /// The capacity and the highest goodput, where that is more than what can be: then C was measured while something else
    /// ran, and no load was what its name says.
    pub(super) fn doubtful_capacity(&self, application: Application) -> Option<(f64, f64)> {
        let rows = self.rows.iter().filter(|row| row.of.application == application);
        let most = rows.map(|row| row.figures.goodput).fold(0.0, f64::max);
        self.capacity(application)
            .filter(|capacity| most > capacity * GOODPUT_MAX)
            .map(|capacity| (capacity, most))
    }

    /// The recoveries of one target.
    pub(super) fn recoveries_of(
        &self,
        application: Application,
        target: &str,
    ) -> impl Iterator<Item = &Recovery> {
        self.recoveries.iter().filter(move |one| one.of.application == application && one.of.target == target)
    }

    /// Whether this target was measured at all.
    pub(super) fn has(&self, application: Application, target: &str) -> bool {
        self.rows.iter().any(|row| row.of.application == application && row.of.target == target)
    }

    /// For the record.
    pub(super) fn json(&self) -> Value {
        let capacities: serde_json::Map<String, Value> = self
            .capacities
            .iter()
            .map(|(application, rate)| (application.name().to_owned(), json!(rounded(*rate))))
            .collect();
        json!({
            "capacities_per_second": capacities,
            "rows": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "static_file_alone": self.idles.iter().map(Idle::json).collect::<Vec<_>>(),
            "recoveries": self.recoveries.iter().map(Recovery::json).collect::<Vec<_>>(),
        })
    }
}

impl Row {
    fn json(&self) -> Value {
        let figures = &self.figures;
        let statuses = figures.statuses.iter().map(|(status, count)| (status.to_string(), *count));
        json!({
            "application": self.of.application.name(),
            "target": self.of.target,
            "round": self.of.round,
            "step": self.step.name,
            "offered_per_second": rounded(figures.offered),
            "goodput_per_second": rounded(figures.goodput),
            "accepted_p50_ms": figures.p50_ms.map(rounded),
            "accepted_p99_ms": figures.p99_ms.map(rounded),
            "refused_share": rounded(figures.refused),
            "lost_share": rounded(figures.lost),
            "refusal_p50_ms": figures.refusal_p50_ms.map(rounded),
            "refusal_p99_ms": figures.refusal_p99_ms.map(rounded),
            "high_offered_in_c": rounded(self.step.high_factor()),
            "high_served_share": figures.high_served.map(rounded),
            "high_p99_ms": figures.high_p99_ms.map(rounded),
            "file_p50_ms": figures.file_p50_ms.map(rounded),
            "file_p99_ms": figures.file_p99_ms.map(rounded),
            "file_missed": figures.file_missed,
            "statuses": statuses.collect::<BTreeMap<_, _>>(),
            "faults": (!figures.faults.is_empty()).then_some(&figures.faults),
            "load_limit": figures.load_limit,
        })
    }
}

impl Idle {
    fn json(&self) -> Value {
        json!({
            "application": self.of.application.name(),
            "target": self.of.target,
            "round": self.of.round,
            "p99_ms": rounded(self.file_p99_ms),
        })
    }
}

impl Recovery {
    fn json(&self) -> Value {
        let series = |(at, p99, bad): &(f64, Option<f64>, u64)| json!([rounded(*at), p99.map(rounded), bad]);
        json!({
            "application": self.of.application.name(),
            "target": self.of.target,
            "round": self.of.round,
            "normal_after_s": self.took.map(|took| rounded(took.as_secs_f64())),
            "normal_p99_ms_max": rounded(self.slow_ms),
            "columns": ["seconds", "accepted_p99_ms", "refused_or_lost"],
            "series": self.series.iter().map(series).collect::<Vec<_>>(),
        })
    }
}

/// Milliseconds that this share of all do not exceed.
pub(super) fn at(latencies: &Latencies, share: f64) -> Option<f64> {
    (!latencies.is_empty()).then(|| latencies.at(share).as_secs_f64() * 1e3)
}

fn middle_of(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let figures: Vec<f64> = figures.collect();
    (!figures.is_empty()).then(|| onehop_statistics::median(&figures))
}

fn rounded(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}
