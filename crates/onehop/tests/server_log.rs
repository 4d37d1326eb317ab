//! `log` of the global block: where the server writes what it has to say.

use std::path::Path;

use onehop_testkit::{Folder, Onehop, Program, wait_for};
use rustix::process::Signal;
use serde_json::Value;

fn configuration(log: &str, site: &str) -> String {
    format!("{{\n\tadmin off\n{log}}}\nhttp://127.0.0.1:0 {{\n{site}\trespond page\n}}\n")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The events that are in a log, by name; other lines are responses.
fn events(path: &Path) -> Vec<String> {
    let lines = text(path);
    let values =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{line}")));
    values.filter_map(|value| value["event"].as_str().map(str::to_owned)).collect()
}

/// Events go to a file, so that it cannot be waited for one of them in the usual way.
fn serve(folder: &Folder, log: &Path) -> Onehop {
    let process =
        Program::new(["run", "--log", "json"]).inside(folder.path()).control_in(folder.path()).start();
    let address = wait_for("an address", || {
        let lines = text(log);
        let line = lines.lines().find(|line| line.contains("listen"))?;
        let (_, rest) = line.split_once("http://127.0.0.1:")?;
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        lines.contains("ready").then(|| format!("127.0.0.1:{port}"))
    });
    Onehop { process, address, admin: None }
}

#[test]
fn messages_and_requests_go_to_the_file_that_the_global_block_names() {
    let folder = Folder::new();
    let log = folder.join("server.log");
    folder.write("Onehopfile", configuration("\tlog {\n\t\toutput file server.log\n\t}\n", "\tlog\n"));
    let mut onehop = serve(&folder, &log);
    onehop.connect().get("/a");
    wait_for("the request", || text(&log).contains("\"uri\":\"/a\"").then_some(()));
    onehop.process.signal(Signal::TERM);
    onehop.process.wait().expect("it ends");
    let events = events(&log);
    for event in ["listening", "ready", "stopping", "stopped"] {
        assert!(events.iter().any(|known| known == event), "{event}: {events:?}");
    }
    let shown = onehop.process.stderr();
    assert!(!shown.contains("\"ready\""), "{shown}");
}

#[test]
fn a_reload_sends_messages_elsewhere_and_a_moved_file_is_opened_anew() {
    let folder = Folder::new();
    let (log, other) = (folder.join("server.log"), folder.join("other.log"));
    let to = |name: &str, more: &str| {
        configuration(&format!("\tlog {{\n\t\toutput file {name}\n\t\tformat console\n{more}\t}}\n"), "")
    };
    folder.write("Onehopfile", to("server.log", ""));
    let onehop = serve(&folder, &log);
    assert!(!text(&log).contains("\"event\""), "lines are for people, whatever --log says");
    std::fs::rename(&log, folder.join("moved.log")).expect("moved");
    onehop.process.signal(Signal::USR1);
    wait_for("the new file", || log.exists().then_some(()));
    folder.write("Onehopfile", to("other.log", "\t\tlevel ERROR\n"));
    onehop.process.signal(Signal::HUP);
    wait_for("the other file", || other.exists().then_some(()));
    // Only a failure is written from now on.
    folder.write("Onehopfile", "nonsense {");
    onehop.process.signal(Signal::HUP);
    wait_for("a failure", || (!text(&other).is_empty()).then_some(()));
    assert!(!text(&other).contains("reloaded"), "{}", text(&other));
    folder.write("Onehopfile", configuration("", ""));
    onehop.process.signal(Signal::HUP);
    onehop.process.wait_for_event("reloaded");
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_before_anything_is_served() {
    let folder = Folder::new();
    folder.write("file", "in the way");
    folder.write("Onehopfile", configuration("\tlog {\n\t\toutput file file/server.log\n\t}\n", ""));
    let finished = Program::new(["run"]).inside(folder.path()).control_in(folder.path()).finish();
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("cannot open the log"), "{}", finished.stderr);
}
