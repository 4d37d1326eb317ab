//! `onehop why` names the cause of a slow request: each is injected once, and alone. Needs Node.js.

use std::time::Duration;

use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Client, Folder, Onehop, Program, wait_for};
use serde_json::Value;

/// Blocks its event loop, waits as for a database, holds its only slot, sends much, fails.
const APP: &str = "
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const block = (ms) => { const end = performance.now() + ms; while (performance.now() < end); };
export default {
  async fetch(request, env, ctx) {
    const { pathname, searchParams } = new URL(request.url);
    const ms = Number(searchParams.get('ms'));
    if (pathname.endsWith('/block')) block(ms);
    if (pathname.endsWith('/late-block')) { await sleep(30); block(ms); }
    if (pathname.endsWith('/wait')) await sleep(ms);
    if (pathname.endsWith('/fail')) throw new Error('on purpose');
    if (pathname.endsWith('/large')) return new Response(new ReadableStream({
      start(controller) {
        for (let at = 0; at < 64; at += 1) controller.enqueue(new Uint8Array(262144));
        controller.close();
      },
    }));
    return Response.json({ id: ctx.requestId, trace: request.headers.get('traceparent') });
  },
};
";

const SITE: &str = "{
	admin off
}
http://127.0.0.1:0 {
	bind 127.0.0.1
	header X-Request-Id {http.request.uuid}
	app /api/* ./app.mjs {
		name api
	}
	app /narrow/* ./app.mjs {
		name narrow
		concurrency 1
	}
	limit /limited/* in_flight 1 queue 10 wait 30s
	app /limited/* ./app.mjs {
		name limited
	}
	basic_auth /members/* {
		anna $2b$10$2hk/WnWgnp.hGo5OOH/g3O3FdY5SOZ4gvbteMzulllG3O1NfGmN3u
	}
	root ./files
	file_server
}
";

/// Bytes of a file that no socket's buffers hold.
const LARGE_BYTES: usize = 16 << 20;

/// For how long a client takes nothing.
const CLIENT_PAUSE: Duration = Duration::from_millis(1_000);

struct Server {
    folder: Folder,
    onehop: Onehop,
}

impl Server {
    fn start() -> Self {
        let folder = Folder::with(&[("app.mjs", APP), ("Onehopfile", SITE)]);
        folder.write("files/large.bin", vec![b'x'; LARGE_BYTES]);
        folder.write("files/members/list.txt", "all of them");
        let onehop = Onehop::start_in(folder.path());
        let server = Self { folder, onehop };
        // What a worker does once is no part of what follows.
        for path in ["/api/", "/narrow/", "/limited/"] {
            assert_eq!(server.onehop.connect().get(path).status, 200);
        }
        server
    }

    fn onehop(&self, arguments: &[&str]) -> String {
        let finished = Program::new(arguments).control_in(self.folder.path()).finish();
        assert_eq!(finished.code, Some(0), "{arguments:?}: {}", finished.stderr);
        finished.stdout
    }

    /// The retained request to this path, once it is as wanted.
    fn retained(&self, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        wait_for(path, || {
            let all: Value = serde_json::from_str(&self.onehop(&["why", "--json"])).expect("JSON");
            let all = all["requests"].as_array().expect("a list");
            all.iter().find(|request| request["path"] == path && is_wanted(request)).cloned()
        })
    }

    fn wait_until_busy(&self, app: &str) {
        wait_for("a request in flight", || {
            let apps: Value = serde_json::from_str(&self.onehop(&["workers", "--json", app])).expect("JSON");
            (apps[0]["workers"][0]["in_flight"] == 1).then_some(())
        });
    }
}

fn part(request: &Value, name: &str) -> f64 {
    request["parts"][name].as_f64().unwrap_or_else(|| panic!("{name} in {request}"))
}

/// The longest part, and that the parts are all of the time.
fn longest(request: &Value) -> String {
    let parts = request["parts"].as_object().expect("parts");
    let time = |value: &Value| value.as_f64().expect("a time");
    let sum: f64 = parts.values().map(time).sum();
    assert!((sum - request["total_ms"].as_f64().expect("a time")).abs() < 1.0, "{request}");
    let longest = parts.iter().max_by(|(_, one), (_, other)| time(one).total_cmp(&time(other)));
    longest.expect("a part").0.clone()
}

#[test]
fn a_blocked_event_loop_is_named_for_the_request_that_blocks_it_and_for_the_one_that_waits() {
    let server = Server::start();
    let mut client = server.onehop.connect();
    for path in ["/api/block", "/api/late-block"] {
        client.get(&format!("{path}?ms=50"));
        // The worker reports it within moments.
        let request = server.retained(path, |request| part(request, "lag_ms") > 0.0);
        assert!(part(&request, "lag_ms") >= 40.0, "{request}");
        assert_eq!(request["app"], "api");
        assert!(request["worker"]["pid"].as_u64().is_some_and(|pid| pid > 1), "{request}");
        assert!(
            request["why"].as_str().is_some_and(|why| why.contains("event loop of worker 0")),
            "{request}"
        );
    }
    let request = server.retained("/api/block", |request| part(request, "lag_ms") > 0.0);
    assert_eq!(longest(&request), "lag_ms");
    // The request that waits does nothing slow itself.
    client.send("GET /api/block?ms=2000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    server.wait_until_busy("api");
    server.onehop.connect().get("/api/victim");
    client.read();
    let request = server.retained("/api/victim", |request| part(request, "lag_ms") > 0.0);
    assert_eq!(longest(&request), "lag_ms");
}

#[test]
fn a_wait_for_a_database_is_the_applications_own() {
    let server = Server::start();
    // Far longer than the event loop of a busy machine is late.
    server.onehop.connect().get("/api/wait?ms=2000");
    let request = server.retained("/api/wait", |_| true);
    // The loop may be late besides.
    assert!(part(&request, "first_byte_ms") + part(&request, "lag_ms") >= 1995.0, "{request}");
    assert_eq!(longest(&request), "first_byte_ms");
    assert!(request["why"].as_str().is_some_and(|why| why.contains("until the first byte of app api")));
}

#[test]
fn the_check_of_a_password_is_apart_from_the_file_behind_it() {
    let server = Server::start();
    // anna:right
    let credentials = "Authorization: Basic YW5uYTpyaWdodA==\r\n";
    let answer = server.onehop.connect().ask("GET", "/members/list.txt", credentials);
    assert_eq!(answer.status, 200);
    let request = server.retained("/members/list.txt", |_| true);
    assert_eq!(longest(&request), "password_ms", "{request}");
    let why = request["why"].as_str().unwrap_or_default();
    assert!(why.contains("for the check of its password"), "{why}");
}

#[test]
fn a_wait_in_a_queue_is_named_with_whose_queue_it_is() {
    let server = Server::start();
    for (app, owner) in [("narrow", "in the queue of app narrow"), ("limited", "in the queue of limit ")] {
        let (mut first, mut second) = (server.onehop.connect(), server.onehop.connect());
        first.send(format!("GET /{app}/wait?ms=1500 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
        server.wait_until_busy(app);
        second.get(&format!("/{app}/queued"));
        first.read();
        let path = format!("/{app}/queued");
        let request = server.retained(&path, |_| true);
        assert_eq!(longest(&request), "queue_ms");
        let first = server.retained(&format!("/{app}/wait"), |_| true);
        assert_eq!(longest(&first), "first_byte_ms");
        assert!(request["why"].as_str().is_some_and(|why| why.contains(owner)), "{request}");
    }
    let limit = &server.retained("/limited/queued", |_| true)["limit"];
    assert_eq!(limit["decision"], "admitted");
}

#[test]
fn a_client_that_takes_nothing_is_named() {
    let server = Server::start();
    for path in ["/large.bin", "/api/large"] {
        let mut client = Client::connect(&server.onehop.address);
        client.send(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"));
        // This is the cause that is injected.
        std::thread::sleep(CLIENT_PAUSE);
        assert!(client.read_to_end().len() >= LARGE_BYTES);
        let request = server.retained(path, |_| true);
        assert!(part(&request, "write_ms") >= 100.0, "{request}");
        assert_eq!(longest(&request), "write_ms");
        assert!(
            request["why"].as_str().is_some_and(|why| why.contains("for the client to take")),
            "{request}"
        );
    }
}

#[test]
fn a_failed_request_is_kept_with_its_cause_and_found_by_each_of_its_names() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let server = Server::start();
    let fields = format!("traceparent: 00-{TRACE}-b7ad6b7169203331-01\r\nX-Request-Id: from-a-client\r\n");
    let response = server.onehop.connect().ask("GET", "/api/fail?secret=1", &fields);
    assert_eq!(response.status, 500);
    let request = server.retained("/api/fail", |_| true);
    assert_eq!((&request["kind"], &request["status"]), (&Value::from("failed"), &Value::from(500)));
    let id = request["id"].as_str().expect("an id");
    let uuid = request["uuid"].as_str().expect("a uuid");
    assert_eq!(response.field("X-Request-Id"), Some(uuid));
    for name in [id, TRACE, uuid, "from-a-client"] {
        let page = server.onehop(&["why", name]);
        assert!(page.contains("500 from app api after"), "{page}");
        assert!(page.contains(id) && !page.contains("secret"), "{page}");
    }
    let list = server.onehop(&["why"]);
    assert!(list.contains(id) && list.contains("GET /api/fail"), "{list}");
    let unknown = Program::new(["why", "no-such-id"]).control_in(server.folder.path()).finish();
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("no request with this id is kept"), "{}", unknown.stderr);
}

#[test]
fn a_trace_context_reaches_the_application_as_it_came() {
    let server = Server::start();
    let mut client = server.onehop.connect();
    for value in ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "not-a-traceparent"] {
        let response = client.ask("GET", "/api/", &format!("traceparent: {value}\r\n"));
        let body: Value = serde_json::from_slice(&response.body).expect("JSON");
        assert_eq!(body["trace"], value);
    }
    let body: Value = serde_json::from_slice(&client.get("/api/").body).expect("JSON");
    assert_eq!(body["trace"], Value::Null, "none is invented");
}

#[test]
fn of_a_proxied_request_the_upstream_and_the_attempts_are_named() {
    let upstream = Upstream::answering(|_| {
        // This is the cause that is injected.
        std::thread::sleep(Duration::from_millis(300));
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_vec()
    });
    let (closed, address) = (Upstream::nobody(), upstream.address());
    let folder = Folder::new();
    let site = format!(
        "{{\n\tadmin off\n}}\nhttp://127.0.0.1:0 {{\n\tbind 127.0.0.1\n\treverse_proxy /dead {closed}\n\
         \treverse_proxy {closed} {address} {{\n\t\tlb_policy first\n\t\tlb_retries 1\n\t}}\n}}\n"
    );
    folder.write("Onehopfile", site);
    let onehop = Onehop::start_in(folder.path());
    let server = Server { folder, onehop };
    let mut client = server.onehop.connect();
    assert_eq!(client.ask("GET", "/slow", "traceparent: malformed\r\n").status, 200);
    let request = server.retained("/slow", |_| true);
    assert_eq!((&request["retries"], &request["upstream"]), (&Value::from(1), &Value::from(address)));
    assert!(part(&request, "first_byte_ms") >= 290.0, "{request}");
    assert_eq!(longest(&request), "first_byte_ms");
    assert!(upstream.seen()[0].head.contains("traceparent: malformed"), "it is passed on as it came");
    assert_eq!(client.get("/dead").status, 502);
    let request = server.retained("/dead", |_| true);
    assert_eq!((&request["kind"], &request["cause"]), (&"failed".into(), &"upstream_unreachable".into()));
    assert!(request["why"].as_str().is_some_and(|why| why.contains("refused")), "{request}");
}
