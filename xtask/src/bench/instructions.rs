//! `cargo xtask bench instructions`: user instructions of the server per request, counted by callgrind.
//!
//! Counts do not depend on the load of the machine, so a difference of one in a hundred between two programs shows in
//! one run of each. What the kernel does, and what workers and upstreams do in their processes, is not counted: CPU time in
//! interleaved rounds shows that.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use onehop_testkit::{Program, Started};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::steps::{command, quiet};
use crate::workspace::Options;
use crate::{Outcome, install, workspace};

use super::applications;
use super::interrupt;
use super::report::write_result;

/// Requests of the two runs whose difference counts.
const REQUESTS: [usize; 2] = [500, 4_500];
/// Of a smoke run.
const SMOKE_REQUESTS: [usize; 2] = [20, 120];
/// Two programs differ by more than the start's share of chance if they differ by more than this.
const MORE_MAX: f64 = 0.02;
/// For a server that callgrind slows down fifty times, and for its workers beside it.
const WITHIN: Duration = Duration::from_secs(180);
/// Bytes of the page.
const PAGE_BYTES: usize = 788;
/// Bytes of the asset.
const ASSET_BYTES: usize = 100 * 1024;

/// What is asked, of which server.
struct Case {
    name: &'static str,
    /// The site's directives.
    site: String,
    path: &'static str,
    /// The client has the file already.
    is_revalidation: bool,
    /// Only what happens within these functions counts, patterns of callgrind; empty means everything.
    within: &'static [&'static str],
}

/// What counts a request: the counters and histograms of its site.
const COUNTERS: [&str; 1] = ["*SiteCounters*record*"];
/// What counts the path, agent and address of those requests that are looked at: all of them where they are few.
const VISITS: [&str; 1] = ["*Visits*count*"];

/// The program runs itself again by the kernel's link to its file, which below callgrind leads to callgrind. The dynamic
/// linker puts these in front of the C library's functions.
const EXECUTE_BY_NAME: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>

static const char *itself;

/* Before the program sets the environment of its children. */
__attribute__((constructor)) static void look(void) {
    itself = strdup(getenv("PROGRAM_ITSELF") ? getenv("PROGRAM_ITSELF") : "");
}

static const char *named(const char *path) {
    return strcmp(path, "/proc/self/exe") ? path : itself;
}

int execvp(const char *path, char *const words[]) {
    int (*next)(const char *, char *const *) = dlsym(RTLD_NEXT, "execvp");
    return next(named(path), words);
}

int posix_spawnp(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const words[], char *const environment[]) {
    int (*next)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *,
                char *const *) = dlsym(RTLD_NEXT, "posix_spawnp");
    return next(pid, named(path), actions, attributes, words, environment);
}
"#;

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let smoke = options.flag("--smoke");
    let against = options.value("--against")?.map(PathBuf::from);
    options.finish()?;
    install::debian(&["valgrind"])?;

    let work = workspace::target_folder("bench/instructions")?;
    execute_by_name(&work)?;
    let programs: Vec<PathBuf> = against.into_iter().chain([workspace::program()]).collect();
    let mut rows = serde_json::Map::new();
    for case in cases(&work, smoke)? {
        let counts: Vec<f64> = programs
            .iter()
            .map(|program| per_request(program, &case, &work, smoke))
            .collect::<Outcome<_>>()?;
        rows.insert(case.name.to_owned(), row(case.name, &counts));
    }
    let value = json!({
        "what": "instructions", "date": workspace::date(), "machine": workspace::machine(), "instructions_per_request": rows,
    });
    println!("written to {}", write_result("instructions", smoke, &value)?.display());
    Ok(())
}

/// Builds [`EXECUTE_BY_NAME`].
fn execute_by_name(work: &Path) -> Outcome {
    let [source, library] = [work.join("execute.c"), library(work)];
    std::fs::write(&source, EXECUTE_BY_NAME)?;
    let words =
        ["-shared", "-fPIC", "-o", &library.display().to_string(), &source.display().to_string(), "-ldl"];
    quiet(&mut command("cc", &words))
}

fn library(work: &Path) -> PathBuf {
    work.join("execute.so")
}

/// Prints the counts of a case; where there are two, the first is what the second is compared with.
fn row(name: &str, counts: &[f64]) -> Value {
    match counts {
        [before, after] => {
            let more = after / before - 1.0;
            let verdict = if more <= MORE_MAX { "met" } else { "MISSED" };
            println!(
                "{name:<12} {before:>9.0} -> {after:>9.0} instructions, {:+.1} %  {verdict}",
                more * 100.0
            );
            json!({ "before": before, "after": after, "more": more })
        }
        counts => {
            let each = counts.first().copied().unwrap_or_default();
            println!("{name:<12} {each:>9.0} instructions");
            json!({ "after": each })
        }
    }
}

