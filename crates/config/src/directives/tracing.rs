//! `tracing`: the request is a span of its trace. Where spans go is said by OpenTelemetry's environment variables, as in Caddy
//! (<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>).

use std::sync::Arc;
use std::time::Duration;

use super::placed;
use crate::arguments::{one_argument, wrong_arguments};
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::template::template;
use crate::check::{Context, Reading};
use crate::checked::{EVERY_TRACE, Sampler, Step, Template, TraceExport, Tracing};
use crate::option_table::{OptionTable, line};
use crate::problem::Problem;
use crate::syntax::Directive;

const USAGE: &str = "tracing [<matcher>]`, or with a block `tracing [<matcher>] { span NAME }";
/// The default of OTLP over HTTP.
const ENDPOINT: &str = "http://localhost:4318";
/// The defaults of the specification.
const TIMEOUT: Duration = Duration::from_secs(10);
const DELAY: Duration = Duration::from_secs(5);

pub(super) const OPTIONS: OptionTable<Option<Template>> = OptionTable::new(
    "tracing",
    &[line("span", "span {http.request.method}", |cx, span, option| {
        *span = Some(template(cx.source, one_argument(option, "span NAME")?)?);
        Ok(())
    })],
);

pub(super) fn tracing(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    if !args.is_empty() {
        return Err(wrong_arguments(line, USAGE));
    }
    let mut span = None;
    OPTIONS.read(cx, &mut span, line.block.as_deref());
    let broken = |(variable, message): (&str, String)| {
        Problem::error("tracing", &line.name.place, format!("{variable}: {message}")).help(
            "`tracing` exports spans as OpenTelemetry's environment variables say; change or unset that one",
        )
    };
    let export = Arc::new(export(cx.source).map_err(broken)?);
    let sampler = sampler(cx.source).map_err(broken)?;
    if export.url.as_deref().is_some_and(speaks_grpc) {
        let message = "port 4317 is that of OTLP over gRPC, which onehop does not speak";
        cx.problems.push(
            Problem::warning("tracing", &line.name.place, message)
                .help("name the receiver of OTLP over HTTP, whose port is 4318: OTEL_EXPORTER_OTLP_ENDPOINT=http://HOST:4318"),
        );
    }
    Ok(vec![placed("tracing", chosen, line, Step::Tracing(Tracing { span, sampler, export }))])
}

/// A variable that is set to something.
fn variable(reading: Reading<'_>, name: &str) -> Option<String> {
    reading.env(name).filter(|value| !value.trim().is_empty()).map(|value| value.trim().to_owned())
}

/// The variable of traces, else the one of all signals.
fn of_traces(reading: Reading<'_>, end: &str) -> Option<String> {
    let own = variable(reading, &format!("OTEL_EXPORTER_OTLP_TRACES_{end}"));
    own.or_else(|| variable(reading, &format!("OTEL_EXPORTER_OTLP_{end}")))
}

/// A wrong value: the variable and the message.
type Wrong = (&'static str, String);

fn export(reading: Reading<'_>) -> Result<TraceExport, Wrong> {
    let is_off = variable(reading, "OTEL_SDK_DISABLED")
        .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || variable(reading, "OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
    if of_traces(reading, "PROTOCOL").is_some_and(|protocol| protocol == "grpc") {
        let message = "`grpc` is not spoken; onehop exports over HTTP, as `http/json`".to_owned();
        return Err(("OTEL_EXPORTER_OTLP_PROTOCOL", message));
    }
    // The variable of traces is the whole URL, the other one what it begins with.
    let url = variable(reading, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").unwrap_or_else(|| {
        let base = variable(reading, "OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned());
        format!("{}/v1/traces", base.trim_end_matches('/'))
    });
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    if !rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains([' ', '@'])) {
        // It may have a password in it.
        let message =
            "it is no URL; it begins with http:// or https://, and has no password in it".to_owned();
        return Err(("OTEL_EXPORTER_OTLP_ENDPOINT", message));
    }
    let headers = of_traces(reading, "HEADERS").unwrap_or_default();
    let headers = pairs("OTEL_EXPORTER_OTLP_HEADERS", &headers)?;
    let timeout = match of_traces(reading, "TIMEOUT") {
        Some(text) => milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", &text)?,
        None => TIMEOUT,
    };
    let delay = match variable(reading, "OTEL_BSP_SCHEDULE_DELAY") {
        Some(text) => milliseconds("OTEL_BSP_SCHEDULE_DELAY", &text)?,
        None => DELAY,
    };
    let attributes = variable(reading, "OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let mut resource = pairs("OTEL_RESOURCE_ATTRIBUTES", &attributes)?;
    let name = variable(reading, "OTEL_SERVICE_NAME");
    let has_name = resource.iter().any(|(key, _)| key == "service.name");
    if let Some(name) = name.or_else(|| (!has_name).then(|| "onehop".to_owned())) {
        resource.retain(|(key, _)| key != "service.name");
        resource.insert(0, ("service.name".to_owned(), name.replace('%', "%25")));
    }
    Ok(TraceExport { url: Some(url).filter(|_| !is_off), headers, timeout, delay, resource })
}

fn speaks_grpc(url: &str) -> bool {
    url.split('/').nth(2).is_some_and(|authority| authority.ends_with(":4317"))
}

/// `key=value,key=value`, as the values of a `baggage` field (W3C Baggage).
fn pairs(variable: &'static str, text: &str) -> Result<Vec<(String, String)>, Wrong> {
    let all = text.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').filter(|(key, _)| !key.trim().is_empty())?;
        Some((key.trim().to_owned(), value.trim().to_owned()))
    });
    // Its values may be secrets.
    all.collect::<Option<_>>()
        .ok_or_else(|| (variable, "it is not a list of `key=value` with commas between".to_owned()))
}

fn milliseconds(variable: &'static str, text: &str) -> Result<Duration, Wrong> {
    let number = text.parse().ok().filter(|number| (1..=3_600_000).contains(number));
    let message = || format!("`{text}` is no number of milliseconds from 1 to 3,600,000");
    number.map(Duration::from_millis).ok_or_else(|| (variable, message()))
}

fn sampler(reading: Reading<'_>) -> Result<Sampler, Wrong> {
    let Some(name) = variable(reading, "OTEL_TRACES_SAMPLER") else { return Ok(Sampler::default()) };
    let (follows_parent, kind) = match name.strip_prefix("parentbased_") {
        Some(kind) => (true, kind),
        None => (false, name.as_str()),
    };
    let of_2_to_56 = match kind {
        "always_on" => EVERY_TRACE,
        "always_off" => 0,
        "traceidratio" => share(reading)?,
        _ => {
            let message = format!(
                "`{name}` is not known; it may be always_on, always_off, traceidratio, or one of them behind parentbased_"
            );
            return Err(("OTEL_TRACES_SAMPLER", message));
        }
    };
    Ok(Sampler { follows_parent, of_2_to_56 })
}

/// Of 2^56 traces so many.
fn share(reading: Reading<'_>) -> Result<u64, Wrong> {
    let Some(text) = variable(reading, "OTEL_TRACES_SAMPLER_ARG") else { return Ok(EVERY_TRACE) };
    let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    let message = || format!("`{text}` is no share of traces from 0 to 1");
    ratio
        .map(|ratio: f64| (ratio * EVERY_TRACE as f64) as u64)
        .ok_or_else(|| ("OTEL_TRACES_SAMPLER_ARG", message()))
}
