//! Applications behind HTTP/2. Needs Node.js.

use std::time::{Duration, Instant};

use onehop_testkit::http2::{Frame, Response, code};
use onehop_testkit::{Folder, wait_for};
use serde_json::Value;

use crate::subject::{Subject, clear, content};

const FETCH: &str = r#"
let begun = 0;
let aborted = 0;
export default {
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname === "/aborted") return Response.json({ begun, aborted });
    if (url.pathname === "/hang") {
      const body = new ReadableStream({
        start: (controller) => {
          controller.enqueue(new TextEncoder().encode("begun"));
          request.signal.addEventListener("abort", () => { aborted += 1; });
        },
      });
      return new Response(body);
    }
    if (url.pathname === "/hang-silently") {
      begun += 1;
      await new Promise((resolve) => request.signal.addEventListener("abort", () => { aborted += 1; resolve(); }));
      return new Response("too late");
    }
    const body = new Uint8Array(await request.arrayBuffer());
    let sum = 0;
    for (const byte of body) sum += byte;
    const headers = Object.fromEntries(request.headers);
    return Response.json({ method: request.method, url: request.url, headers, length: body.length, sum }, {
      status: 201, headers: { "X-Case": "Kept" },
    });
  },
};
"#;

const NODE: &str = r#"
const http = require("node:http");
let aborted = 0;
http.createServer((request, response) => {
  if (request.url === "/hints") response.writeEarlyHints({ link: "</a.css>; rel=preload; as=style" });
  if (request.url === "/aborted") return response.end(JSON.stringify({ aborted }));
  if (request.url === "/hang") {
    response.on("close", () => { aborted += 1; });
    return response.write("begun");
  }
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const body = Buffer.concat(parts);
    let sum = 0;
    for (const byte of body) sum += byte;
    response.writeHead(201, { "X-Case": "Kept", Connection: "close", "Set-Cookie": ["a=b", "c=d"] });
    response.end(JSON.stringify({
      method: request.method, url: request.url, headers: request.headers, trailers: request.trailers, length: body.length, sum,
    }));
  });
}).listen(process.env.PORT ?? 0);
"#;

fn start(name: &str, source: &str) -> Subject {
    let folder = Folder::with(&[(name, source)]);
    let subject = Subject::start_in(folder, "", &clear(&format!("\tapp ./{name}")));
    subject.onehop.process.wait_for_event("app_ready");
    subject
}

fn both() -> [Subject; 2] {
    [start("server.mjs", FETCH), start("server.cjs", NODE)]
}

fn json(answer: &Response) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

#[test]
fn applications_see_requests_as_they_are() {
    for (subject, is_fetch) in both().iter().zip([true, false]) {
        let mut client = subject.connect();
        let fields = [("accept", "a/b"), ("cookie", "a=1"), ("x-y", "z"), ("cookie", "b=2")];
        let answer = client.ask("GET", "/a%20b?c=d", &fields);
        let seen = json(&answer);
        assert_eq!((answer.status, answer.field("x-case")), (201, Some("Kept")));
        let url = if is_fetch { "http://localhost/a%20b?c=d" } else { "/a%20b?c=d" };
        assert_eq!((&seen["method"], &seen["url"]), (&"GET".into(), &url.into()), "{seen}");
        let headers = &seen["headers"];
        assert_eq!(
            (&headers["host"], &headers["cookie"]),
            (&"localhost".into(), &"a=1; b=2".into()),
            "{seen}"
        );
        assert_eq!((&headers["accept"], &headers["x-y"]), (&"a/b".into(), &"z".into()), "{seen}");
        let names = headers.as_object().expect("fields").keys();
        assert!(names.into_iter().all(|name| !name.starts_with(':')), "{seen}");
        assert_eq!(client.ask("HEAD", "/", &[]).body.len(), 0);
    }
}

#[test]
fn applications_get_bodies_larger_than_the_windows() {
    let body = content(1 << 20);
    let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
    for subject in both() {
        let mut client = subject.connect();
        for fields in [&[][..], &[("content-length", "1048576")]] {
            let stream = client.request("PUT", "/upload", fields, false);
            assert!(client.upload(stream, &body, true));
            let seen = json(&client.answer(stream));
            assert_eq!((&seen["length"], &seen["sum"]), (&body.len().into(), &sum.into()), "{seen}");
        }
    }
}

