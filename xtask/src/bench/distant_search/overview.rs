//! The first table of the report: how long a search takes on average, for each case and target.

use super::figures::{Measured, Verdict};
use super::page::Section;
use super::plan::TARGETS;

/// The columns: the targets are those of [`TARGETS`], in their order.
const HEAD: &[&str] = &["case", "when", "direct", "caddy", "onehop", "onehop-min4", "nginx"];

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
    Section {
        title: format!(
            "average search in ms; {} of {} bounds met",
            verdicts.iter().filter(|verdict| verdict.is_met).count(),
            verdicts.len()
        ),
        head: HEAD,
        rows: lines,
        notes: missed.map(|verdict| format!("MISSED: {}", verdict.text)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use onehop_testkit::distance::Lateness;

    use super::super::figures::When;
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
        assert_eq!(section.notes, ["MISSED: one trip"]);
        let expected = [["first", "failed", "", "failed"], ["after idle", "", "", "failed"]];
        assert_eq!(section.rows.len(), 2);
        for (row, expected) in section.rows.iter().zip(expected) {
            assert_eq!(row[1..5], expected);
        }
    }
}
