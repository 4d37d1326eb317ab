//! Figures of one measurement: medians and ratios for people, everything as JSON for the record.
//!
//! A figure of an arm that gave errors or the wrong answer is printed as void, never as a number.

use std::collections::BTreeMap;
use std::path::PathBuf;

use onehop_load::measure::Memory;
use onehop_load::statistics::{self, Interval, PAIRS_MIN};
use serde_json::{Value, json};

use crate::{Outcome, ground};

use super::load::Seen;
use super::outside::Outside;

/// Bytes.
const MEBIBYTE: f64 = 1024.0 * 1024.0;
/// Bytes.
const KIBIBYTE: u64 = 1024;

/// `1.23 (1.10 to 1.36)` and a column's distance.
const RATIO_WIDTH: usize = 20;

/// How sure the intervals beside the ratios are.
const CONFIDENCE: f64 = 0.95;
/// The intervals' resampling can be repeated.
const SEED: u64 = 1;

/// One arm in one case in one round.
pub(crate) struct Measured {
    /// CPU time per request over all processes of the arm.
    pub(crate) cpu_us: f64,
    /// Share of one core that the arm used.
    pub(crate) core_share: f64,
    /// What the load saw.
    pub(crate) seen: Option<Seen>,
    /// Memory after the load.
    pub(crate) memory: Option<Memory>,
    /// Median and 99th percentile of the samples of memory during the load, bytes.
    pub(crate) memory_samples: Option<(u64, u64)>,
    /// Highest resident size of what the clients speak to, without the processes behind it.
    pub(crate) front_peak_kib: Option<u64>,
    /// Bytes of content that one request moves, where that is what the case is about.
    pub(crate) moved_bytes: Option<u64>,
    /// Bytes of one whole answer.
    pub(crate) answer_bytes: usize,
    /// Why the figure is void, if it is.
    pub(crate) complaint: Option<String>,
    /// What wrk saw right afterwards, where it was asked.
    pub(crate) outside: Option<Outside>,
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
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    /// Its name; the result's file is called so.
    pub(crate) name: String,
    /// What runs all arms, said beside each case.
    pub(crate) under: Option<String>,
    /// All arms, in the order in which they are printed.
    pub(crate) arms: &'static [&'static str],
    /// The arms that the others are measured by.
    pub(crate) bases: [&'static str; 2],
    /// The arm on which wrk checks our load; where it is not measured, the first one is.
    pub(crate) checked: &'static str,
}

/// All figures of a run.
pub(crate) struct Report {
    comparison: Comparison,
    smoke: bool,
    versions: BTreeMap<String, String>,
    rows: Vec<Row>,
    bounds: Vec<Value>,
}

impl Measured {
    fn mebibytes_per_second(&self) -> Option<f64> {
        Some(self.moved_bytes? as f64 / MEBIBYTE * self.seen.as_ref()?.rate)
    }

    fn cpu_us_per_mebibyte(&self) -> Option<f64> {
        Some(self.cpu_us * MEBIBYTE / self.moved_bytes? as f64)
    }

    fn complaint(&self) -> Option<String> {
        let of_load = |seen: &Seen| {
            (seen.errors > 0).then(|| format!("{} errors under load: {}", seen.errors, seen.errors_in_words))
        };
        self.complaint.clone().or_else(|| self.seen.as_ref().and_then(of_load))
    }

    fn of_seen(&self, figure: fn(&Seen) -> f64) -> f64 {
        self.seen.as_ref().map_or(0.0, figure)
    }
}

impl Comparison {
    /// Whether wrk is to check this arm, of those that are measured.
    pub(crate) fn is_checked<'arms>(
        &self,
        arm: &str,
        mut measured: impl Iterator<Item = &'arms str>,
    ) -> bool {
        let first = measured.next();
        let has_checked = first == Some(self.checked) || measured.any(|name| name == self.checked);
        arm == if has_checked { self.checked } else { first.unwrap_or_default() }
    }
}

impl Report {
    /// A report without figures. `versions` are those of the arms, by their names.
    pub(crate) fn new(comparison: Comparison, smoke: bool, versions: BTreeMap<String, String>) -> Report {
        Report { comparison, smoke, versions, rows: Vec::new(), bounds: Vec::new() }
    }

    /// Adds one measurement.
    pub(crate) fn add(&mut self, case: &str, round: u64, arm: &'static str, measured: Measured) {
        self.rows.push(Row { case: case.to_owned(), round, arm, measured });
    }

