//! What a row of searches comes to: figures, a table, JSON, and whether the bounds are met.
//!
//! A row with errors keeps its figures of what went well, with the errors beside them; it never meets a bound.

use std::time::Duration;

use onehop_testkit::distance::{Exchange, Lateness};
use serde_json::{Value, json};

use super::page::Section;
use super::plan::{Case, Target, Transport};
use super::searches::{Row, Search};

/// Where more than one packet of so many was late, the rows are doubtful: the last one of a burst waits for those
/// before it, on any network.
const LATE_SHARE: u64 = 20;

/// The columns of a table.
const HEAD: &[&str] = &[
    "target",
    "when",
    "avg ms",
    "min ms",
    "max ms",
    "first ms",
    "trips",
    "handshakes",
    "opened",
    "used",
    "good",
    "errors",
];

/// When a row was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Right after the start.
    First,
    /// After the idle time.
    AfterIdle,
}

/// A row of one target in one case, or why there is none.
pub(super) struct Measured {
    pub(super) case: Case,
    pub(super) target: Target,
    pub(super) when: When,
    pub(super) row: Result<Row, String>,
    pub(super) lateness: Lateness,
    /// What the proxy wrote last, where something went wrong.
    pub(super) log: String,
}

impl When {
    pub(super) fn name(self) -> &'static str {
        match self {
            When::First => "first",
            When::AfterIdle => "after idle",
        }
    }
}

impl Measured {
    fn searches(&self) -> &[Search] {
        self.row.as_ref().map_or(&[], |row| &row.searches)
    }

    /// Of those that went well.
    fn milliseconds(&self) -> Vec<f64> {
        let times = self.searches().iter().filter_map(|search| search.took.as_ref().ok());
        times.map(|took| took.as_secs_f64() * 1e3).collect()
    }

    /// All that went wrong.
    pub(super) fn errors(&self) -> Vec<&str> {
        let of_rows = self.searches().iter().filter_map(|search| search.took.as_ref().err());
        self.row.as_ref().err().into_iter().chain(of_rows).map(String::as_str).collect()
    }

    fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.searches().iter().filter_map(|search| search.exchange.as_ref())
    }

    fn round_trips(&self) -> Vec<f64> {
        self.exchanges().map(|exchange| f64::from(exchange.round_trips)).collect()
    }

    /// Which connection carried each search, numbered in the order of their first use.
    fn carriers(&self) -> Vec<usize> {
        let mut ports = Vec::new();
        let number = |port: u16| {
            let known = ports.iter().position(|known| *known == port);
            known.unwrap_or_else(|| {
                ports.push(port);
                ports.len() - 1
            })
        };
        self.searches().iter().filter_map(|search| search.carried_by).map(number).collect()
    }

    /// Searches that waited for a connection over the distance to be opened.
    fn handshakes(&self) -> usize {
        self.exchanges().filter(|exchange| exchange.opens).count()
    }

    /// Whether the relay kept its promise well enough to be believed.
    fn is_doubtful(&self) -> bool {
        self.lateness.lost > 0 || self.lateness.late * LATE_SHARE > self.lateness.packets
    }

    /// The average of those that went well, in milliseconds; `None` if none did.
    pub(super) fn average_ms(&self) -> Option<f64> {
        average(&self.milliseconds())
    }

    /// The same for a table.
    pub(super) fn average(&self) -> String {
        self.average_ms().map_or("failed".to_owned(), |average| format!("{average:.0}"))
    }

    /// Its line in a table, in the order of HEAD.
    fn cells(&self) -> Vec<String> {
        let times = self.milliseconds();
        let trips = self.round_trips();
        let trips = match (least(&trips), most(&trips)) {
            (Some(least), Some(most)) if least < most => format!("{least:.0} to {most:.0}"),
            (Some(least), _) => format!("{least:.0}"),
            _ => "-".to_owned(),
        };
        let mut cells = vec![self.target.name().to_owned(), self.when.name().to_owned()];
        let figures = [average(&times), least(&times), most(&times), times.first().copied()];
        cells.extend(figures.map(|figure| figure.map_or("-".to_owned(), |figure| format!("{figure:.1}"))));
        cells.push(trips);
        let used = self.carriers().iter().max().map_or(0, |last| last + 1);
        let opened = self.row.as_ref().map_or(0, |row| row.opened);
        let counts = [self.handshakes(), opened, used, times.len(), self.errors().len()];
        cells.extend(counts.map(|count| count.to_string()));
        cells
    }

    /// For the record.
    pub(super) fn json(&self) -> Value {
        let times = self.milliseconds();
        json!({
            "case": self.case.name,
            "target": self.target.name(),
            "when": self.when.name(),
            "answer_bytes": self.case.size.bytes,
            "tls": self.case.transport != Transport::Plain,
            "http2": self.case.transport == Transport::Http2,
            "upstream_closes_idle": self.case.closes,
            "lost_per_mille": self.case.lost_per_mille(),
            "pause_ms": milliseconds(self.case.pause()),
            "successes": times.len(),
            "errors": self.errors(),
            "log": (!self.errors().is_empty()).then_some(&self.log),
            "average_ms": average(&times).map(rounded),
            "min_ms": least(&times).map(rounded),
            "max_ms": most(&times).map(rounded),
            "first_ms": times.first().copied().map(rounded),
            "median_ms": (!times.is_empty()).then(|| rounded(onehop_statistics::median(&times))),
            "all_ms": times.iter().copied().map(rounded).collect::<Vec<_>>(),
            "round_trips": self.exchanges().map(|exchange| exchange.round_trips).collect::<Vec<_>>(),
            "carried_by": self.carriers(),
            "handshakes_on_the_path": self.handshakes(),
            "connections_opened": self.row.as_ref().map_or(0, |row| row.opened),
            "relay": {
                "packets": self.lateness.packets,
                "late": self.lateness.late,
                "latest_us": u64::try_from(self.lateness.most.as_micros()).unwrap_or(u64::MAX),
                "lost": self.lateness.lost,
                "dropped": self.lateness.dropped,
                "is_doubtful": self.is_doubtful(),
            },
        })
    }
}

/// The rows of one case, and below them what is doubtful.
pub(super) fn section(rows: &[Measured]) -> Section {
    let failed = rows.iter().filter_map(|measured| {
        let errors = measured.errors();
        let error = errors.first()?;
        Some(format!("VOID ({}): {error}; its last words: {}", measured.target.name(), measured.log))
    });
    let doubtful = rows.iter().filter(|measured| measured.is_doubtful()).map(|measured| {
        let Lateness { packets, late, most, lost, .. } = measured.lateness;
        let name = measured.target.name();
        format!("DOUBTFUL ({name}): of {packets} packets {late} were over 1 ms late, {most:?} at most; {lost} lost")
    });
    Section {
        title: rows.first().map(|first| first.case.name.to_owned()).unwrap_or_default(),
        head: HEAD,
        rows: rows.iter().map(Measured::cells).collect(),
        notes: failed.chain(doubtful).collect(),
    }
}

/// A bound, whether it is met, and the figure.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) text: String,
    pub(super) is_met: bool,
}

/// The bounds of the product's targets.
pub(super) fn verdicts(rows: &[Measured]) -> Vec<Verdict> {
    rows.iter().filter(|measured| measured.target.is_bound()).flat_map(judged).collect()
}

