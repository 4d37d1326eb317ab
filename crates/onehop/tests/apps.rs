//! Applications as a person runs them: the example, `onehop app`, `onehop workers`, `--watch`. Needs Node.js.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;

use onehop_testkit::{Client, Folder, Onehop, Program, Response, TIMEOUT, wait_for};
use serde_json::Value;

/// The example's files, in a folder of its own and at a free port.
fn example() -> Folder {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/api");
    let read = |path: &str| std::fs::read_to_string(source.join(path)).expect("a file of the example");
    let folder = Folder::new();
    for path in ["api/server.mjs", "dist/index.html", "dist/page.js", "dist/style.css"] {
        folder.write(path, read(path));
    }
    let text = read("Onehopfile");
    assert!(text.contains("http://localhost:8080 {"));
    let text = text.replace("http://localhost:8080 {", "http://127.0.0.1:0 {");
    folder.write("Onehopfile", format!("{{\n\tadmin off\n}}\n{text}"));
    folder
}

/// `onehop app` in a folder that holds `server.mjs`, at a free port.
fn app(folder: &Folder, arguments: &[&str]) -> Onehop {
    let usual = ["app", "--listen", "127.0.0.1:0", "--admin", "off", "--log", "json"];
    Program::new(usual.iter().chain(arguments)).inside(folder.path()).control_in(folder.path()).serve()
}

/// A handler that answers with this expression.
fn answering(expression: &str) -> String {
    format!("export default {{ fetch: (request, env, ctx) => Response.json({expression}) }};\n")
}

fn json(response: &Response) -> Value {
    serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}

/// What `onehop workers --json` says of the only application.
fn workers(folder: &Folder, more: &[&str]) -> Value {
    let arguments = ["workers", "--json"].iter().chain(more);
    let finished = Program::new(arguments).control_in(folder.path()).finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let apps: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    apps[0].clone()
}

#[test]
fn the_example_serves_its_page_and_its_api() {
    let folder = example();
    let onehop = Onehop::start_in(folder.path());
    let mut client = onehop.connect();
    assert!(client.ask("GET", "/", "Accept: text/html\r\n").text().contains("<title>Notes</title>"));
    assert_eq!(client.get("/page.js").status, 200);

    assert_eq!(json(&client.get("/api/notes"))[0]["id"], 1);
    let body = "{\"text\":\"from a test\"}";
    client.send(format!(
        "POST /api/notes HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
        onehop.address,
        body.len()
    ));
    let made = client.read();
    assert_eq!((made.status, &json(&made)["text"]), (201, &Value::from("from a test")));
    assert_eq!(json(&client.get("/api/notes"))[1]["text"], "from a test");

    let counted: String = (1..=2000).map(|number| format!("{number}\n")).collect();
    assert_eq!(client.get("/api/count?to=2000").text(), counted);
    assert_eq!(client.get("/api/count?to=0").status, 422);
    assert_eq!(client.get("/api/nothing").status, 404);

    let me = json(&client.get("/api/me"));
    assert_eq!(me["client"]["address"], "127.0.0.1");
    assert_eq!(me["worker"], workers(&folder, &[])["workers"][0]["pid"]);
}

#[test]
fn every_handler_of_the_page_about_them_can_be_loaded() {
    let page = include_str!("../../../docs/handlers.md");
    let blocks = page.split("```js\n").skip(1).filter_map(|rest| rest.split("```").next());
    let handlers: Vec<&str> = blocks.filter(|block| block.contains("export default")).collect();
    assert!(handlers.len() >= 6, "only {} handlers were found", handlers.len());
    let folder = Folder::new();
    let mut text = "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n".to_owned();
    for (number, source) in handlers.iter().enumerate() {
        folder.write(&format!("{number}.mjs"), source);
        text += &format!("\tapp /{number}/* {number}.mjs {{\n\t\tname example-{number}\n\t}}\n");
    }
    folder.write("Onehopfile", text + "}\n");
    let onehop = Onehop::start_in(folder.path());
    onehop.process.wait_for_events("app_ready", handlers.len());
    assert_eq!(onehop.connect().get("/0/path").text(), "hello from /0/path\n");
    assert_eq!(onehop.connect().get("/5/").status, 426, "no WebSocket was asked for");
}

