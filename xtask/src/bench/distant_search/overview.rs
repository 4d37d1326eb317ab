//! The first table of the report: how long a search takes on average, for each case and target.

use super::figures::{Measured, Verdict, When};
use super::page::Section;
use super::plan::TARGETS;

/// The columns: the targets are those of [`TARGETS`], in their order.
const HEAD: &[&str] = &["case", "when", "direct", "caddy", "onehop", "onehop-min4", "nginx"];

/// What the names of cases and columns mean.
const NAMES: [&str; 3] = [
    "a case is the size of the response and the way to the service: plain is clear text, tls HTTP/1.1 over TLS, h2 HTTP/2 over TLS",
    "closing: the service closes connections that were idle for 5 s; pauses: the client waits between searches; loss: 1 % of the packets",
    "onehop reads Caddy's file unchanged; onehop-min4 has `pool min 4`; nginx asks no upstream over HTTP/2",
];

/// The case in the title.
const TITLE_CASE: &str = "1k-tls";

/// A line for each case, before and after its idle time.
pub(super) fn section(rows: &[Measured], verdicts: &[Verdict]) -> Section {
    let mut lines: Vec<Vec<String>> = Vec::new();
    for measured in rows {
        let key = [measured.case.name.to_owned(), measured.when.name().to_owned()];
        let key_length = key.len();
        let line = match lines.iter().position(|line| line.starts_with(&key)) {
            Some(at) => at,
            None => {
                let blank = TARGETS.iter().map(|_| String::new());
                lines.push(key.into_iter().chain(blank).collect());
                lines.len() - 1
            }
        };
        let cells = lines.get_mut(line).into_iter().flat_map(|line| line.iter_mut().skip(key_length));
        for (cell, _) in cells.zip(TARGETS).filter(|(_, target)| **target == measured.target) {
            *cell = measured.average();
        }
    }
    let missed = verdicts.iter().filter(|verdict| !verdict.is_met);
    let missed = missed.map(|verdict| format!("MISSED: {}", verdict.text));
    let met = verdicts.iter().filter(|verdict| verdict.is_met).count();
    let bounds = format!("average search in ms; {met} of {} bounds met", verdicts.len());
    Section {
        title: headline(rows).map_or_else(|| bounds.clone(), |headline| format!("{headline}: {bounds}")),
        head: HEAD,
        rows: lines,
        notes: missed.chain(NAMES.map(str::to_owned)).collect(),
    }
}

/// How long the usual search takes in each way, the quickest first.
fn headline(rows: &[Measured]) -> Option<String> {
    let usual = rows.iter().filter(|row| row.case.name == TITLE_CASE && row.when == When::First);
    let mut ways: Vec<(f64, &str)> =
        usual.filter_map(|row| Some((row.average_ms()?, row.target.name()))).collect();
    ways.sort_by(|one, other| one.0.total_cmp(&other.0));
    let ways: Vec<String> =
        ways.iter().map(|(average, target)| format!("{average:.0} ms {target}")).collect();
    (!ways.is_empty()).then(|| format!("1 KiB over TLS: {}", ways.join(", ")))
}

#[cfg(test)]
mod tests {
    use onehop_testkit::distance::Lateness;

    use super::super::plan::CASES;
    use super::*;

    #[test]
    fn each_case_is_a_line_and_what_failed_is_said() {
        assert_eq!(HEAD[2..], TARGETS.iter().map(|target| target.name()).collect::<Vec<_>>());
        let one = |at: usize, when| Measured {
            case: CASES[0],
            target: TARGETS[at],
            when,
            row: Err("it did not start".to_owned()),
            lateness: Lateness::default(),
            log: String::new(),
        };
        let rows = [one(0, When::First), one(2, When::First), one(2, When::AfterIdle)];
        let verdicts = [Verdict { text: "one trip".to_owned(), is_met: false }];
        let section = section(&rows, &verdicts);
        assert_eq!(section.title, "average search in ms; 0 of 1 bounds met");
        assert_eq!(section.notes[0], "MISSED: one trip");
        let expected = [["first", "failed", "", "failed"], ["after idle", "", "", "failed"]];
        assert_eq!(section.rows.len(), 2);
        for (row, expected) in section.rows.iter().zip(expected) {
            assert_eq!(row[1..5], expected);
        }
    }
}
