//! The history of a server: what survives, what a broken folder costs, and who may ask for what.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use onehop_testkit::{Folder, Onehop, Program, wait_for};
use rustix::process::Signal;
use serde_json::Value;

/// A site that answers, with its history in this folder's `data`.
fn folder(history: &str) -> Folder {
    let global = format!("{{\n\tadmin 127.0.0.1:0\n\tdata_dir data\n{history}}}\n");
    Folder::with(&[("Onehopfile", &format!("{global}http://127.0.0.1:0 {{\n\trespond hello\n}}\n"))])
}

/// One request to the control socket in this folder.
fn ask(folder: &Path, line: &str, fields: &str) -> (u16, Value) {
    let mut stream = UnixStream::connect(folder.join("onehop.sock")).expect("connected");
    let request = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    read(stream)
}

fn read(mut stream: impl Read) -> (u16, Value) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head[9..12].parse().expect("a status"), serde_json::from_str(body).unwrap_or_default())
}

fn requests(folder: &Path) -> u64 {
    ask(folder, "GET /history", "").1["total"]["requests"].as_u64().expect("a number")
}

fn events(folder: &Path) -> Vec<String> {
    let (_, answer) = ask(folder, "GET /events", "");
    let events = answer["events"].as_array().expect("a list");
    events.iter().map(|event| event["event"].as_str().expect("a name").to_owned()).collect()
}

/// The files of the history.
fn files(folder: &Path) -> Vec<PathBuf> {
    let histories = folder.join("data/history").read_dir().expect("made").flatten();
    histories
        .flat_map(|own| own.path().read_dir().expect("a folder").flatten())
        .map(|file| file.path())
        .collect()
}

#[test]
fn the_history_survives_a_kill_and_a_restart() {
    let folder = folder("");
    let path = folder.path();
    let mut onehop = Onehop::start_in(path);
    for _ in 0..7 {
        assert_eq!(onehop.connect().get("/").text(), "hello");
    }
    wait_for("a sample", || (requests(path) == 7).then_some(()));
    onehop.process.signal(Signal::KILL);
    onehop.process.wait().expect("it ends");
    let onehop = Onehop::start_in(path);
    assert_eq!(requests(path), 7);
    let (_, sites) = ask(path, "GET /history/sites", "");
    let site = &sites["sites"][0];
    assert!(site["total"]["p99_ms"].as_f64().is_some_and(|time| time > 0.0), "{sites}");
    let label = site["site"].as_str().expect("a label");
    let (status, curves) = ask(path, &format!("GET /history?site={label}"), "");
    assert_eq!((status, curves["total"]["requests"].as_u64()), (200, Some(7)));
    // A stop takes a last sample.
    assert_eq!(onehop.connect().get("/").text(), "hello");
    let stopped = Program::new(["stop"]).inside(path).control_in(path).finish();
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    let _third = Onehop::start_in(path);
    assert_eq!(requests(path), 8);
    wait_for("three starts", || {
        (events(path).iter().filter(|event| *event == "start").count() == 3).then_some(())
    });
    assert!(events(path).contains(&"stop".to_owned()));
}

#[test]
fn a_damaged_history_is_moved_aside_and_serving_continues() {
    let folder = folder("");
    let path = folder.path();
    let onehop = Onehop::start_in(path);
    wait_for("an event", || events(path).contains(&"start".to_owned()).then_some(()));
    drop(onehop);
    let damaged = files(path).into_iter().filter(|file| file.extension().is_some_and(|end| end == "hist"));
    for file in damaged {
        fs::write(&file, "this was never a history").expect("written");
    }
    let onehop = Onehop::start_in(path);
    assert_eq!(onehop.connect().get("/").text(), "hello");
    let reported = wait_for("a notice", || {
        let reported = onehop.process.events().into_iter().find(|event| event["event"] == "warning");
        reported.map(|reported| reported["message"].as_str().expect("a text").to_owned())
    });
    assert!(reported.contains("damaged") && reported.contains(".hist.damaged"), "{reported}");
    assert!(files(path).iter().any(|file| file.to_string_lossy().ends_with(".damaged")));
    assert!(events(path).contains(&"history_damaged".to_owned()));
}

#[test]
fn a_folder_that_cannot_be_written_holds_the_history_in_memory() {
    let folder = folder("");
    let path = folder.path();
    fs::create_dir(path.join("data")).expect("made");
    // Root may write in any folder, but not in a file.
    fs::write(path.join("data/history"), "a file").expect("written");
    let onehop = Onehop::start_in(path);
    assert_eq!(onehop.connect().get("/").text(), "hello");
    let reported = onehop.process.wait_for_event("warning");
    assert!(reported["message"].as_str().expect("a text").contains("held in memory"), "{reported}");
    wait_for("a sample in memory", || (requests(path) == 1).then_some(()));
    let warnings = onehop.process.events().into_iter().filter(|event| event["event"] == "warning").count();
    assert_eq!(warnings, 1);
}

