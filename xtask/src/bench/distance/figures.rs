//! What a row of searches comes to: figures, a table, JSON, and whether the bounds are met.
//!
//! A row with errors keeps its figures of what went well, with the errors beside them; it never meets a bound.

use std::fmt::Write as _;
use std::time::Duration;

use onehop_testkit::distance::{Exchange, Lateness};
use serde_json::{Value, json};

use super::plan::{Case, Plan, Target};
use super::searches::{Row, Search};

/// Where more than one packet of so many was late, the rows are doubtful: the last one of a burst waits for those
/// before it, on any network.
const LATE_SHARE: u64 = 20;

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
    fn name(self) -> &'static str {
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

    /// For the record.
    pub(super) fn json(&self) -> Value {
        let times = self.milliseconds();
        json!({
            "case": self.case.name,
            "target": self.target.name(),
            "when": self.when.name(),
            "answer_bytes": self.case.bytes,
            "tls": self.case.tls,
            "upstream_closes_idle": self.case.closes,
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
                "is_doubtful": self.is_doubtful(),
            },
        })
    }
}

/// The rows of one case, and below them what is doubtful.
pub(super) fn table(rows: &[Measured]) -> String {
    let mut text = String::new();
    let Some(first) = rows.first() else { return text };
    let head =
        ["avg ms", "min ms", "max ms", "first ms", "trips", "handshakes", "opened", "used", "good", "errors"];
    let _ = writeln!(text, "{}", first.case.name);
    let _ = write!(text, "  {:<18} {:<10}", "target", "when");
    for word in head {
        let _ = write!(text, " {word:>10}");
    }
    text.push('\n');
    for measured in rows {
        let times = measured.milliseconds();
        let trips = measured.round_trips();
        let trips = match (least(&trips), most(&trips)) {
            (Some(least), Some(most)) if least < most => format!("{least:.0} to {most:.0}"),
            (Some(least), _) => format!("{least:.0}"),
            _ => "-".to_owned(),
        };
        let _ = write!(text, "  {:<18} {:<10}", measured.target.name(), measured.when.name());
        for figure in [average(&times), least(&times), most(&times), times.first().copied()] {
            let _ = write!(text, " {:>10}", figure.map_or("-".to_owned(), |figure| format!("{figure:.1}")));
        }
        let opened = measured.row.as_ref().map_or(0, |row| row.opened);
        let errors = measured.errors();
        let _ = writeln!(
            text,
            " {trips:>10} {:>10} {opened:>10} {:>10} {:>10} {:>10}",
            measured.handshakes(),
            measured.carriers().iter().max().map_or(0, |last| last + 1),
            times.len(),
            errors.len()
        );
        if let Some(error) = errors.first() {
            let _ = writeln!(text, "    VOID: {error}; its last words: {}", measured.log);
        }
    }
    for measured in rows.iter().filter(|measured| measured.is_doubtful()) {
        let Lateness { packets, late, most, lost } = measured.lateness;
        let name = measured.target.name();
        let _ = writeln!(
            text,
            "  DOUBTFUL ({name}): of {packets} packets {late} were over 1 ms late, {most:?} at most; {lost} lost"
        );
    }
    text
}

/// A bound, whether it is met, and the figure.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) text: String,
    pub(super) is_met: bool,
}

/// The bounds of the product's targets.
pub(super) fn verdicts(rows: &[Measured], plan: &Plan) -> Vec<Verdict> {
    rows.iter()
        .filter(|measured| measured.target.is_bound())
        .flat_map(|measured| judged(measured, plan))
        .collect()
}

