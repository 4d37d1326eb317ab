//! Writes the Prometheus exposition format 0.0.4, and OpenMetrics 1.0 from it.

use std::fmt::{self, Display, Write};

/// Text in the exposition format, as it grows.
#[derive(Default)]
pub(crate) struct Exposition {
    pub(crate) text: String,
}

/// What is shown of each thing of a kind: one metric family with one sample for each.
pub(crate) struct Series<T> {
    /// What follows the prefix in the name.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
    /// `None` where the thing has no such value.
    pub(crate) value: fn(&T) -> Option<Value>,
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

pub(crate) enum Value {
    Count(u64),
    Milliseconds(f64),
}

/// The value of a sample that is always there.
#[expect(clippy::unnecessary_wraps, reason = "the value function of a series returns an option")]
pub(crate) fn count(value: u64) -> Option<Value> {
    Some(Value::Count(value))
}

impl Exposition {
    /// Begins a metric family.
    pub(crate) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Adds a sample of the family that was begun last.
    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        for (number, (label, text)) in labels.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", escape(text));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }

    /// A family of one sample without labels.
    pub(crate) fn single(&mut self, name: &str, kind: Kind, help: &str, value: u64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// The families of a table, each with a sample for each row.
    pub(crate) fn table<'a, T: 'a>(
        &mut self,
        prefix: &str,
        label: &str,
        rows: impl Iterator<Item = (&'a str, &'a T)> + Clone,
        table: &[Series<T>],
    ) {
        for series in table {
            let name = format!("{prefix}{}", series.name);
            self.family(&name, series.kind, series.help);
            for (row, thing) in rows.clone() {
                if let Some(value) = (series.value)(thing) {
                    self.sample(&name, &[(label, row)], value);
                }
            }
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Milliseconds(milliseconds) => write!(f, "{:.6}", milliseconds / 1_000.0),
        }
    }
}

fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The same text as OpenMetrics 1.0 (prometheus.io/docs/specs/om/open_metrics_spec): a family of counters has its name without
/// `_total`, and the text has an end.
pub fn open_metrics(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + EOF.len());
    for line in text.lines() {
        let described =
            ["# HELP ", "# TYPE "].iter().find_map(|kind| Some((*kind, line.strip_prefix(kind)?)));
        match described.and_then(|(kind, rest)| Some((kind, rest.split_once(' ')?))) {
            Some((kind, (name, rest))) => {
                let family = name.strip_suffix("_total").unwrap_or(name);
                let _ = writeln!(out, "{kind}{family} {rest}");
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out.push_str(EOF);
    out
}

const EOF: &str = "# EOF\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_names_counters_without_total_and_ends() {
        let mut text = Exposition::default();
        text.single("onehop_requests_total", Kind::Counter, "Requests. _total", 5);
        text.single("onehop_connections_open", Kind::Gauge, "Open.", 1);
        assert_eq!(
            open_metrics(&text.text),
            "# HELP onehop_requests Requests. _total\n# TYPE onehop_requests counter\nonehop_requests_total 5\n\
             # HELP onehop_connections_open Open.\n# TYPE onehop_connections_open gauge\nonehop_connections_open 1\n# EOF\n"
        );
    }
}
