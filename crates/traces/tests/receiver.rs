//! Exports, read by a receiver that is built from OpenTelemetry's own definitions (`opentelemetry-proto`), and what a receiver that
//! is not there costs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onehop_config::checked::TraceExport;
use onehop_message::trace_context::{self, SpanContext};
use onehop_testkit::{TIMEOUT, free_address, wait_for};
use onehop_traces::limits::{SPANS_OF_EXPORT_MAX, SPANS_WAITING_MAX, TEXT_BYTES_MAX};
use onehop_traces::span::Value;
use onehop_traces::{Span, Traces};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use rustls::RootCertStore;

const CALLER: &[u8] = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// An export as it came: its head in lower case, and what its body says.
type Export = (String, ExportTraceServiceRequest);

/// Responds with this status to each export and hands it on.
fn receive(listener: TcpListener, status: &'static str) -> Receiver<Export> {
    let (sender, exports) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || serve(stream, status, &sender));
        }
    });
    exports
}

fn serve(stream: TcpStream, status: &str, sender: &Sender<Export>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            let line = line.to_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let export = serde_json::from_slice(&body);
        sender
            .send((
                head,
                export.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&body))),
            ))
            .ok()?;
        let response =
            format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{{}}");
        reader.get_mut().write_all(response.as_bytes()).ok()?;
    }
}

fn to(address: impl std::fmt::Display) -> Arc<TraceExport> {
    Arc::new(TraceExport {
        url: Some(format!("http://{address}/v1/traces")),
        headers: vec![("api-key".to_owned(), "a%20secret".to_owned())],
        timeout: TIMEOUT,
        delay: Duration::from_millis(20),
        resource: vec![("service.name".to_owned(), "shop%2C%20front".to_owned())],
    })
}

fn span(number: u64) -> Span {
    let parent = trace_context::read(CALLER).filter(|_| number == 1);
    Span {
        context: SpanContext::begin(parent, (u128::from(number), number), |_, _| true),
        name: format!("GET {number}"),
        start: UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        took: Duration::from_millis(1_500),
        attributes: vec![
            ("http.request.method", Value::text(b"GET")),
            ("http.response.status_code", Value::Number(500)),
            ("onehop.queue_ms", Value::milliseconds(Duration::from_micros(2_500))),
        ],
        has_failed: number == 1,
    }
}

fn traces() -> (Traces, Arc<Mutex<Vec<String>>>) {
    let reported: Arc<Mutex<Vec<String>>> = Arc::default();
    let reports = Arc::clone(&reported);
    let report = Arc::new(move |message| reports.lock().expect("reports").push(message));
    (Traces::new(|| Ok(Arc::new(RootCertStore::empty())), report), reported)
}

