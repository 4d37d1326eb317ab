//! Metric families as text: Prometheus' exposition format 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>), or OpenMetrics 1.0
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).

use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use crate::families::{Durations, Families, Family, Kind, Value};
use crate::site::Exemplar;

/// What the text is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextFormat {
    /// Prometheus' own format.
    #[default]
    Prometheus,
    /// A family of counters has its name without `_total`, buckets have exemplars, and the text has an end.
    OpenMetrics,
}

/// The families as text. Writing to a string cannot fail.
pub fn text(families: &Families, format: TextFormat) -> String {
    let mut out = String::new();
    for family in families.iter() {
        head(&mut out, family, format);
        for sample in &family.samples {
            let labels = &sample.labels;
            match &sample.value {
                Value::Count(count) => line(&mut out, &family.name, "", labels, count),
                Value::Milliseconds(milliseconds) => {
                    line(&mut out, &family.name, "", labels, format_args!("{:.6}", milliseconds / 1_000.0));
                }
                Value::Durations(durations) => histogram(&mut out, &family.name, labels, durations, format),
            }
        }
    }
    if format == TextFormat::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn head(out: &mut String, family: &Family, format: TextFormat) {
    let name = match format {
        TextFormat::Prometheus => &family.name,
        TextFormat::OpenMetrics => family.name.strip_suffix("_total").unwrap_or(&family.name),
    };
    let kind = match family.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
}

fn line(
    out: &mut String,
    name: &str,
    suffix: &str,
    labels: &[(&'static str, String)],
    value: impl std::fmt::Display,
) {
    let _ = write!(out, "{name}{suffix}");
    for (number, (label, text)) in labels.iter().enumerate() {
        let before = if number == 0 { '{' } else { ',' };
        let _ = write!(out, "{before}{label}=\"{}\"", escape(text));
    }
    let end = if labels.is_empty() { "" } else { "}" };
    let _ = writeln!(out, "{end} {value}");
}

fn histogram(
    out: &mut String,
    name: &str,
    labels: &[(&'static str, String)],
    durations: &Durations,
    format: TextFormat,
) {
    let bounded = durations.buckets.iter().map(|(bound, count)| (seconds(*bound), *count));
    for (number, (bound, count)) in bounded.chain([("+Inf".to_owned(), durations.count)]).enumerate() {
        let labels: Vec<_> = labels.iter().cloned().chain([("le", bound)]).collect();
        let known = durations.exemplars.iter().find(|(bucket, _)| *bucket == number);
        match known.filter(|_| format == TextFormat::OpenMetrics) {
            Some((_, exemplar)) => {
                line(out, name, "_bucket", &labels, format_args!("{count} # {}", shown(exemplar)));
            }
            None => line(out, name, "_bucket", &labels, count),
        }
    }
    line(out, name, "_sum", labels, seconds(Duration::from_nanos(durations.nanos)));
    line(out, name, "_count", labels, durations.count);
}

/// `{trace_id="…",span_id="…"} 0.012 1767225600.123`
fn shown(exemplar: &Exemplar) -> String {
    let Exemplar { trace_id, span_id, took, at } = exemplar;
    let at = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!(
        "{{trace_id=\"{trace_id:032x}\",span_id=\"{span_id:016x}\"}} {} {}.{:03}",
        seconds(*took),
        at.as_secs(),
        at.subsec_millis()
    )
}

fn seconds(time: Duration) -> String {
    let text = format!("{}.{:09}", time.as_secs(), time.subsec_nanos());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::histogram::Snapshot;

    #[test]
    fn open_metrics_names_counters_without_total_and_ends() {
        let mut families = Families::default();
        families.single("onehop_requests_total", Kind::Counter, "Requests. _total", 5);
        families.single("onehop_connections_open", Kind::Gauge, "Open.", 1);
        assert_eq!(
            text(&families, TextFormat::OpenMetrics),
            "# HELP onehop_requests Requests. _total\n# TYPE onehop_requests counter\nonehop_requests_total 5\n\
             # HELP onehop_connections_open Open.\n# TYPE onehop_connections_open gauge\nonehop_connections_open 1\n# EOF\n"
        );
    }

    #[test]
    fn a_bucket_has_its_newest_exemplar_in_open_metrics_alone() {
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(seconds * 1_000 + 7);
        let exemplar = |trace_id, micros, seconds| Exemplar {
            trace_id,
            span_id: 0xab,
            took: Duration::from_micros(micros),
            at: at(seconds),
        };
        let exemplars = [exemplar(1, 2_000, 20), exemplar(2, 2_500, 10), exemplar(3, 20_000_000, 30)];
        let counted = Snapshot::new([(0, 3)], 20_004_500_000);
        let mut families = Families::default();
        let family = families.family("onehop_request_duration_seconds", Kind::Histogram, "Requests.");
        family.sample(&[("site", "a\"b")], Durations::new(&counted, &exemplars));
        let open = text(&families, TextFormat::OpenMetrics);
        let lines: Vec<&str> = open.lines().filter(|line| line.contains(" # ")).collect();
        assert_eq!(
            lines,
            [
                "onehop_request_duration_seconds_bucket{site=\"a\\\"b\",le=\"0.0025\"} 3 # \
                 {trace_id=\"00000000000000000000000000000001\",span_id=\"00000000000000ab\"} 0.002 20.007",
                "onehop_request_duration_seconds_bucket{site=\"a\\\"b\",le=\"+Inf\"} 3 # \
                 {trace_id=\"00000000000000000000000000000003\",span_id=\"00000000000000ab\"} 20 30.007",
            ]
        );
        assert!(!text(&families, TextFormat::Prometheus).contains(" # "));
    }
}
