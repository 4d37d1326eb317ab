//! Applications and their processes, seen from outside: what is told when one does not start, what is replaced
//! when one fails, and that none is left behind. Workers are shell scripts that speak just enough of the worker
//! protocol, and Node where it is installed.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use onehop_testkit::{Client, Folder, Onehop, Program, wait_for};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

/// READY of a worker that calls itself `sh 1`, as printf(1) writes it to the control lane.
const READY: &str = "printf '\\017\\000\\000\\000\\002\\000\\000\\000\\000\\000\\000\\000\\001\\000\\000\\000\\007\\000\\000\\000sh\\n1\\n1\\n' >&3\n";

/// A handler for all that Node is wanted for.
const HANDLER: &str = r#"
import { spawn } from 'node:child_process';
globalThis.count ??= 0;
function spin() { for (;;) {} }
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    globalThis.count += 1;
    if (pathname === '/die') process.exit(3);
    if (pathname === '/spin') spin();
    if (pathname === '/slow') await pause(1_500);
    if (pathname === '/socket') return onehop.upgradeWebSocket(request).response;
    if (pathname === '/environment') return Response.json(process.env);
    if (pathname === '/flood') for (let n = 0; n < 100_000; n += 1) process.stderr.write(`line ${n}\n`);
    if (pathname === '/grandchild') return new Response(String(spawn('sleep', ['1000']).pid));
    return new Response(String(process.pid));
  },
};
"#;

/// A server whose application is a shell script.
fn with_script(script: &str, options: &str) -> (Onehop, Folder) {
    let folder = Folder::with(&[("app.mjs", "")]);
    folder.write("fake.sh", script);
    let text = format!(
        "{{\n\tadmin 127.0.0.1:0\n}}\nhttp://127.0.0.1:0 {{\n\tbind 127.0.0.1\n\trespond /file here\n\tapp ./app.mjs {{\n\
         \t\tname api\n\t\truntime /bin/sh ./fake.sh\n{options}\n\t}}\n}}\n"
    );
    folder.write("Onehopfile", text);
    (Onehop::start_in(folder.path()), folder)
}

fn write_node_site(folder: &Folder, options: &str) {
    let text = format!(
        "{{\n\tadmin 127.0.0.1:0\n\tgrace_period 20s\n}}\nhttp://127.0.0.1:0 {{\n\tbind 127.0.0.1\n\tapp ./app.mjs {{\n\
         \t\tname api\n{options}\n\t}}\n}}\n"
    );
    folder.write("Onehopfile", text);
}

/// A server with a handler in Node, or `None` where there is no Node.
fn with_node(options: &str) -> Option<(Onehop, Folder)> {
    let found = std::process::Command::new("node").arg("--version").output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no `node` on PATH");
        return None;
    }
    let folder = Folder::with(&[("app.mjs", HANDLER)]);
    write_node_site(&folder, options);
    let onehop = Onehop::start_in(folder.path());
    onehop.process.wait_for_event("app_ready");
    Some((onehop, folder))
}

fn control(folder: &Folder, words: &[&str]) -> onehop_testkit::Finished {
    Program::new(words).inside(folder.path()).control_in(folder.path()).finish()
}

fn app_status(folder: &Folder) -> Value {
    let finished = control(folder, &["status", "--json"]);
    let status: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    status["apps"][0].clone()
}

fn pids(folder: &Folder) -> Vec<u64> {
    let app = app_status(folder);
    let workers = app["workers"].as_array().expect("workers").iter();
    workers.map(|worker| worker["pid"].as_u64().expect("a number")).collect()
}

/// Whether there are so many workers, and all of them serve.
fn serving(folder: &Folder, wanted: usize) -> Option<()> {
    let app = app_status(folder);
    let all = app["workers"].as_array()?;
    (all.len() == wanted && all.iter().all(|worker| worker["state"] == "serving")).then_some(())
}

fn wait_for_request(folder: &Folder) {
    wait_for("a request in flight", || {
        let app = app_status(folder);
        let mut all = app["workers"].as_array()?.iter();
        all.any(|worker| worker["in_flight"].as_u64() > Some(0)).then_some(())
    });
}

