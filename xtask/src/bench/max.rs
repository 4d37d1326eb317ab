//! `cargo xtask bench max`: the rate that `onehop bench max` finds, beside a grid of rates that are tried one by one.
//!
//! The tool searches; the grid tries fixed shares of what it found, each with `onehop bench -r` for as long as the tool
//! confirms one, and its answer is the highest rate below the first one that misses the limit in two of three runs. Both ask
//! on the cores that the server has too, as a user does. Then the tool searches again, which decides nothing: two searches that differ say that
//! the machine has changed its speed between them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::steps::command;
use crate::workspace::Options;
use crate::{Outcome, install, workspace};

use super::report::write_result;
use super::servers::{self, Cores};
use super::{applications, interrupt, rivals};
use onehop_load::plan::Expect;

/// The p99 that both look for, milliseconds.
const LIMIT_MS: u32 = 50;
/// The same of a server that takes 20 ms for a request: within 50 ms it answers a fifth of what it can, since requests come at
/// random.
const LIMIT_OF_SLOW_MS: u32 = 200;
/// The share of requests that may fail.
const FAILURES_MAX: f64 = 0.001;
/// Rates of the grid as shares of what the search found, in rising order.
const GRID: [f64; 7] = [0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3];
/// Responses for which a run lasts at least, four times the usual length at most: the tool's own rule for a p99.
const RESPONSES_MIN: f64 = 1_000.0;
const TIME_FACTOR_MAX: f64 = 4.0;
/// A run lasts so many times as long, as the tool's confirmation does.
const CONFIRMATION_FACTOR: f64 = 2.0;
/// The search is right where the grid's answer is within this share of its own.
const AGREES_WITHIN: f64 = 0.10;

/// A server of which the highest rate is looked for.
struct Subject {
    name: &'static str,
    words: Vec<String>,
    environment: Vec<(String, String)>,
    port: u16,
    path: &'static str,
    limit_ms: u32,
    /// What has to listen already.
    behind: Option<(Vec<String>, u16)>,
}

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let smoke = options.flag("--smoke");
    let seconds = options.number("--seconds", if smoke { 1 } else { 5 })?.max(1);
    let only = options.value("--only")?;
    options.finish()?;
    let work = workspace::target_folder("bench/max")?;
    let mut rows = Vec::new();
    let mut wrong = Vec::new();
    for subject in subjects(&work)? {
        if only.as_deref().is_some_and(|only| only != subject.name)
            || (smoke && subject.name != "handler-20-ms")
        {
            continue;
        }
        let row = compare(&subject, seconds, &work)?;
        println!(
            "{:<14} search {:>9.1}/s   grid {:>9.1}/s   search again {:>9.1}/s   {}",
            subject.name,
            row["search_per_second"].as_f64().unwrap_or(f64::NAN),
            row["grid_per_second"].as_f64().unwrap_or(f64::NAN),
            row["search_again_per_second"].as_f64().unwrap_or(f64::NAN),
            if row["agrees"] == true { "agrees" } else { "DIFFERS" }
        );
        if row["agrees"] != true {
            wrong.push(subject.name);
        }
        rows.push(row);
    }
    let value = json!({
        "what": "max", "date": workspace::date(), "machine": workspace::machine(),
        "seconds": seconds, "grid": GRID, "agrees_within": AGREES_WITHIN, "rows": rows,
    });
    println!("written to {}", write_result("max", smoke, &value)?.display());
    if wrong.is_empty() || smoke {
        Ok(())
    } else {
        Err(format!("the grid differs for {}", wrong.join(", ")).into())
    }
}

fn compare(subject: &Subject, seconds: u64, work: &Path) -> Outcome<Value> {
    let _behind = match &subject.behind {
        Some((words, port)) => Some(servers::start(words, &[], *port, Cores::All)?),
        None => None,
    };
    let mut server = servers::start(&subject.words, &subject.environment, subject.port, Cores::All)?;
    servers::wait_until_ready(&mut server, subject.path, Expect::Success)?;
    let url = format!("http://127.0.0.1:{}{}", subject.port, subject.path);
    let limit = format!("p99<{}ms", subject.limit_ms);
    let time = format!("{seconds}s");
    let look = || tool(&["bench", "max", &url, "--limit", &limit, "-d", &time], work);
    let best = |found: &Value| found["saturation"]["best_per_second"].as_f64();
    let found = look()?;
    let Some(search) = best(&found) else {
        return Ok(json!({ "server": subject.name, "search_per_second": null, "agrees": false }));
    };
    let load_was_the_limit = found["saturation"]["load_was_the_limit"] == true;
    let mut points = Vec::new();
    let mut grid = 0.0;
    for share in GRID {
        let rate = search * share;
        let mut votes = [0, 0];
        while votes.iter().all(|votes| *votes < 2) {
            let point = try_rate(&url, rate, seconds, subject.limit_ms, work)?;
            votes[usize::from(point["is_within"] == true)] += 1;
            points.push(point);
        }
        if votes[0] == 2 {
            break;
        }
        grid = rate;
    }
    let again = best(&look()?);
    // Rates are rounded on their way through the command line.
    let agrees = (grid / search - 1.0).abs() < AGREES_WITHIN + 0.01;
    Ok(json!({
        "server": subject.name, "limit": limit, "search_per_second": search, "grid_per_second": grid, "points": points,
        "search_again_per_second": again, "load_was_the_limit": load_was_the_limit,
        "agrees": agrees || (load_was_the_limit && grid >= search * 0.9),
    }))
}