#[test]
fn the_examples_clock_ticks_and_takes_no_place_from_others() {
    let folder = example();
    let onehop = Onehop::start_in(folder.path());
    let mut stream = TcpStream::connect(&onehop.address).expect("connected");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    write!(stream, "GET /api/clock HTTP/1.1\r\nHost: {}\r\n\r\n", onehop.address).expect("sent");
    let lines = BufReader::new(stream.try_clone().expect("a second end")).lines();
    let ticks = lines.map_while(Result::ok).filter(|line| line.starts_with("data: ")).take(2).count();
    assert_eq!(ticks, 2);
    // It has given its place back: streams without an end would otherwise use all of them up.
    assert_eq!(workers(&folder, &[])["workers"][0]["in_flight"], 0);
}

#[test]
fn an_application_needs_no_onehopfile() {
    let folder = Folder::with(&[(
        "server.mjs",
        &answering(
            "{ url: request.url, argv: process.argv.slice(2), given: env.GIVEN, secret: env.SECRET ?? null }",
        ),
    )]);
    let usual = ["app", "server.mjs", "--listen", "127.0.0.1:0", "--admin", "off", "--log", "json"];
    let more = ["--env", "GIVEN=a b", "--", "--verbose", "{host}"];
    let onehop = Program::new(usual.iter().chain(&more))
        .inside(folder.path())
        .control_in(folder.path())
        .with_env("SECRET", "of another program")
        .serve();
    let answer = json(&onehop.connect().get("/some/where?a=b"));
    assert_eq!(answer["url"], format!("http://{}/some/where?a=b", onehop.address));
    assert_eq!(answer["argv"], serde_json::json!(["--verbose", "{host}"]));
    assert_eq!((&answer["given"], &answer["secret"]), (&Value::from("a b"), &Value::Null));
    let finished = Program::new(["stop"]).control_in(folder.path()).finish();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "stopped\n"));
}

#[test]
fn any_program_that_speaks_http_is_an_application() {
    let program = "import http from 'node:http';\n\
        http.createServer((request, response) => response.end(`${request.method} ${request.url}`))\n\
        .listen(process.env.ONEHOP_SOCKET);\n";
    let folder = Folder::with(&[("program.mjs", program)]);
    let onehop = app(&folder, &["--", "node", "program.mjs"]);
    assert_eq!(onehop.connect().get("/a?b").text(), "GET /a?b");
    assert_eq!(workers(&folder, &[])["app"], "program");
}

#[test]
fn workers_become_as_many_as_was_asked_for() {
    let folder = Folder::with(&[("server.mjs", &answering("process.pid"))]);
    let onehop = app(&folder, &["server.mjs", "--name", "api"]);
    let pid = json(&onehop.connect().get("/"));
    assert_eq!(workers(&folder, &["api"])["workers"][0]["pid"], pid);
    for (more, count) in [(&["3"][..], 3), (&["api", "1"], 1)] {
        assert_eq!(workers(&folder, more)["wanted"], count);
        wait_for("so many workers", || {
            let now = workers(&folder, &[]);
            let now = now["workers"].as_array().expect("a list");
            (now.len() == count && now.iter().all(|worker| worker["state"] == "serving")).then_some(())
        });
    }
    assert_eq!(onehop.connect().get("/").status, 200);
    for arguments in [["workers", "apo", "2"], ["workers", "api", "5000"]] {
        let finished = Program::new(arguments).control_in(folder.path()).finish();
        assert_eq!(finished.code, Some(1), "{arguments:?}: {}", finished.stderr);
    }
}

#[test]
fn with_watch_a_changed_source_answers_and_a_broken_one_changes_nothing() {
    let folder = Folder::with(&[
        ("server.mjs", "import { word } from './word.mjs';\nexport default () => new Response(word);\n"),
        ("word.mjs", "export const word = 'one';\n"),
    ]);
    let onehop = app(&folder, &["server.mjs", "--watch"]);
    let mut client = onehop.connect();
    assert_eq!(client.get("/").text(), "one");
    folder.write("word.mjs", "export const word = 'two';\n");
    wait_for("the new word", || (client.get("/").text() == "two").then_some(()));
    folder.write("word.mjs", "export const word = ;\n");
    let failed = onehop.process.wait_for_event("reload_failed");
    assert!(failed["reason"].as_str().expect("text").contains("word.mjs"), "{failed}");
    assert_eq!(client.get("/").text(), "two");
    folder.write("word.mjs", "export const word = 'three';\n");
    wait_for("the next word", || (client.get("/").text() == "three").then_some(()));
}