fn cases(work: &Path, smoke: bool) -> Outcome<Vec<Case>> {
    let root = work.join("site");
    std::fs::create_dir_all(&root)?;
    std::fs::write(root.join("index.html"), "x".repeat(PAGE_BYTES))?;
    std::fs::write(root.join("app.js"), "let answer = 42;\n".repeat(ASSET_BYTES / 17))?;
    let files = format!("root {}\n\tfile_server", root.display());
    let case = |name, site: &str, path| Case {
        name,
        site: site.to_owned(),
        path,
        is_revalidation: false,
        within: &[],
    };
    let log = work.join("access.log");
    let upstream = upstream()?;
    let mut cases = vec![
        case("page", &files, "/"),
        Case { is_revalidation: true, ..case("304", &files, "/") },
        case("asset", &files, "/app.js"),
        Case { within: &COUNTERS, ..case("page-counters", &files, "/") },
        Case { within: &VISITS, ..case("page-visits", &files, "/") },
        case("log-json", &format!("{files}\n\tlog {{\n\t\toutput file {}\n\t}}", log.display()), "/"),
        case(
            "log-combined",
            &format!("{files}\n\tlog {{\n\t\toutput file {}\n\t\tformat combined\n\t}}", log.display()),
            "/",
        ),
        case("proxy", &format!("reverse_proxy {upstream}"), "/"),
    ];
    // The build of a smoke run is static, and no library is put in front of one.
    if !smoke {
        let handler = workspace::root().join("benchmarks/servers/app/handler.mjs");
        cases.push(case("handler", &app(&handler), "/api/items/42"));
        cases.push(case("fastify", &app(&applications::folder()?.join("fastify.mjs")), "/api/items/42"));
    }
    Ok(cases)
}

fn app(script: &Path) -> String {
    format!("app {} {{\n\t\tworkers 1\n\t}}", script.display())
}

/// A server that answers each request with the same page, for as long as this process runs.
fn upstream() -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let response =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {PAGE_BYTES}\r\n\r\n{}", "x".repeat(PAGE_BYTES));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let response = response.clone();
            std::thread::spawn(move || respond(stream, response.as_bytes()));
        }
    });
    Ok(address)
}

/// Requests come one at a time and without a body, so each read of a head's end is one of them.
fn respond(mut stream: TcpStream, response: &[u8]) {
    let mut buffer = [0; 4096];
    let mut head = Vec::new();
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        head.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            if stream.write_all(response).is_err() {
                return;
            }
        }
    }
}

fn per_request(program: &Path, case: &Case, work: &Path, smoke: bool) -> Outcome<f64> {
    let [few, many] = if smoke { SMOKE_REQUESTS } else { REQUESTS };
    let more =
        instructions(program, case, work, many)?.saturating_sub(instructions(program, case, work, few)?);
    Ok(more as f64 / (many - few) as f64)
}

/// Instructions of a server from its start to its end, with so many requests in between.
fn instructions(program: &Path, case: &Case, work: &Path, requests: usize) -> Outcome<u64> {
    interrupt::check()?;
    let file = work.join("Onehopfile");
    std::fs::write(&file, format!("{{\n\tadmin off\n}}\nhttp://127.0.0.1:0 {{\n\t{}\n}}\n", case.site))?;
    let file = file.display().to_string();
    let within: Vec<String> = case.within.iter().map(|name| format!("--toggle-collect={name}")).collect();
    let callgrind: Vec<&str> = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        .into_iter()
        .chain(within.iter().map(String::as_str))
        .collect();
    let started = Program::of(program, ["run", "--log", "json", "--config", &file])
        .through(&callgrind)
        .with_env("LD_PRELOAD", library(work))
        .with_env("PROGRAM_ITSELF", program)
        .control_in(work)
        .start();
    let asked = address(&started).and_then(|address| ask(&address, case, requests));
    started.signal(Signal::TERM);
    let end = Instant::now() + WITHIN;
    let collected = loop {
        let text = started.stderr();
        let number = text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
        match number {
            Some(number) => break number,
            None if Instant::now() > end => {
                return Err(format!("{}: callgrind says\n{text}", case.name).into());
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    asked.map_err(|error| format!("{}: {error}\n{}", case.name, started.stderr()))?;
    Ok(collected)
}

/// Where the server listens, once it is ready.
fn address(started: &Started) -> Outcome<String> {
    let end = Instant::now() + WITHIN;
    while Instant::now() < end {
        let events = started.events();
        let named = |name: &str| events.iter().find(|event| event["event"] == name);
        if let (Some(listening), Some(_)) = (named("listening"), named("ready")) {
            let address = listening["address"].as_str().unwrap_or_default();
            return Ok(address.replace("[::]", "127.0.0.1"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err("the server does not become ready".into())
}

/// Asks on one connection, one request at a time; all responses are as long as the first.
fn ask(address: &str, case: &Case, requests: usize) -> Outcome {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(WITHIN))?;
    let mut request =
        format!("GET {} HTTP/1.1\r\nHost: {address}\r\nAccept-Encoding: br, gzip\r\n", case.path);
    if case.is_revalidation {
        let first = exchange(&mut stream, &format!("{request}\r\n"))?;
        let tag = first.lines().find_map(|line| line.strip_prefix("ETag: ")).ok_or("no ETag")?;
        request += &format!("If-None-Match: {tag}\r\n");
    }
    request += "\r\n";
    let first = exchange(&mut stream, &request)?;
    let expected = if case.is_revalidation { "HTTP/1.1 304" } else { "HTTP/1.1 200" };
    if !first.starts_with(expected) {
        return Err(format!("unexpected response: {first}").into());
    }
    let mut response = vec![0; first.len()];
    for _ in 1..requests {
        stream.write_all(request.as_bytes())?;
        stream.read_exact(&mut response)?;
        if !response.starts_with(expected.as_bytes()) {
            return Err("a response differs from the first".into());
        }
    }
    Ok(())
}

/// One request and its response, head and body; what is no text counts as a letter for each byte.
fn exchange(stream: &mut TcpStream, request: &str) -> Outcome<String> {
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = stream.read(&mut buffer)?;
        response.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let text: String = response.iter().map(|byte| char::from(*byte & 0x7f)).collect();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Ok(text);
            }
        }
        if count == 0 {
            return Err(format!("the connection ended: {text}").into());
        }
    }
}
