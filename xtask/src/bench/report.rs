//! Figures of one measurement: medians and ratios for people, everything as JSON for the record.
//!
//! A figure of an arm that gave errors or the wrong answer is printed as void, never as a number.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{Outcome, ground};

use super::load::Seen;
use super::process::Memory;

/// Bytes.
const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// One arm in one case in one round.
pub(crate) struct Measured {
    /// CPU time per request over all processes of the arm.
    pub(crate) cpu_us: f64,
    /// Share of one core that the arm used.
    pub(crate) core_share: f64,
    /// Share of one core that the load used; 0 where that was not measured.
    pub(crate) load_share: f64,
    /// What the load saw.
    pub(crate) seen: Option<Seen>,
    /// Memory after the load.
    pub(crate) memory: Option<Memory>,
    /// Highest resident size of what the clients speak to, without the processes behind it.
    pub(crate) front_peak_kib: Option<u64>,
    /// Bytes of content that one request moves, where that is what the case is about.
    pub(crate) moved_bytes: Option<u64>,
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

/// What a run compares.
pub(crate) struct Comparison {
    /// Its name; the result's file is called so.
    pub(crate) name: String,
    /// What runs all arms, said beside each case.
    pub(crate) under: Option<String>,
    /// All arms, in the order in which they are printed.
    pub(crate) arms: &'static [&'static str],
    /// The arms that the others are measured by.
    pub(crate) bases: [&'static str; 2],
}

/// All figures of a run.
pub(crate) struct Report {
    comparison: Comparison,
    smoke: bool,
    versions: BTreeMap<String, String>,
    rows: Vec<Row>,
}

impl Measured {
    fn mebibytes_per_second(&self) -> Option<f64> {
        Some(self.moved_bytes? as f64 / MEBIBYTE * self.seen?.rate)
    }

    fn cpu_us_per_mebibyte(&self) -> Option<f64> {
        Some(self.cpu_us * MEBIBYTE / self.moved_bytes? as f64)
    }

    fn complaint(&self) -> Option<String> {
        let errors = self.seen.map_or(0, |seen| seen.errors);
        self.complaint.clone().or_else(|| (errors > 0).then(|| format!("{errors} errors under load")))
    }
}

impl Report {
    /// A report without figures. `versions` are those of the arms, by their names.
    pub(crate) fn new(comparison: Comparison, smoke: bool, versions: BTreeMap<String, String>) -> Report {
        Report { comparison, smoke, versions, rows: Vec::new() }
    }

    /// Adds one measurement.
    pub(crate) fn add(&mut self, case: &str, round: u64, arm: &'static str, measured: Measured) {
        self.rows.push(Row { case: case.to_owned(), round, arm, measured });
    }

    /// Prints the medians of one case.
    pub(crate) fn print_case(&self, case: &str) {
        match &self.comparison.under {
            Some(under) => println!("\n{case} ({under})"),
            None => println!("\n{case}"),
        }
        if self.is_start(case) {
            println!(
                "  {:<22} {:>10} {:>10} {:>10} {:>9}",
                "arm", "ms (p50)", "ms (max)", "CPU ms", "RSS MiB"
            );
        } else {
            self.print_header(case);
        }
        for arm in self.comparison.arms {
            let rows: Vec<&Measured> = self.of(case, arm).map(|row| &row.measured).collect();
            if rows.is_empty() {
                continue;
            }
            if let Some(complaint) = rows.iter().find_map(|measured| measured.complaint()) {
                println!("  {arm:<22} VOID: {complaint}");
            } else if self.is_start(case) {
                print_start(arm, &rows);
            } else {
                self.print_load(case, arm, &rows);
            }
        }
    }

