//! `onehop bench`, the real program, against onehop serving a folder.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;

use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Finished, Folder, Onehop, Program};
use rustix::net::{self, AddressFamily, SocketType};
use rustix::process::Signal;
use serde_json::Value;

/// A folder with a page, served.
fn site() -> (Onehop, Folder) {
    let folder = Folder::with(&[("index.html", "<p>one page</p>"), ("other.html", "<p>another page</p>")]);
    (Onehop::serve(folder.path(), &[]), folder)
}

fn bench(arguments: &[&str]) -> Finished {
    bench_in(Path::new("."), arguments)
}

fn bench_in(folder: &Path, arguments: &[&str]) -> Finished {
    let words = std::iter::once(&"bench").chain(arguments);
    Program::new(words).inside(folder).finish()
}

fn json(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", finished.stdout, finished.stderr))
}

/// Answers every connection with the same bytes after each request's head, and closes where it has to.
fn scripted(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while connection.read(&mut byte).is_ok_and(|read| read == 1) {
                    head.push(byte[0]);
                    if head.ends_with(b"\r\n\r\n") {
                        head.clear();
                        if connection.write_all(answer.as_bytes()).is_err() || answer.contains("close") {
                            return;
                        }
                    }
                }
            });
        }
    });
    address
}

/// How many requests the server says it answered well.
fn served(server: &Onehop) -> u64 {
    let metrics = server.metrics();
    let counts =
        metrics.lines().filter(|line| line.starts_with("onehop_requests_total") && line.contains("2xx"));
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// An address at which nobody listens, and that nobody else gets as long as the socket is held: it is bound and does
/// not listen.
fn nobody() -> (OwnedFd, SocketAddr) {
    let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = net::getsockname(&socket).unwrap().try_into().unwrap();
    (socket, address)
}

#[test]
fn a_closed_loop_makes_so_many_requests_twice_and_all_are_good() {
    let (server, _folder) = site();
    let finished = bench(&[&server.address, "-n", "1000", "-c", "8", "--json", "-", "--quiet"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{}", finished.stdout);
    let report = json(&finished);
    let runs = report["loads"][0]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2, "{report:#}");
    for run in runs {
        assert_eq!(run["total"]["good"], 1000, "{run:#}");
    }
    assert_eq!(served(&server), 2000, "the server counted both runs and nothing else");
}

#[test]
fn a_server_that_is_not_there_ends_with_1_and_its_address() {
    let (_held, address) = nobody();
    let address = address.to_string();
    for arguments in [
        &[address.as_str()][..],
        &["max", &address],
        &["wrk", "-c", "2", "-t", "1", "-d", "1s", &address],
        &["compare", &address, &address],
    ] {
        let finished = bench(arguments);
        assert_eq!(finished.code, Some(1), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(&address), "{}", finished.stderr);
        assert!(finished.stderr.contains("connection refused"), "{}", finished.stderr);
        assert_eq!(finished.stdout, "");
    }
}

#[test]
fn a_host_that_is_not_this_machine_is_refused_before_anything_is_sent() {
    // TEST-NET-1 of RFC 5737: an attempt to connect would last for seconds, and would be another error.
    for arguments in [
        &["http://192.0.2.1/"][..],
        &["max", "192.0.2.1:80"],
        &["ab", "-n", "1", "http://192.0.2.1/"],
        &["compare", "http://127.0.0.1:9/", "node x.js @ http://192.0.2.1:80/"],
    ] {
        let finished = bench(arguments);
        assert_eq!(finished.code, Some(2), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains("--i-own-this-host"), "{}", finished.stderr);
    }
}

#[test]
fn wrong_usage_ends_with_2_before_anything_runs() {
    let (_held, address) = nobody();
    let address = address.to_string();
    for arguments in [
        &[][..],
        &["ftp://localhost/"],
        &[&address, "-c", "0"],
        &[&address, "-d", "forever"],
        &[&address, "-n", "10", "-c", "20"],
        &[&address, "-r", "10..20", "-n", "5"],
        &[&address, "--until", "200%"],
        &[&address, "--expect", "2xx"],
        &[&address, "-b", "@no-such-file"],
        &[&address, "-r", "5", "--think", "1s"],
        &[&address, "--json", "-", "--markdown", "-"],
        &[&address, "--json", "no/such/folder/file.json"],
        &[&address, "-X", "NO SPACE"],
        &["compare", &address],
        &["compare", "a 'b", "c"],
        &["max", &address, "--limit", "fast"],
        &["collection", "no-such-file.json"],
        &["wrk", "-s", "x.lua", "http://localhost/"],
        &["ab", "-n", "1", "-c", "2", "http://localhost/"],
        &["autocannon", "-p", "10", "localhost"],
        &["wrk", "--runs", "none", "http://localhost/"],
    ] {
        let finished = bench(arguments);
        assert_eq!(finished.code, Some(2), "{arguments:?}: {}", finished.stderr);
        assert!(!finished.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn what_is_no_success_is_reported_and_ends_with_1() {
    let not_found = scripted("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").to_string();
    let cut_off =
        scripted("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nhalf").to_string();
    let finished = bench(&[&not_found, "-n", "50", "-c", "2"]);
    assert_eq!(finished.code, Some(1), "{}", finished.stdout);
    assert!(
        finished.stdout.contains("404") && finished.stderr.contains("not one good answer"),
        "{finished:?}"
    );
    let finished = bench(&[&not_found, "-n", "50", "-c", "2", "--expect", "404"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let finished = bench(&[&cut_off, "-n", "50", "-c", "2", "--json", "-"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(json(&finished)["loads"][0]["runs"][0]["total"]["good"], 0, "{finished:?}");
}

#[test]
fn a_load_on_a_page_that_is_not_there_stops_at_once_and_names_the_option_to_go_on() {
    let address = scripted("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let url = format!("{}/nothere", address.port());
    let begun = std::time::Instant::now();
    let finished = bench(&[&url, "-d", "1h", "-c", "2"]);
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(finished.code, Some(1), "{}", finished.stdout);
    for part in [format!("localhost:{url}").as_str(), "had the status 404", "--expect 404"] {
        assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
    }
    let finished = bench(&[&url, "-d", "1s", "-c", "2", "--runs", "1", "--expect", "404"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

#[test]
fn a_rate_far_above_what_a_server_can_do_shows_what_it_does_and_ends_with_0() {
    // 4 connections at 20 ms each can do 200 a second; 2000 come.
    let server = Upstream::answering(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()
    });
    let address = server.address();
    let overload = [&address, "-r", "2000", "-c", "4", "-d", "1s", "--runs", "1", "--quiet"];
    let finished = bench(&overload);
    assert_eq!(finished.code, Some(0), "{}{}", finished.stdout, finished.stderr);
    assert!(!finished.stdout.contains("Not one good answer"), "{}", finished.stdout);
    let finished = bench(&[&overload[..], &["--json", "-"]].concat());
    let run = &json(&finished)["loads"][0]["runs"][0];
    assert!(run["total"]["good"] == 0 && run["rate_per_second"].as_f64() > Some(20.0), "{run:#}");
}

#[test]
fn commands_of_other_tools_work_as_they_stand() {
    let (server, folder) = site();
    let url = format!("http://{}/", server.address);
    folder.write("body.json", "{}");
    for arguments in [
        &["wrk", "-t1", "-c4", "-d", "600ms", "--latency", "-H", "Accept: text/html", &url, "--runs", "1"][..],
        &["wrk", "-t1", "-c4", "-d", "600ms", "-R200", "--runs=1", &url],
        &["ab", "-n", "200", "-c", "4", "-k", "-q", &url],
        &["ab", "-n", "20", "-c", "2", &url],
        &["autocannon", "-c", "4", "-d", "1", "-l", "--no-progress", "--runs", "1", &server.address],
        &["autocannon", "-a", "100", "-c", "4", &url],
        &["oha", "-n", "50", "-c", "4", "--no-tui", &url],
        &["hey", "-n", "50", "-c", "4", "-disable-keepalive", &url],
        &["k6", "run", "--vus", "2", "--iterations", "20", "--quiet", &url],
    ] {
        let finished = bench_in(folder.path(), arguments);
        assert_eq!(finished.code, Some(0), "{arguments:?}: {}{}", finished.stdout, finished.stderr);
        assert!(finished.stdout.contains("p99"), "{arguments:?}: {}", finished.stdout);
    }
    let finished = bench(&["autocannon", "-a", "50", "-c", "2", "-j", &url]);
    assert_eq!(json(&finished)["loads"][0]["runs"][0]["total"]["good"], 50);
}

#[test]
fn results_go_into_the_files_that_were_named() {
    let (server, folder) = site();
    let finished = bench_in(
        folder.path(),
        &[
            &server.address,
            "-n",
            "100",
            "-c",
            "1,2",
            "--html",
            "report.html",
            "--json",
            "report.json",
            "--markdown",
            "-",
        ],
    );
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.starts_with("<!") && page.contains("</html>"), "{page}");
    let report: Value = serde_json::from_slice(&std::fs::read(folder.join("report.json")).unwrap()).unwrap();
    assert_eq!(report["loads"].as_array().map(Vec::len), Some(2), "{report:#}");
    assert!(finished.stdout.contains('|'), "{}", finished.stdout);
    assert!(finished.stderr.contains("written: report.html"), "{}", finished.stderr);
}

#[test]
fn an_interrupt_ends_it_early_with_what_was_measured() {
    let (server, _folder) = site();
    for signal in [Signal::INT, Signal::TERM] {
        let started = Program::new(["bench", &server.address, "-d", "1h", "-c", "2", "--json", "-"]).start();
        // Requests that were answered show that it runs; a short warm-up lets them be the run's own.
        let before = served(&server);
        started.wait_for_text("Ctrl-C");
        onehop_testkit::wait_for("requests", || (served(&server) > before + 100).then_some(()));
        started.signal(signal);
        let finished = started.wait_for_end();
        let report = json(&finished);
        let run = &report["loads"][0]["runs"][0];
        assert_eq!(run["end"], "interrupted", "{run:#}");
    }
}

#[test]
fn two_urls_are_compared_in_rounds() {
    let (server, _folder) = site();
    let other = format!("other=http://{}/other.html", server.address);
    let page = format!("page=http://{}/", server.address);
    let finished = bench(&[
        "compare",
        &page,
        &other,
        "--rounds",
        "2",
        "--time",
        "500ms",
        "--warm-up",
        "50ms",
        "-c",
        "2",
        "--json",
        "-",
    ]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let report = json(&finished);
    assert_eq!(report["comparison"]["arms"], serde_json::json!(["page", "other"]), "{report:#}");
    assert_eq!(report["comparison"]["samples"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_list_of_urls_is_asked_in_order_and_an_unexpected_status_ends_with_1() {
    let (server, folder) = site();
    let url = format!("http://{}", server.address);
    folder.write("list.txt", format!("{url}/\n{url}/other.html\n"));
    folder.write("missing.txt", format!("{url}/\n{url}/missing.html\n"));
    let finished = bench_in(folder.path(), &["collection", "list.txt", "-n", "20"]);
    assert_eq!(finished.code, Some(0), "{}{}", finished.stdout, finished.stderr);
    let finished = bench_in(folder.path(), &["collection", "missing.txt", "-n", "3"]);
    assert_eq!(finished.code, Some(1), "{}", finished.stdout);
    assert!(finished.stderr.contains("3 requests had another answer"), "{}", finished.stderr);
    assert!(finished.stdout.contains("404"), "{}", finished.stdout);
}

#[test]
fn an_interrupt_ends_it_soon_with_servers_that_do_not_listen_to_it() {
    // It never answers, and stays for the five seconds that a server gets to end by itself.
    let script = "trap 'echo told > told' TERM; echo $$ > up; while :; do sleep 0.05; done";
    let folder = Folder::with(&[("stays.sh", script)]);
    let port = onehop_load::measure::free_port().unwrap();
    let stays = format!("sh stays.sh @ http://127.0.0.1:{port}/");
    let compared = ["bench", "compare", &stays, &stays, "--ready-within", "1h"];
    let started = Program::new(compared).inside(folder.path()).start();
    let written =
        |name: &str| std::fs::read_to_string(folder.join(name)).ok().filter(|text| text.ends_with('\n'));
    let child = onehop_testkit::wait_for("the server", || written("up"));
    let child = child.trim();
    started.signal(Signal::INT);
    // It is told to end first.
    onehop_testkit::wait_for("the server's being told", || written("told"));
    let reported = std::time::Instant::now();
    let finished = started.wait_for_end();
    assert!(reported.elapsed() < std::time::Duration::from_secs(4), "{:?}", reported.elapsed());
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("before anything was measured"), "{}", finished.stderr);
    let is_gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        (!stat.contains("(sh) ") || stat.contains("(sh) Z")).then_some(())
    };
    onehop_testkit::wait_for("the server's end", is_gone);
}

#[test]
fn a_command_is_started_asked_and_ended() {
    let (server, folder) = site();
    let running = format!("running={}", server.address);
    // The program itself stands in the path of a test's helper; its own name is not in PATH.
    let onehop = std::env::var("ONEHOP_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_onehop").to_owned());
    let started = format!("started='{onehop}' serve . --listen 127.0.0.1:{{port}} --admin off --control off");
    let finished = bench_in(
        folder.path(),
        &[
            "compare",
            &running,
            &started,
            "--rounds",
            "2",
            "--time",
            "500ms",
            "--warm-up",
            "100ms",
            "-c",
            "2",
            "--json",
            "-",
        ],
    );
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let report = json(&finished);
    let samples = report["comparison"]["samples"].as_array().unwrap();
    let own = samples.iter().filter(|sample| sample["arm"] == "started");
    let cold_starts: Vec<_> = own.filter_map(|sample| sample["cold_start_us"].as_f64()).collect();
    assert_eq!(cold_starts.len(), 2, "{report:#}");
}

#[test]
fn what_stands_behind_on_port_is_started_and_asked_there() {
    let (_server, folder) = site();
    let onehop = std::env::var("ONEHOP_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_onehop").to_owned());
    let asked = ["autocannon", "-a", "20", "-c", "2", "-j", "--on-port", "/other.html", "--", &onehop];
    let server = ["serve", ".", "--admin", "off", "--control", "off"];
    let words: Vec<&str> = asked.into_iter().chain(server).collect();
    let finished = bench_in(folder.path(), &words);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(json(&finished)["loads"][0]["runs"][1]["total"]["good"], 20, "{}", finished.stdout);
}

#[test]
fn errors_name_the_place_the_cause_and_the_next_step() {
    let mut reported = String::new();
    for arguments in [
        &["http://me:secret@localhost/"][..],
        &["https://localhost/", "--cacert", "no-such-file"],
        &["https://localhost/", "--tls-curves", "x448"],
        &["http://192.0.2.1/"],
        &["0=:8080"],
        &[":8080", "-c", "0"],
        &[":8080", "-d", "soon"],
        &[":8080", "-r", "fast"],
        &[":8080", "-n", "10", "-c", "20"],
        &[":8080", "-r", "10..20", "-n", "5"],
        &[":8080", "--cores", "3-1"],
        &[":8080", "--html", "/nonexistent/report.html"],
        &["compare", "node 'server.js", ":8080"],
        &["max", ":8080", "--limit", "fast"],
        &["wrk", "-s", "post.lua", "http://localhost/"],
        &["wrk", "--runs", "many", "http://localhost/"],
        &["ab", "-n", "10", "-c", "20", "http://localhost/"],
        &["autocannon", "-p", "10", "localhost:3000"],
        &["autocannon", "--har", "a.har", "localhost:3000"],
    ] {
        let finished = bench(arguments);
        assert_eq!(finished.code, Some(2), "{arguments:?}: {}", finished.stderr);
        reported.push_str(&format!("$ onehop bench {}\n{}\n", arguments.join(" "), finished.stderr));
    }
    insta::assert_snapshot!(reported);
}
