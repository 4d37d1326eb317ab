//! What happens to applications and their processes while nobody looks: reloads, changed files, crash loops, lost
//! guards, stuck event loops. Needs Node.js.

use std::io::{Read, Write};
use std::net::TcpStream;

use onehop_testkit::{Client, Folder, Onehop, Program, TIMEOUT, wait_for};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

/// A WebSocket that answers, an event stream that ticks, and the number of the process.
const HANDLER: &str = r#"
import { word } from './word.mjs';
export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === '/socket') {
      const { socket, response } = onehop.upgradeWebSocket(request);
      socket.addEventListener('message', ({ data }) => socket.send(`echo ${data}`));
      return response;
    }
    if (pathname === '/events') {
      let timer;
      let count = 0;
      const body = new ReadableStream({
        start(controller) {
          timer = setInterval(() => controller.enqueue(new TextEncoder().encode(`data: ${count++}\n\n`)), 10);
        },
        cancel() { clearInterval(timer); },
      });
      return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } });
    }
    if (pathname === '/late') await import('./late.cjs');
    return new Response(`${process.pid} ${word}`);
  },
};
"#;

const WORD: &str = "export const word = 'one';\n";

fn onehopfile(text: &str) -> String {
    format!(
        "{{\n\tadmin 127.0.0.1:0\n\tgrace_period 5s\n}}\nhttp://127.0.0.1:0 {{\n\tbind 127.0.0.1\n\trespond /file {text}\n\tapp ./app.mjs {{\n\
         \t\tname api\n\t}}\n}}\n"
    )
}

fn with_handler() -> Folder {
    Folder::with(&[
        ("Onehopfile", &onehopfile("first")),
        ("app.mjs", HANDLER),
        ("word.mjs", WORD),
        ("late.cjs", "exports.late = 1;\n"),
        ("unused.mjs", "export const unused = 1;\n"),
    ])
}

fn start(folder: &Folder, options: &[&str]) -> Onehop {
    let words = ["run", "--log", "json"].iter().chain(options).copied();
    let onehop = Program::new(words).inside(folder.path()).control_in(folder.path()).serve();
    onehop.process.wait_for_event("app_ready");
    onehop
}

fn reload(folder: &Folder, options: &[&str]) {
    let words = ["reload"].iter().chain(options).copied();
    let finished = Program::new(words).inside(folder.path()).control_in(folder.path()).finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
}

/// The process that answers, and what it says.
fn answer(onehop: &Onehop, path: &str) -> (u64, String) {
    let answer = Client::connect(&onehop.address).get(path);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let (pid, word) = answer.text().split_once(' ').expect("a number and a word");
    (pid.parse().expect("a number"), word.to_owned())
}

fn pid(onehop: &Onehop) -> u64 {
    answer(onehop, "/").0
}

/// A connection that sent a request of its own and has the head of its answer; what came behind it.
fn opened(onehop: &Onehop, request: &str) -> (TcpStream, Vec<u8>) {
    let mut stream = TcpStream::connect(&onehop.address).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("set");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        read_more(&mut stream, &mut bytes);
    };
    (stream, bytes.split_off(end))
}

fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    let count = stream.read(&mut buffer).expect("in time");
    assert_ne!(count, 0, "it was closed after {:?}", String::from_utf8_lossy(bytes));
    bytes.extend_from_slice(&buffer[..count]);
}