#[test]
fn what_an_application_writes_becomes_events() {
    let source = "console.log('plain');\nconsole.error('to stderr');\n\
        console.log(JSON.stringify({ level: 30, msg: 'structured' }));\n\
        export default () => new Response('');\n";
    let folder = Folder::with(&[("server.mjs", source)]);
    let onehop = app(&folder, &["server.mjs", "--name", "api"]);
    let mut lines = onehop.process.wait_for_events("app_output", 3);
    lines.sort_by_key(|event| event["stream"].to_string() + &event["line"].to_string());
    let shown: Vec<(&str, &str, &Value)> = lines
        .iter()
        .map(|event| {
            let text = |field: &str| event[field].as_str().expect("text");
            let what = if event["fields"].is_null() { &event["line"] } else { &event["fields"]["msg"] };
            (text("app"), text("stream"), what)
        })
        .collect();
    let [plain, structured, error] = ["plain", "structured", "to stderr"].map(Value::from);
    assert_eq!(shown, [("api", "stderr", &error), ("api", "stdout", &plain), ("api", "stdout", &structured)]);
}

/// Its first answer takes half a second, as where an application connects to its database for its first request.
const COLD: &str = "let isFirst = true;
const events = () => new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode('data: 1\\n\\n')) });
export default {
  async fetch(request) {
    if (isFirst) {
      isFirst = false;
      await new Promise((done) => setTimeout(done, 500));
    }
    if (!request.url.endsWith('/events')) return new Response('fast');
    return new Response(events(), { headers: { 'content-type': 'text/event-stream' } });
  },
};
";

#[test]
fn status_reports_cold_starts_and_streams_apart_from_the_percentiles() {
    let folder = Folder::with(&[("server.mjs", COLD)]);
    let onehop = app(&folder, &["server.mjs"]);
    let site = || {
        let finished = Program::new(["status", "--json"]).control_in(folder.path()).finish();
        serde_json::from_str::<Value>(&finished.stdout).expect("JSON")["sites"][0].clone()
    };
    onehop.process.wait_for_event("app_ready");
    assert_eq!((&site()["p99_ms"], &site()["slowest_cold_start_ms"]), (&Value::Null, &Value::Null));

    let mut client = onehop.connect();
    for _ in 0..=200 {
        assert_eq!(client.get("/").text(), "fast");
    }
    let mut stream = onehop.connect();
    stream.send(format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", onehop.address));
    assert!(!stream.read_some().expect("an event").is_empty());
    let open = site();
    assert_eq!((&open["requests"], &open["errors"]), (&201.into(), &0.into()), "{open}");
    assert_eq!(
        (&open["cold_starts"], &open["streams"], &open["streams_open"]),
        (&1.into(), &1.into(), &1.into())
    );
    let milliseconds = |field: &str| open[field].as_f64().expect("a latency");
    let [p50, p99, cold] = ["p50_ms", "p99_ms", "slowest_cold_start_ms"].map(milliseconds);
    // Node's timers may be a millisecond early; two of the others may be as slow on a busy machine.
    assert!(p50 <= p99 && p99 < cold && cold > 450.0, "{open}");

    let metrics = Client::connect_unix(&folder.path().join("onehop.sock")).get("/metrics").text().to_owned();
    for (name, count) in [("request_duration", 200), ("cold_start_duration", 1), ("stream_first_byte", 1)] {
        let mut lines = metrics.lines().filter(|line| line.contains(&format!("_{name}_seconds_count{{")));
        let ending = format!("handler=\"app\",route=\"*\"}} {count}");
        assert!(lines.next().is_some_and(|line| line.ends_with(&ending)), "{name}: {metrics}");
    }

    drop(stream);
    wait_for("the end of the stream", || (site()["streams_open"] == 0).then_some(()));
    assert_eq!(site()["p99_ms"], open["p99_ms"]);
    let page = Program::new(["status"]).control_in(folder.path()).finish().stdout;
    assert!(page.contains("1, up to ") && page.contains("1, 0 open"), "{page}");
}