fn wait_until_gone(pid: u64) {
    wait_for("the end of a process", || has_gone(pid).then_some(()));
}

fn has_gone(pid: u64) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    if test_kill_process(pid).is_err() {
        return true;
    }
    // Dead, and nobody has asked yet: where the server was killed, that is the system's first process.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}

fn get(onehop: &Onehop, path: &str) -> (u16, String) {
    let mut client = Client::connect(&onehop.address);
    let answer = client.get(path);
    (answer.status, answer.text().to_owned())
}

#[test]
fn the_documentation_names_the_concurrency_that_workers_shows() {
    const SERVER: &str =
        "require('node:http').createServer((request, response) => response.end('hi')).listen(3000);";
    let folder = Folder::with(&[("app.mjs", HANDLER), ("server.cjs", SERVER)]);
    let site = "http://127.0.0.1:0 {\n\tbind 127.0.0.1\n\tapp /a/* ./app.mjs {\n\t\tname handler\n\t}\n\tapp ./server.cjs {\n\t\tname server\n\t}\n}\n";
    folder.write("Onehopfile", format!("{{\n\tadmin off\n}}\n{site}"));
    let _onehop = Onehop::start_in(folder.path());
    wait_for("both applications", || {
        let status: Value = serde_json::from_str(&control(&folder, &["status", "--json"]).stdout).ok()?;
        let mut apps = status["apps"].as_array()?.iter();
        apps.all(|app| app["workers"][0]["state"] == "serving").then_some(())
    });
    let shown = control(&folder, &["workers"]).stdout;
    let of = |name: &str| {
        let line = shown
            .lines()
            .find(|line| line.split_whitespace().next() == Some(name))
            .expect("a line for each application");
        line.split_once(" of ")
            .and_then(|(_, rest)| rest.split_whitespace().next())
            .expect("a number")
            .to_owned()
    };
    let (handler, server) = (of("handler"), of("server"));
    let pages = [
        (
            "handlers.md",
            include_str!("../../../docs/handlers.md"),
            format!("`concurrency`, {handler} for each worker, {server} where it is a server of its own"),
        ),
        (
            "onehopfile.md",
            include_str!("../../../docs/onehopfile.md"),
            format!(
                "{handler} where the file exports a handler, and for `command` and `supervise off`; {server} where it has \
                 a server of its own"
            ),
        ),
        (
            "guide/from-nginx-pm2-node.md",
            include_str!("../../../docs/guide/from-nginx-pm2-node.md"),
            format!(
                "{server} requests at a time for a server like this one, {handler} for a file that exports a handler"
            ),
        ),
    ];
    for (name, page, sentence) in pages {
        assert!(page.replace('\n', " ").contains(&sentence), "docs/{name} lacks: {sentence}");
    }
}

fn reason(event: &Value) -> &str {
    event["reason"].as_str().expect("a reason")
}

#[test]
fn a_worker_that_exits_at_start_is_reported_with_its_last_lines_and_requests_are_refused_for_a_while() {
    let (onehop, folder) = with_script("echo 'no database here' >&2\nexit 7\n", "");
    let ended = onehop.process.wait_for_events("worker_ended", 3);
    for event in &ended {
        assert!(reason(event).contains("before it was ready: exit code 7"), "{event}");
        assert!(reason(event).contains("\n  no database here"), "{event}");
        assert_eq!(event["failed"], true);
        assert!(
            event["restart_in_ms"].as_f64().is_some_and(|pause| (80.0..=400.0).contains(&pause)),
            "{event}"
        );
    }
    onehop.process.wait_for_event("app_failing");
    let answer = Client::connect(&onehop.address).get("/anything");
    assert_eq!(answer.status, 503);
    assert!(answer.field("Retry-After").is_some(), "{answer:?}");
    assert_eq!(get(&onehop, "/file"), (200, "here".to_owned()));
    assert_eq!(app_status(&folder)["state"], "failing");
}

