//! `tracing`: the field that goes to applications and upstreams, the ids in logs, and the spans that are exported.

use std::sync::mpsc::{Receiver, channel};

use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Client, Folder, Onehop, Program, TIMEOUT, wait_for};
use rustix::process::Signal;
use serde_json::Value;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// Takes exports and hands their spans on.
fn receiver() -> (Upstream, Receiver<Value>) {
    let (sender, spans) = channel();
    let receiver = Upstream::start(move |connection| {
        while let Some(export) = connection.request() {
            let export: Value = serde_json::from_slice(&export.body).expect("JSON");
            let all = export["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans");
            all.iter().for_each(|span| drop(sender.send(span.clone())));
            connection.answer("200 OK", "", "{}");
        }
    });
    (receiver, spans)
}

struct Bench {
    folder: Folder,
    onehop: Onehop,
    upstream: Upstream,
    _receiver: Upstream,
    spans: Receiver<Value>,
}

/// A handler, an upstream and a page behind `tracing`.
fn bench(options: &str, variables: &[(&str, &str)]) -> Bench {
    let upstream = Upstream::start(|connection| {
        while let Some(request) = connection.request() {
            let seen = |name| request.field(name).unwrap_or("none").to_owned();
            let body = format!("{} {}", seen("traceparent"), seen("tracestate"));
            connection.answer("200 OK", "", &body);
        }
    });
    let text = format!(
        "{{\n\tadmin off\n}}\nhttp://127.0.0.1:0 {{\n\tlog {{\n\t\toutput file access.log\n\t}}\n\ttracing{options}\n\
         \thandle /api/* {{\n\t\tapp ./handler.mjs\n\t}}\n\thandle /upstream {{\n\t\treverse_proxy {}\n\t}}\n\
         \theader X-Trace {{http.vars.trace_id}}/{{http.vars.span_id}}\n\trespond /broken 500\n\trespond page\n}}\n",
        upstream.address()
    );
    let folder = Folder::new();
    folder.write("Onehopfile", text);
    folder.write(
        "handler.mjs",
        "export default { fetch: (request) => new Response(`${request.headers.get('traceparent')} ${request.headers.get('tracestate')}`) };\n",
    );
    let (receiver, spans) = receiver();
    let mut program = Program::new(["run", "--log", "json"])
        .inside(folder.path())
        .control_in(folder.path())
        .with_env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", receiver.address()))
        .with_env("OTEL_BSP_SCHEDULE_DELAY", "20");
    for (name, value) in variables {
        program = program.with_env(name, value);
    }
    let onehop = program.serve();
    onehop.process.wait_for_event("app_ready");
    Bench { folder, onehop, upstream, _receiver: receiver, spans }
}

fn ask(client: &mut Client, path: &str, fields: &str) -> (String, String) {
    let response = client.ask("GET", path, fields);
    let ids = response.field("X-Trace").unwrap_or_default().to_owned();
    (response.text().to_owned(), ids)
}

fn attribute<'s>(span: &'s Value, name: &str) -> &'s Value {
    let all = span["attributes"].as_array().expect("attributes");
    all.iter()
        .find(|attribute| attribute["key"] == name)
        .map_or(&Value::Null, |attribute| &attribute["value"])
}

#[test]
fn the_trace_of_a_caller_goes_on_to_applications_and_upstreams_below_a_span_that_is_exported() {
    let block = "\t\tspan \"{http.request.method} {http.request.uri.path}\"\n\t\tspan_attributes {\n\t\t\tshop blue\n\t\t\tpeer {upstream_hostport}\n\t\t}";
    let bench = bench(&format!(" {{\n{block}\n\t}}"), &[]);
    let mut client = bench.onehop.connect();
    let fields = format!("traceparent: 00-{TRACE}-{CALLER}-01\r\ntracestate: vendor=1\r\n");
    for (path, handler) in [("/upstream", "reverse_proxy"), ("/api/x", "app")] {
        let (body, _) = ask(&mut client, &format!("{path}?token=secret"), &fields);
        let (parent, state) = body.split_once(' ').expect("two fields");
        assert_eq!(state, "vendor=1", "{path}");
        let span = bench.spans.recv_timeout(TIMEOUT).expect("a span");
        let own = span["spanId"].as_str().expect("an id");
        assert_eq!(parent, format!("00-{TRACE}-{own}-01"), "{path}");
        assert_ne!(own, CALLER);
        assert_eq!((&span["traceId"], &span["parentSpanId"]), (&TRACE.into(), &CALLER.into()));
        assert_eq!(span["name"], format!("GET {path}"));
        assert_eq!(attribute(&span, "url.path")["stringValue"], path);
        assert_eq!(attribute(&span, "onehop.handler")["stringValue"], handler);
        assert_eq!(attribute(&span, "http.response.status_code")["intValue"], "200");
        assert!(
            attribute(&span, "onehop.first_byte_ms")["doubleValue"].as_f64().is_some_and(|time| time > 0.0)
        );
        assert_eq!(attribute(&span, "shop")["stringValue"], "blue");
        let peer = if handler == "app" { String::new() } else { bench.upstream.address() };
        assert_eq!(attribute(&span, "peer")["stringValue"], peer);
        assert!(!span.to_string().contains("secret"), "{span}");
    }
    assert_eq!(bench.upstream.requests(), 1);
}

