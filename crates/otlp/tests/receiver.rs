//! Exports, read by a receiver that is built from OpenTelemetry's own definitions (`opentelemetry-proto`), and what a receiver that
//! is not there costs.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onehop_config::checked::OtlpExport;
use onehop_http1::Method;
use onehop_message::trace_context::{self, SpanContext};
use onehop_metrics::collect;
use onehop_metrics::site::{Delivery, Exemplar};
use onehop_metrics::stats::Stats;
use onehop_metrics::{Handler, Registry};
use onehop_otlp::limits::{SPANS_OF_EXPORT_MAX, SPANS_WAITING_MAX, STOP_WITHIN, TEXT_BYTES_MAX};
use onehop_otlp::span::Value;
use onehop_otlp::{MetricsExport, Span, Traces};
use onehop_testkit::upstream::{Received, Upstream};
use onehop_testkit::{TIMEOUT, free_address, wait_for};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Metric, number_data_point};
use rustls::RootCertStore;

const CALLER: &[u8] = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A receiver that responds with this status to each export.
fn receiver(address: &str, status: &'static str) -> Upstream {
    Upstream::start_at(address, move |connection| {
        while connection.request().is_some() && connection.answer(status, "", "{}") {}
    })
}

/// Waits for the export with this number, from 0.
fn export(receiver: &Upstream, number: usize) -> (Received, ExportTraceServiceRequest) {
    let received = wait_for("an export", || receiver.seen().get(number).cloned());
    let body = serde_json::from_slice(&received.body);
    let body = body.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&received.body)));
    (received, body)
}

/// The sizes of all exports.
fn sizes(receiver: &Upstream) -> Vec<usize> {
    (0..receiver.requests())
        .map(|number| export(receiver, number).1.resource_spans[0].scope_spans[0].spans.len())
        .collect()
}