#[test]
fn garbage_in_the_place_of_a_handshake_ends_the_worker_and_not_the_server() {
    let (onehop, _folder) = with_script("printf 'HTTP/1.1 200 OK\\r\\n\\r\\n' >&3\nsleep 1000\n", "");
    let ended = onehop.process.wait_for_event("worker_ended");
    assert!(reason(&ended).contains("its first frame is none of the worker protocol: "), "{ended}");
    wait_until_gone(ended["pid"].as_u64().expect("a number"));
    assert_eq!(get(&onehop, "/file").0, 200);
}

#[test]
fn a_worker_that_is_never_ready_is_killed_with_all_that_it_started() {
    let script = "sleep 1000 &\necho \"child $!\" >&2\nwait\n";
    let (onehop, _folder) = with_script(script, "\t\tstart_timeout 300ms");
    let ended = onehop.process.wait_for_event("worker_ended");
    assert!(reason(&ended).starts_with("was not ready within 300ms\n  child "), "{ended}");
    let grandchild = reason(&ended).rsplit(' ').next().and_then(|pid| pid.parse().ok()).expect("a number");
    wait_until_gone(grandchild);
}

#[test]
fn a_worker_that_dies_again_and_again_after_being_ready_is_a_crash_loop() {
    let (onehop, _folder) = with_script(&format!("{READY}sleep 0.05\nexit 1\n"), "");
    let failing = onehop.process.wait_for_event("app_failing");
    assert!(reason(&failing).contains("ended: exit code 1"), "{failing}");
    assert_eq!(get(&onehop, "/anything").0, 503);
}

#[test]
fn a_worker_that_does_not_turn_is_replaced_though_nothing_can_be_said_about_where_it_is() {
    let (onehop, _folder) = with_script(&format!("{READY}sleep 1000\n"), "\t\tstuck_after 300ms");
    let stuck = onehop.process.wait_for_event("worker_stuck");
    assert!(stuck["stack"].as_str().is_some_and(|stack| stack.contains("only Node")), "{stuck}");
    wait_until_gone(stuck["pid"].as_u64().expect("a number"));
}