#[test]
fn a_request_without_a_trace_or_with_a_malformed_one_begins_its_own() {
    let bench = bench("", &[]);
    let mut client = bench.onehop.connect();
    let twice = format!(
        "traceparent: 00-{TRACE}-{CALLER}-01\r\ntraceparent: 00-{TRACE}-{CALLER}-01\r\ntracestate: a=1\r\n"
    );
    for fields in ["", "traceparent: 00-xyz\r\ntracestate: a=1\r\n", &twice] {
        let (body, _) = ask(&mut client, "/upstream", fields);
        let span = bench.spans.recv_timeout(TIMEOUT).expect("a span");
        let ids = ["traceId", "spanId"].map(|name| span[name].as_str().expect("an id"));
        assert_eq!(body, format!("00-{}-{}-03 none", ids[0], ids[1]), "{fields:?}");
        assert!(span["parentSpanId"].is_null() && ids[0] != TRACE);
        assert_eq!(span["name"], "GET");
    }
    // What the server itself answers has a span, too, and the ids are in its log as Caddy has them.
    let (_, ids) = ask(&mut client, "/page", "");
    let (trace, own) = ids.split_once('/').expect("two ids");
    let line = wait_for("its line", || {
        let text = std::fs::read_to_string(bench.folder.join("access.log")).ok()?;
        text.lines().find(|line| line.contains("/page")).map(str::to_owned)
    });
    let line: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!((&line["traceID"], &line["spanID"]), (&trace.into(), &own.into()));
    let (_, _) = ask(&mut client, "/broken", "");
    let [page, broken] = [(); 2].map(|()| bench.spans.recv_timeout(TIMEOUT).expect("a span"));
    assert_eq!((&page["spanId"], &page["status"]), (&own.into(), &Value::Null));
    assert_eq!(
        (&broken["status"]["code"], &attribute(&broken, "error.type")["stringValue"]),
        (&2.into(), &"500".into())
    );
}

#[test]
fn what_is_not_sampled_is_passed_on_as_such_and_not_exported() {
    let bench = bench("", &[("OTEL_TRACES_SAMPLER", "parentbased_always_off")]);
    let mut client = bench.onehop.connect();
    let (body, _) = ask(&mut client, "/upstream", "");
    assert!(body.ends_with("-02 none"), "{body}");
    let unsampled = format!("traceparent: 00-{TRACE}-{CALLER}-00\r\n");
    let (body, _) = ask(&mut client, "/upstream", &unsampled);
    assert!(body.starts_with(&format!("00-{TRACE}-")) && body.ends_with("-00 none"), "{body}");
    // The caller has decided otherwise.
    let (_, _) = ask(&mut client, "/upstream", &format!("traceparent: 00-{TRACE}-{CALLER}-01\r\n"));
    let span = bench.spans.recv_timeout(TIMEOUT).expect("a span");
    assert_eq!((&span["traceId"], bench.spans.try_recv().is_err()), (&TRACE.into(), true));
}

#[test]
fn openmetrics_have_the_trace_of_a_request_beside_its_duration() {
    let bench = bench("", &[]);
    let mut client = bench.onehop.connect();
    let fields = format!("traceparent: 00-{TRACE}-{CALLER}-01\r\n");
    ask(&mut client, "/upstream", &fields);
    ask(&mut client, "/upstream", "traceparent: 00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203331-00\r\n");
    let span = bench.spans.recv_timeout(TIMEOUT).expect("a span");
    let mut control = Client::connect_unix(&bench.folder.join("onehop.sock"));
    let metrics = control.ask("GET", "/metrics", "Accept: application/openmetrics-text\r\n");
    let text = metrics.text();
    let exemplars: Vec<&str> =
        text.lines().filter_map(|line| line.split_once(" # ")).map(|(_, exemplar)| exemplar).collect();
    let [exemplar] = exemplars.as_slice() else { panic!("one request was sampled: {text}") };
    let ids = format!("{{trace_id=\"{TRACE}\",span_id=\"{}\"}} ", span["spanId"].as_str().expect("an id"));
    assert!(exemplar.starts_with(&ids), "{exemplar}");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn metrics_are_exported_while_the_configuration_asks_for_it() {
    let (sender, exports) = channel();
    let receiver = Upstream::start(move |connection| {
        while let Some(export) = connection.request() {
            let _ = sender.send(serde_json::from_slice::<Value>(&export.body).expect("JSON"));
            connection.answer("200 OK", "", "{}");
        }
    });
    let site =
        |metrics: &str| format!("{{\n\tadmin off\n{metrics}}}\nhttp://127.0.0.1:0 {{\n\trespond page\n}}\n");
    let folder = Folder::new();
    folder.write("Onehopfile", site("\tmetrics {\n\t\totlp\n\t}\n"));
    let onehop = Program::new(["run", "--log", "json"])
        .inside(folder.path())
        .control_in(folder.path())
        .with_env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", receiver.address()))
        .with_env("OTEL_METRIC_EXPORT_INTERVAL", "20")
        .serve();
    onehop.connect().get("/");
    let has_request = |export: &Value| {
        let metrics = export["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().expect("metrics");
        metrics.iter().any(|metric| metric["name"] == "onehop_requests_total")
    };
    wait_for("the request among the metrics", || {
        exports.try_iter().any(|export| has_request(&export)).then_some(())
    });
    folder.write("Onehopfile", site(""));
    onehop.process.signal(Signal::HUP);
    onehop.process.wait_for_event("reloaded");
    // The thread exports once more, and its connection ends with it.
    wait_for("the end of the exports", || (receiver.open() == 0).then_some(()));
    let exported = receiver.requests();
    onehop.connect().get("/");
    assert_eq!(receiver.requests(), exported);
}
