//! Figures of one measurement: medians and ratios for people, everything as JSON for the record.
//!
//! A figure of an arm that gave errors or the wrong answer is printed as void, never as a number.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{Outcome, ground};

use super::arms::{self, Arm};
use super::load::Seen;
use super::process::Memory;

/// One arm in one case in one round.
pub(crate) struct Measured {
    /// CPU time per request over all processes of the arm.
    pub(crate) cpu_us: f64,
    /// Share of its core that the arm used.
    pub(crate) core_share: f64,
    /// What the load saw.
    pub(crate) seen: Option<Seen>,
    /// Memory after the load.
    pub(crate) memory: Option<Memory>,
    /// Bytes of one whole answer.
    pub(crate) answer_bytes: usize,
    /// Why the figure is void, if it is.
    pub(crate) complaint: Option<String>,
    /// Milliseconds from start to first answer.
    pub(crate) start_ms: Option<f64>,
    /// How the server was started.
    pub(crate) server_line: Vec<String>,
    /// How the load was started.
    pub(crate) load_line: Vec<String>,
}

struct Row {
    case: String,
    round: u64,
    arm: &'static str,
    measured: Measured,
}

/// All figures of a run.
pub(crate) struct Report {
    name: &'static str,
    smoke: bool,
    versions: BTreeMap<String, String>,
    rows: Vec<Row>,
}

impl Measured {
    fn complaint(&self) -> Option<String> {
        let errors = self.seen.map_or(0, |seen| seen.errors);
        self.complaint.clone().or_else(|| (errors > 0).then(|| format!("{errors} errors under load")))
    }
}

impl Report {
    /// A report without figures.
    pub(crate) fn new(name: &'static str, smoke: bool, arms: &[Arm]) -> Report {
        let versions = arms.iter().map(|arm| (arm.name.to_owned(), arm.version.clone())).collect();
        Report { name, smoke, versions, rows: Vec::new() }
    }

    /// Adds one measurement.
    pub(crate) fn add(&mut self, case: &str, round: u64, arm: &'static str, measured: Measured) {
        self.rows.push(Row { case: case.to_owned(), round, arm, measured });
    }

    /// Prints the medians of one case.
    pub(crate) fn print_case(&self, case: &str) {
        println!("\n{case}");
        let header =
            ["arm", "CPU us/req", "of floor", "of nginx", "req/s", "p50 us", "p99 us", "RSS MiB", "core %"];
        if self.is_start(case) {
            println!(
                "  {:<18} {:>10} {:>10} {:>10} {:>9}",
                "arm", "ms (p50)", "ms (max)", "CPU ms", "RSS MiB"
            );
        } else {
            println!(
                "  {:<18} {:>10} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>7}",
                header[0],
                header[1],
                header[2],
                header[3],
                header[4],
                header[5],
                header[6],
                header[7],
                header[8]
            );
        }
        for arm in arms::ALL {
            let rows: Vec<&Measured> = self.of(case, arm).map(|row| &row.measured).collect();
            if rows.is_empty() {
                continue;
            }
            if let Some(complaint) = rows.iter().find_map(|measured| measured.complaint()) {
                println!("  {arm:<18} VOID: {complaint}");
            } else if self.is_start(case) {
                print_start(arm, &rows);
            } else {
                self.print_load(case, arm, &rows);
            }
        }
    }

    fn print_load(&self, case: &str, arm: &str, rows: &[&Measured]) {
        let of = |figure: fn(&Measured) -> f64| median(rows.iter().map(|row| figure(row)).collect());
        let ratio = |other: &str| match self.ratio(case, arm, other) {
            Some(ratio) => format!("{ratio:.2}"),
            None => "-".to_owned(),
        };
        println!(
            "  {arm:<18} {:>10.2} {:>9} {:>9} {:>9.0} {:>8.0} {:>8.0} {:>8.1} {:>7.0}",
            of(|row| row.cpu_us),
            ratio("floor"),
            ratio("nginx"),
            of(|row| row.seen.map_or(0.0, |seen| seen.rate)),
            of(|row| row.seen.map_or(0.0, |seen| seen.p50_us as f64)),
            of(|row| row.seen.map_or(0.0, |seen| seen.p99_us as f64)),
            of(|row| row.memory.map_or(0.0, |memory| memory.resident_kib as f64 / 1024.0)),
            of(|row| row.core_share * 100.0),
        );
    }