    fn print_header(&self, case: &str) {
        let [one, other] = self.comparison.bases.map(|base| format!("of {base}"));
        let width = one.len().max(other.len()).max(9);
        print!("  {:<22} {:>10} {one:>width$} {other:>width$} {:>9}", "arm", "CPU us/req", "req/s");
        print!(" {:>8} {:>8} {:>8} {:>7}", "p50 us", "p99 us", "RSS MiB", "core %");
        if self.has(case, |row| row.front_peak_kib.is_some()) {
            print!(" {:>14} {:>7}", "front peak MiB", "load %");
        }
        if self.has(case, |row| row.moved_bytes.is_some()) {
            print!(" {:>9} {:>10}", "MiB/s", "CPU us/MiB");
        }
        println!();
    }

    fn print_load(&self, case: &str, arm: &str, rows: &[&Measured]) {
        let of = |figure: fn(&Measured) -> f64| median(rows.iter().map(|row| figure(row)).collect());
        let width = self.comparison.bases.map(|base| base.len() + 3).into_iter().max().unwrap_or(0).max(9);
        print!("  {arm:<22} {:>10.2}", of(|row| row.cpu_us));
        for base in self.comparison.bases {
            match self.ratio(case, arm, base) {
                Some(ratio) => print!(" {ratio:>width$.2}"),
                None => print!(" {:>width$}", "-"),
            }
        }
        print!(
            " {:>9.0} {:>8.0} {:>8.0} {:>8.1} {:>7.0}",
            of(|row| row.seen.map_or(0.0, |seen| seen.rate)),
            of(|row| row.seen.map_or(0.0, |seen| seen.p50_us as f64)),
            of(|row| row.seen.map_or(0.0, |seen| seen.p99_us as f64)),
            of(|row| row.memory.map_or(0.0, |memory| memory.resident_kib as f64 / 1024.0)),
            of(|row| row.core_share * 100.0),
        );
        if self.has(case, |row| row.front_peak_kib.is_some()) {
            print!(
                " {:>14.1} {:>7.0}",
                of(|row| row.front_peak_kib.unwrap_or(0) as f64 / 1024.0),
                of(|row| row.load_share * 100.0)
            );
        }
        if self.has(case, |row| row.moved_bytes.is_some()) {
            print!(
                " {:>9.0} {:>10.0}",
                of(|row| row.mebibytes_per_second().unwrap_or(0.0)),
                of(|row| row.cpu_us_per_mebibyte().unwrap_or(0.0))
            );
        }
        println!();
    }

    fn has(&self, case: &str, what: fn(&Measured) -> bool) -> bool {
        self.rows.iter().any(|row| row.case == case && what(&row.measured))
    }

    /// Answers per second of one case by those of another, of the same arm in the same round.
    pub(crate) fn print_rates_of(&self, case: &str, base: &str) {
        println!("\n{case}: requests per second by those of {base}, within a round");
        for arm in self.comparison.arms {
            let ratios = self.rates_of(case, base, arm);
            if !ratios.is_empty() {
                let all: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
                println!("  {arm:<22} {:>10.2}   ({})", median(ratios), all.join(" "));
            }
        }
    }