/// Asks at one rate and judges it as the search does.
fn try_rate(url: &str, rate: f64, seconds: u64, limit_ms: u32, work: &Path) -> Outcome<Value> {
    let usual = seconds as f64;
    let time = (RESPONSES_MIN / rate).clamp(usual, usual * TIME_FACTOR_MAX) * CONFIRMATION_FACTOR;
    let time = format!("{time:.0}s");
    let rate = format!("{rate:.1}");
    let found = tool(&["bench", url, "-r", &rate, "-d", &time, "-c", "512"], work)?;
    let total = &found["loads"][0]["runs"][0]["total"];
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let p99_ms = number(&total["latency"]["p99_us"]) / 1e3;
    let failures = 1.0 - number(&total["good"]) / number(&total["requests"]);
    Ok(json!({
        "offered_per_second": rate.parse::<f64>()?, "p99_ms": p99_ms, "failures_share": failures,
        "is_within": p99_ms < f64::from(limit_ms) && failures <= FAILURES_MAX,
    }))
}

/// Runs the program with `--json` and reads what it has found. No rate within the limit is no failure of ours.
fn tool(words: &[&str], work: &Path) -> Outcome<Value> {
    interrupt::check()?;
    let file = work.join("found.json");
    let _ = std::fs::remove_file(&file);
    let mut tool = command(workspace::program(), words);
    tool.args(["--quiet", "--json"]).arg(&file).stdout(std::process::Stdio::null());
    let status = tool.status()?;
    let text = std::fs::read_to_string(&file)
        .map_err(|error| format!("{} ended with {status} and wrote nothing: {error}", words.join(" ")))?;
    Ok(serde_json::from_str(&text)?)
}

/// The five servers: files by nginx, an API on Node, a handler that takes 20 ms at a time, an app with a limit, a proxy.
fn subjects(work: &Path) -> Outcome<Vec<Subject>> {
    install::debian(&["nginx-light", "libnginx-mod-http-brotli-static"])?;
    rivals::make_site()?;
    let applications = applications::folder()?;
    let node = applications.join("node-http.mjs").display().to_string();
    let handler = workspace::root().join("benchmarks/servers/app/handler.mjs");
    let slow = work.join("slow.mjs");
    std::fs::write(&slow, SLOW_HANDLER)?;
    let floor = rivals::build("floor")?.display().to_string();
    let [nginx_port, node_port, slow_port, limited_port, proxy_port, floor_port] = free_ports()?;
    let app = |file: &Path, more: &str| format!("app {} {{\n\t\tworkers 1\n\t\t{more}\n\t}}", file.display());
    let site = |name: &'static str, port: u16, directive: &str, path: &'static str| -> Outcome<Subject> {
        Ok(Subject {
            name,
            words: onehop(work, name, port, directive)?,
            environment: Vec::new(),
            port,
            path,
            limit_ms: LIMIT_MS,
            behind: None,
        })
    };
    let proxy = site("proxy", proxy_port, &format!("reverse_proxy 127.0.0.1:{floor_port}"), "/788")?;
    Ok(vec![
        Subject {
            name: "nginx",
            words: nginx(work, nginx_port)?,
            environment: Vec::new(),
            port: nginx_port,
            path: "/",
            limit_ms: LIMIT_MS,
            behind: None,
        },
        Subject {
            name: "node",
            words: vec!["node".to_owned(), node],
            environment: vec![("PORT".to_owned(), node_port.to_string())],
            port: node_port,
            path: "/api/items/42",
            limit_ms: LIMIT_MS,
            behind: None,
        },
        Subject { limit_ms: LIMIT_OF_SLOW_MS, ..site("handler-20-ms", slow_port, &app(&slow, ""), "/")? },
        site(
            "limited-app",
            limited_port,
            &app(&handler, "limit in_flight 8 queue 64 wait 40ms"),
            "/api/items/42",
        )?,
        Subject { behind: Some((vec![floor, format!("127.0.0.1:{floor_port}")], floor_port)), ..proxy },
    ])
}

/// One request after the other, 20 ms each: 50 per second.
const SLOW_HANDLER: &str = "let last = Promise.resolve();
export default {
  fetch() {
    last = last.then(() => new Promise((resolve) => setTimeout(resolve, 20)));
    return last.then(() => new Response(\"slow\"));
  },
};
";

fn free_ports<const COUNT: usize>() -> Outcome<[u16; COUNT]> {
    let mut ports = [0; COUNT];
    for port in &mut ports {
        *port = servers::free_port()?;
    }
    Ok(ports)
}

fn onehop(work: &Path, name: &str, port: u16, directive: &str) -> Outcome<Vec<String>> {
    let file = work.join(format!("{name}.Onehopfile"));
    std::fs::write(&file, format!("{{\n\tadmin off\n}}\nhttp://127.0.0.1:{port} {{\n\t{directive}\n}}\n"))?;
    let program: PathBuf = std::path::absolute(workspace::program())?;
    let words = [program.display().to_string(), "run".into(), "--config".into(), file.display().to_string()];
    Ok(words.to_vec())
}

/// nginx with one worker for each core and what the scenario of files has, without its module for brotli.
fn nginx(work: &Path, port: u16) -> Outcome<Vec<String>> {
    let file = work.join("nginx.conf");
    let site = workspace::root().join("benchmarks/site");
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}/{kind};\n", work.display()))
        .concat();
    let text = format!(
        "worker_processes auto;\ndaemon off;\npid {work}/nginx.pid;\nerror_log {work}/error.log crit;\n\
         events {{ worker_connections 9000; }}\nhttp {{ {temporary} access_log off; sendfile on; \
         keepalive_requests 1000000000; server {{ listen 127.0.0.1:{port}; root {site}; }} }}\n",
        work = work.display(),
        site = site.display()
    );
    std::fs::write(&file, text)?;
    Ok(["/usr/sbin/nginx", "-p", &work.display().to_string(), "-c", &file.display().to_string()]
        .map(str::to_owned)
        .to_vec())
}
