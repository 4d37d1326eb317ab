//! A server and the processes that compress for it, seen from outside: what they leave behind, and what
//! happens to the server when they die.

use std::time::{Duration, Instant};

use onehop_testkit::{Client, Folder, Onehop, Program, wait_at_most, wait_for};
use rustix::process::{Pid, Signal, kill_process};

/// Best-level compression takes a second per mebibyte, at the lowest priority of a machine that runs
/// other tests.
const COMPRESSION_TIMEOUT: Duration = Duration::from_secs(180);

/// What a server may hold beyond its stored bytes and its code, in KiB.
const BESIDES_KIB_MAX: u64 = 12 * 1024;

const SMALL_FILES: usize = 200;

/// A server that has lost so many processes gives the rest up.
const LOSSES: usize = 4;

/// One file of so many MiB and many small ones.
fn site(large_mib: usize) -> Folder {
    let folder = Folder::with(&[("dist/index.html", &text(2_000, 0))]);
    for number in 0..SMALL_FILES {
        folder.write(&format!("dist/small/{number}.js"), text(5_000, number));
    }
    folder.write("dist/large.js", text(large_mib * 1024 * 1024, SMALL_FILES));
    folder
}

fn text(length: usize, seed: usize) -> String {
    let mut state = u32::try_from(seed).expect("a small number").wrapping_mul(2_654_435_761).max(1);
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(&format!("let v{} = {};\n", state >> 28, state >> 20));
    }
    text.truncate(length);
    text
}

fn serve(folder: &Folder) -> Onehop {
    let arguments = ["serve", "dist", "--listen", "127.0.0.1:0", "--log", "json"];
    Program::new(arguments).inside(folder.path()).control_in(folder.path()).serve()
}

/// Processes whose parent this is, with those that were not waited for.
fn children(parent: u32) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").expect("/proc").filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        // proc_pid_stat(5): the name may hold anything, its last parenthesis ends it.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let is_child = fields.nth(1)?.parse() == Ok(parent);
        is_child.then(|| Pid::from_raw(pid)).flatten()
    });
    processes.collect()
}

fn a_child(onehop: &Onehop) -> Pid {
    wait_for("a process that compresses", || children(onehop.process.pid()).pop())
}

fn coding_of(client: &mut Client, path: &str) -> Option<String> {
    let answer = client.ask("GET", path, "Accept-Encoding: zstd, br, gzip\r\n");
    assert_eq!(answer.status, 200, "{path}");
    answer.field("Content-Encoding").map(str::to_owned)
}

fn wait_until_compressed(onehop: &Onehop) {
    wait_at_most(COMPRESSION_TIMEOUT, "the end of compression", || {
        onehop.process.events().iter().any(|event| event["event"] == "compressed").then_some(())
    });
}