    /// The figures of an arm in a case that are not void, with their rounds.
    pub(crate) fn counting(&self, case: &str, arm: &str) -> impl Iterator<Item = (u64, &Measured)> {
        let rows = self.of(case, arm).filter(|row| row.measured.complaint().is_none());
        rows.map(|row| (row.round, &row.measured))
    }

    /// Whether there is a row of this arm in this case, void or not.
    pub(crate) fn has_measured(&self, case: &str, arm: &str) -> bool {
        self.of(case, arm).next().is_some()
    }

    /// Keeps a bound and whether it was met beside the figures.
    pub(crate) fn add_bound(&mut self, bound: Value) {
        self.bounds.push(bound);
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
        self.print_doubts(case);
    }

    /// Whether wrk sees what we see, and where the load was the limit.
    fn print_doubts(&self, case: &str) {
        for row in self.rows.iter().filter(|row| row.case == case) {
            if let (Some(outside), Some(seen)) = (&row.measured.outside, &row.measured.seen) {
                println!(
                    "  outside check ({}): wrk sees {:.0} req/s at {:.2} us of CPU, ours {:.0} at {:.2}, ratio {:.3}",
                    row.arm, outside.rate, outside.cpu_us, seen.rate, row.measured.cpu_us, outside.ratio
                );
                println!(
                    "                  own CPU of the loads: wrk {:.2} us for each request, ours {:.2}",
                    outside.load_cpu_us, seen.load_cpu_us
                );
                if outside.is_doubtful {
                    println!("  DOUBTFUL: the two loads differ by more than 5 %");
                }
            }
        }
        for arm in self.comparison.arms {
            let limits = self.of(case, arm).filter_map(|row| row.measured.seen.as_ref()?.limit.as_ref());
            if let Some(limit) = limits.last() {
                println!("  the load was a limit of {arm}: {limit}");
            }
        }
    }

    fn print_header(&self, case: &str) {
        let [one, other] = self.comparison.bases.map(|base| format!("of {base}"));
        let width = one.len().max(other.len()).max(RATIO_WIDTH);
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
        let of = |figure: fn(&Measured) -> f64| {
            statistics::median(&rows.iter().map(|row| figure(row)).collect::<Vec<_>>())
        };
        let width = self.comparison.bases.map(|base| base.len() + 3).into_iter().max().unwrap_or(0);
        let width = width.max(RATIO_WIDTH);
        print!("  {arm:<22} {:>10.2}", of(|row| row.cpu_us));
        for base in self.comparison.bases {
            let text = self.ratio(case, arm, base).map(|ratio| match self.interval(case, arm, base) {
                Some(Interval { low, high, .. }) if arm != base => {
                    format!("{ratio:.2} ({low:.2} to {high:.2})")
                }
                _ => format!("{ratio:.2}"),
            });
            print!(" {:>width$}", text.as_deref().unwrap_or("-"));
        }
        print!(
            " {:>9.0} {:>8.0} {:>8.0} {:>8.1} {:>7.0}",
            of(|row| row.of_seen(|seen| seen.rate)),
            of(|row| row.of_seen(|seen| seen.p50_us as f64)),
            of(|row| row.of_seen(|seen| seen.p99_us as f64)),
            of(|row| row.memory.map_or(0.0, |memory| memory.resident_bytes as f64 / MEBIBYTE)),
            of(|row| row.core_share * 100.0),
        );
        if self.has(case, |row| row.front_peak_kib.is_some()) {
            print!(
                " {:>14.1} {:>7.0}",
                of(|row| row.front_peak_kib.unwrap_or(0) as f64 / 1024.0),
                of(|row| row.of_seen(|seen| seen.load_share * 100.0))
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
                println!("  {arm:<22} {:>10.2}   ({})", statistics::median(&ratios), all.join(" "));
            }
        }
    }

