//! What a container asks of its program: to tell its health, to log where platforms look, to be process 1, and to find
//! a place for its control socket where nearly nothing can be written.

use std::fs;
use std::process::Command;

use onehop_testkit::{Finished, Folder, Onehop, Program, Started, wait_for};
use rustix::process::{Pid, Signal, kill_process};

const NAMESPACE: &[&str] = &["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// Namespaces need root, and a kernel that hands them out.
fn has_namespaces() -> bool {
    let tried = Command::new("unshare").args(["--pid", "--mount", "--fork", "true"]).output();
    let has = tried.is_ok_and(|tried| tried.status.success());
    if !has {
        eprintln!("skipped: this machine lets this user make no namespaces (unshare --pid --mount)");
    }
    has
}

fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Process 1 of the namespace, and the server that it has started, by their numbers outside.
fn first_and_server(unshare: &Started) -> (u32, u32) {
    let only = |pid| wait_for("a child", || children(pid).first().copied());
    let first = only(unshare.pid());
    (first, only(first))
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("signalled");
}

fn healthy(folder: &Folder) -> Finished {
    Program::new(["status", "--healthy"]).inside(folder.path()).control_in(folder.path()).finish()
}

#[test]
fn a_server_that_answers_is_healthy_and_one_that_is_gone_is_not() {
    let folder =
        Folder::with(&[("Onehopfile", "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\trespond hi\n}\n")]);
    assert_eq!(healthy(&folder).code, Some(1));
    let mut onehop = Onehop::start_in(folder.path());
    let reported = healthy(&folder);
    assert_eq!((reported.code, reported.stdout.as_str()), (Some(0), "healthy\n"), "{}", reported.stderr);
    onehop.process.signal(Signal::TERM);
    assert!(onehop.process.wait().is_some());
    assert_eq!(healthy(&folder).code, Some(1));
}

#[test]
fn a_server_whose_application_does_not_serve_is_not_healthy() {
    let folder = Folder::new();
    let line = ["app", "--name", "api", "--listen", "127.0.0.1:0", "--admin", "off", "--log", "json"];
    let words = line.into_iter().chain(["--", "/bin/sh", "-c", "exit 3"]);
    let process = Program::new(words).inside(folder.path()).control_in(folder.path()).start();
    process.wait_for_event("app_failing");
    let reported = healthy(&folder);
    assert_eq!(reported.code, Some(1));
    assert!(reported.stderr.starts_with("error: application api is failing: "), "{}", reported.stderr);
}

#[test]
fn events_and_errors_go_to_standard_output_where_that_is_asked_for() {
    let folder = Folder::with_app();
    let line = ["serve", "dist", "--listen", "127.0.0.1:0", "--admin", "off", "--control", "off"];
    let by_options = Program::new(line.into_iter().chain(["--log", "json", "--log-to", "stdout"]));
    let by_environment =
        Program::new(line).with_env("ONEHOP_LOG", "json").with_env("ONEHOP_LOG_TO", "stdout");
    for program in [by_options, by_environment] {
        let process = program.inside(folder.path()).start();
        wait_for("ready", || process.stdout().contains("{\"event\":\"ready\"").then_some(()));
        assert_eq!(process.stderr(), "");
    }
    let failed = Program::new(["serve", "gone", "--log-to", "stdout"]).inside(folder.path()).finish();
    assert_eq!(failed.code, Some(2));
    assert!(failed.stdout.contains("error: there is no folder gone"), "{failed:?}");
    assert_eq!(failed.stderr, "");
}

#[test]
fn signals_reach_the_server_behind_process_1_and_its_exit_code_comes_back() {
    if !has_namespaces() {
        return;
    }
    let folder = Folder::with_app();
    let line = ["serve", "dist", "--listen", "127.0.0.1:0", "--admin", "off", "--control", "off"];
    let line = || line.into_iter().chain(["--log", "json"]);
    let start = || Program::new(line()).inside(folder.path()).through(NAMESPACE).serve();
    for (sent, code) in [(Signal::TERM, 0), (Signal::INT, 0)] {
        let mut onehop = start();
        let (first, _) = first_and_server(&onehop.process);
        signal(first, Signal::HUP);
        onehop.process.wait_for_event("reloaded");
        signal(first, sent);
        let status = onehop.process.wait().expect("it ends");
        assert_eq!(status.code(), Some(code), "{sent:?}");
    }
    let mut onehop = start();
    let (_, server) = first_and_server(&onehop.process);
    signal(server, Signal::KILL);
    assert_eq!(onehop.process.wait().expect("it ends").code(), Some(128 + 9));
    let wrong = Program::new(["serve", "gone"]).inside(folder.path()).through(NAMESPACE).finish();
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
}

#[test]
fn process_1_takes_note_of_the_end_of_what_others_left_behind() {
    if !has_namespaces() {
        return;
    }
    let folder = Folder::new();
    // Whoever starts the last one is gone at once. It waits for a file, so that it surely ends as nobody's child.
    folder.write(
        "program.sh",
        "(sh -c 'echo > left; while [ ! -e end ]; do sleep 0.02; done; echo > ended' &)\nexec sleep 600\n",
    );
    let line = ["app", "--listen", "127.0.0.1:0", "--admin", "off", "--control", "off", "--log", "json"];
    let words = line.into_iter().chain(["--", "/bin/sh", "program.sh"]);
    let process = Program::new(words).inside(folder.path()).through(NAMESPACE).start();
    wait_for("a process that was left behind", || folder.join("left").exists().then_some(()));
    let (first, server) = first_and_server(&process);
    let left = wait_for("it at process 1", || children(first).into_iter().find(|child| *child != server));
    folder.write("end", "");
    wait_for("its end", || folder.join("ended").exists().then_some(()));
    wait_for("nothing of it", || state(left).is_none().then_some(()));
    assert_ne!(state(server), None, "the server goes on");
}

#[test]
fn what_is_in_flight_when_the_stop_begins_is_answered_with_the_word_that_the_connection_ends() {
    let folder = Folder::with(&[(
        "server.mjs",
        "import { existsSync, writeFileSync } from 'node:fs';\n\
         export default { async fetch() {\n\
           writeFileSync('begun', '');\n\
           while (!existsSync('end')) await new Promise((go) => setTimeout(go, 5));\n\
           return new Response('done');\n\
         } };\n",
    )]);
    let line = ["app", "server.mjs", "--listen", "127.0.0.1:0", "--admin", "off", "--control", "off"];
    let line = line.into_iter().chain(["--log", "json"]);
    let mut onehop = Program::new(line).inside(folder.path()).serve();
    let mut client = onehop.connect();
    let asked = std::thread::spawn(move || client.get("/"));
    wait_for("the request at the handler", || folder.join("begun").exists().then_some(()));
    onehop.process.signal(Signal::TERM);
    onehop.process.wait_for_event("stopping");
    folder.write("end", "");
    let answer = asked.join().expect("an answer");
    assert_eq!((answer.text(), answer.field("Connection")), ("done", Some("close")));
    assert!(onehop.process.wait().is_some_and(|status| status.success()));
}

#[test]
fn the_next_request_of_a_client_that_keeps_asking_is_answered_after_the_stop_has_begun() {
    let folder = Folder::with_app();
    let line = ["serve", "dist", "--listen", "127.0.0.1:0", "--admin", "off", "--control", "off"];
    let line = line.into_iter().chain(["--log", "json"]);
    let mut onehop = Program::new(line).inside(folder.path()).serve();
    let mut client = onehop.connect();
    assert_eq!((client.get("/").status, client.get("/").field("Connection")), (200, None));
    onehop.process.signal(Signal::TERM);
    onehop.process.wait_for_event("stopping");
    let answer = client.get("/");
    assert_eq!((answer.status, answer.field("Connection")), (200, Some("close")));
    assert!(onehop.process.wait().is_some_and(|status| status.success()));
}

#[test]
fn the_control_socket_has_a_place_where_the_usual_ones_cannot_be_written() {
    if !has_namespaces() {
        return;
    }
    let folder = Folder::with_app();
    let line = ["serve", "dist", "--listen", "127.0.0.1:0", "--admin", "off", "--log", "json"];
    let closed = "mount --bind /run /run && mount -o remount,bind,ro /run && mount --bind /tmp /tmp && \
                  mount -o remount,bind,ro /tmp && exec \"$0\" \"$@\"";
    let onehop = Program::new(line)
        .inside(folder.path())
        .through(&["unshare", "--mount", "/bin/sh", "-c", closed])
        .serve();
    assert!(!onehop.process.stderr().contains("there is no control socket"), "{}", onehop.process.stderr());
    let target = folder.join("dist").display().to_string();
    let reported = Program::new(["status", "--healthy", "--config", &target]).finish();
    assert_eq!((reported.code, reported.stdout.as_str()), (Some(0), "healthy\n"), "{}", reported.stderr);
    // A name that nobody serves: the answer lists what runs, with its place.
    let listed = Program::new(["status", "--config", "."]).inside(folder.path()).finish();
    assert!(listed.stderr.contains("--control /dev/shm/onehop-"), "{listed:?}");
}