#[test]
fn a_full_disk_holds_the_history_in_memory_and_serving_continues() {
    let tried = std::process::Command::new("unshare").args(["--mount", "true"]).status();
    if !tried.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this user may make no namespaces (unshare --mount)");
        return;
    }
    let folder = folder("");
    let path = folder.path();
    fs::create_dir(path.join("data")).expect("made");
    let mount = "mount -t tmpfs -o size=64k tmpfs data && head -c 1M /dev/zero > data/filler 2>/dev/null; exec \"$@\"";
    let onehop = Program::new(["run", "--log", "json"])
        .inside(path)
        .control_in(path)
        .through(&["unshare", "--mount", "sh", "-c", mount, "sh"])
        .serve();
    let reported = onehop.process.wait_for_event("warning");
    let message = reported["message"].as_str().expect("a text");
    assert!(message.contains("No space left on device") && message.contains("held in memory"), "{message}");
    assert_eq!(onehop.connect().get("/").text(), "hello");
    wait_for("a sample in memory", || (requests(path) == 1).then_some(()));
    let warnings = || onehop.process.events().into_iter().filter(|event| event["event"] == "warning").count();
    assert_eq!(warnings(), 1);
}

#[test]
fn a_history_that_is_off_is_missing_and_a_reload_turns_it_on() {
    let folder = folder("\thistory off\n");
    let path = folder.path();
    let _onehop = Onehop::start_in(path);
    assert_eq!(ask(path, "GET /history", "").0, 404);
    assert!(!path.join("data/history").exists());
    let text = fs::read_to_string(path.join("Onehopfile")).expect("there");
    fs::write(path.join("Onehopfile"), text.replace("\thistory off\n", "\thistory {\n\t\tkeep 30d\n\t}\n"))
        .expect("written");
    assert_eq!(ask(path, "POST /reload", "").0, 200);
    wait_for("a history", || (ask(path, "GET /history", "").0 == 200).then_some(()));
}

#[test]
fn foreign_pages_are_refused_and_a_change_needs_the_token() {
    let folder = folder("");
    let path = folder.path();
    let onehop = Onehop::start_in(path);
    let admin = onehop.admin.as_deref().expect("an admin endpoint");
    let over_tcp = |address: &str, line: &str, fields: &str| {
        let mut stream = TcpStream::connect(address).expect("connected");
        let request = format!("{line} HTTP/1.1\r\nConnection: close\r\n{fields}\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        read(stream)
    };
    let own = format!("Host: {admin}\r\n");
    for (line, fields, status) in [
        ("GET /dashboard/", own.as_str(), 200),
        ("GET /history", &own, 200),
        ("GET /dashboard/", "Host: rebound.example\r\n", 421),
        ("GET /token", &own, 404),
        ("POST /reload", &own, 404),
    ] {
        assert_eq!(over_tcp(admin, line, fields).0, status, "{line} {fields}");
    }

    let mut dashboard = std::process::Command::new(env!("CARGO_BIN_EXE_onehop"));
    dashboard.args(["dashboard", "--no-open"]).env("ONEHOP_CONTROL", path.join("onehop.sock"));
    let mut dashboard = dashboard.stdout(std::process::Stdio::piped()).spawn().expect("started");
    let mut url = String::new();
    BufReader::new(dashboard.stdout.take().expect("piped")).read_line(&mut url).expect("an address");
    let rest = url.trim().strip_prefix("http://").expect("a URL");
    let (address, token) = rest.split_once("/dashboard/#token=").expect("a token");
    let host = format!("Host: {address}\r\n");
    let token = format!("Onehop-Token: {token}\r\n");
    let origin = format!("Origin: http://{address}\r\n");
    for (line, fields, status) in [
        ("GET /dashboard/", host.clone(), 200),
        ("GET /status", host.clone(), 200),
        ("GET /status", "Host: rebound.example\r\n".to_owned(), 421),
        ("GET /token", host.clone(), 404),
        ("POST /reload", format!("{host}{origin}"), 403),
        ("POST /reload", format!("{host}{token}Origin: http://attacker.example\r\n"), 403),
        ("POST /stop", format!("{host}{origin}{token}"), 404),
        ("POST /reload", format!("{host}{origin}{token}"), 200),
        ("POST /restart/api", format!("{host}{origin}{token}"), 422),
    ] {
        assert_eq!(over_tcp(address, line, &fields).0, status, "{line} {fields}");
    }
    dashboard.kill().expect("ended");
    dashboard.wait().expect("ended");
    wait_for("the reload in the history", || events(path).contains(&"reload".to_owned()).then_some(()));
    assert_eq!(ask(path, "GET /status", "").1["reloads"], 1);
}