fn judged(measured: &Measured, plan: &Plan) -> Vec<Verdict> {
    let place = format!("{}, {}, {}", measured.case.name, measured.target.name(), measured.when.name());
    let errors = measured.errors();
    if let Some(error) = errors.first() {
        let error = error.lines().next().unwrap_or_default();
        let text = format!("{place}: no error: {} ({error})", errors.len());
        return vec![Verdict { text, is_met: false }];
    }
    let mut verdicts = Vec::new();
    if fits_first_window(measured.case) {
        let (bound, most) = (plan.bound(), most(&measured.milliseconds()).unwrap_or(f64::INFINITY));
        let text =
            format!("{place}: every search within {:.1} ms: {most:.1} ms at most", milliseconds(bound));
        verdicts.push(Verdict { text, is_met: most <= milliseconds(bound) });
    }
    if measured.when == When::AfterIdle {
        let handshakes = measured.handshakes();
        let text = format!("{place}: no handshake on the path of a request: {handshakes}");
        verdicts.push(Verdict { text, is_met: handshakes == 0 });
    }
    verdicts
}

/// Whether the far kernel may send the whole answer before it hears anything: ten segments (RFC 6928).
fn fits_first_window(case: Case) -> bool {
    const FIRST_WINDOW_BYTES: usize = 14_600;
    case.bytes < FIRST_WINDOW_BYTES
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

    fn plan() -> Plan {
        Plan {
            searches: 2,
            idle: Duration::ZERO,
            close_after: Duration::from_secs(5),
            one_way: Duration::from_millis(91),
            congestion: "cubic".to_owned(),
            slow_start_after_idle: true,
        }
    }

    fn measured(when: When, searches: &[(Result<u64, &str>, bool)]) -> Measured {
        let search = |(took, opens): &(Result<u64, &str>, bool)| Search {
            took: took.map(Duration::from_millis).map_err(str::to_owned),
            carried_by: took.ok().map(|_| 4_000),
            exchange: took.is_ok().then_some(Exchange { round_trips: 1, opens: *opens, received: 1_200 }),
        };
        let row = Ok(Row { searches: searches.iter().map(search).collect(), opened: 0 });
        let lateness = Lateness { packets: 100, ..Lateness::default() };
        Measured { case: CASES[0], target: Target::Onehop, when, row, lateness, log: String::new() }
    }

    #[test]
    fn a_bound_is_met_by_the_slowest_search_and_missed_by_any_error() {
        let met = judged(&measured(When::First, &[(Ok(183), false), (Ok(187), false)]), &plan());
        let text = "1k-plain, onehop, first: every search within 187.0 ms: 187.0 ms at most".to_owned();
        assert_eq!(met, [Verdict { text, is_met: true }]);
        let slow = judged(&measured(When::First, &[(Ok(183), false), (Ok(188), false)]), &plan());
        assert!(!slow[0].is_met, "{slow:?}");
        let failed =
            judged(&measured(When::AfterIdle, &[(Ok(183), false), (Err("status 502"), false)]), &plan());
        assert_eq!(failed.len(), 1);
        assert!(!failed[0].is_met && failed[0].text.ends_with("no error: 1 (status 502)"), "{failed:?}");
    }

    #[test]
    fn a_handshake_counts_after_the_idle_time() {
        let late = judged(&measured(When::AfterIdle, &[(Ok(183), true)]), &plan());
        assert_eq!(late.iter().map(|verdict| verdict.is_met).collect::<Vec<_>>(), [true, false]);
        assert!(
            judged(&measured(When::First, &[(Ok(183), true)]), &plan()).iter().all(|verdict| verdict.is_met)
        );
    }

    #[test]
    fn a_table_shows_errors_beside_what_went_well() {
        let row = measured(When::First, &[(Ok(184), false), (Ok(186), false), (Err("status 502"), false)]);
        let text = table(std::slice::from_ref(&row));
        assert!(text.contains("185.0") && text.contains("VOID: status 502"), "{text}");
        assert_eq!(row.json()["average_ms"], json!(185.0));
        assert_eq!(row.json()["errors"], json!(["status 502"]));
        assert_eq!(row.json()["carried_by"], json!([0, 0]));
    }
}