fn judged(measured: &Measured) -> Vec<Verdict> {
    let place = format!("{}, {}, {}", measured.case.name, measured.target.name(), measured.when.name());
    let errors = measured.errors();
    if let Some(error) = errors.first() {
        let error = error.lines().next().unwrap_or_default();
        let text = format!("{place}: no error: {} ({error})", errors.len());
        return vec![Verdict { text, is_met: false }];
    }
    let mut verdicts = Vec::new();
    if fits_first_window(measured.case) {
        let most = most(&measured.round_trips()).unwrap_or(f64::INFINITY);
        let text = format!("{place}: every search within one round trip: {most:.0} at most");
        verdicts.push(Verdict { text, is_met: most <= 1.0 });
    }
    if measured.when == When::AfterIdle {
        let handshakes = measured.handshakes();
        let text = format!("{place}: no handshake on the path of a request: {handshakes}");
        verdicts.push(Verdict { text, is_met: handshakes == 0 });
    }
    verdicts
}

/// Whether the far kernel may send the whole answer before it hears anything: ten segments (RFC 6928), none of them lost.
fn fits_first_window(case: Case) -> bool {
    const FIRST_WINDOW_BYTES: usize = 14_600;
    case.size.bytes < FIRST_WINDOW_BYTES && !case.is_lossy
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn average(figures: &[f64]) -> Option<f64> {
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}

fn least(figures: &[f64]) -> Option<f64> {
    figures.iter().copied().reduce(f64::min)
}

fn most(figures: &[f64]) -> Option<f64> {
    figures.iter().copied().reduce(f64::max)
}

fn rounded(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::super::plan::CASES;
    use super::*;

    fn measured(when: When, searches: &[(Result<u64, &str>, bool)]) -> Measured {
        let search = |(took, opens): &(Result<u64, &str>, bool)| Search {
            took: took.map(Duration::from_millis).map_err(str::to_owned),
            carried_by: took.ok().map(|_| 4_000),
            exchange: took.is_ok().then_some(Exchange {
                round_trips: 1 + u32::from(*opens),
                opens: *opens,
                received: 1_200,
            }),
        };
        let row = Ok(Row { searches: searches.iter().map(search).collect(), opened: 0 });
        let lateness = Lateness { packets: 100, ..Lateness::default() };
        Measured { case: CASES[0], target: Target::Onehop, when, row, lateness, log: String::new() }
    }

    #[test]
    fn a_bound_is_met_by_the_slowest_search_and_missed_by_any_error() {
        let met = judged(&measured(When::First, &[(Ok(183), false), (Ok(187), false)]));
        let text = "1k-plain, onehop, first: every search within one round trip: 1 at most".to_owned();
        assert_eq!(met, [Verdict { text, is_met: true }]);
        let slow = judged(&measured(When::First, &[(Ok(183), false), (Ok(365), true)]));
        assert!(!slow[0].is_met, "{slow:?}");
        let failed = judged(&measured(When::AfterIdle, &[(Ok(183), false), (Err("status 502"), false)]));
        assert_eq!(failed.len(), 1);
        assert!(!failed[0].is_met && failed[0].text.ends_with("no error: 1 (status 502)"), "{failed:?}");
    }

    #[test]
    fn a_handshake_counts_after_the_idle_time() {
        let late = judged(&measured(When::AfterIdle, &[(Ok(183), true)]));
        assert!(late.iter().any(|verdict| verdict.text.ends_with("path of a request: 1") && !verdict.is_met));
        let first = judged(&measured(When::First, &[(Ok(183), true)]));
        assert!(first.iter().all(|verdict| !verdict.text.contains("handshake")), "{first:?}");
    }

    #[test]
    fn a_table_shows_errors_beside_what_went_well() {
        let row = measured(When::First, &[(Ok(184), false), (Ok(186), false), (Err("status 502"), false)]);
        let text = section(std::slice::from_ref(&row)).markdown();
        assert!(text.contains("185.0") && text.contains("VOID (onehop): status 502"), "{text}");
        assert_eq!(row.json()["average_ms"], json!(185.0));
        assert_eq!(row.json()["errors"], json!(["status 502"]));
        assert_eq!(row.json()["carried_by"], json!([0, 0]));
    }
}