/// Sends a text over a WebSocket and waits for its echo.
fn echo(stream: &mut TcpStream, text: &str) {
    let mut frame = vec![0x81, 0x80 | text.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    stream.write_all(&frame).expect("sent");
    let expected = [&[0x81, text.len() as u8 + 5][..], b"echo ", text.as_bytes()].concat();
    let mut bytes = Vec::new();
    while bytes.len() < expected.len() {
        read_more(stream, &mut bytes);
    }
    assert_eq!(bytes, expected, "{:?}", String::from_utf8_lossy(&bytes));
}

#[test]
fn two_hundred_reloads_keep_the_process_websocket_and_event_stream_of_an_unchanged_application() {
    let folder = with_handler();
    let onehop = start(&folder, &[]);
    let before = pid(&onehop);
    let (mut socket, _) = opened(
        &onehop,
        "GET /socket HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    echo(&mut socket, "first");
    let (mut events, mut seen) = opened(&onehop, "GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    for number in 1..=200 {
        folder.write("Onehopfile", onehopfile(&format!("number-{number}")));
        if number % 10 == 1 {
            reload(&folder, &[]);
        } else {
            let mut control = Client::connect_unix(&folder.join("onehop.sock"));
            assert_eq!(control.ask("POST", "/reload", "").status, 200);
        }
        echo(&mut socket, &format!("after {number}"));
        seen.clear();
        read_more(&mut events, &mut seen);
    }
    assert_eq!(Client::connect(&onehop.address).get("/file").text(), "number-200");
    assert_eq!(pid(&onehop), before);
    assert!(onehop.process.events().iter().all(|event| event["event"] != "worker_ended"));
}

#[test]
fn a_reload_replaces_the_processes_of_an_application_whose_loaded_files_changed_and_no_others() {
    let folder = with_handler();
    let onehop = start(&folder, &[]);
    let first = pid(&onehop);
    folder.write("unused.mjs", "export const unused = 2;\n");
    folder.write("late.cjs", "exports.late = 2;\n");
    reload(&folder, &[]);
    assert_eq!(pid(&onehop), first, "it has loaded neither");
    folder.write("word.mjs", "export const word = 'two';\n");
    reload(&folder, &[]);
    let (second, word) = answer(&onehop, "/");
    assert_ne!(second, first);
    assert_eq!(word, "two");
    reload(&folder, &[]);
    assert_eq!(answer(&onehop, "/late").0, second, "nothing changed any more");
    folder.write("late.cjs", "exports.late = 3;\n");
    reload(&folder, &[]);
    let third = pid(&onehop);
    assert_ne!(third, second, "it loaded that later");
    reload(&folder, &["--restart"]);
    assert_ne!(pid(&onehop), third, "on purpose");
}

#[test]
fn a_release_that_a_link_is_turned_to_is_started_by_a_reload() {
    let folder = Folder::with(&[
        ("one/app.mjs", "export default () => new Response(`${process.pid} one`);\n"),
        ("two/app.mjs", "export default () => new Response(`${process.pid} two`);\n"),
    ]);
    folder.write("Onehopfile", onehopfile("x").replace("./app.mjs", "./current/app.mjs"));
    let turn = |to: &str| {
        std::os::unix::fs::symlink(to, folder.join("next")).expect("a link");
        std::fs::rename(folder.join("next"), folder.join("current")).expect("turned");
    };
    turn("one");
    let onehop = start(&folder, &[]);
    assert_eq!(answer(&onehop, "/").1, "one");
    turn("two");
    reload(&folder, &[]);
    assert_eq!(answer(&onehop, "/").1, "two");
}

#[test]
fn a_reload_replaces_a_program_whose_folder_has_changed_sources_and_keeps_it_otherwise() {
    let program = "import http.server, os\n\
        class Handler(http.server.BaseHTTPRequestHandler):\n\
        \tdef do_GET(self):\n\
        \t\tbody = f'{os.getpid()} x'.encode()\n\
        \t\tself.send_response(200)\n\
        \t\tself.send_header('Content-Length', str(len(body)))\n\
        \t\tself.end_headers()\n\
        \t\tself.wfile.write(body)\n\
        http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()\n";
    let folder = Folder::with(&[("shop/serve.py", program), ("shop/orders.py", "x = 1\n")]);
    folder.write(
        "Onehopfile",
        "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\tbind 127.0.0.1\n\tapp {\n\t\tname api\n\t\tcommand python3 -u serve.py\n\t\tcwd shop\n\t}\n}\n",
    );
    let onehop = start(&folder, &[]);
    let first = pid(&onehop);
    folder.write("shop/orders.db", "data");
    reload(&folder, &[]);
    assert_eq!(pid(&onehop), first);
    folder.write("shop/orders.py", "x = 2\n");
    reload(&folder, &[]);
    assert_ne!(pid(&onehop), first);
}

#[test]
fn watch_restarts_only_the_application_that_has_loaded_the_changed_file() {
    let folder = with_handler();
    folder.write(
        "other.mjs",
        "import './shared.mjs';\nexport default () => new Response(`${process.pid} other`);\n",
    );
    folder.write("shared.mjs", "export const shared = 1;\n");
    let text = onehopfile("x")
        .replace("app ./app.mjs", "app /other ./other.mjs {\n\t\tname other\n\t}\n\tapp ./app.mjs");
    folder.write("Onehopfile", text);
    let onehop = start(&folder, &["--watch"]);
    onehop.process.wait_for_events("app_ready", 2);
    let before = (pid(&onehop), answer(&onehop, "/other").0);
    // Both changes are seen by the same look: had the first one led to a restart, it would have come with the second.
    folder.write("unused.mjs", "export const unused = 2;\n");
    folder.write("word.mjs", "export const word = 'two';\n");
    wait_for("the new word", || (answer(&onehop, "/").1 == "two").then_some(()));
    assert_ne!(pid(&onehop), before.0);
    assert_eq!(answer(&onehop, "/other").0, before.1);
    folder.write("unused.mjs", "export const unused = 3;\n");
    folder.write("shared.mjs", "export const shared = 2;\n");
    wait_for("another process", || (answer(&onehop, "/other").0 != before.1).then_some(()));
    onehop.process.wait_for_events("reloaded", 2);
    let rolled: Vec<Value> =
        onehop.process.events().into_iter().filter(|event| event["event"] == "app_rolled").collect();
    let apps: Vec<&str> = rolled.iter().map(|event| event["app"].as_str().expect("a name")).collect();
    assert_eq!(apps, ["api", "other"], "{rolled:?}");
}

#[test]
fn watch_starts_an_application_once_the_file_that_it_misses_is_there() {
    let folder = Folder::with(&[("Onehopfile", &onehopfile("x")), ("app.mjs", HANDLER)]);
    let onehop = Program::new(["run", "--watch", "--log", "json"])
        .inside(folder.path())
        .control_in(folder.path())
        .serve();
    onehop.process.wait_for_event("app_failing");
    folder.write("word.mjs", WORD);
    onehop.process.wait_for_event("app_ready");
    assert_eq!(answer(&onehop, "/").1, "one");
}

/// A server whose application is run by a script in the place of Node.
fn with_script(script: &str, options: &str) -> (Onehop, Folder) {
    let folder = Folder::with(&[("app.mjs", "")]);
    folder.write("fake.sh", script);
    let text = onehopfile("here")
        .replace("name api", &format!("name api\n\t\truntime /bin/sh ./fake.sh\n{options}"));
    folder.write("Onehopfile", text);
    let onehop =
        Program::new(["run", "--log", "json"]).inside(folder.path()).control_in(folder.path()).serve();
    (onehop, folder)
}

fn reason(event: &Value) -> &str {
    event["reason"].as_str().expect("a reason")
}

fn events_named(onehop: &Onehop, name: &str) -> Vec<Value> {
    onehop.process.events().into_iter().filter(|event| event["event"] == name).collect()
}

/// Starts of the script until now: each adds a line to a file.
fn starts(folder: &Folder) -> usize {
    std::fs::read_to_string(folder.join("starts")).unwrap_or_default().lines().count()
}

#[test]
fn a_crash_loop_is_reported_once_with_its_count_and_its_end_with_the_number_of_failed_starts() {
    let script = "echo x >> starts\nif [ -e mended ]; then\n\
        printf '\\017\\000\\000\\000\\002\\000\\000\\000\\000\\000\\000\\000\\001\\000\\000\\000\\007\\000\\000\\000sh\\n1\\n1\\n' >&3\n\
        exec sleep 1000\nfi\nexit 7\n";
    let (onehop, folder) = with_script(script, "");
    let failing = onehop.process.wait_for_event("app_failing");
    assert_eq!(failing["failures"], 3, "{failing}");
    wait_for("more starts", || (starts(&folder) >= 6).then_some(()));
    folder.write("mended", "");
    let ready = onehop.process.wait_for_event("app_ready");
    assert_eq!(ready["failures"].as_u64(), Some(starts(&folder) as u64 - 1), "{ready}");
    assert_eq!(events_named(&onehop, "app_failing").len(), 1);
    assert_eq!(events_named(&onehop, "worker_ended").len(), 3, "those before it was known to be a loop");
}

#[test]
fn a_worker_that_is_ready_for_a_moment_each_time_is_one_crash_loop() {
    let script = "echo x >> starts\n\
        printf '\\017\\000\\000\\000\\002\\000\\000\\000\\000\\000\\000\\000\\001\\000\\000\\000\\007\\000\\000\\000sh\\n1\\n1\\n' >&3\n\
        sleep 0.05\nexit 1\n";
    let (onehop, folder) = with_script(script, "");
    onehop.process.wait_for_event("app_failing");
    wait_for("more starts", || (starts(&folder) >= 6).then_some(()));
    assert_eq!(events_named(&onehop, "app_failing").len(), 1);
    assert_eq!(events_named(&onehop, "app_ready").len(), 1, "before it was known to be a loop");
}

#[test]
fn events_carry_the_time_in_both_forms() {
    let folder = with_handler();
    let onehop = start(&folder, &[]);
    for event in onehop.process.events() {
        let time = event["time"].as_str().expect("a time");
        assert!(time.len() == 24 && time.starts_with("20") && time.ends_with('Z'), "{event}");
    }
    let plain = Program::new(["run"])
        .inside(folder.path())
        .with_env("ONEHOP_CONTROL", folder.join("plain.sock"))
        .start();
    plain.wait_for_text("  runs       api");
    for line in plain.stderr().lines() {
        let (time, text) = line.split_at(21);
        assert!(time.starts_with("20") && time.ends_with("Z ") && !text.is_empty(), "{line}");
    }
}

#[test]
fn a_reason_is_complete_where_only_its_first_line_is_shown() {
    let folder = with_handler();
    folder.write(
        "word.mjs",
        "export const word = 1;\nthrow new Error(\"The module '/srv/better_sqlite3.node'\\nwas compiled against a different Node.js version using\\n\
         NODE_MODULE_VERSION 108. Please try re-compiling\");\n",
    );
    let onehop =
        Program::new(["run", "--log", "json"]).inside(folder.path()).control_in(folder.path()).serve();
    let failing = onehop.process.wait_for_event("app_failing");
    let first = reason(&failing).lines().next().expect("a line");
    let whole = "better_sqlite3.node' was compiled against a different Node.js version using NODE_MODULE_VERSION 108. Please";
    assert!(first.contains(whole), "{failing}");
    let healthy =
        Program::new(["status", "--healthy"]).inside(folder.path()).control_in(folder.path()).finish();
    assert!(healthy.stderr.contains(whole), "{}", healthy.stderr);
}

#[test]
fn a_node_that_is_too_old_is_reported_at_start() {
    let folder = with_handler();
    let node = folder.write(
        "node",
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo v16.20.2; exit; fi\necho \"$0: bad option: --import\" >&2\nexit 9\n",
    );
    std::fs::set_permissions(&node, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    folder.write("Onehopfile", onehopfile("x").replace("name api", "name api\n\t\truntime ./node"));
    let onehop =
        Program::new(["run", "--log", "json"]).inside(folder.path()).control_in(folder.path()).serve();
    let ended = onehop.process.wait_for_event("worker_ended");
    let expected = "Node.js 16.20.2 is not supported: install Node.js 20 or later";
    assert!(reason(&ended).starts_with(expected), "{ended}");
    // One that starts all the same.
    folder.write(
        "node",
        "#!/bin/sh\nprintf '\\026\\000\\000\\000\\002\\000\\000\\000\\000\\000\\000\\000\\001\\000\\000\\000\\016\\000\\000\\000node\\n18.1.0\\n1\\n' >&3\nexec sleep 1000\n",
    );
    onehop.process.wait_for_text("Node.js 18.1.0 is not supported: install Node.js 20 or later");
}

/// Listening TCP sockets of a process, by their inodes.
fn listening_sockets(pid: u64) -> Vec<String> {
    let tables =
        ["tcp", "tcp6"].map(|name| std::fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default());
    let listening = tables.iter().flat_map(|table| table.lines()).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.get(3) == Some(&"0A")).then(|| format!("socket:[{}]", fields[9]))
    });
    let listening: Vec<String> = listening.collect();
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.map(|target| target.display().to_string()).filter(|target| listening.contains(target)).collect()
}