    fn rates_of(&self, case: &str, base: &str, arm: &str) -> Vec<f64> {
        let rate = |row: &Row| {
            row.measured.seen.as_ref().filter(|_| row.measured.complaint().is_none()).map(|seen| seen.rate)
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
        (!ratios.is_empty()).then(|| statistics::median(&ratios))
    }

    /// The interval of the same ratio; `None` where there are too few rounds for one.
    fn interval(&self, case: &str, arm: &str, other: &str) -> Option<Interval> {
        let ratios: Vec<f64> = self.ratios(case, arm, other).into_iter().flatten().collect();
        let ones = vec![1.0; ratios.len()];
        let interval = statistics::ratio_interval(&ones, &ratios, CONFIDENCE, SEED);
        (ratios.len() >= PAIRS_MIN).then_some(interval)
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
        let mut value = json!({
            "what": self.comparison.name,
            "date": ground::date(),
            "machine": ground::machine(),
            "versions": self.versions,
            "method": "server on one core, onehop-load on another; CPU from /proc/PID/task/*/schedstat over all processes; arms interleaved, order rotated per round; ratios within a round, with intervals of 95 % from three rounds on; wrk asks the same of one arm of each case as an outside check",
            "medians": medians,
            "rows": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
        });
        if !self.bounds.is_empty() {
            value["bounds"] = json!(self.bounds);
        }
        if let Some(under) = &self.comparison.under {
            value["under"] = json!(under);
        }
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
        let counting: Vec<&Measured> = rows.iter().copied().filter(|row| row.complaint().is_none()).collect();
        let of = |figure: fn(&Measured) -> Option<f64>| {
            let figures: Vec<f64> = counting.iter().filter_map(|row| figure(row)).collect();
            (!figures.is_empty()).then(|| rounded(statistics::median(&figures)))
        };
        let mut value = json!({
            "case": case,
            "arm": arm,
            "void": rows.iter().find_map(|row| row.complaint()),
            "rounds": counting.len(),
            "cpu_us_per_request": of(|row| row.seen.as_ref().map(|_| row.cpu_us)),
            "requests_per_second": of(|row| row.seen.as_ref().map(|seen| seen.rate)),
            "p50_us": of(|row| row.seen.as_ref().map(|seen| seen.p50_us as f64)),
            "p99_us": of(|row| row.seen.as_ref().map(|seen| seen.p99_us as f64)),
            "start_ms": of(|row| row.start_ms),
            "resident_kib": of(|row| row.memory.map(|memory| (memory.resident_bytes / KIBIBYTE) as f64)),
            "memory_median_kib": of(|row| row.memory_samples.map(|(median, _)| (median / KIBIBYTE) as f64)),
            "memory_p99_kib": of(|row| row.memory_samples.map(|(_, p99)| (p99 / KIBIBYTE) as f64)),
            "is_doubtful": rows.iter().any(|row| row.outside.as_ref().is_some_and(|outside| outside.is_doubtful)),
            "front_peak_kib": of(|row| row.front_peak_kib.map(|kib| kib as f64)),
            "mebibytes_per_second": of(Measured::mebibytes_per_second),
            "cpu_us_per_mebibyte": of(Measured::cpu_us_per_mebibyte),
        });
        for base in self.comparison.bases {
            let ratios = self.ratios(case, arm, base).into_iter().map(|ratio| ratio.map(rounded));
            value[format!("cpu_of_{base}")] = json!(ratios.collect::<Vec<_>>());
            value[format!("cpu_of_{base}_median")] = json!(self.ratio(case, arm, base).map(rounded));
            let interval = self.interval(case, arm, base).filter(|_| arm != base);
            let interval = interval.map(|interval| [rounded(interval.low), rounded(interval.high)]);
            value[format!("cpu_of_{base}_interval")] = json!(interval);
        }
        Some(value)
    }
}

impl Row {
    fn json(&self) -> Value {
        let Measured { memory, .. } = &self.measured;
        let seen = self.measured.seen.as_ref();
        let samples = self.measured.memory_samples;
        json!({
            "case": self.case,
            "round": self.round,
            "arm": self.arm,
            "void": self.measured.complaint(),
            "cpu_us_per_request": rounded(self.measured.cpu_us),
            "core_share": rounded(self.measured.core_share),
            "load_share": seen.map(|seen| rounded(seen.load_share)),
            "load_cpu_us_per_request": seen.map(|seen| rounded(seen.load_cpu_us)),
            "load_was_a_limit": seen.and_then(|seen| seen.limit.as_ref()),
            "requests": seen.map(|seen| seen.requests),
            "requests_per_second": seen.map(|seen| rounded(seen.rate)),
            "p50_us": seen.map(|seen| seen.p50_us),
            "p99_us": seen.map(|seen| seen.p99_us),
            "errors": seen.map(|seen| seen.errors),
            "start_ms": self.measured.start_ms.map(rounded),
            "resident_kib": memory.map(|memory| memory.resident_bytes / KIBIBYTE),
            "proportional_kib": memory.and_then(|memory| Some(memory.proportional_bytes? / KIBIBYTE)),
            "memory_median_kib": samples.map(|(median, _)| median / KIBIBYTE),
            "memory_p99_kib": samples.map(|(_, p99)| p99 / KIBIBYTE),
            "front_peak_kib": self.measured.front_peak_kib,
            "mebibytes_per_second": self.measured.mebibytes_per_second().map(rounded),
            "cpu_us_per_mebibyte": self.measured.cpu_us_per_mebibyte().map(rounded),
            "answer_bytes": self.measured.answer_bytes,
            "server": ground::without_folders(&self.measured.server_line.join(" ")),
            "load": ground::without_folders(&self.measured.load_line.join(" ")),
            "outside_check": self.measured.outside.as_ref().map(Outside::json),
        })
    }
}

fn print_start(arm: &str, rows: &[&Measured]) {
    let times: Vec<f64> = rows.iter().filter_map(|row| row.start_ms).collect();
    let slowest = times.iter().copied().fold(0.0, f64::max);
    let resident =
        rows.iter().filter_map(|row| row.memory).map(|memory| memory.resident_bytes as f64 / MEBIBYTE);
    println!(
        "  {arm:<22} {:>10.1} {slowest:>10.1} {:>10.1} {:>9.1}",
        statistics::median(&times),
        statistics::median(&rows.iter().map(|row| row.cpu_us / 1e3).collect::<Vec<_>>()),
        statistics::median(&resident.collect::<Vec<_>>()),
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
    std::fs::write(&path, without_places(&format!("{value:#}\n")))?;
    Ok(path)
}

/// A text without where this machine keeps things: paths in the project are relative to it, others below the home
/// directory begin with `~`.
pub(crate) fn without_places(text: &str) -> String {
    let project = format!("{}/", ground::root().display());
    let text = text.replace(&project, "");
    match std::env::var("HOME") {
        Ok(home) if home.len() > 1 => text.replace(&format!("{home}/"), "~/"),
        _ => text,
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_say_nothing_of_where_a_machine_keeps_its_things() {
        let path = ground::root().join("target/release/onehop");
        assert_eq!(without_places(&format!("`{}` ran", path.display())), "`target/release/onehop` ran");
        let mut folders = vec![ground::root().join("benchmarks/results")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                // Where people and build machines keep what is theirs.
                for place in ["/home/", "/root/", "/Users/", "/tmp/", "/work/", "/build/", "/workspace/"] {
                    assert!(!text.contains(place), "{} holds a path below {place}", path.display());
                }
            }
        }
    }

    fn measured(cpu_us: f64, errors: u64) -> Measured {
        let seen = Seen {
            requests: 1,
            rate: 1.0,
            p50_us: 1,
            p99_us: 1,
            connections_opened: 1,
            load_share: 0.0,
            load_cpu_us: 0.0,
            errors,
            errors_in_words: String::new(),
            limit: None,
        };
        Measured {
            cpu_us,
            core_share: 1.0,
            seen: Some(seen),
            memory: None,
            memory_samples: None,
            front_peak_kib: None,
            moved_bytes: None,
            answer_bytes: 1,
            complaint: None,
            outside: None,
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
            checked: "nginx",
        };
        assert!(comparison.is_checked("nginx", ["floor", "nginx"].into_iter()));
        assert!(!comparison.is_checked("floor", ["floor", "nginx"].into_iter()));
        assert!(comparison.is_checked("floor", ["floor", "onehop"].into_iter()));
        let mut report = Report::new(comparison, true, BTreeMap::new());
        for (round, onehop, floor, errors) in [(0, 6.0, 5.0, 0), (1, 12.0, 6.0, 0), (2, 1.0, 1.0, 4)] {
            report.add("c", round, "onehop", measured(onehop, errors));
            report.add("c", round, "floor", measured(floor, 0));
        }
        assert_eq!(report.ratios("c", "onehop", "floor"), [Some(1.2), Some(2.0), None]);
        assert_eq!(report.ratio("c", "onehop", "floor"), Some(1.6));
        assert_eq!(report.ratio("c", "onehop", "nginx"), None);
        assert_eq!(report.interval("c", "onehop", "floor"), None);
        let median = report.median_of("c", "onehop").unwrap();
        assert_eq!(
            (&median["cpu_us_per_request"], &median["rounds"]),
            (&json!(9.0), &json!(2)),
            "{median:#}"
        );
        assert!(median["void"].as_str().unwrap().contains("4 errors"), "{median:#}");
    }
}