    /// Median over the rounds of the ratio of two arms' CPU time within a round.
    fn ratio(&self, case: &str, arm: &str, other: &str) -> Option<f64> {
        let ratios: Vec<f64> = self.ratios(case, arm, other).into_iter().flatten().collect();
        (!ratios.is_empty()).then(|| median(ratios))
    }

    fn ratios(&self, case: &str, arm: &str, other: &str) -> Vec<Option<f64>> {
        let figure = |row: &Row| row.measured.complaint().is_none().then_some(row.measured.cpu_us);
        self.of(case, arm)
            .map(|row| {
                let beside = self.of(case, other).find(|beside| beside.round == row.round)?;
                Some(figure(row)? / figure(beside).filter(|&cpu| cpu > 0.0)?)
            })
            .collect()
    }

    fn of(&self, case: &str, arm: &str) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.case == case && row.arm == arm)
    }

    fn is_start(&self, case: &str) -> bool {
        self.rows.iter().any(|row| row.case == case && row.measured.start_ms.is_some())
    }

    /// Writes everything to its place. A smoke run is no record: it goes to the target folder.
    pub(crate) fn keep(&self) -> Outcome {
        let mut cases: Vec<&str> = self.rows.iter().map(|row| row.case.as_str()).collect();
        cases.dedup();
        let medians: Vec<Value> = cases
            .iter()
            .flat_map(|case| arms::ALL.iter().map(move |arm| (*case, *arm)))
            .filter_map(|(case, arm)| self.median_of(case, arm))
            .collect();
        let value = json!({
            "what": self.name,
            "date": ground::date(),
            "machine": ground::machine(),
            "versions": self.versions,
            "method": "server on core 0, load on core 1; CPU from /proc/PID/task/*/schedstat over all processes; arms interleaved, order rotated per round; ratios within a round",
            "medians": medians,
            "rows": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
        });
        let path = write_result(self.name, self.smoke, &value)?;
        println!("\nwritten to {}", path.display());
        let void = self.rows.iter().filter(|row| row.measured.complaint().is_some()).count();
        if void > 0 {
            return Err(format!("{void} of {} measurements are void", self.rows.len()).into());
        }
        Ok(())
    }

    fn median_of(&self, case: &str, arm: &str) -> Option<Value> {
        let rows: Vec<&Measured> = self.of(case, arm).map(|row| &row.measured).collect();
        if rows.is_empty() {
            return None;
        }
        let of = |figure: fn(&Measured) -> Option<f64>| {
            let figures: Vec<f64> = rows.iter().filter_map(|row| figure(row)).collect();
            (!figures.is_empty()).then(|| rounded(median(figures)))
        };
        Some(json!({
            "case": case,
            "arm": arm,
            "void": rows.iter().find_map(|row| row.complaint()),
            "cpu_us_per_request": of(|row| row.seen.map(|_| row.cpu_us)),
            "cpu_of_floor": self.ratios(case, arm, "floor").into_iter().map(|ratio| ratio.map(rounded)).collect::<Vec<_>>(),
            "cpu_of_floor_median": self.ratio(case, arm, "floor").map(rounded),
            "cpu_of_nginx": self.ratios(case, arm, "nginx").into_iter().map(|ratio| ratio.map(rounded)).collect::<Vec<_>>(),
            "cpu_of_nginx_median": self.ratio(case, arm, "nginx").map(rounded),
            "requests_per_second": of(|row| row.seen.map(|seen| seen.rate)),
            "p50_us": of(|row| row.seen.map(|seen| seen.p50_us as f64)),
            "p99_us": of(|row| row.seen.map(|seen| seen.p99_us as f64)),
            "start_ms": of(|row| row.start_ms),
            "resident_kib": of(|row| row.memory.map(|memory| memory.resident_kib as f64)),
        }))
    }
}