#[test]
fn the_stack_of_a_stuck_worker_is_found_without_a_port_even_where_it_listens_to_interrupts() {
    let folder = with_handler();
    folder.write(
        "app.mjs",
        "process.on('SIGINT', () => process.exit(0));\nfunction spin() { for (;;) {} }\n\
         export default (request) => { if (request.url.endsWith('/spin')) spin(); return new Response(`${process.pid} x`); };\n",
    );
    folder.write("Onehopfile", onehopfile("x").replace("name api", "name api\n\t\tstuck_after 500ms"));
    let onehop = start(&folder, &[]);
    let pid = pid(&onehop);
    let mut client = Client::connect(&onehop.address);
    client.send("GET /spin HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    let mut listened = Vec::new();
    let stuck = wait_for("the stack", || {
        listened.extend(listening_sockets(pid));
        onehop.process.events().into_iter().find(|event| event["event"] == "worker_stuck")
    });
    let stack = stuck["stack"].as_str().expect("a stack");
    assert!(stack.starts_with("at spin (") && stack.contains("/app.mjs:2:"), "{stack}");
    assert!(listened.is_empty(), "{listened:?}");
    let shown = onehop.process.stderr();
    assert!(!shown.contains("Debugger listening") && !shown.contains("KEYBOARD_INTERRUPT"), "{shown}");
}

#[test]
fn an_interrupt_that_an_application_sends_itself_reaches_its_own_listener() {
    let folder = with_handler();
    folder.write(
        "app.mjs",
        "let heard = 'nothing';\nprocess.on('SIGINT', (name) => { heard = name; });\n\
         export default async () => { process.kill(process.pid, 'SIGINT'); await new Promise(setImmediate); return new Response(`${process.pid} ${heard}`); };\n",
    );
    let onehop = start(&folder, &[]);
    assert_eq!(answer(&onehop, "/").1, "SIGINT");
}

#[test]
fn a_listener_on_the_port_of_a_program_that_is_none_of_its_processes_gets_no_request() {
    let folder = Folder::with(&[("program.sh", "echo \"port $PORT\" >&2\nexec sleep 1000\n")]);
    let text = "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\tbind 127.0.0.1\n\tapp {\n\t\tname api\n\t\tcommand /bin/sh ./program.sh\n\t\tstart_timeout 2s\n\t\tqueue 10 1s\n\t}\n}\n";
    folder.write("Onehopfile", text);
    let onehop =
        Program::new(["run", "--log", "json"]).inside(folder.path()).control_in(folder.path()).serve();
    let line = onehop.process.wait_for_event("app_output")["line"].as_str().expect("a line").to_owned();
    let port = line.strip_prefix("port ").expect("a port");
    let hijacker = std::net::TcpListener::bind(format!("127.0.0.1:{port}")).expect("free");
    std::thread::spawn(move || {
        for stream in hijacker.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen");
        }
    });
    let answer = Client::connect(&onehop.address).get("/");
    assert_ne!(answer.status, 200, "{}", answer.text());
    let ended = onehop.process.wait_for_event("worker_ended");
    assert!(reason(&ended).contains("that is none of this program"), "{ended}");
    assert!(events_named(&onehop, "app_ready").is_empty());
}

