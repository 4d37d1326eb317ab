//! Writes the Prometheus exposition format 0.0.4.

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