impl Row {
    fn json(&self) -> Value {
        let Measured { seen, memory, .. } = &self.measured;
        json!({
            "case": self.case,
            "round": self.round,
            "arm": self.arm,
            "void": self.measured.complaint(),
            "cpu_us_per_request": rounded(self.measured.cpu_us),
            "core_share": rounded(self.measured.core_share),
            "requests": seen.map(|seen| seen.requests),
            "requests_per_second": seen.map(|seen| rounded(seen.rate)),
            "p50_us": seen.map(|seen| seen.p50_us),
            "p99_us": seen.map(|seen| seen.p99_us),
            "errors": seen.map(|seen| seen.errors),
            "start_ms": self.measured.start_ms.map(rounded),
            "resident_kib": memory.map(|memory| memory.resident_kib),
            "proportional_kib": memory.map(|memory| memory.proportional_kib),
            "answer_bytes": self.measured.answer_bytes,
            "server": without_folders(&self.measured.server_line),
            "load": without_folders(&self.measured.load_line),
        })
    }
}

fn print_start(arm: &str, rows: &[&Measured]) {
    let times: Vec<f64> = rows.iter().filter_map(|row| row.start_ms).collect();
    let slowest = times.iter().copied().fold(0.0, f64::max);
    let resident = rows.iter().filter_map(|row| row.memory).map(|memory| memory.resident_kib as f64 / 1024.0);
    println!(
        "  {arm:<18} {:>10.1} {slowest:>10.1} {:>10.1} {:>9.1}",
        median(times),
        median(rows.iter().map(|row| row.cpu_us / 1e3).collect()),
        median(resident.collect()),
    );
}

/// Writes a result where it belongs and says where that is.
pub(crate) fn write_result(name: &str, smoke: bool, value: &Value) -> Outcome<PathBuf> {
    let folder = if smoke {
        ground::target_folder("bench/smoke")?
    } else {
        ground::root().join("benchmarks/results").join(format!(
            "{}-{}",
            ground::date(),
            ground::machine_name()
        ))
    };
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{name}.json"));
    std::fs::write(&path, format!("{value:#}\n"))?;
    Ok(path)
}

/// A command line as another checkout would write it.
fn without_folders(line: &[String]) -> String {
    let (target, root) = (ground::target().display().to_string(), ground::root().display().to_string());
    line.join(" ").replace(&target, "target").replace(&format!("{root}/"), "")
}

/// The middle value; the mean of the two middle ones.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match (values.len() / 2, values.len() % 2) {
        (0, 0) => f64::NAN,
        (middle, 1) => values[middle],
        (middle, _) => f64::midpoint(values[middle - 1], values[middle]),
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_middle_two() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(vec![]).is_nan());
    }

    fn measured(cpu_us: f64, errors: u64) -> Measured {
        let seen = Seen { requests: 1, rate: 1.0, p50_us: 1, p99_us: 1, errors };
        Measured {
            cpu_us,
            core_share: 1.0,
            seen: Some(seen),
            memory: None,
            answer_bytes: 1,
            complaint: None,
            start_ms: None,
            server_line: vec![],
            load_line: vec![],
        }
    }

    #[test]
    fn ratios_are_taken_within_a_round_and_errors_make_them_void() {
        let mut report = Report::new("x", true, &[]);
        for (round, onehop, floor, errors) in [(0, 6.0, 5.0, 0), (1, 12.0, 6.0, 0), (2, 1.0, 1.0, 4)] {
            report.add("c", round, "onehop", measured(onehop, errors));
            report.add("c", round, "floor", measured(floor, 0));
        }
        assert_eq!(report.ratios("c", "onehop", "floor"), [Some(1.2), Some(2.0), None]);
        assert_eq!(report.ratio("c", "onehop", "floor"), Some(1.6));
        assert_eq!(report.ratio("c", "onehop", "nginx"), None);
    }
}
