//! The outside check: wrk asks the same of the same server, right after our own load.
//!
//! Owns wrk's command line and the reading of its figures (`wrk-report.lua` prints them). It is a second opinion on
//! our load and never a figure of a server.

use std::net::SocketAddr;
use std::path::PathBuf;

use onehop_load::measure::{Meter, Tree};
use serde_json::{Value, json};

use crate::steps::command;
use crate::{Outcome, ground};

use super::load::Load;

/// With more than this share of errors it measured something else than answers.
const ERRORS_SHARE_MAX: f64 = 0.001;

/// Two loads that are both right differ by less: server, kernel and wake-ups are the same. Above it, the case's figures
/// are doubtful.
const DIFFERENCE_MAX: f64 = 0.05;

/// A body above this is none that wrk is asked to repeat.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// What the kernel counts CPU time in where it shows it to programs (USER_HZ).
const TICKS_PER_SECOND: f64 = 100.0;

/// A run that is only to show that it works is broken off after this long; wrk itself counts in seconds.
const MOMENT_SECONDS: &str = "0.3";

/// What wrk saw where we had just measured.
#[derive(Debug, Clone)]
pub(crate) struct Outside {
    /// Its answers per second.
    pub(crate) rate: f64,
    /// The server's CPU time for each of its answers.
    pub(crate) cpu_us: f64,
    /// Its own.
    pub(crate) load_cpu_us: f64,
    /// Ours by its rate.
    pub(crate) ratio: f64,
    /// In a full run: they differ by more than they may.
    pub(crate) is_doubtful: bool,
    line: String,
}

impl Outside {
    /// Asks with wrk what `load` asked, of a server of which we saw `rate`. A body that is large is left out: wrk
    /// would hold it in memory for each request.
    pub(crate) fn check(
        load: &Load,
        address: SocketAddr,
        tree: Tree,
        rate: f64,
        is_smoke: bool,
    ) -> Outcome<Option<Outside>> {
        if load.body.as_ref().is_some_and(|body| body.len() > BODY_BYTES_MAX) {
            return Ok(None);
        }
        let line = line(load, address, is_smoke)?;
        let words: Vec<&str> = line.iter().skip(1).map(String::as_str).collect();
        let before = children_ticks();
        let meter = Meter::start(tree);
        let output =
            command(&line[0], &words).output().map_err(|error| format!("cannot run wrk: {error}"))?;
        let usage = meter.finish()?.usage;
        let text = String::from_utf8_lossy(&output.stdout);
        let Seen { requests, rate: wrk_rate, errors } =
            text.lines().rev().find_map(|line| seen_in(line.trim())).ok_or_else(|| {
                format!("wrk gave no figures: {text}{}", String::from_utf8_lossy(&output.stderr))
            })?;
        let own_seconds = (children_ticks() - before) as f64 / TICKS_PER_SECOND;
        let ratio = rate / wrk_rate.max(f64::MIN_POSITIVE);
        Ok(Some(Outside {
            rate: wrk_rate,
            cpu_us: usage.cpu.as_secs_f64() * 1e6 / requests.max(1) as f64,
            load_cpu_us: own_seconds * 1e6 / requests.max(1) as f64,
            ratio,
            is_doubtful: !is_smoke
                && ((ratio - 1.0).abs() > DIFFERENCE_MAX
                    || errors as f64 > ERRORS_SHARE_MAX * requests as f64),
            line: line.join(" "),
        }))
    }

    /// For the record.
    pub(crate) fn json(&self) -> Value {
        json!({
            "wrk_requests_per_second": self.rate,
            "wrk_cpu_us_per_request": self.cpu_us,
            "wrk_own_cpu_us_per_request": self.load_cpu_us,
            "ratio": self.ratio,
            "is_doubtful": self.is_doubtful,
            "wrk": ground::without_folders(&self.line),
        })
    }
}

fn line(load: &Load, address: SocketAddr, is_smoke: bool) -> Outcome<Vec<String>> {
    let script = ground::root().join("benchmarks/wrk-report.lua").display().to_string();
    let mut line: Vec<String> = Vec::new();
    if is_smoke {
        line.extend(["timeout", "--signal=INT", MOMENT_SECONDS].map(str::to_owned));
    }
    line.extend(["taskset".to_owned(), "-c".to_owned(), load.cores.list_of_load()]);
    line.extend(["wrk", "--latency", "-s", &script].map(str::to_owned));
    line.push(format!("-t{}", load.threads));
    line.push(format!("-c{}", load.connections));
    line.push(format!("-d{}s", load.time.as_secs().max(1)));
    for (name, value) in &load.fields {
        line.extend(["-H".to_owned(), format!("{name}: {value}")]);
    }
    line.push(format!("http://{address}{}", load.path));
    if let Some(body) = &load.body {
        let file: PathBuf = ground::target_folder("bench")?.join("wrk-body");
        std::fs::write(&file, body)?;
        line.extend(["--".to_owned(), load.method.to_owned(), file.display().to_string()]);
    }
    Ok(line)
}

/// CPU ticks of children of this process that have ended and were waited for (proc(5), `cutime` and `cstime`).
fn children_ticks() -> u64 {
    let line = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let words = line.rsplit_once(')').map_or("", |(_, words)| words).split_whitespace();
    words.skip(13).take(2).filter_map(|word| word.parse::<u64>().ok()).sum()
}

/// What wrk saw.
#[derive(Debug, PartialEq)]
struct Seen {
    /// Answers, whatever their status.
    requests: u64,
    /// Answers per second.
    rate: f64,
    /// Answers with a status that is none of success, and requests without an answer.
    errors: u64,
}

fn seen_in(line: &str) -> Option<Seen> {
    let value: Value = serde_json::from_str(line).ok()?;
    let number = |name: &str| value.get(name).and_then(Value::as_u64);
    let requests = number("requests")?;
    let rate = requests as f64 * 1e6 / number("microseconds")?.max(1) as f64;
    let errors = value.get("errors").and_then(Value::as_object);
    let errors = errors.map_or(0, |errors| errors.values().filter_map(Value::as_u64).sum());
    Some(Seen { requests, rate, errors })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_wrk_are_read() {
        let line = r#"{"requests":100,"microseconds":2000000,"bytes":1,"p50_us":3,"errors":{"connect":1}}"#;
        assert_eq!(seen_in(line), Some(Seen { requests: 100, rate: 50.0, errors: 1 }));
        assert!(seen_in("Running 5s test @ http://127.0.0.1").is_none());
    }
}
