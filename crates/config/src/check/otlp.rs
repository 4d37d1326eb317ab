//! Where spans and metrics go, as OpenTelemetry's environment variables say
//! (<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>).

use std::time::Duration;

use super::{Context, Reading};
use crate::checked::OtlpExport;
use crate::problem::{Location, Problem};

/// The default of OTLP over HTTP.
const ENDPOINT: &str = "http://localhost:4318";
/// The defaults of the specification.
const TIMEOUT: Duration = Duration::from_secs(10);
const SPANS_DELAY: Duration = Duration::from_secs(5);
const METRICS_DELAY: Duration = Duration::from_secs(60);

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    /// In names of variables.
    fn word(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
        }
    }

    /// In URLs.
    fn path(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }

    /// The variable that says how often, and what holds without it.
    fn delay(self) -> (&'static str, Duration) {
        match self {
            Self::Traces => ("OTEL_BSP_SCHEDULE_DELAY", SPANS_DELAY),
            Self::Metrics => ("OTEL_METRIC_EXPORT_INTERVAL", METRICS_DELAY),
        }
    }
}

/// A wrong value: the variable and the message.
pub(crate) type Wrong = (&'static str, String);

/// Reads the variables for the directive or option at this place.
pub(crate) fn otlp_export(
    cx: &mut Context<'_>,
    signal: Signal,
    code: &'static str,
    place: &Location,
) -> Result<OtlpExport, Box<Problem>> {
    let export = export(cx.source, signal).map_err(|wrong| broken(wrong, code, place))?;
    if export.url.as_deref().is_some_and(speaks_grpc) {
        let message = "port 4317 is that of OTLP over gRPC, which onehop does not speak";
        cx.problems.push(
            Problem::warning(code, place, message)
                .help("name the receiver of OTLP over HTTP, whose port is 4318: OTEL_EXPORTER_OTLP_ENDPOINT=http://HOST:4318"),
        );
    }
    Ok(export)
}

/// The problem of a variable.
pub(crate) fn broken((variable, message): Wrong, code: &'static str, place: &Location) -> Box<Problem> {
    Problem::error(code, place, format!("{variable}: {message}")).help(format!(
        "`{code}` exports as OpenTelemetry's environment variables say; change or unset that one"
    ))
}

/// A variable that is set to something.
pub(crate) fn variable(reading: Reading<'_>, name: &str) -> Option<String> {
    reading.env(name).filter(|value| !value.trim().is_empty()).map(|value| value.trim().to_owned())
}

/// The variable of the signal, else the one of all signals.
fn of_signal(reading: Reading<'_>, signal: Signal, end: &str) -> Option<String> {
    let own = variable(reading, &format!("OTEL_EXPORTER_OTLP_{}_{end}", signal.word()));
    own.or_else(|| variable(reading, &format!("OTEL_EXPORTER_OTLP_{end}")))
}

/// Where the signal goes.
fn export(reading: Reading<'_>, signal: Signal) -> Result<OtlpExport, Wrong> {
    let is_off = variable(reading, "OTEL_SDK_DISABLED")
        .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || variable(reading, &format!("OTEL_{}_EXPORTER", signal.word()))
            .is_some_and(|value| value == "none");
    if of_signal(reading, signal, "PROTOCOL").is_some_and(|protocol| protocol == "grpc") {
        let message = "`grpc` is not spoken; onehop exports over HTTP, as `http/json`".to_owned();
        return Err(("OTEL_EXPORTER_OTLP_PROTOCOL", message));
    }
    // The variable of the signal is the whole URL, the other one what it begins with.
    let own = variable(reading, &format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", signal.word()));
    let url = own.unwrap_or_else(|| {
        let base = variable(reading, "OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned());
        format!("{}/v1/{}", base.trim_end_matches('/'), signal.path())
    });
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    if !rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains([' ', '@'])) {
        // It may have a password in it.
        let message =
            "it is no URL; it begins with http:// or https://, and has no password in it".to_owned();
        return Err(("OTEL_EXPORTER_OTLP_ENDPOINT", message));
    }
    let headers = of_signal(reading, signal, "HEADERS").unwrap_or_default();
    let headers = pairs("OTEL_EXPORTER_OTLP_HEADERS", &headers)?;
    let timeout = match of_signal(reading, signal, "TIMEOUT") {
        Some(text) => milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", &text)?,
        None => TIMEOUT,
    };
    let (delay, usual) = signal.delay();
    let delay = variable(reading, delay).map_or(Ok(usual), |text| milliseconds(delay, &text))?;
    let attributes = variable(reading, "OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let mut resource = pairs("OTEL_RESOURCE_ATTRIBUTES", &attributes)?;
    let name = variable(reading, "OTEL_SERVICE_NAME");
    let has_name = resource.iter().any(|(key, _)| key == "service.name");
    if let Some(name) = name.or_else(|| (!has_name).then(|| "onehop".to_owned())) {
        resource.retain(|(key, _)| key != "service.name");
        resource.insert(0, ("service.name".to_owned(), name.replace('%', "%25")));
    }
    Ok(OtlpExport { url: Some(url).filter(|_| !is_off), headers, timeout, delay, resource })
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