#[test]
fn a_program_whose_child_listens_is_reached() {
    let serve = "import http.server, os\n\
        class Handler(http.server.SimpleHTTPRequestHandler):\n\tpass\n\
        http.server.HTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()\n";
    let folder = Folder::with(&[("serve.py", serve), ("page.txt", "1 page")]);
    let text = "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\tbind 127.0.0.1\n\tapp {\n\t\tname api\n\t\tcommand /bin/sh -c \"setsid python3 serve.py & wait\"\n\t}\n}\n";
    folder.write("Onehopfile", text);
    let onehop = start(&folder, &[]);
    assert_eq!(answer(&onehop, "/page.txt"), (1, "page".to_owned()));
}

#[test]
fn a_program_that_listens_on_both_is_asked_over_its_unix_socket() {
    // Python says on which of the two it was asked. Both begin to listen within microseconds, the socket first.
    let serve = "import http.server, os, socketserver, threading\n\
        class On(http.server.BaseHTTPRequestHandler):\n\
        \tdef do_GET(self):\n\
        \t\tname = b'socket' if isinstance(self.server, Unix) else b'port'\n\
        \t\tself.send_response(200)\n\t\tself.send_header('Content-Length', str(len(name)))\n\
        \t\tself.end_headers()\n\t\tself.wfile.write(name)\n\
        \tdef address_string(self):\n\t\treturn ''\n\
        class Unix(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):\n\tpass\n\
        port = http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT'])), On, False)\n\
        unix = Unix(os.environ['ONEHOP_SOCKET'], On, False)\n\
        port.server_bind()\n\
        unix.server_bind()\n\
        unix.server_activate()\n\
        port.server_activate()\n\
        threading.Thread(target=port.serve_forever, daemon=True).start()\n\
        unix.serve_forever()\n";
    let folder = Folder::with(&[("serve.py", serve)]);
    let text = "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\tbind 127.0.0.1\n\tapp {\n\t\tname api\n\t\tcommand python3 serve.py\n\t}\n}\n";
    folder.write("Onehopfile", text);
    let onehop = start(&folder, &[]);
    let answer = Client::connect(&onehop.address).get("/");
    assert_eq!((answer.status, answer.text()), (200, "socket"), "over the socket");
}