#[test]
fn a_worker_that_refuses_requests_without_having_said_so_is_replaced() {
    // RESET, code 4, for slot 0 of whichever lane the first request comes on.
    let script = format!(
        "refuse() {{ head -c 1 <&$1 >/dev/null; printf '\\004\\000\\000\\000\\026\\000\\000\\000\\000\\000\\000\\000\\004\\000\\000\\000' >&$1; }}\n\
         for lane in $(seq 4 ${{ONEHOP_LANES#*-}}); do refuse $lane & done\n{READY}sleep 1000\n"
    );
    let (onehop, folder) = with_script(&script, "\t\tworkers 1\n\t\tstop_timeout 200ms");
    onehop.process.wait_for_event("app_ready");
    let refusing = pids(&folder)[0];
    let mut client = Client::connect(&onehop.address);
    client.send("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    // The request is then refused by its successor, which may end first.
    let is_its_end =
        |event: &Value| event["event"] == "worker_ended" && event["pid"].as_u64() == Some(refusing);
    let ended = wait_for("its end", || onehop.process.events().into_iter().find(is_its_end));
    assert_eq!(ended["failed"].as_bool(), Some(false), "{ended}");
    wait_for("another one", || pids(&folder).into_iter().find(|pid| *pid != refusing && *pid != 0));
}

#[test]
fn a_runtime_that_is_missing_is_said_with_what_to_do() {
    let folder = Folder::with(&[("app.mjs", "")]);
    write_node_site(&folder, "");
    let onehop = Program::new(["run", "--log", "json"])
        .inside(folder.path())
        .control_in(folder.path())
        .with_env("PATH", folder.path())
        .serve();
    let failing = onehop.process.wait_for_event("app_failing");
    assert!(reason(&failing).contains("install Node.js 20 or later"), "{failing}");
}

#[test]
fn a_stuck_worker_is_reported_with_its_stack_and_others_serve() {
    let Some((onehop, folder)) = with_node("\t\tworkers 2\n\t\tstuck_after 500ms") else { return };
    wait_for("two workers", || serving(&folder, 2));
    let mut stuck = Client::connect(&onehop.address);
    stuck.send("GET /spin HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    wait_for_request(&folder);
    assert_eq!(get(&onehop, "/").0, 200);
    let event = onehop.process.wait_for_event("worker_stuck");
    let stack = event["stack"].as_str().expect("a stack");
    let mut frames = stack.lines();
    assert!(frames.any(|frame| frame.starts_with("at spin (") && frame.contains("/app.mjs:4:")), "{stack}");
    assert_eq!(stuck.read().status, 502);
    wait_until_gone(event["pid"].as_u64().expect("a number"));
    wait_for("two workers", || serving(&folder, 2));
}

#[test]
fn a_worker_that_sends_an_answer_is_not_stuck_however_long_its_turn_lasts() {
    const SERVER: &str = r#"
import { createServer } from 'node:http';
const spin = (milliseconds) => { const end = Date.now() + milliseconds; while (Date.now() < end); };
createServer(async (request, response) => {
  for (let piece = 0; piece < 3; piece += 1) {
    spin(request.url === '/slow' ? 700 : 0);
    response.write(Buffer.alloc(70_000));
    // It leaves, but the event loop has not turned.
    await new Promise((resolve) => process.nextTick(resolve));
  }
  response.end();
}).listen(process.env.PORT);
"#;
    let Some((onehop, folder)) = with_node("\t\tworkers 1\n\t\tstuck_after 1s") else { return };
    folder.write("app.mjs", SERVER);
    assert_eq!(control(&folder, &["reload"]).code, Some(0));
    onehop.process.wait_for_event("app_rolled");
    // The old worker may still be leaving.
    wait_for("the new worker alone", || serving(&folder, 1));
    let before = pids(&folder);
    let (status, body) = get(&onehop, "/slow");
    assert_eq!((status, body.len()), (200, 3 * 70_000));
    assert_eq!(pids(&folder), before);
    assert!(!onehop.process.events().iter().any(|event| event["event"] == "worker_stuck"));
}

#[test]
fn a_worker_that_dies_is_replaced_within_half_a_second() {
    let Some((onehop, _folder)) = with_node("\t\tqueue 100 10s") else { return };
    // The runtime's own start counts too, and is the machine's: the pause is what is bounded here.
    assert_eq!(get(&onehop, "/die").0, 502);
    let ended = onehop.process.wait_for_event("worker_ended");
    assert_eq!(ended["restart_in_ms"].as_f64(), Some(0.0));
    assert!(reason(&ended).contains("exit code 3"), "{ended}");
    let begun = Instant::now();
    assert_eq!(get(&onehop, "/").0, 200);
    println!("served again after {:?}", begun.elapsed());
}

#[test]
fn a_flood_on_standard_error_neither_stops_the_worker_nor_fills_the_log() {
    let Some((onehop, _folder)) = with_node("") else { return };
    let begun = Instant::now();
    assert_eq!(get(&onehop, "/flood").0, 200);
    onehop.process.wait_for_text("more lines were not shown: they came too fast");
    let shown = onehop.process.events().iter().filter(|event| event["event"] == "app_output").count();
    // Ten thousand in each second that has begun.
    let bound = 10_000 * (begun.elapsed().as_secs() + 2);
    assert!(shown as u64 <= bound, "{shown} lines were shown, {bound} may be");
}

#[test]
fn a_worker_is_replaced_after_its_number_of_requests_and_no_request_fails() {
    let Some((onehop, _folder)) = with_node("\t\trecycle requests 20") else { return };
    let first = get(&onehop, "/").1;
    wait_for("another worker", || {
        let (status, pid) = get(&onehop, "/");
        assert_eq!(status, 200);
        (pid != first).then_some(())
    });
    let ended = onehop.process.wait_for_event("worker_ended");
    assert_eq!((ended["failed"].as_bool(), ended["pid"].to_string()), (Some(false), first));
}

#[test]
fn a_restart_replaces_every_worker_while_requests_are_answered() {
    let Some((onehop, folder)) = with_node("\t\tworkers 2") else { return };
    wait_for("two workers", || serving(&folder, 2));
    let before = pids(&folder);
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::connect(&onehop.address);
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(client.get("/").status, 200);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..3 {
            assert_eq!(control(&folder, &["reload", "--restart"]).code, Some(0));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    println!("{} requests were answered while workers were replaced", answered.load(Ordering::Relaxed));
    onehop.process.wait_for_events("app_rolled", 3);
    before.into_iter().for_each(wait_until_gone);
    assert!(onehop.process.events().iter().all(|event| event["failed"] != true));
}

#[test]
fn a_reload_to_code_that_does_not_start_fails_with_the_reason_and_the_old_code_serves_on() {
    let Some((onehop, folder)) = with_node("") else { return };
    let pid = get(&onehop, "/").1;
    folder.write("app.mjs", "throw new Error('the port of the database is missing');\n");
    let finished = control(&folder, &["reload"]);
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("application api: "), "{}", finished.stderr);
    assert!(finished.stderr.contains("the port of the database is missing"), "{}", finished.stderr);
    assert_eq!(get(&onehop, "/"), (200, pid));
}

#[test]
fn changed_settings_are_published_once_their_workers_are_ready_and_removed_applications_end() {
    let Some((onehop, folder)) = with_node("\t\tenv WHICH first") else { return };
    let which = || {
        let (status, text) = get(&onehop, "/environment");
        assert_eq!(status, 200, "{text}");
        let environment: Value = serde_json::from_str(&text).expect("JSON");
        environment["WHICH"].clone()
    };
    assert_eq!(which(), "first");
    let pid = pids(&folder)[0];
    write_node_site(&folder, "\t\tenv WHICH second");
    assert_eq!(control(&folder, &["reload"]).code, Some(0));
    assert_eq!(which(), "second");
    wait_until_gone(pid);
    let last = pids(&folder)[0];
    folder.write(
        "Onehopfile",
        "{\n\tadmin 127.0.0.1:0\n}\nhttp://127.0.0.1:0 {\n\tbind 127.0.0.1\n\trespond /file here\n}\n",
    );
    assert_eq!(control(&folder, &["reload"]).code, Some(0));
    wait_until_gone(last);
    assert_eq!(get(&onehop, "/file").0, 200);
}

#[test]
fn requests_that_wait_while_changed_settings_are_published_are_answered_by_the_old_workers() {
    let Some((onehop, folder)) = with_node("\t\tworkers 1\n\t\tone_at_a_time\n\t\tenv WHICH first") else {
        return;
    };
    let mut clients: Vec<_> = (0..3).map(|_| Client::connect(&onehop.address)).collect();
    for client in &mut clients {
        client.send("GET /slow HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    }
    wait_for("two that wait", || (app_status(&folder)["queued"] == 2).then_some(()));
    let old = pids(&folder)[0].to_string();
    write_node_site(&folder, "\t\tworkers 1\n\t\tone_at_a_time\n\t\tenv WHICH second");
    assert_eq!(control(&folder, &["reload"]).code, Some(0));
    assert_ne!(get(&onehop, "/").1, old);
    for client in &mut clients {
        let answer = client.read();
        assert_eq!((answer.status, answer.text()), (200, old.as_str()));
    }
    wait_until_gone(old.parse().expect("a number"));
}

#[test]
fn nothing_of_the_servers_environment_leaks_that_was_not_allowed() {
    let options = "\t\tenv SET 1\n\t\tenv_pass ALLOWED_*\n\t\tenv_file names.env";
    let Some((_, folder)) = with_node("") else { return };
    write_node_site(&folder, options);
    folder.write("names.env", "# a comment\nexport FROM_FILE=\"two words\"\nSET=2\n");
    let onehop = Program::new(["run", "--log", "json"])
        .inside(folder.path())
        .control_in(&folder.path().join("."))
        .with_env("SECRET_TOKEN", "x")
        .with_env("NODE_OPTIONS", "--no-warnings")
        .with_env("ALLOWED_KEY", "y")
        .with_env("ONEHOP_CONTROL", folder.path().join("other.sock"))
        .serve();
    let environment: Value = serde_json::from_str(&get(&onehop, "/environment").1).expect("JSON");
    assert_eq!(environment["SET"], "1");
    assert_eq!(environment["ALLOWED_KEY"], "y");
    assert_eq!(environment["FROM_FILE"], "two words");
    assert_eq!(environment["NODE_ENV"], "production");
    let allowed = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL"];
    let ours = ["SET", "ALLOWED_KEY", "FROM_FILE", "NODE_ENV", "ONEHOP_INVOCATION_ID"];
    for name in environment.as_object().expect("an object").keys() {
        let is_known = allowed.contains(&name.as_str()) || ours.contains(&name.as_str());
        assert!(is_known || name.starts_with("LC_"), "{name} has leaked");
    }
}

#[test]
fn descriptors_that_the_server_inherited_do_not_reach_workers() {
    let script = "exec 77</dev/null 78</dev/null; ONEHOP_LANES=3-78 exec \"$0\" exec-worker \"$1\" -- /bin/sh -c \
                  'for n in 77 78 79; do if [ -e /proc/$$/fd/$n ]; then echo $n; fi; done' 79</dev/null";
    let mut command = std::process::Command::new("/bin/bash");
    let own = std::process::id().to_string();
    let output = command.args(["-c", script, env!("CARGO_BIN_EXE_onehop"), &own]).output().expect("started");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "77\n78\n", "{output:?}");
    let script = script.replace("ONEHOP_LANES=3-78 ", "");
    let mut command = std::process::Command::new("/bin/bash");
    let output = command.args(["-c", &script, env!("CARGO_BIN_EXE_onehop"), &own]).output().expect("started");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{output:?}");
}

#[test]
fn what_a_worker_started_goes_with_it() {
    let Some((onehop, _folder)) = with_node("") else { return };
    let grandchild: u64 = get(&onehop, "/grandchild").1.parse().expect("a process id");
    assert!(!has_gone(grandchild));
    assert_eq!(get(&onehop, "/die").0, 502);
    wait_until_gone(grandchild);
}

#[test]
fn the_number_of_workers_goes_up_and_down_while_requests_are_answered() {
    let Some((onehop, folder)) = with_node("") else { return };
    for wanted in [3, 1, 2] {
        let request = format!("POST /workers/api/{wanted} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = ask_control(&folder, &request);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        wait_for("that many workers", || {
            assert_eq!(get(&onehop, "/").0, 200);
            serving(&folder, wanted)
        });
    }
    let answer =
        ask_control(&folder, "POST /workers/api/257 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 422") && answer.contains("from 1 to 256"), "{answer}");
    let metrics = onehop.metrics();
    assert!(metrics.contains("onehop_app_workers{app=\"api\",state=\"serving\"} 2\n"), "{metrics}");
    assert!(metrics.contains("onehop_app_restarts_total{app=\"api\"} 0\n"), "{metrics}");
}

fn ask_control(folder: &Folder, request: &str) -> String {
    let mut stream =
        std::os::unix::net::UnixStream::connect(folder.path().join("onehop.sock")).expect("connected");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_stop_finishes_what_is_in_flight_and_leaves_no_process() {
    let Some((mut onehop, folder)) = with_node("\t\tworkers 2") else { return };
    wait_for("two workers", || serving(&folder, 2));
    let workers = pids(&folder);
    let mut client = Client::connect(&onehop.address);
    client.send("GET /slow HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    wait_for_request(&folder);
    onehop.process.signal(Signal::TERM);
    assert_eq!(client.read().status, 200);
    assert!(onehop.process.wait().is_some_and(|status| status.success()));
    assert!(workers.into_iter().all(has_gone));
}

/// A WebSocket that has been accepted (RFC 6455 section 4.1).
fn open_socket(onehop: &Onehop) -> std::net::TcpStream {
    let mut stream = std::net::TcpStream::connect(&onehop.address).expect("connected");
    stream.set_read_timeout(Some(onehop_testkit::TIMEOUT)).expect("a timeout");
    stream
        .write_all(
            b"GET /socket HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
              Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )
        .expect("sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    stream
}

#[test]
fn a_stop_closes_websockets_with_1001_and_waits_for_those_that_say_nothing_no_longer_than_it_must() {
    let Some((mut onehop, _folder)) = with_node("") else { return };
    let mut polite = open_socket(&onehop);
    let mut silent = open_socket(&onehop);
    let begun = Instant::now();
    onehop.process.signal(Signal::TERM);
    for stream in [&mut polite, &mut silent] {
        let mut start = [0; 4];
        stream.read_exact(&mut start).expect("a close frame");
        assert_eq!((start[0], u16::from_be_bytes([start[2], start[3]])), (0x88, 1001));
        assert!(begun.elapsed().as_millis() < 1_500, "{:?}", begun.elapsed());
    }
    // An answer, masked with zeros (RFC 6455 section 5.5.1).
    polite.write_all(&[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9]).expect("sent");
    let mut rest = Vec::new();
    polite.read_to_end(&mut rest).expect("its end");
    assert!(onehop.process.wait().is_some_and(|status| status.success()));
    // Its grace period is 20 seconds.
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}

#[test]
fn a_server_that_is_killed_leaves_no_process() {
    let Some((mut onehop, folder)) = with_node("\t\tworkers 2") else { return };
    wait_for("two workers", || serving(&folder, 2));
    let workers = pids(&folder);
    onehop.process.signal(Signal::KILL);
    onehop.process.wait().expect("it has ended");
    workers.into_iter().for_each(wait_until_gone);

    // Nor one that knows nothing of the worker protocol, nor what that one started.
    let (mut onehop, folder) = with_script("sleep 1000 &\necho $!\nwait\n", "");
    let line = onehop.process.wait_for_event("app_output");
    let grandchild = line["line"].as_str().and_then(|pid| pid.parse().ok()).expect("a process id");
    let worker = wait_for("a worker", || pids(&folder).into_iter().find(|pid| *pid != 0));
    assert!(!has_gone(worker) && !has_gone(grandchild));
    onehop.process.signal(Signal::KILL);
    onehop.process.wait().expect("it has ended");
    wait_until_gone(worker);
    wait_until_gone(grandchild);
}

#[test]
fn a_program_is_ready_once_it_can_be_connected_to_and_its_end_is_reported() {
    let folder = Folder::with(&[(
        "server.mjs",
        "import http from 'node:http';\n\
         const server = http.createServer((request, response) => response.end('program'));\n\
         console.log('socket', process.env.ONEHOP_SOCKET, process.env.PORT, process.env.HOST);\n\
         server.listen(process.env.ONEHOP_SOCKET);\n",
    )]);
    if std::process::Command::new("node").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no `node` on PATH");
    }
    let text = "{\n\tadmin 127.0.0.1:0\n}\nhttp://127.0.0.1:0 {\n\tbind 127.0.0.1\n\tapp {\n\t\tname api\n\
                \t\tcommand node server.mjs\n\t}\n}\n";
    folder.write("Onehopfile", text);
    let mut onehop = Onehop::start_in(folder.path());
    onehop.process.wait_for_event("app_ready");
    let line = onehop.process.wait_for_event("app_output");
    let line = line["line"].as_str().expect("a line");
    let words: Vec<_> = line.split(' ').collect();
    assert!(words[1].ends_with(".sock") && words[2].parse::<u16>().is_ok(), "{line}");
    assert_eq!(words[3], "127.0.0.1");
    let pid = pids(&folder)[0];
    kill_process(Pid::from_raw(i32::try_from(pid).expect("small")).expect("a process"), Signal::TERM)
        .expect("sent");
    let ended = onehop.process.wait_for_event("worker_ended");
    assert!(reason(&ended).contains("SIGTERM"), "{ended}");
    let second =
        wait_for("another one", || pids(&folder).into_iter().find(|other| *other != pid && *other != 0));
    onehop.process.signal(Signal::TERM);
    assert!(onehop.process.wait().is_some_and(|status| status.success()));
    assert!(has_gone(second));
    let socket = std::path::Path::new(words[1]);
    assert!(!socket.parent().is_some_and(std::path::Path::exists), "the folder of sockets is left behind");
}

#[test]
fn what_a_killed_server_left_of_its_sockets_is_removed_by_the_next_one() {
    let folder = Folder::with(&[("program.sh", "echo $ONEHOP_SOCKET\nsleep 1000\n")]);
    let text = "{\n\tadmin 127.0.0.1:0\n}\nhttp://127.0.0.1:0 {\n\tbind 127.0.0.1\n\tapp {\n\t\tname api\n\
                \t\tcommand /bin/sh program.sh\n\t}\n}\n";
    folder.write("Onehopfile", text);
    let sockets = |onehop: &Onehop| {
        let line = onehop.process.wait_for_event("app_output");
        let socket = std::path::PathBuf::from(line["line"].as_str().expect("a path"));
        socket.ancestors().nth(2).expect("its folder").to_owned()
    };
    let mut first = Onehop::start_in(folder.path());
    let left = sockets(&first);
    first.process.signal(Signal::KILL);
    first.process.wait().expect("it has ended");
    assert!(left.exists());
    let second = Onehop::start_in(folder.path());
    wait_for("the removal of what was left", || (!left.exists()).then_some(()));
    assert!(sockets(&second).exists());
}

#[test]
fn a_program_that_somebody_else_starts_is_asked_as_soon_as_it_is_there() {
    let folder = Folder::new();
    let address = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        free.local_addr().expect("an address")
    };
    let text = format!(
        "{{\n\tadmin 127.0.0.1:0\n}}\nhttp://127.0.0.1:0 {{\n\tbind 127.0.0.1\n\tapp {{\n\t\tname api\n\
         \t\tsupervise off {address}\n\t}}\n}}\n"
    );
    folder.write("Onehopfile", text);
    let onehop = Onehop::start_in(folder.path());
    let failing = onehop.process.wait_for_event("app_failing");
    assert!(reason(&failing).contains("nobody answers there"), "{failing}");
    assert_eq!(app_status(&folder)["state"], "failing");
    let _there = std::net::TcpListener::bind(address).expect("still free");
    wait_for("an application that serves", || (app_status(&folder)["state"] == "serving").then_some(()));
    assert_eq!(control(&folder, &["reload"]).code, Some(0));
}

#[test]
fn browsers_see_why_new_code_does_not_start_while_somebody_works_on_it() {
    let Some((_, folder)) = with_node("") else { return };
    let onehop = Program::new(["run", "--watch", "--log", "json"])
        .inside(folder.path())
        .control_in(folder.path())
        .serve();
    onehop.process.wait_for_event("app_ready");
    let browse = || {
        let mut client = Client::connect(&onehop.address);
        let answer = client.ask("GET", "/", "Accept: text/html\r\nSec-Fetch-Mode: navigate\r\n");
        (answer.status, answer.text().to_owned())
    };
    assert_eq!(browse().0, 200);
    folder.write("app.mjs", "throw new Error('the brace is missing');\n");
    onehop.process.wait_for_event("reload_failed");
    let (status, page) = browse();
    assert!(status >= 500 && page.contains("the brace is missing"), "{status} {page}");
    folder.write("app.mjs", HANDLER);
    onehop.process.wait_for_event("reloaded");
    assert_eq!(browse().0, 200);
}

#[test]
fn a_start_that_fails_leaves_no_process() {
    let folder = Folder::with(&[("app.mjs", "")]);
    folder.write("fake.sh", "echo $$ > started\nsleep 1000\n");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let text = format!(
        "{{\n\tadmin off\n}}\nhttp://127.0.0.1:{port} {{\n\tbind 127.0.0.1\n\tapp ./app.mjs {{\n\t\truntime /bin/sh ./fake.sh\n\t}}\n}}\n"
    );
    folder.write("Onehopfile", text);
    let finished = Program::new(["run"]).inside(folder.path()).control_in(folder.path()).finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    // It may not even have come that far.
    let started = std::fs::read_to_string(folder.path().join("started"));
    if let Some(pid) = started.ok().and_then(|pid| pid.trim().parse().ok()) {
        wait_until_gone(pid);
    }
}