fn losses(onehop: &Onehop) -> Vec<String> {
    let events = onehop.process.events();
    let warnings = events.iter().filter(|event| event["event"] == "warning");
    warnings.map(|event| event["message"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn compression_leaves_neither_a_process_nor_its_memory_behind() {
    let folder = site(3);
    let onehop = serve(&folder);
    a_child(&onehop);
    wait_until_compressed(&onehop);
    assert_eq!(children(onehop.process.pid()), []);
    assert_eq!(losses(&onehop), [""; 0]);
    let mut client = onehop.connect();
    for path in ["/large.js", "/small/0.js", "/small/199.js"] {
        assert!(coding_of(&mut client, path).is_some(), "{path}");
    }
    let status = Program::new(["status", "--json"]).inside(folder.path()).control_in(folder.path()).finish();
    let status: serde_json::Value = serde_json::from_str(&status.stdout).expect("JSON");
    let store = &status["stores"][0];
    let bytes = |name: &str| store[name].as_u64().expect("a number");
    assert!(bytes("compressed_bytes") > 0, "{status}");
    let stored = (bytes("stored_bytes") + bytes("compressed_bytes")) / 1024;
    let besides = resident_kib(onehop.process.pid()).saturating_sub(stored);
    println!("{besides} KiB beside {stored} KiB of files");
    assert!(besides < BESIDES_KIB_MAX, "{besides} KiB beside {stored} KiB of files");
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("RssAnon");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn a_compressing_process_that_is_killed_costs_one_file_its_forms_and_nothing_else() {
    let folder = site(1);
    let onehop = serve(&folder);
    let message = loop {
        let child = a_child(&onehop);
        // It may have ended by itself, or not be wanted any more: files that are so young are read once
        // more, and what was begun for the first reading ends.
        let _ = kill_process(child, Signal::KILL);
        wait_for("its end", || (!children(onehop.process.pid()).contains(&child)).then_some(()));
        if let Some(message) = losses(&onehop).pop() {
            break message;
        }
    };
    assert!(message.contains("was lost at ") && message.contains("signal: 9"), "{message}");
    assert_eq!(onehop.connect().get("/index.html").status, 200);
    wait_until_compressed(&onehop);
    let lost = losses(&onehop).len();
    let mut paths: Vec<String> = (0..SMALL_FILES).map(|number| format!("/small/{number}.js")).collect();
    paths.extend(["/large.js".to_owned(), "/index.html".to_owned()]);
    let mut client = onehop.connect();
    // Some forms of a lost file may have been ready before.
    let plain = paths.iter().filter(|path| coding_of(&mut client, path).is_none()).count();
    assert!(plain <= lost, "{plain} files without a form after {lost} losses");
    assert_eq!(children(onehop.process.pid()), []);
}

#[test]
fn a_server_whose_compressing_processes_all_die_serves_files_as_they_are() {
    // Twice as many as may be lost, since each core has a process; the forms of each take seconds, so that no process ends one
    // before it is found.
    let paths: Vec<String> = (0..2 * LOSSES).map(|number| format!("large{number}.js")).collect();
    let folder = Folder::with(&[("dist/index.html", &text(2_000, 0))]);
    for (number, path) in paths.iter().enumerate() {
        folder.write(&format!("dist/{path}"), text(2 * 1024 * 1024, number));
    }
    let onehop = serve(&folder);
    let is_given_up =
        || losses(&onehop).iter().any(|message| message.ends_with("so is the rest of it until it changes"));
    let begun = Instant::now();
    // Without a pause: a process that has the time for it finishes a form.
    while !is_given_up() {
        assert!(begun.elapsed() < COMPRESSION_TIMEOUT, "the last loss");
        for child in children(onehop.process.pid()) {
            // It may have ended by itself.
            let _ = kill_process(child, Signal::KILL);
        }
    }
    wait_for("no process", || children(onehop.process.pid()).is_empty().then_some(()));
    let mut client = onehop.connect();
    // A form may have been ready before its process was lost; the files that are left get none.
    let plain = paths.iter().filter(|path| coding_of(&mut client, &format!("/{path}")).is_none()).count();
    assert!(plain > 0, "every file has a form");
}

#[test]
fn a_stop_does_not_wait_for_a_form_and_a_killed_server_leaves_no_process() {
    for signal in [Signal::TERM, Signal::KILL] {
        let folder = Folder::with(&[("dist/large.js", &text(3 * 1024 * 1024, 1))]);
        let mut onehop = serve(&folder);
        let child = a_child(&onehop);
        onehop.process.signal(signal);
        onehop.process.wait().expect("it ends");
        wait_for("the end of the process that compresses", || {
            // One that was not waited for yet has nothing but a number left.
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.as_raw_nonzero())).ok();
            stat.is_none_or(|stat| stat.contains(") Z ")).then_some(())
        });
    }
}

#[test]
fn without_jobs_the_compressing_command_ends_at_once() {
    let finished = Program::new(["prepare-forms"]).finish();
    assert_eq!((finished.code, finished.stdout.as_str(), finished.stderr.as_str()), (Some(0), "", ""));
}