#[test]
fn applications_get_bodies_whole_that_are_longer_than_what_goes_with_a_head() {
    let block = |file: &str| format!("\tapp ./{file} {{\n\t\trequest_buffers 1MiB\n\t}}");
    for (file, source) in [("server.mjs", FETCH), ("server.cjs", NODE)] {
        let subject = Subject::start_in(Folder::with(&[(file, source)]), "", &clear(&block(file)));
        subject.onehop.process.wait_for_event("app_ready");
        let mut client = subject.connect();
        for bytes in [64 << 10, (64 << 10) + 8, 100_000, 300_000] {
            let body = content(bytes);
            let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
            for fields in [&[][..], &[("content-length", body.len().to_string().as_str())]] {
                let stream = client.request("PUT", "/upload", fields, false);
                assert!(client.upload(stream, &body, true));
                let seen = json(&client.answer(stream));
                assert_eq!((&seen["length"], &seen["sum"]), (&body.len().into(), &sum.into()), "{seen}");
            }
        }
    }
}

#[test]
fn a_stream_that_is_reset_reaches_the_handler_at_once() {
    for subject in both() {
        let mut client = subject.connect();
        let count =
            |client: &mut onehop_testkit::http2::Http2| json(&client.get("/aborted"))["aborted"].clone();
        for number in 1..=5 {
            let stream = client.request("GET", "/hang", &[], true);
            client.wait_on(stream, "a part", |answer| answer.body == b"begun");
            assert_eq!(count(&mut client), number - 1);
            let begun = Instant::now();
            client.send(&Frame::reset(stream, code::CANCEL));
            wait_for("the handler's AbortSignal", || (count(&mut client) == number).then_some(()));
            // 50 ms, and what a machine with other work to do adds.
            assert!(begun.elapsed() < Duration::from_millis(1050), "{:?}", begun.elapsed());
        }
        assert_eq!(subject.connect().get("/aborted").status, 200);
    }
}

#[test]
fn a_stream_that_is_reset_before_the_response_reaches_the_handler() {
    let subject = start("server.mjs", FETCH);
    let mut client = subject.connect();
    let streams: Vec<u32> = (0..10).map(|_| client.request("GET", "/hang-silently", &[], true)).collect();
    wait_for("ten handlers", || (json(&client.get("/aborted"))["begun"] == 10).then_some(()));
    for stream in streams {
        client.send(&Frame::reset(stream, code::CANCEL));
    }
    wait_for("ten aborted handlers", || (json(&client.get("/aborted"))["aborted"] == 10).then_some(()));
}

#[test]
fn a_connection_that_ends_reaches_the_handlers_of_all_its_streams() {
    let subject = start("server.mjs", FETCH);
    let mut client = subject.connect();
    for _ in 0..5 {
        let stream = client.request("GET", "/hang", &[], true);
        client.wait_on(stream, "a part", |answer| answer.body == b"begun");
    }
    drop(client);
    let mut client = subject.connect();
    wait_for("five aborted handlers", || (json(&client.get("/aborted"))["aborted"] == 5).then_some(()));
}

#[test]
fn early_hints_of_a_node_application_come_before_its_response() {
    let subject = start("server.cjs", NODE);
    let over_http1 = {
        let mut client = subject.connect_http1();
        client.get("/hints").status
    };
    let answer = subject.connect().get("/hints");
    let interim: Vec<u16> = answer.interim.iter().map(|(status, _)| *status).collect();
    // Where applications have them over HTTP/1.1.
    assert_eq!(interim, if over_http1 == 103 { vec![103] } else { vec![] });
    assert_eq!(answer.status, 201);
}

#[test]
fn a_node_application_that_is_asked_to_continue_says_so() {
    let subject = start("server.cjs", NODE);
    let mut client = subject.connect();
    let stream = client.request("POST", "/", &[("expect", "100-continue"), ("content-length", "3")], false);
    let answer = client.wait_on(stream, "100 Continue", |answer| !answer.interim.is_empty());
    assert_eq!((answer.interim[0].0, answer.status), (100, 0));
    client.upload(stream, b"abc", true);
    let answer = client.answer(stream);
    assert_eq!((answer.status, &json(&answer)["length"]), (201, &3.into()));
}

#[test]
fn several_cookies_that_are_set_stay_several() {
    let subject = start("server.cjs", NODE);
    let answer = subject.connect().get("/");
    let cookies = answer.fields.iter().filter(|(name, _)| name == "set-cookie");
    assert_eq!(cookies.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["a=b", "c=d"]);
}