    fn rates_of(&self, case: &str, base: &str, arm: &str) -> Vec<f64> {
        let rate = |row: &Row| {
            row.measured.seen.filter(|_| row.measured.complaint().is_none()).map(|seen| seen.rate)
        };
        let ratio = |row: &Row| {
            let beside = self.of(base, arm).find(|beside| beside.round == row.round)?;
            Some(rate(row)? / rate(beside).filter(|&rate| rate > 0.0)?)
        };
        self.of(case, arm).filter_map(ratio).collect()
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
        let mut cases: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !cases.contains(&row.case.as_str()) {
                cases.push(&row.case);
            }
        }
        let medians: Vec<Value> = cases
            .iter()
            .flat_map(|case| self.comparison.arms.iter().map(move |arm| (*case, *arm)))
            .filter_map(|(case, arm)| self.median_of(case, arm))
            .collect();
        let value = json!({
            "what": self.comparison.name,
            "date": ground::date(),
            "machine": ground::machine(),
            "versions": self.versions,
            "method": "server on core 0, load on core 1; CPU from /proc/PID/task/*/schedstat over all processes; arms interleaved, order rotated per round; ratios within a round",
            "medians": medians,
            "rows": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
        });
        let path = write_result(&self.comparison.name, self.smoke, &value)?;
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
        let mut value = json!({
            "case": case,
            "arm": arm,
            "void": rows.iter().find_map(|row| row.complaint()),
            "cpu_us_per_request": of(|row| row.seen.map(|_| row.cpu_us)),
            "requests_per_second": of(|row| row.seen.map(|seen| seen.rate)),
            "p50_us": of(|row| row.seen.map(|seen| seen.p50_us as f64)),
            "p99_us": of(|row| row.seen.map(|seen| seen.p99_us as f64)),
            "start_ms": of(|row| row.start_ms),
            "resident_kib": of(|row| row.memory.map(|memory| memory.resident_kib as f64)),
            "front_peak_kib": of(|row| row.front_peak_kib.map(|kib| kib as f64)),
            "mebibytes_per_second": of(Measured::mebibytes_per_second),
            "cpu_us_per_mebibyte": of(Measured::cpu_us_per_mebibyte),
        });
        for base in self.comparison.bases {
            let ratios = self.ratios(case, arm, base).into_iter().map(|ratio| ratio.map(rounded));
            value[format!("cpu_of_{base}")] = json!(ratios.collect::<Vec<_>>());
            value[format!("cpu_of_{base}_median")] = json!(self.ratio(case, arm, base).map(rounded));
        }
        Some(value)
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
            "load_share": rounded(self.measured.load_share),
            "requests": seen.map(|seen| seen.requests),
            "requests_per_second": seen.map(|seen| rounded(seen.rate)),
            "p50_us": seen.map(|seen| seen.p50_us),
            "p99_us": seen.map(|seen| seen.p99_us),
            "errors": seen.map(|seen| seen.errors),
            "start_ms": self.measured.start_ms.map(rounded),
            "resident_kib": memory.map(|memory| memory.resident_kib),
            "proportional_kib": memory.map(|memory| memory.proportional_kib),
            "front_peak_kib": self.measured.front_peak_kib,
            "mebibytes_per_second": self.measured.mebibytes_per_second().map(rounded),
            "cpu_us_per_mebibyte": self.measured.cpu_us_per_mebibyte().map(rounded),
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
        "  {arm:<22} {:>10.1} {slowest:>10.1} {:>10.1} {:>9.1}",
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
        let seen = Seen { requests: 1, rate: 1.0, p50_us: 1, p99_us: 1, load_cpu_seconds: 0.0, errors };
        Measured {
            cpu_us,
            core_share: 1.0,
            load_share: 0.0,
            seen: Some(seen),
            memory: None,
            front_peak_kib: None,
            moved_bytes: None,
            answer_bytes: 1,
            complaint: None,
            start_ms: None,
            server_line: vec![],
            load_line: vec![],
        }
    }

    #[test]
    fn ratios_are_taken_within_a_round_and_errors_make_them_void() {
        let comparison = Comparison {
            name: "x".to_owned(),
            under: None,
            arms: &["onehop", "floor"],
            bases: ["floor", "nginx"],
        };
        let mut report = Report::new(comparison, true, BTreeMap::new());
        for (round, onehop, floor, errors) in [(0, 6.0, 5.0, 0), (1, 12.0, 6.0, 0), (2, 1.0, 1.0, 4)] {
            report.add("c", round, "onehop", measured(onehop, errors));
            report.add("c", round, "floor", measured(floor, 0));
        }
        assert_eq!(report.ratios("c", "onehop", "floor"), [Some(1.2), Some(2.0), None]);
        assert_eq!(report.ratio("c", "onehop", "floor"), Some(1.6));
        assert_eq!(report.ratio("c", "onehop", "nginx"), None);
    }
}