/// Child processes of a process whose command line has this word.
fn children(parent: u32, word: &str) -> Vec<i32> {
    let is_it = |pid: &i32| {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let of_parent = read("stat")
            .rsplit_once(')')
            .is_some_and(|(_, rest)| rest.split_whitespace().nth(1) == Some(&parent.to_string()));
        let is_dead =
            read("stat").rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'));
        of_parent && !is_dead && read("cmdline").contains(word)
    };
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_it).collect()
}

fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a process id"), signal).expect("it was there");
}

fn wait_until_gone(pid: i32) {
    wait_for("the end of a process", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_dead = stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'));
        (is_dead || test_kill_process(Pid::from_raw(pid)?).is_err()).then_some(())
    });
}

/// A handler whose worker has a child process, and the number of that.
fn with_child(folder: &Folder) -> (Onehop, i32) {
    folder.write(
        "app.mjs",
        "import { spawn } from 'node:child_process';\nconst child = spawn('sleep', ['1000'], { stdio: 'ignore' });\n\
         export default () => new Response(`${child.pid} x`);\n",
    );
    let onehop = start(folder, &[]);
    let child = i32::try_from(pid(&onehop)).expect("small");
    (onehop, child)
}

#[test]
fn a_guard_that_is_killed_is_replaced_reported_once_and_does_its_work() {
    let folder = with_handler();
    let (onehop, child) = with_child(&folder);
    let server = onehop.process.pid();
    let guard = || children(server, "guard-workers");
    let first = wait_for("a guard", || guard().first().copied());
    send(first, Signal::KILL);
    let second = wait_for("another guard", || guard().into_iter().find(|pid| *pid != first));
    send(second, Signal::KILL);
    wait_for("a third guard", || guard().into_iter().find(|pid| ![first, second].contains(pid)));
    // What is reported later than the third guard's start comes after all that was reported until then.
    onehop.process.signal(Signal::HUP);
    onehop.process.wait_for_event("reloaded");
    let warnings = events_named(&onehop, "warning");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0]["message"].as_str().is_some_and(|text| text.contains("another one took its place")));
    onehop.process.signal(Signal::KILL);
    wait_until_gone(child);
}

#[test]
fn the_next_start_ends_what_a_server_left_that_was_killed_with_its_guard() {
    let folder = with_handler();
    let (onehop, child) = with_child(&folder);
    let guard = wait_for("a guard", || children(onehop.process.pid(), "guard-workers").first().copied());
    onehop.process.signal(Signal::STOP);
    send(guard, Signal::KILL);
    onehop.process.signal(Signal::KILL);
    drop(onehop);
    let next = with_handler();
    let _onehop = start(&next, &[]);
    wait_until_gone(child);
}