#[test]
fn a_receiver_of_opentelemetry_understands_every_part_of_a_span() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let export = to(listener.local_addr().expect("an address"));
    let exports = receive(listener, "200 OK");
    let (traces, reported) = traces();
    traces.add(span(1), &export);
    let (head, body) = exports.recv_timeout(TIMEOUT).expect("an export");
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(
        head.contains("content-type: application/json\r\n") && head.contains("api-key: a secret\r\n"),
        "{head}"
    );
    let [of_resource] = body.resource_spans.as_slice() else { panic!("{body:?}") };
    let resource = of_resource.resource.as_ref().expect("a resource");
    let texts = |attributes: &[opentelemetry_proto::tonic::common::v1::KeyValue]| {
        let value = |value: Option<Any>| match value {
            Some(Any::StringValue(text)) => text,
            Some(Any::IntValue(number)) => number.to_string(),
            Some(Any::DoubleValue(number)) => number.to_string(),
            other => panic!("{other:?}"),
        };
        let each = attributes
            .iter()
            .map(|pair| (pair.key.clone(), value(pair.value.clone().and_then(|any| any.value))));
        each.collect::<Vec<_>>()
    };
    assert_eq!(texts(&resource.attributes), [("service.name".to_owned(), "shop, front".to_owned())]);
    let [spans] = of_resource.scope_spans.as_slice() else { panic!("{of_resource:?}") };
    let [span] = spans.spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(span.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes());
    assert_eq!(span.span_id, 1_u64.to_be_bytes());
    assert_eq!(span.parent_span_id, 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
    assert_eq!((span.name.as_str(), span.kind), ("GET 1", 2));
    assert_eq!(span.end_time_unix_nano - span.start_time_unix_nano, 1_500_000_000);
    assert_eq!(span.status.as_ref().map(|status| status.code), Some(2));
    let expected =
        [("http.request.method", "GET"), ("http.response.status_code", "500"), ("onehop.queue_ms", "2.5")];
    assert_eq!(texts(&span.attributes), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    traces.stop();
    assert!(reported.lock().expect("reports").is_empty());
}

#[test]
fn many_spans_go_in_exports_of_bounded_size_and_a_stop_sends_the_last() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let mut export = to(listener.local_addr().expect("an address"));
    Arc::get_mut(&mut export).expect("its own").delay = Duration::from_secs(3_600);
    let exports = receive(listener, "200 OK");
    let (traces, _) = traces();
    (1..=SPANS_OF_EXPORT_MAX as u64 + 10).for_each(|number| traces.add(span(number), &export));
    traces.stop();
    let sizes = exports.try_iter().map(|(_, body)| body.resource_spans[0].scope_spans[0].spans.len());
    let sizes: Vec<usize> = sizes.collect();
    assert_eq!(sizes.iter().sum::<usize>(), SPANS_OF_EXPORT_MAX + 10);
    assert!(sizes.iter().all(|size| *size <= SPANS_OF_EXPORT_MAX), "{sizes:?}");
}

#[test]
fn a_receiver_that_is_not_there_is_reported_once_and_what_waited_goes_out_when_it_is_back() {
    let address = free_address();
    let export = to(address);
    let (traces, reported) = traces();
    let reported = || reported.lock().expect("reports").clone();
    traces.add(span(1), &export);
    wait_for("a report", || (reported().len() == 1).then_some(()));
    assert!(
        reported()[0].contains("Connection refused") && reported()[0].contains("OTEL_EXPORTER_OTLP_ENDPOINT")
    );
    // Far more than may wait.
    (2..10_000).for_each(|number| traces.add(span(number), &export));
    let exports = receive(TcpListener::bind(address).expect("bound"), "200 OK");
    let mut sent = 0;
    wait_for("all that waited", || {
        sent += exports
            .try_iter()
            .map(|(_, body)| body.resource_spans[0].scope_spans[0].spans.len())
            .sum::<usize>();
        (reported().len() == 2 && sent >= SPANS_WAITING_MAX - SPANS_OF_EXPORT_MAX).then_some(())
    });
    assert!(sent <= SPANS_WAITING_MAX + SPANS_OF_EXPORT_MAX, "{sent}");
    assert!(reported()[1].contains("again"), "{:?}", reported());
    traces.stop();
}

#[test]
fn what_a_receiver_refuses_for_good_is_not_sent_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let export = to(listener.local_addr().expect("an address"));
    let exports = receive(listener, "401 Unauthorized");
    let (traces, reported) = traces();
    traces.add(span(1), &export);
    exports.recv_timeout(TIMEOUT).expect("an export");
    wait_for("a report", || (reported.lock().expect("reports").len() == 1).then_some(()));
    traces.add(span(2), &export);
    let (_, second) = exports.recv_timeout(TIMEOUT).expect("another one");
    assert_eq!(second.resource_spans[0].scope_spans[0].spans[0].name, "GET 2");
    traces.stop();
    let reported = reported.lock().expect("reports");
    assert!(reported.len() == 1 && reported[0].contains("it responds 401"), "{reported:?}");
    assert!(!reported[0].contains("secret"));
}

#[test]
fn long_texts_are_cut_off() {
    let Value::Text(text) = Value::text(&[b'a'; 2 * TEXT_BYTES_MAX]) else { panic!("a text") };
    assert_eq!(text.len(), TEXT_BYTES_MAX);
    assert!(span(2).start < SystemTime::now());
}
