//! `tracing`, `metrics`, and what OpenTelemetry's environment variables say.

use std::time::Duration;

use onehop_config::checked::{EVERY_TRACE, Step, Tracing};

use crate::memory::{Memory, text_of};

const SITE: &str = ":80 {\n\trespond a\n\ttracing /api/* {\n\t\tspan \"{method} {path}\"\n\t}\n}\n";

fn with(variables: &[(&str, &str)]) -> Memory {
    variables.iter().fold(Memory::main(SITE), |memory, (name, value)| memory.variable(name, value))
}

/// What its first step says: `tracing` acts before all others.
fn tracing(variables: &[(&str, &str)]) -> Tracing {
    let loaded = with(variables).load().unwrap_or_else(|problems| panic!("{}", text_of(&problems)));
    match &loaded.checked.sites[0].routes[0].step {
        Step::Tracing(tracing) => tracing.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_variables_spans_go_to_a_receiver_on_this_machine() {
    let tracing = tracing(&[]);
    assert!(tracing.span.is_some());
    assert!(tracing.sampler.follows_parent && tracing.sampler.of_2_to_56 == EVERY_TRACE);
    let export = &tracing.export;
    assert_eq!(export.url.as_deref(), Some("http://localhost:4318/v1/traces"));
    assert_eq!((export.timeout, export.delay), (Duration::from_secs(10), Duration::from_secs(5)));
    assert_eq!(export.resource, [("service.name".to_owned(), "onehop".to_owned())]);
}

#[test]
fn variables_of_opentelemetry_say_where_spans_go() {
    let pairs = |list: &[(&str, &str)]| {
        list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Vec<_>>()
    };
    let both = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://all.example/otlp/"),
        ("OTEL_EXPORTER_OTLP_HEADERS", " api-key = a%20b , x=1 "),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment=blue"),
        ("OTEL_SERVICE_NAME", "100 %"),
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
    ];
    let of_all = tracing(&both);
    assert_eq!(of_all.export.url.as_deref(), Some("https://all.example/otlp/v1/traces"));
    assert_eq!(of_all.export.headers, pairs(&[("api-key", "a%20b"), ("x", "1")]));
    assert_eq!(of_all.export.timeout, Duration::from_millis(2_500));
    assert_eq!(of_all.export.delay, Duration::from_millis(100));
    assert_eq!(of_all.export.resource, pairs(&[("service.name", "100 %25"), ("deployment", "blue")]));
    assert!(!of_all.sampler.follows_parent && of_all.sampler.of_2_to_56 == EVERY_TRACE / 4);
    assert!(!format!("{:?}", of_all.export).contains("a%20b"), "credentials are in no log");

    // Those of traces count before those of all signals, and are whole URLs.
    let own = [&both[..], &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://own.example/in")]].concat();
    assert_eq!(tracing(&own).export.url.as_deref(), Some("http://own.example/in"));
    for off in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
        assert_eq!(tracing(&[off]).export.url, None, "{off:?}");
    }
}

#[test]
fn wrong_values_are_reported_at_the_directive_without_secrets() {
    for (name, value, expected) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "it is no URL"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:secret@a.example", "has no password in it"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "`grpc` is not spoken"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "secret", "not a list of `key=value`"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "no number of milliseconds"),
        ("OTEL_TRACES_SAMPLER", "sometimes", "`sometimes` is not known"),
    ] {
        let problems = with(&[(name, value)]).load().expect_err(name);
        let text = text_of(&problems);
        assert!(text.contains(expected) && text.contains("Onehopfile:3:2"), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
    let text = text_of(
        &with(&[("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "2")])
            .load()
            .expect_err("a share"),
    );
    assert!(text.contains("no share of traces from 0 to 1"), "{text}");
    let loaded = with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317")]).load().expect("sound");
    assert!(text_of(&loaded.warnings).contains("OTLP over gRPC"));
}

#[test]
fn metrics_go_where_their_own_variables_say() {
    let with = |option: &str, variables: &[(&str, &str)]| {
        let text = format!("{{\n\tmetrics {option}\n}}\n:80 {{\n\trespond a\n}}\n");
        let memory = Memory::main(&text);
        let memory = variables.iter().fold(memory, |memory, (name, value)| memory.variable(name, value));
        let loaded = memory.load().unwrap_or_else(|problems| panic!("{}", text_of(&problems)));
        loaded.checked.global.metrics_export.clone()
    };
    let otlp = "{\n\t\totlp\n\t}";
    assert_eq!(with("{\n\t\tper_host\n\t}", &[]), None);
    assert_eq!(with("", &[]), None);
    let usual = with(otlp, &[]).expect("an export");
    assert_eq!(usual.url.as_deref(), Some("http://localhost:4318/v1/metrics"));
    assert_eq!(usual.delay, Duration::from_secs(60));
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://all.example"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces.example/in"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "key=1"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
    ];
    let own = with(otlp, &variables).expect("an export");
    assert_eq!(own.url.as_deref(), Some("https://all.example/v1/metrics"));
    assert_eq!(own.headers, [("key".to_owned(), "1".to_owned())]);
    assert_eq!(own.delay, Duration::from_millis(1_500));
    assert_eq!(with(otlp, &[("OTEL_METRICS_EXPORTER", "none")]), None);
}