fn to(address: impl std::fmt::Display) -> Arc<OtlpExport> {
    Arc::new(OtlpExport {
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
            ("http.request.method".into(), Value::text(b"GET")),
            ("http.response.status_code".into(), Value::Number(500)),
            ("onehop.queue_ms".into(), Value::milliseconds(Duration::from_micros(2_500))),
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
    let receiver = receiver("127.0.0.1:0", "200 OK");
    let (traces, reported) = traces();
    traces.add(span(1), &to(receiver.address()));
    let (received, body) = export(&receiver, 0);
    assert_eq!((received.method(), received.target()), ("POST", "/v1/traces"));
    assert_eq!(received.field("content-type"), Some("application/json"));
    assert_eq!(received.field("api-key"), Some("a secret"));
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
    let receiver = receiver("127.0.0.1:0", "200 OK");
    let mut export = to(receiver.address());
    Arc::get_mut(&mut export).expect("its own").delay = Duration::from_secs(3_600);
    let (traces, _) = traces();
    (1..=SPANS_OF_EXPORT_MAX as u64 + 10).for_each(|number| traces.add(span(number), &export));
    traces.stop();
    let sizes = sizes(&receiver);
    assert_eq!(sizes.iter().sum::<usize>(), SPANS_OF_EXPORT_MAX + 10);
    assert!(sizes.iter().all(|size| *size <= SPANS_OF_EXPORT_MAX), "{sizes:?}");
}

#[test]
fn a_receiver_that_is_not_there_is_reported_once_and_what_waited_goes_out_when_it_is_back() {
    let address = free_address().to_string();
    let export = to(&address);
    let (traces, reported) = traces();
    let reported = || reported.lock().expect("reports").clone();
    traces.add(span(1), &export);
    wait_for("a report", || (reported().len() == 1).then_some(()));
    assert!(
        reported()[0].contains("Connection refused") && reported()[0].contains("OTEL_EXPORTER_OTLP_ENDPOINT")
    );
    // Far more than may wait.
    let mut added = 9_999;
    (2..=added).for_each(|number| traces.add(span(number), &export));
    let receiver = receiver(&address, "200 OK");
    wait_for("an export without a loss", || {
        added += 1;
        traces.add(span(added), &export);
        (reported().len() == 2).then_some(())
    });
    let again = &reported()[1];
    let lost = again.split_once("again; ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
    let lost = lost.unwrap_or_else(|| panic!("{again}"));
    assert!(lost >= 9_999 - SPANS_WAITING_MAX as u64, "{lost}: no more than may wait were kept");
    let sent = || sizes(&receiver).iter().sum::<usize>() as u64;
    wait_for("all that were not lost", || (sent() + lost == added).then_some(()));
    traces.stop();
}

#[test]
fn a_receiver_that_never_responds_holds_up_a_stop_for_a_bounded_time() {
    let receiver = Upstream::start(|connection| while connection.request().is_some() {});
    let (traces, _) = traces();
    traces.add(span(1), &to(receiver.address()));
    wait_for("an export that hangs", || (receiver.requests() == 1).then_some(()));
    let begun = Instant::now();
    traces.stop();
    assert!(begun.elapsed() < STOP_WITHIN + TIMEOUT / 10, "{:?}", begun.elapsed());
}

#[test]
fn what_a_receiver_refuses_for_good_is_not_sent_again() {
    let receiver = receiver("127.0.0.1:0", "401 Unauthorized");
    let to = to(receiver.address());
    let (traces, reported) = traces();
    traces.add(span(1), &to);
    wait_for("a report", || (reported.lock().expect("reports").len() == 1).then_some(()));
    traces.add(span(2), &to);
    assert_eq!(export(&receiver, 1).1.resource_spans[0].scope_spans[0].spans[0].name, "GET 2");
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

/// Exports what a registry with three requests has, every so often.
fn metrics_export(to: Arc<OtlpExport>, reported: &Arc<Mutex<Vec<String>>>) -> MetricsExport {
    let registry = Registry::new(1);
    let counters = &registry.site("a.example")[0];
    for (millis, status) in [(2, 200), (3, 200), (40, 503)] {
        counters.record(
            Handler::App.into(),
            Method::Get,
            status,
            10,
            Duration::from_millis(millis),
            Delivery::Whole,
        );
    }
    let took = Duration::from_millis(3);
    counters.exemplify(
        Handler::App.into(),
        Exemplar { trace_id: 0xab, span_id: 0xcd, took, at: UNIX_EPOCH + took },
    );
    let read = move || Some(collect::families(&registry, &Stats { connections_max: 7, ..Stats::default() }));
    let reports = Arc::clone(reported);
    let report = Arc::new(move |message| reports.lock().expect("reports").push(message));
    let roots = || Ok(Arc::new(RootCertStore::empty()));
    MetricsExport::start(to, UNIX_EPOCH + Duration::from_secs(9), Box::new(read), roots, report)
        .expect("a thread")
}

#[test]
fn a_receiver_of_opentelemetry_understands_every_kind_of_metric() {
    let receiver = receiver("127.0.0.1:0", "200 OK");
    let export = metrics_export(to(receiver.address()), &Arc::default());
    let received = wait_for("an export", || receiver.seen().first().cloned());
    let body: ExportMetricsServiceRequest = serde_json::from_slice(&received.body).expect("an export");
    let metrics = &body.resource_metrics[0].scope_metrics[0].metrics;
    let of = |name: &str| -> &Metric { metrics.iter().find(|metric| metric.name == name).expect(name) };
    let Some(Data::Sum(sum)) = &of("onehop_requests_total").data else { panic!("a sum") };
    assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
    let counts: Vec<_> = sum.data_points.iter().map(|point| point.value).collect();
    let int = |count| Some(number_data_point::Value::AsInt(count));
    assert_eq!(counts, [int(2), int(1)]);
    let point = &sum.data_points[0];
    assert_eq!(point.start_time_unix_nano, 9_000_000_000);
    let keys: Vec<&str> = point.attributes.iter().map(|pair| pair.key.as_str()).collect();
    assert_eq!(keys, ["site", "handler", "route", "method", "class"]);
    let Some(Data::Gauge(gauge)) = &of("onehop_connections_max").data else { panic!("a gauge") };
    assert_eq!(gauge.data_points[0].value, int(7));
    let durations = of("onehop_request_duration_seconds");
    assert_eq!(durations.unit, "s");
    let Some(Data::Histogram(histogram)) = &durations.data else { panic!("a histogram") };
    let point = &histogram.data_points[0];
    assert_eq!((point.count, point.sum), (3, Some(0.045)));
    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
    let counted: Vec<_> = point.bucket_counts.iter().enumerate().filter(|(_, count)| **count > 0).collect();
    let within = |bucket: usize| (point.explicit_bounds[bucket - 1], point.explicit_bounds[bucket]);
    assert_eq!(
        counted.iter().map(|(bucket, count)| (within(*bucket), **count)).collect::<Vec<_>>(),
        [((0.001, 0.0025), 1), ((0.0025, 0.005), 1), ((0.025, 0.05), 1)]
    );
    assert_eq!(point.exemplars[0].trace_id, 0xab_u128.to_be_bytes());
    export.stop();
}

#[test]
fn metrics_are_exported_again_and_again_and_once_more_at_the_end() {
    let receiver = receiver("127.0.0.1:0", "200 OK");
    let export = metrics_export(to(receiver.address()), &Arc::default());
    wait_for("three exports", || (receiver.requests() >= 3).then_some(()));
    export.stop();
    let mut rare = to(receiver.address());
    Arc::get_mut(&mut rare).expect("its own").delay = Duration::from_secs(3_600);
    let before = receiver.requests();
    metrics_export(rare, &Arc::default()).stop();
    assert_eq!(receiver.requests(), before + 1);
}

#[test]
fn a_receiver_of_metrics_that_is_not_there_is_reported_once_and_when_it_is_back() {
    let address = free_address().to_string();
    let reported: Arc<Mutex<Vec<String>>> = Arc::default();
    let export = metrics_export(to(&address), &reported);
    let reports = || reported.lock().expect("reports").clone();
    wait_for("a report", || (reports().len() == 1).then_some(()));
    let receiver = receiver(&address, "200 OK");
    wait_for("another", || (reports().len() == 2).then_some(()));
    assert!(reports()[0].contains("Connection refused") && reports()[1].contains("again"), "{:?}", reports());
    wait_for("an export", || receiver.seen().first().cloned());
    export.stop();
    assert_eq!(reports().len(), 2);
}
