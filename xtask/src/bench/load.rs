//! The load: wrk on its own core, its figures read from the line that `wrk-report.lua` prints.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::Value;

use crate::steps::command;
use crate::{Outcome, ground};

use super::process::{self, Cores};

/// A run that is only to show that it works is broken off after this long; wrk itself counts in seconds.
const MOMENT_SECONDS: &str = "0.3";

/// What wrk is asked to do.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    /// Path of the request.
    pub(crate) path: String,
    /// Header fields of the request.
    pub(crate) fields: Vec<(String, String)>,
    /// Connections, all kept.
    pub(crate) connections: u64,
    /// Threads of wrk.
    pub(crate) threads: u64,
    /// How long.
    pub(crate) seconds: u64,
    /// A method other than GET, and the file whose content is the body.
    pub(crate) body: Option<(&'static str, PathBuf)>,
    /// `None` stays on the load's core.
    pub(crate) cores: Option<Cores>,
    /// Breaks off after a moment.
    pub(crate) is_brief: bool,
}

/// What wrk saw.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Answers.
    pub(crate) requests: u64,
    /// Answers per second.
    pub(crate) rate: f64,
    /// Median latency.
    pub(crate) p50_us: u64,
    /// The latency that 99 of 100 answers stay below.
    pub(crate) p99_us: u64,
    /// CPU seconds that the load itself took.
    pub(crate) load_cpu_seconds: f64,
    /// Refused connections, broken reads and writes, statuses of 400 and above, timeouts.
    pub(crate) errors: u64,
}

impl Load {
    /// The command line, for the record and to run.
    pub(crate) fn line(&self, address: SocketAddr) -> Vec<String> {
        let script = ground::root().join("benchmarks/wrk-report.lua").display().to_string();
        let mut line: Vec<String> = Vec::new();
        if self.is_brief {
            line.extend(["timeout", "--signal=INT", MOMENT_SECONDS].map(str::to_owned));
        }
        if let Some(cores) = self.cores {
            line.extend(["taskset".to_owned(), "-c".to_owned(), cores.list()]);
        }
        line.extend(["wrk", "--latency", "-s", &script].map(str::to_owned));
        line.push(format!("-t{}", self.threads));
        line.push(format!("-c{}", self.connections));
        line.push(format!("-d{}s", self.seconds));
        for (name, value) in &self.fields {
            line.extend(["-H".to_owned(), format!("{name}: {value}")]);
        }
        line.push(format!("http://{address}{}", self.path));
        if let Some((method, file)) = &self.body {
            line.extend(["--".to_owned(), (*method).to_owned(), file.display().to_string()]);
        }
        line
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, address: SocketAddr) -> Outcome<Seen> {
        let line = self.line(address);
        let words: Vec<&str> = line.iter().skip(1).map(String::as_str).collect();
        let before = process::seconds_of_children();
        let output =
            command(&line[0], &words).output().map_err(|error| format!("cannot run wrk: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let seen = text.lines().rev().find_map(|line| seen_in(line.trim()));
        let load_cpu_seconds = process::seconds_of_children() - before;
        seen.map(|seen| Seen { load_cpu_seconds, ..seen }).ok_or_else(|| {
            format!("wrk gave no figures: {text}{}", String::from_utf8_lossy(&output.stderr)).into()
        })
    }
}

fn seen_in(line: &str) -> Option<Seen> {
    let value: Value = serde_json::from_str(line).ok()?;
    let number = |name: &str| value.get(name).and_then(Value::as_u64);
    let requests = number("requests")?;
    Some(Seen {
        requests,
        rate: requests as f64 * 1e6 / number("microseconds")?.max(1) as f64,
        p50_us: number("p50_us")?,
        p99_us: number("p99_us")?,
        load_cpu_seconds: 0.0,
        errors: value.get("errors")?.as_object()?.values().filter_map(Value::as_u64).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_wrk_are_read_and_its_errors_added_up() {
        let line = r#"{"requests":100,"microseconds":2000000,"bytes":1,"p50_us":3,"p90_us":4,"p99_us":5,"max_us":6,"errors":{"connect":1,"read":0,"write":0,"status":2,"timeout":0}}"#;
        let seen = seen_in(line).unwrap();
        assert_eq!((seen.requests, seen.rate, seen.p50_us, seen.p99_us, seen.errors), (100, 50.0, 3, 5, 3));
        assert!(seen_in("Running 5s test @ http://127.0.0.1").is_none());
    }
}
